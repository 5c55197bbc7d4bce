//! Commands about models.

use super::CollectiveModelArgs;
use clap::{Args, Subcommand, ValueEnum};
use reserve::SlotUnit;
use units::{Bytes, Count, Prob, Rate, Span, whole_within};

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Compute how often corruption makes RDMA flows time out, what dummies and copies do about it, and what they cost.
    ///
    /// The probabilities of "Packet corruption in RDMA", exact and as the paper approximates them, for your flows. With
    /// --advise and a goal: the cheapest setting that reaches it, and why.
    #[command(allow_negative_numbers = true)]
    Rdma(Box<RdmaArgs>),

    /// Compute what MELO keeps on the chip of a NIC: bytes of each connection, bits of the shared pools.
    #[command(allow_negative_numbers = true)]
    Melo(MeloArgs),

    /// Compute what a bad cable costs a collective: time, losses, timeouts and lateness of an iteration, by remedy.
    ///
    /// Closed forms for the words of `hitless sim collective`. The link is the cable of a host.
    #[command(allow_negative_numbers = true)]
    Collective(Box<CollectiveModelArgs>),

    /// Compute what HPCC does to windows and queues, what its telemetry costs, and whether an incast makes PFC pause.
    ///
    /// The formulas of Li's thesis, chapter 2, for one link that flows share.
    #[command(allow_negative_numbers = true)]
    Hpcc(HpccArgs),

    /// Compute what reservations in a rack (PL2) promise and cost: bound on the buffer, throughput, wait, ceiling of
    /// goodput, leaks.
    ///
    /// With --advise and --p99: the scheduler, K and contexts that meet it with the smallest buffer, and why.
    #[command(allow_negative_numbers = true)]
    Pl2(Pl2Args),
}

#[derive(Debug, Args)]
pub(crate) struct RdmaArgs {
    /// Share of full packets that a corrupting link corrupts; shorter ones suffer less.
    #[arg(long, value_name = "SHARE", default_value = "1e-3")]
    pub corruption: Prob,

    /// Instead of --corruption: share of bits in error on a corrupting link.
    #[arg(long, value_name = "RATE", conflicts_with = "corruption")]
    pub bit_errors: Option<Prob>,

    /// Instead of --corruption: share of packets lost regardless of their length, as a switch drops them.
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["corruption", "bit_errors"])]
    pub drops: Option<Prob>,

    /// Links that a packet passes, one way; the way back has as many.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole_within::<u32>(1..=16))]
    pub links: u32,

    /// Share of links that corrupt, each direction by itself; 1 if all do.
    #[arg(long, value_name = "SHARE", default_value = "1")]
    pub corrupting: Prob,

    /// Flow sizes: a trace such as web-search or data-mining, or a file of lines `bytes percent`.
    #[arg(long, value_name = "TRACE|FILE", default_value = "web-search")]
    pub workload: String,

    /// Instead of --workload: all flows have this size in bytes.
    #[arg(long, value_name = "BYTES", conflicts_with = "workload")]
    pub size: Option<Bytes>,

    /// Most payload of a packet in bytes.
    #[arg(long, value_name = "BYTES", default_value = "1024")]
    pub mtu: Bytes,

    /// Dummy headers behind the last packet of a flow.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole_within::<u32>(0..=100))]
    pub dummies: u32,

    /// Copies of each NAK, besides the NAK itself.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_within::<u32>(0..=100))]
    pub naks: u32,

    /// Copies of the packet that a NAK asked for, besides the packet itself.
    #[arg(long, alias = "naked", value_name = "N", default_value_t = 3, value_parser = whole_within::<u32>(0..=100))]
    pub requested: u32,

    /// Instead of --dummies: copies of the last packet of a flow, besides the packet itself.
    #[arg(
        long, value_name = "N", default_value_t = 0, conflicts_with = "dummies",
        value_parser = whole_within::<u32>(0..=100)
    )]
    pub tail_repeat: u32,

    /// The NIC goes back once for each copy of a NAK, so that these repeat the retransmission as well.
    #[arg(long)]
    pub obeys_copies: bool,

    /// Retransmission timeout of the NIC.
    #[arg(long, value_name = "TIME", default_value = "64ms")]
    pub rto: Span,

    /// Round-trip time, which is what a loss costs that go-back-N repairs.
    #[arg(long, value_name = "TIME", default_value = "10us")]
    pub rtt: Span,

    /// Time for which a queue pair is idle before dummies are sent: the paper's T.
    #[arg(long, value_name = "TIME", default_value = "0us")]
    pub wait: Span,

    /// Queue pairs of a host that all its flows share; every flow has its own if not given.
    #[arg(long, value_name = "N", value_parser = whole_within::<u32>(1..))]
    pub queue_pairs: Option<u32>,

    /// Share of a host's link that its flows fill.
    #[arg(long, value_name = "SHARE", default_value = "0.3", requires = "queue_pairs")]
    pub load: Prob,

    /// Rate of a host's link.
    #[arg(long, default_value = "100G", requires = "queue_pairs")]
    pub rate: Rate,

    /// Simulate this many flows as well, without help and with it, and count those that time out.
    #[arg(long, value_name = "FLOWS", conflicts_with = "queue_pairs")]
    pub simulate: Option<Count>,

    /// Runs of the simulation at the same time; as many as there are cores if not given.
    #[arg(long, value_name = "N", requires = "simulate", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,

    /// Seed of the simulation.
    #[arg(long, default_value_t = 1, requires = "simulate")]
    pub seed: u64,

    /// Find the cheapest setting that reaches a goal: --p99, --p999 or --p9999.
    #[arg(long)]
    pub advise: bool,

    #[command(flatten)]
    pub goal: GoalArgs,

    /// Value of that percentile of flow completion times without corruption.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    pub base: Span,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct GoalArgs {
    /// 99 % of flows are to be complete within this.
    #[arg(long, value_name = "TIME")]
    pub p99: Option<Span>,

    /// 99.9 % of flows are.
    #[arg(long, value_name = "TIME")]
    pub p999: Option<Span>,

    /// 99.99 % of flows are.
    #[arg(long, value_name = "TIME")]
    pub p9999: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct MeloArgs {
    /// Connections whose state is on the chip at once.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = whole_within::<u32>(1..))]
    pub connections: u32,

    /// Bandwidth-delay product in bytes: what can be out of order at once.
    #[arg(long, value_name = "BYTES", default_value = "1MB")]
    pub bdp: Bytes,

    /// Most payload of a packet in bytes.
    #[arg(long, value_name = "BYTES", default_value = "1024")]
    pub mtu: Bytes,

    /// Bits of a block, a power of two up to 64.
    #[arg(long, value_name = "BITS", default_value_t = 8, value_parser = whole_within::<u32>(..))]
    pub block: u32,

    /// Bits of the pool of one side [default: a bit for each packet of --bdp, rounded up to a power of two].
    #[arg(long, value_name = "BITS", value_parser = whole_within::<u32>(..))]
    pub pool: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct HpccArgs {
    /// Rate of hosts and of the link that they share; one that the telemetry can name.
    #[arg(long, default_value = "100G")]
    pub rate: Rate,

    /// Round-trip time without queues: T.
    #[arg(long, value_name = "TIME", default_value = "13us")]
    pub rtt: Span,

    /// Flows that share the link.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole_within::<u32>(1..=10_000))]
    pub flows: u32,

    /// Payload of a full packet in bytes.
    #[arg(long, value_name = "BYTES", default_value = "1000")]
    pub mtu: Bytes,

    /// Switches on the way, each of which writes 8 bytes of telemetry.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole_within::<u32>(1..=15))]
    pub hops: u32,

    /// Target utilization: η.
    #[arg(long, value_name = "SHARE", default_value = "0.95")]
    pub eta: Prob,

    /// Additive step in bytes [default: the largest without a standing queue].
    #[arg(long, value_name = "BYTES")]
    pub w_ai: Option<Bytes>,

    /// Share of the link that payload uses: how much longer do long flows take then?
    #[arg(long, value_name = "SHARE", default_value = "0.5")]
    pub load: Prob,

    /// Buffer of the switch before the receiver in bytes.
    #[arg(long, value_name = "BYTES", default_value = "32MB")]
    pub buffer: Bytes,

    /// Flows of an incast, which begin at once at line rate.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = whole_within::<u32>(1..=100_000))]
    pub fan_in: u32,

    /// Ports of that switch by which the incast arrives, equally.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_within::<u32>(1..=100_000))]
    pub ports: u32,

    /// PFC: share of what is left of the buffer that the packets of one ingress port may take.
    #[arg(long, value_name = "SHARE", default_value_t = 0.125)]
    pub alpha: f64,
}

#[derive(Debug, Args)]
pub(crate) struct Pl2Args {
    /// Rate of every port.
    #[arg(long, default_value = "100G")]
    pub rate: Rate,

    /// Hosts of the rack.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = whole_within::<u32>(2..=128))]
    pub hosts: u32,

    /// Contexts of each host: reservations that it may have open.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = whole_within::<u32>(1..=255))]
    pub contexts: u32,

    /// Frames of a burst.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole_within::<u32>(1..=64))]
    pub k: u32,

    /// Unit that a slot is for.
    #[arg(long, value_enum, default_value = "frames")]
    pub unit: SlotUnitArg,

    /// Time from a reservation to its grant in an idle rack.
    #[arg(long, value_name = "TIME", default_value = "2.05us")]
    pub rtt: Span,

    /// Additional time of a sender's software for each burst; 0 if contexts are in the NIC.
    #[arg(long, value_name = "TIME", default_value = "3.5us")]
    pub software: Span,

    /// Messages: a trace such as w1 to w5, or a file of lines `bytes percent` [default: full frames].
    #[arg(long, value_name = "TRACE|FILE")]
    pub workload: Option<String>,

    /// Share of frames that hosts' links lose: how soon does it halve the throughput of the paper's scheduler?
    #[arg(long, value_name = "SHARE", default_value = "0")]
    pub loss: Prob,

    /// Choose scheduler, K and contexts for --p99.
    #[arg(long)]
    pub advise: bool,

    /// Limit of a request's time at the 99th percentile beside everybody, from its reservation to its slot.
    #[arg(long, value_name = "TIME")]
    pub p99: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SlotUnitArg {
    /// One frame, however long.
    Frames,
    /// The bytes that frames take on the wire.
    Bytes,
}

impl From<SlotUnitArg> for SlotUnit {
    fn from(unit: SlotUnitArg) -> Self {
        match unit {
            SlotUnitArg::Frames => Self::Frames,
            SlotUnitArg::Bytes => Self::Bytes,
        }
    }
}

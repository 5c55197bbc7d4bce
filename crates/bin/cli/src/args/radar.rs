//! Commands about lost packets.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use radar::causes::{CauseThresholds, ThresholdError};
use radar::rule::{CauseRule, EvidenceRule};
use units::{Bytes, Count, Prob, Span, whole_within};

use super::fabric_map::{FlowsCommand, MapArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum RadarCommand {
    /// Name the packets of one capture that are missing in another that was taken farther along their way.
    ///
    /// Reads pcap and pcapng, also in gzip. Clocks need not agree, and captures need not begin and end together.
    Losses(Box<LossesArgs>),

    /// Measure the delay of packets between two captures, each delay as an interval that contains the truth.
    ///
    /// Traffic in both directions bounds the offset between the captures' clocks to half the smallest round trip; files of
    /// what the clocks say of themselves narrow it. No statement is made that the interval does not allow.
    Delay(Box<DelayArgs>),

    /// Put what passes an interface into digests, and send them to a collector.
    ///
    /// One on each end of any stretch of network, with the same --segment, --batch, --cells and --fields. Clocks must agree
    /// to within a batch (NTP, PTP). Needs root, or CAP_NET_RAW.
    Meter(Box<MeterArgs>),

    /// Name the packets that were lost between meters, as it happens.
    ///
    /// A line for each lost packet, and a summary of each segment at the end.
    Collect(Box<CollectArgs>),

    /// The collectors that announce themselves on a Redis server, and which segment each takes.
    Collectors(super::CollectorsArgs),

    /// The packets of every flow, slot by slot, from a capture or an interface.
    ///
    /// FlowRadar's counters: memory for a fixed number of flows in a slot. With --json a line for each slot. `flows meter` and
    /// `flows collect` do the same for all switches of a network.
    Flows(Box<FlowsArgs>),

    /// What is wrong in a fabric: loops, blackholes, losses, uneven hashes, heavy, pulsing and strayed flows, by link and flow.
    ///
    /// From a recording of `radar flows collect`, or live from `radar flows meter` at every switch.
    Map(Box<MapArgs>),

    /// Name the rules of an access list of which one may be corrupted: one flipped bit in it explains what was lost.
    ///
    /// For a switch that drops packets which its rules should let pass.
    Acl(AclArgs),
}

/// Treatment of packets that no rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OtherwiseArg {
    Accept,
    Deny,
}

#[derive(Debug, Args)]
pub(crate) struct AclArgs {
    /// The rules as they were meant, in order of priority: one line each as ClassBench writes them, then accept or deny.
    pub rules: PathBuf,

    /// Lost packets: the output of `radar losses --json`, or of `radar collect --json`; `-` is standard input.
    pub losses: PathBuf,

    /// Treatment of packets that no rule matches.
    #[arg(long, value_enum, default_value_t = OtherwiseArg::Deny)]
    pub otherwise: OtherwiseArg,

    /// Take losses of every cause, not only those of blackholes.
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FlowsArgs {
    #[command(subcommand)]
    pub command: Option<FlowsCommand>,

    /// A capture: pcap or pcapng, also in gzip.
    pub capture: Option<PathBuf>,

    /// Count what passes this interface instead, both ways. Needs root, or CAP_NET_RAW.
    #[arg(long, value_name = "IFACE", conflicts_with = "capture")]
    pub interface: Option<String>,

    /// Duration of a slot.
    #[arg(long, value_name = "SPAN", default_value = "10ms")]
    pub slot: Span,

    /// Flows to expect in a slot; of many more, some cannot be decoded.
    #[arg(long, value_name = "N", default_value = "10K")]
    pub flows: Count,

    /// Stop counting after S seconds.
    #[arg(long, value_name = "S", requires = "interface")]
    pub seconds: Option<f64>,

    /// Write a row for each flow and slot.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Flows to list at most.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole_within::<usize>(..))]
    pub top: usize,
}

/// Addresses and ports that are rewritten between the two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NatArg {
    Source,
    Destination,
    Both,
}

/// A part of packets that distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FieldArg {
    /// Address and port of the sender.
    Source,
    /// Address and port of the receiver.
    Destination,
    /// The identification of IPv4.
    IpId,
    /// Sequence number and length of TCP.
    Tcp,
    /// A hash of headers and the beginning of the payload.
    Content,
}

#[derive(Debug, Args)]
pub(crate) struct LossesArgs {
    /// The capture that was taken first on the way of the packets; `-` is standard input.
    pub up: PathBuf,

    /// The one behind it, where packets are missing.
    pub down: PathBuf,

    /// Compare in memory, packet by packet, instead of by digests.
    #[arg(long)]
    pub exact: bool,

    /// Write a page with a timeline of the losses.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the lost packets as pcapng.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,

    #[command(flatten)]
    pub compare: PacketFieldArgs,

    /// Limit of the memory for the names of lost packets; losses beyond are counted only.
    #[arg(long, value_name = "BYTES", default_value = "256MB")]
    pub memory: Bytes,

    /// Judge all of UP, also what seems to lie before or after DOWN's capture.
    #[arg(long)]
    pub whole: bool,

    /// A lost packet with so little time to live left counts as expired, as in a loop (--rule thesis; else --hops).
    #[arg(long, value_name = "HOPS", default_value_t = 1)]
    pub ttl: u8,

    /// Flows and losses to list at most; --json has all.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole_within::<usize>(..))]
    pub top: usize,

    #[command(flatten)]
    pub clocks: ClockArgs,

    #[command(flatten)]
    pub causes: CauseArgs,
}

/// Fields by which packets of two captures are compared.
#[derive(Debug, Args)]
pub(crate) struct PacketFieldArgs {
    /// Addresses and ports are rewritten between the captures: do not compare those.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub nat: Option<NatArg>,

    /// Compare packets by these parts only, separated by commas [default: all].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    pub fields: Vec<FieldArg>,
}

/// Knowledge of the clocks of two captures.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clocks")]
pub(crate) struct ClockArgs {
    /// Drift of the clocks against each other, and of each against true time, in parts per million.
    #[arg(long, value_name = "PPM", default_value_t = 200.0)]
    pub drift: f64,

    /// Statements of the clock of UP's host while UP was taken: lines of `hitless clock now --follow`, of chrony or of
    /// ClockBound.
    #[arg(long, value_name = "FILE", requires = "clock_down")]
    pub clock_up: Option<PathBuf>,

    /// Statements of the clock of DOWN's host while DOWN was taken.
    #[arg(long, value_name = "FILE", requires = "clock_up")]
    pub clock_down: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DelayArgs {
    /// The capture of one end of the way; `-` is standard input.
    pub up: PathBuf,

    /// The one of the other end.
    pub down: PathBuf,

    /// Write a page with the delays and the clocks over time.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write a row for each packet.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    #[command(flatten)]
    pub compare: PacketFieldArgs,

    /// Limit of the memory for packets that wait for their counterpart; flows and clocks take up to 100 MB more.
    #[arg(long, value_name = "BYTES", default_value = "256MB")]
    pub memory: Bytes,

    /// Flows to list at most; --json has more.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole_within::<usize>(..))]
    pub top: usize,

    #[command(flatten)]
    pub clocks: ClockArgs,
}

/// Rule by which losses get their cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleArg {
    /// Facts, the queue that neighbours met, and the order of packets, with a stated error.
    Evidence,
    /// Algorithms 10 and 11 of LossRadar's thesis, from times.
    Thesis,
}

/// Conditions on the pattern of losses for a cause.
#[derive(Debug, Args)]
#[command(next_help_heading = "Causes")]
pub(crate) struct CauseArgs {
    /// Rule by which losses get their cause.
    #[arg(long, value_enum, value_name = "RULE", default_value_t = RuleArg::Evidence)]
    pub rule: RuleArg,

    /// Chance of a wrong accusation in an interval.
    #[arg(long, value_name = "PROB", default_value = "1e-3")]
    pub error: Prob,

    /// Routers between the two ends: a lost packet with no more time to live expired there; 0 on a cable.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_within::<u8>(..=254))]
    pub hops: u8,

    /// A flow that loses N in a row, and all it sends meanwhile, is in a blackhole.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole_within::<usize>(..))]
    pub blackhole: usize,

    /// A flow that loses more than N in a row is in a blackhole even if that took no longer than a burst.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = whole_within::<usize>(..))]
    pub bursty_blackhole: usize,

    /// Shortest interval that is judged [default: 1s; 100ms with --rule thesis].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Span>,

    /// Losses closer than this belong to one burst (--rule thesis).
    #[arg(long, value_name = "TIME", default_value = "20us")]
    pub burst_gap: Span,

    /// Number of losses that make a burst: congestion, unless one flow lost all (--rule thesis).
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole_within::<usize>(..))]
    pub burst: usize,

    /// A share of SYNs above this is a blackhole too (--rule thesis).
    #[arg(long, value_name = "SHARE", default_value = "0.9")]
    pub syn: Prob,

    /// Losses are random if more than this share of intervals, as many as losses, has one (--rule thesis).
    #[arg(long, value_name = "SHARE", default_value = "0.5")]
    pub random: Prob,
}

impl CauseArgs {
    /// The rule; by that of the thesis a lost packet with at most `ttl` left has expired.
    pub(crate) fn rule(&self, ttl: u8) -> Result<CauseRule, ThresholdError> {
        let Self { blackhole, bursty_blackhole, .. } = *self;
        let thesis = CauseThresholds::default();
        let thresholds = CauseThresholds {
            gap: self.burst_gap,
            burst: self.burst,
            bursty_blackhole,
            blackhole,
            syn: self.syn,
            random: self.random,
            ..thesis
        };
        if self.rule == RuleArg::Thesis {
            let interval = self.interval.unwrap_or(thesis.interval);
            return Ok(CauseRule::Thesis(CauseThresholds { interval, ..thresholds }.checked()?, ttl));
        }
        thresholds.checked()?;
        let usual = EvidenceRule::default();
        let interval = self.interval.unwrap_or(usual.interval);
        let (error, hops) = (self.error.get(), self.hops);
        Ok(CauseRule::Evidence(EvidenceRule { error, hops, blackhole, bursty_blackhole, interval, ..usual }.checked()?))
    }
}

#[derive(Debug, Args)]
pub(crate) struct MeterArgs {
    /// The interface whose packets are metered.
    pub interface: String,

    /// Address at which the collector listens, or of the Redis server on which collectors announce themselves: HOST:PORT,
    /// redis://HOST:PORT, or rediss:// with TLS.
    #[arg(long, value_name = "ADDR")]
    pub to: String,

    /// Seal reports with the key that the collector has: a file with 32 hexadecimal digits that its owner alone can read.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// The certificate authority of a rediss:// server, in PEM; those of the system if not given.
    #[arg(long, value_name = "FILE")]
    pub bus_ca: Option<PathBuf>,

    /// The name of what lies between the meters; both ends say the same.
    #[arg(long, value_name = "NAME")]
    pub segment: String,

    /// The name of this end [default: host/interface].
    #[arg(long, value_name = "NAME")]
    pub end: Option<String>,

    /// Duration of a batch: losses are known two to three batches later.
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub batch: Span,

    /// Cells of a digest: some more than packets are lost or on their way in a batch. Few are sent, more when asked for.
    #[arg(long, value_name = "N", default_value_t = 384, value_parser = whole_within::<u32>(12..=8_192))]
    pub cells: u32,

    /// Each meter's clock is wrong by at most this: cells follow from it, from --way and from --packet-rate.
    #[arg(long, value_name = "TIME", requires = "packet_rate", conflicts_with = "cells")]
    pub clock_error: Option<Span>,

    /// The longest time that a packet takes from meter to meter.
    #[arg(long, value_name = "TIME", default_value = "1ms", requires = "clock_error")]
    pub way: Span,

    /// The packets of a second, each way.
    #[arg(long, value_name = "N", requires = "clock_error")]
    pub packet_rate: Option<Count>,

    /// The losses of a batch that are to be named, beside what is on its way.
    #[arg(long, value_name = "N", default_value = "100", requires = "clock_error")]
    pub losses: Count,

    /// End after S seconds; at Ctrl-C if not given.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Addresses and ports of what leaves by this end are rewritten on its way: which. The other end says the opposite:
    /// source here is destination there.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub nat: Option<NatArg>,

    /// Compare packets by these parts only, separated by commas [default: all].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    pub fields: Vec<FieldArg>,

    /// Also frames that are for other hosts.
    #[arg(long)]
    pub promiscuous: bool,

    /// Memory for the latest packets, 16 bytes each, of which the collector asks when lost ones passed; 0 for none, and no
    /// cause is known then.
    #[arg(long, value_name = "BYTES", default_value = "16MB")]
    pub trail: Bytes,
}

#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct CollectArgs {
    /// Wait here for meters; a port alone means this machine only, 0.0.0.0:PORT all of its addresses.
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: String,

    /// Share segments out with other collectors, by way of a Redis server: `redis://HOST:PORT`, or `rediss://` with TLS.
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,

    /// The name of this collector among the others; the host's if not given.
    #[arg(long, value_name = "NAME", requires = "from")]
    pub name: Option<String>,

    /// Meters that may be connected at a time, a quarter of them from one address.
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = whole_within::<usize>(4..=65_536))]
    pub connections: usize,

    /// Hear only meters that have the same key: a file with 32 hexadecimal digits that its owner alone can read.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// The certificate authority of a rediss:// server, in PEM; those of the system if not given.
    #[arg(long, value_name = "FILE", requires = "from")]
    pub bus_ca: Option<PathBuf>,

    /// Limit of the memory of all segments together; when it is full, those that hold most are forgotten.
    #[arg(long, value_name = "BYTES", default_value = "256MB")]
    pub memory: Bytes,

    /// End after S seconds; at Ctrl-C if not given.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Append every loss to this file, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Ends of each segment; with more than two it is a black box, and all that went in is compared with all that came out.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole_within::<u32>(2..=64))]
    pub ends: u32,

    /// Batches that a packet may be on its way, clocks that differ included.
    #[arg(long, value_name = "BATCHES", default_value_t = 2, value_parser = whole_within::<u32>(1..=1_000))]
    pub patience: u32,

    /// Flows to list at most at the end; --json has all.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole_within::<usize>(..))]
    pub top: usize,

    #[command(flatten)]
    pub causes: CauseArgs,
}

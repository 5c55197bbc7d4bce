//! `hitless sim`.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use super::CollectiveArgs;
use super::replay::LevelArg;
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use imports::{HostNames, ImportFormat};
use results::congestion::{self, TrafficMix};
use settings::Seeds;
use sim::link::LinkSimMode;
use units::{Bytes, Count, ParseError, Prob, Rate, Span, whole_within};

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// A whole network, as a scenario file describes it: topology, faults, protection, traffic, what to measure.
    ///
    /// A list where one value is expected is a sweep. Mistakes in the file are found before anything runs.
    #[command(allow_negative_numbers = true)]
    Run(RunArgs),

    /// Two nodes, the link between them, and a protocol that hides its losses.
    #[command(allow_negative_numbers = true)]
    Link(Box<LinkArgs>),

    /// LinkGuardian against UEC-style link-layer retry, on the same link with the same losses.
    #[command(allow_negative_numbers = true)]
    Compare(CompareArgs),

    /// Congestion controls of RDMA beside each other: the same traffic through the same network under each of them.
    ///
    /// Switches are set as each controller needs them. Every run is a scenario: --scenario prints it.
    #[command(allow_negative_numbers = true)]
    Cc(CcArgs),

    /// What a bad cable costs a collective: remedies beside each other, iteration by iteration.
    ///
    /// The first line is the answer. Each run is a scenario: --scenario prints it. `hitless model collective` answers the same
    /// question at once, in closed forms.
    #[command(allow_negative_numbers = true)]
    Collective(Box<CollectiveArgs>),

    /// A graph of transfers from a file of another simulator, as CSV for `work = "file"`.
    ///
    /// Connection matrices of htsim with their triggers, GOAL, Chakra traces (NAME.%d.et or NAME.%d.json, a file for each rank),
    /// tables of SimCCL, flow lists of HPCC's authors. A line or node that makes no sense ends the import; what has no
    /// counterpart here is named as left out.
    Import(ImportArgs),

    /// The network simulator against this machine's own TCP: the same wire, loss and congestion control in both.
    ///
    /// Each point has a verdict: throughput, median and 99th percentile of requests within 25 % match. Where they differ, both
    /// sides are captured and explained. The exit code is 0 whatever the verdicts. Brings its own hosts, wire and traffic;
    /// changes nothing on this machine and leaves nothing behind.
    #[command(allow_negative_numbers = true)]
    Check(SimCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The scenario, a TOML file; or what --json printed, to run it again.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Instead of what the file says, such as traffic.size=143; commas make a sweep. May be given often.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Seeds, each a run: 7, 1..32 or 1,5,9; what the file says if not given.
    #[arg(long)]
    pub seeds: Option<Seeds>,

    /// Runs at the same time; as many as there are cores if not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,

    /// Write files there: flows, samples and packets of every run, and a summary.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Simulate every iteration of a collective, also those that nothing distinguishes from the one before. The result is the same.
    #[arg(long)]
    pub exact: bool,

    /// Write a page there: iterations of collectives over time, their tail, the accused links.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Record every TCP connection there, an empty or absent folder; `hitless replay` runs them again.
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// Level of the record: what is kept of time.
    #[arg(long, value_enum, default_value_t = LevelArg::Times, requires = "record")]
    pub record_level: LevelArg,
}

/// A mode by the name that the simulator gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeArg(pub LinkSimMode);

impl ValueEnum for ModeArg {
    fn value_variants<'a>() -> &'a [Self] {
        static MODES: LazyLock<Vec<ModeArg>> = LazyLock::new(|| LinkSimMode::ALL.map(ModeArg).to_vec());
        &MODES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProfileArg {
    /// The paper's switch: 10G to 100G, recirculating buffers, its authors' parameters.
    Tofino,
    /// A sorted reorder buffer and computed parameters, any rate.
    Ideal,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ReorderArg {
    Sorted,
    Rotating,
}

/// `1518`, or sizes with weights: `64:3,1518:1`.
#[derive(Clone, Debug)]
pub(crate) struct SizesArg(pub sim::link::FrameSizes);

impl FromStr for SizesArg {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError =
            ParseError::new("64 to 9022 bytes, such as 1518, or sizes with weights such as 64:3,1518:1");
        let len = |text: &str| match text.parse::<u32>() {
            Ok(len @ wire::ethernet::MIN_FRAME..=wire::ethernet::MAX_FRAME) => Ok(len),
            _ => Err(EXPECTED),
        };
        if !text.contains([':', ',']) {
            return len(text).map(|len| Self(sim::link::FrameSizes::Fixed(len)));
        }
        let parts: Result<Vec<(u32, f64)>, ParseError> = text
            .split(',')
            .map(|part| {
                let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
                let weight: f64 = weight.parse().map_err(|_| EXPECTED)?;
                if weight > 0.0 && weight.is_finite() { Ok((len(size)?, weight)) } else { Err(EXPECTED) }
            })
            .collect();
        parts.map(|parts| Self(sim::link::FrameSizes::Mix(parts)))
    }
}

#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// Rate of the link, 1M to 10T.
    #[arg(long, default_value = "100G")]
    pub rate: Rate,

    /// Share of frames corrupted from A to B.
    #[arg(long, default_value = "1e-3")]
    pub loss: Prob,

    /// Losses come in bursts of this many frames on average.
    #[arg(long, value_name = "FRAMES")]
    pub burst: Option<f64>,

    /// Instead of --loss: share of bits in error, so that long frames suffer more.
    #[arg(long, value_name = "RATE", conflicts_with_all = ["loss", "burst"])]
    pub bit_errors: Option<Prob>,

    /// Share of frames corrupted from B to A.
    #[arg(long, value_name = "LOSS", default_value = "0")]
    pub reverse_loss: Prob,

    /// Instead of the four above: a TOML file of loss models by direction and time.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["loss", "burst", "bit_errors", "reverse_loss"])]
    pub faults: Option<PathBuf>,

    /// Mode of the links: how they treat losses.
    #[arg(long, value_enum, default_value_t = ModeArg(LinkSimMode::Ordered))]
    pub mode: ModeArg,

    /// Device profile of the nodes.
    #[arg(long, value_enum, default_value_t = ProfileArg::Ideal)]
    pub profile: ProfileArg,

    /// Frames to send from A to B, on each link.
    #[arg(long, default_value = "1e8")]
    pub frames: Count,

    /// Length of a frame in bytes, check included; or several with weights, as 64:3,1518:1.
    #[arg(long, default_value = "1518")]
    pub size: SizesArg,

    /// Share of the link that the frames fill, arriving at random; line rate if not given.
    #[arg(long, value_name = "SHARE")]
    pub load: Option<Prob>,

    /// Share of the link that frames from B to A fill.
    #[arg(long, value_name = "SHARE", default_value = "0")]
    pub reverse_load: Prob,

    /// Protect the frames from B to A as well.
    #[arg(long)]
    pub protect_reverse: bool,

    /// Propagation delay, one way; 5 ns a metre.
    #[arg(long, default_value = "50ns")]
    pub delay: Span,

    /// Loss that the copies aim for.
    #[arg(long, value_name = "LOSS", default_value = "1e-8")]
    pub target_loss: Prob,

    /// Copies of each retransmission, instead of computing them (at most 8) from loss and target.
    #[arg(long, value_name = "N", value_parser = whole_within::<u8>(1..=100))]
    pub copies: Option<u8>,

    /// Copies of each loss notification, for links that corrupt both ways.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_within::<u8>(1..=16))]
    pub control_copies: u8,

    /// Dummies sent at once behind the last frame; from the length of bursts if not given.
    #[arg(long, value_name = "N", value_parser = whole_within::<u8>(1..=16))]
    pub dummy_copies: Option<u8>,

    /// Number of times that a missing frame is reported before it is given up.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_within::<u8>(1..=100))]
    pub asks: u8,

    /// Reorder buffer, instead of the profile's.
    #[arg(long, value_enum)]
    pub reorder: Option<ReorderArg>,

    /// Let the reorder buffer overflow instead of pausing the sender.
    #[arg(long)]
    pub no_backpressure: bool,

    /// Acknowledge as the paper does: without the gaps still open, so that a lost notification loses its frame.
    #[arg(long)]
    pub paper_acks: bool,

    /// Send dummies without end, as the paper does.
    #[arg(long)]
    pub endless_dummies: bool,

    /// Recover at most this many losses in a row; the paper's switch has 5.
    #[arg(long, value_name = "N", value_parser = whole_within::<u32>(1..))]
    pub max_consecutive: Option<u32>,

    /// First sequence number.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub first_seq: u16,

    /// Links into one switch, all alike.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_within::<u32>(1..=1024))]
    pub links: u32,

    /// Reorder buffer that all links share, instead of one for each.
    #[arg(long, value_name = "BYTES")]
    pub shared_reorder: Option<Bytes>,

    /// Simulate every frame, also between losses.
    #[arg(long)]
    pub exact: bool,

    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Rates, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "100G,400G,800G")]
    pub rates: Vec<Rate>,

    /// Losses, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1e-5,1e-4,1e-3,1e-2")]
    pub losses: Vec<Prob>,

    /// Losses to simulate at each point.
    #[arg(long, default_value = "50K")]
    pub events: Count,

    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Runs at the same time; as many as there are cores if not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PfcArg {
    On,
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct CcArgs {
    /// Controllers, separated by commas: none, fixed, hpcc, dcqcn, timely, dctcp, swift.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = congestion::controller)]
    #[arg(default_values_t = congestion::COMPARED)]
    pub cc: Vec<&'static str>,

    /// incast, long-short, mice, joining, websearch or hadoop.
    #[arg(long, default_value = "incast", value_parser = TrafficMix::named)]
    pub traffic: TrafficMix,

    /// Recovery of queue pairs from loss: go-back-n, irn or melo.
    #[arg(long, default_value = "go-back-n", value_parser = congestion::recovery)]
    pub recovery: &'static str,

    /// Priority flow control: on if switches pause their neighbours before they drop packets.
    #[arg(long, value_enum, default_value_t = PfcArg::On)]
    pub pfc: PfcArg,

    /// Share of packets that one link corrupts: that to the receiver, or one between a leaf and a spine.
    #[arg(long, value_name = "P", default_value = "0")]
    pub loss: Prob,

    /// Protection of that link: none, ordered, nonblocking, auto, uec-llr or fec.
    #[arg(long, value_name = "MODE", default_value = "none")]
    pub protect: String,

    /// Give controllers of rate (dcqcn, timely) a window as well.
    #[arg(long)]
    pub plus_window: bool,

    /// Print the scenario of the first controller instead, to change it and run it with `sim run`.
    #[arg(long)]
    pub scenario: bool,

    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Runs at the same time; as many as there are cores if not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,
}

/// Unit of `start` in a connection matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartUnitArg {
    /// Picoseconds, as NDP of csg-htsim reads them.
    Ps,
    /// Microseconds, as htsim_uec does.
    Us,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file; of Chakra traces, all by one name such as trace.%d.et.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Format of the file: htsim, goal, chakra, simccl or hpcc.
    #[arg(long, value_name = "FORMAT")]
    pub from: ImportFormat,

    /// Hosts for ranks or nodes 0, 1, …: h0..h15, or names with commas [default: h0, h1, …; of hpcc n0, n1, …].
    #[arg(long, value_name = "NAMES", value_parser = HostNames::parse)]
    pub hosts: Option<HostNames>,

    /// Unit of start times in a connection matrix, which htsim's programs read differently.
    #[arg(long, value_enum)]
    pub start_unit: Option<StartUnitArg>,
}

/// A congestion control of the kernel that the simulator has as well.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CheckedCongestion {
    Cubic,
    Reno,
    Bbr,
}

#[derive(Debug, Args)]
pub(crate) struct SimCheckArgs {
    /// Rate of the wire.
    #[arg(long, default_value = "1G")]
    pub rate: Rate,

    /// Congestion controls, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "cubic,reno,bbr")]
    pub congestion: Vec<CheckedCongestion>,

    /// Losses in each direction, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1e-4,1e-3,1e-2")]
    pub losses: Vec<Prob>,

    /// Delays that the wire adds to a round trip, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "TIME", default_value = "50us,1ms,20ms")]
    pub round_trips: Vec<Span>,

    /// Seconds of bulk transfer that are measured in each case and round; a warm-up of half of it precedes them.
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    pub seconds: f64,

    /// Requests and responses in each case and round, for at most four seconds.
    #[arg(long, default_value = "2000")]
    pub requests: Count,

    /// Rounds, each with other losses; throughputs are means over them.
    #[arg(long, default_value_t = 2, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,

    /// Ticks a second of this machine's kernel (CONFIG_HZ).
    #[arg(long, default_value_t = 250, value_parser = whole_within::<u32>(24..=1200))]
    pub hz: u32,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,
}

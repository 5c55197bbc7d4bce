//! `hitless bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use units::{Count, Prob, Span, whole_within};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub what: Option<BenchCommand>,

    /// Rate of the wire; `none` for as fast as the machine is.
    #[arg(long, default_value = "none", value_name = "RATE|none")]
    pub rate: String,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,

    /// Seconds of bulk transfer in each row and round.
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    pub seconds: f64,

    /// Requests and responses in each row and round, for at most 15 seconds.
    #[arg(long, default_value = "5000")]
    pub requests: Count,

    /// Access to the host: auto, tap or veth.
    #[arg(long, default_value = "auto")]
    pub backend: String,

    /// Access to the wire: auto or packet.
    #[arg(long, default_value = "auto")]
    pub wire: String,

    /// Only rows with this in their name, beside the first; may be given several times.
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure what a busy host costs: datagrams and bulk through the link, alone and beside a busy loop on every
    /// processor.
    ///
    /// Daemons run with the priority that the systemd unit gives them, if this user may set it.
    Busy(BenchBusyArgs),

    /// Measure the network simulator: packet-hops and events per second on one core, and memory.
    Sim(BenchSimArgs),

    /// Measure the fleet's planner: seconds for a simulated year, a fast check, a plan at each event, and memory.
    Fleet(BenchFleetArgs),

    /// Measure the time that a MELO receiver takes for a packet, by loss; below 20 ns is the target.
    Melo(BenchMeloArgs),

    /// Measure digests and comparisons of captures: time and memory on one core.
    ///
    /// Writes two captures, of 80 bytes a packet each, and removes them.
    #[command(allow_negative_numbers = true)]
    Radar(BenchRadarArgs),

    /// Measure what many meters cost: simulated ones, several collectors, and a Redis server that runs already.
    ///
    /// Starts the collectors on this machine. Each pair of meters loses a packet in every batch.
    Collectors(BenchCollectorsArgs),

    /// Measure the planner for clocks: fabric by fabric, and after each of many failures of Jupiter.
    Clock(BenchClockArgs),

    /// Measure the explanation of captures: packets a second on one core, and memory.
    ///
    /// Writes a capture of 100 bytes a packet, and removes it.
    Explain(BenchExplainArgs),

    /// Measure what `hitless explain record` costs: processor time for each packet and packets a second, with it and
    /// without.
    ///
    /// Two namespaces, the kernel's own TCP between them: a transfer, and small requests. Needs root.
    Record(BenchRecordArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BenchCollectorsArgs {
    /// The Redis server: `redis://HOST:PORT`.
    #[arg(long, value_name = "URL")]
    pub bus: String,

    /// Meters, two for each segment.
    #[arg(long, default_value_t = 1_000, value_parser = whole_within::<usize>(2..=10_000))]
    pub meters: usize,

    /// Collectors that share them out.
    #[arg(long, default_value_t = 3, value_parser = whole_within::<usize>(1..=64))]
    pub collectors: usize,

    /// Duration of a batch.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub batch: Span,

    /// Cells of a digest; all meters keep a hundred batches of them in this process.
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = whole_within::<u32>(24..=8_192))]
    pub cells: u32,

    /// Seconds that are measured.
    #[arg(long, value_name = "S", default_value_t = 20.0)]
    pub seconds: f64,
}

#[derive(Debug, Args)]
pub(crate) struct BenchClockArgs {
    /// Rounds of each plan; the best counts.
    #[arg(long, default_value_t = 10, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,

    /// Failures of Jupiter, one after another.
    #[arg(long, default_value_t = 50, value_parser = whole_within::<u32>(0..=1000))]
    pub failures: u32,

    /// Seed of the failures.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct BenchBusyArgs {
    /// Rounds; figures are sums and medians of all.
    #[arg(long, default_value_t = 3, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,

    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5.0, value_name = "S")]
    pub seconds: f64,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchRecordArgs {
    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 5, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,

    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    pub seconds: f64,
}

#[derive(Debug, Args)]
pub(crate) struct BenchExplainArgs {
    /// Packets in the capture; a connection has some 100 of them.
    #[arg(long, default_value = "10M")]
    pub packets: Count,

    /// Connections that are open at a time.
    #[arg(long, default_value_t = 1_000, value_parser = whole_within::<u64>(1..=50_000))]
    pub open: u64,

    /// Make each packet the lone SYN of a connection, as a scan does.
    #[arg(long, conflicts_with = "open")]
    pub scan: bool,

    /// Folder for the capture; the folder for temporary files if not given.
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,
}

#[derive(Debug, Args)]
pub(crate) struct BenchRadarArgs {
    /// Packets in the capture upstream.
    #[arg(long, default_value = "10M")]
    pub packets: Count,

    /// Share of them that is missing downstream.
    #[arg(long, default_value = "1e-3")]
    pub loss: Prob,

    /// Folder for the captures; the folder for temporary files if not given.
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,
}

#[derive(Debug, Args)]
pub(crate) struct BenchSimArgs {
    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,

    /// Only the network of this name.
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,

    /// Also what recording costs: networks of TCP are simulated without and with logs of each level, in turn.
    #[arg(long)]
    pub record: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchMeloArgs {
    /// Packets that arrive in each row and round.
    #[arg(long, default_value = "10M")]
    pub packets: Count,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 5, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,
}

#[derive(Debug, Args)]
pub(crate) struct BenchFleetArgs {
    /// Pods of Facebook's fabric.
    #[arg(long, default_value_t = 261, value_parser = whole_within::<u32>(1..))]
    pub pods: u32,

    /// Days to simulate.
    #[arg(long, default_value_t = 365.0)]
    pub days: f64,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,
}

//! `hitless replay`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use results::replay::{LogLevel, TraceKind};
use units::{ParseError, Span, whole_within};

/// Logs, or a command.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    pub command: Option<ReplayCommand>,

    #[command(flatten)]
    pub connections: ReplayLogArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// Replay the queues of switches from the logs of all connections.
    ///
    /// Sends all packets at their sampled times through the same network, and says how far its queues and its drops are from those of
    /// the run, port by port; and who was in a queue at a time. The run itself is simulated again with its seed: that is the truth.
    Queues(ReplayQueuesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ReplayQueuesArgs {
    /// A folder that is searched for logs: what `sim run --record` wrote.
    #[arg(value_name = "DIR")]
    pub logs: PathBuf,

    /// The scenario that was recorded.
    #[arg(long, value_name = "FILE")]
    pub scenario: PathBuf,

    /// Setting that replaced that of the file when the run was recorded. May be given often.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Send times of packets are sampled, and at most this far off.
    #[arg(long, value_name = "TIME", default_value = "5us", value_parser = threshold)]
    pub threshold: Span,

    /// Set the clocks of hosts up to this far apart, drawn from the run's seed.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub clocks: Span,

    /// Hosts do not tag what was dropped: queues drop what they have no room for.
    #[arg(long)]
    pub no_tags: bool,

    /// Say who was in a queue at this time of the run.
    #[arg(long, value_name = "TIME", requires = "port")]
    pub at: Option<Span>,

    /// The queue: that of the port of A towards B.
    #[arg(long, value_name = "A-B", requires = "at")]
    pub port: Option<String>,

    /// Runs at the same time; as many as there are cores if not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,
}

/// Samples are stored in whole nanoseconds.
fn threshold(text: &str) -> Result<Span, ParseError> {
    let threshold: Span = text.parse()?;
    let is_possible = threshold >= Span::from_ns(1) && threshold <= Span::from_ms(1_000);
    is_possible.then_some(threshold).ok_or(ParseError::new("a time from 1ns to 1s, such as 5us"))
}

#[derive(Debug, Args)]
pub(crate) struct ReplayLogArgs {
    /// A log, or a folder that is searched for logs: what `sim run --record` wrote.
    #[arg(value_name = "DIR|LOG", required_unless_present = "trials", conflicts_with = "trials")]
    pub logs: Option<PathBuf>,

    /// Only the connection of this number, in every run.
    #[arg(long, value_name = "N")]
    pub flow: Option<u32>,

    /// Print what was not looked at the first time: notes, window, rtt, timers, decisions.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub trace: Vec<TraceKind>,

    /// Write all that left the hosts, as captures at their ports; nothing if a connection is not replayed exactly.
    #[arg(long, value_name = "OUT.pcapng")]
    pub write: Option<PathBuf>,

    /// Instead of logs: draw this many connections, record each at both levels (BBR at times only) over networks of chance,
    /// and replay them.
    #[arg(long, value_name = "N", value_parser = whole_within::<u64>(1..=100_000_000), conflicts_with_all = ["flow", "trace", "write"])]
    pub trials: Option<u64>,

    /// The first seed of trials.
    #[arg(long, default_value_t = 1, requires = "trials", value_parser = whole_within::<u64>(0..=1 << 62))]
    pub seed: u64,

    /// Connections at the same time; as many as there are cores if not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LevelArg {
    /// The time of every call: a replay has the times of the run. For every congestion control.
    Times,
    /// Decisions of time, and samples of when packets left: a fraction of the size, times within 5 us. Not for BBR.
    Decisions,
}

impl From<LevelArg> for LogLevel {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Times => Self::Times,
            LevelArg::Decisions => Self::Decisions,
        }
    }
}

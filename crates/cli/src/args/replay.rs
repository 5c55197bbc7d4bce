//! `hitless replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use report::replay::TraceKind;
use units::whole_within;

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A log, or a folder that is searched for logs: what `sim run --record` wrote.
    #[arg(value_name = "DIR|LOG", required_unless_present = "trials", conflicts_with = "trials")]
    pub logs: Option<PathBuf>,

    /// Only the connection of this number, in every run.
    #[arg(long, value_name = "N")]
    pub flow: Option<u32>,

    /// Print what was not looked at the first time: notes, window, rtt, timers.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub trace: Vec<TraceKind>,

    /// Write all that left the hosts, as captures at their ports; nothing if a connection is not replayed exactly.
    #[arg(long, value_name = "OUT.pcapng")]
    pub write: Option<PathBuf>,

    /// Instead of logs: draw this many connections, record them over networks of chance, and replay them.
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
    /// The time of every call. For every congestion control.
    Times,
}

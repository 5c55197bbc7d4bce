//! Commands about the monitor.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use monitor::config::MonitorOptions;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MonitorArgs {
    #[command(subcommand)]
    pub command: Option<MonitorCommand>,

    /// Look once, print a table and end: exit code 0 if all ports are healthy, 1 if any is corrupting, 3 if nothing could be
    /// judged.
    ///
    /// Polls twice, an interval apart, and prints counts since boot where that says too little; a file of samples is
    /// replayed whole.
    #[arg(long)]
    pub once: bool,

    /// Print what the file and the command line come to, and end: exit code 2 if anything in it is wrong.
    #[arg(long, conflicts_with = "once")]
    pub check: bool,

    /// A TOML file with any of the options, by the same names; options on the command line override it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub options: MonitorOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MonitorCommand {
    /// Print what the running monitor knows of each port, and what is wrong with it: exit code 1 if anything is, or no monitor
    /// runs here.
    Status,
    /// Tell the running monitor that a port is repaired, though it flapped too often to be believed.
    Clear {
        /// The port.
        port: String,
    },
}

//! `hitless sim run`.

use std::path::PathBuf;

use clap::Args;
use sim::scenario::Seeds;

use super::count::whole;

#[derive(Debug, Args)]
pub struct RunArgs {
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
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    pub jobs: Option<u16>,

    /// Write files there: flows, samples and packets of every run, and a summary.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

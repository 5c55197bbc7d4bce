//! The command that holds explanations against what happened.

use std::path::PathBuf;

use clap::Args;
use selftest::case::TestCase;
use units::whole_within;

#[derive(Debug, Args)]
pub(crate) struct SelftestArgs {
    /// Runs of each case; delays, sizes and positions are drawn for each.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole_within::<u64>(1..=10_000))]
    pub runs: u64,

    /// Only these cases, separated by commas.
    #[arg(long, value_name = "CASES", value_delimiter = ',')]
    pub only: Vec<TestCase>,

    /// Measure the shadow's agreement with the kernel instead: many connections at loss 0, 1e-3 and 1e-2.
    #[arg(long, conflicts_with_all = ["runs", "only"])]
    pub agreement: bool,

    /// Connections at each loss.
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "agreement", value_parser = whole_within::<u64>(1..=1_000_000))]
    pub connections: u64,

    /// Seed of the delays, sizes and positions.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Keep the captures in this folder.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

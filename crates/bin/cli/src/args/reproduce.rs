//! The command that runs a paper's experiments again.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use units::whole_within;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScaleArg {
    /// A few minutes.
    Quick,
    /// The papers' numbers of trials, and enough of what is rare to count it; hours.
    Full,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum VerdictArg {
    Match,
    Differs,
    /// Too few values for a verdict.
    TooFew,
    Noted,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    #[arg(value_name = "PAPER[/CLAIM]", help = papers::help())]
    pub what: String,

    /// Amount of simulation or measurement behind each value.
    #[arg(long, value_enum, default_value_t = ScaleArg::Quick)]
    pub scale: ScaleArg,

    /// Write a report here: one HTML file with a chart for every claim. Of `all`, a page with the verdict of every figure,
    /// and a report for each paper beside it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Print only points with this verdict.
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub only: Option<VerdictArg>,

    /// Keep the results here: a JSON file for each paper, written anew after every claim.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,

    /// Take claims from the files of --save that the same program saved with the same scale and seed, and run the others.
    #[arg(long, requires = "save")]
    pub resume: bool,

    /// With `list`: print the verdicts of the results saved here.
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,

    /// With `list`: print Markdown, as docs/reproduce.md has it.
    #[arg(long)]
    pub markdown: bool,

    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Runs at the same time; as many as there are cores if not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,
}

//! Commands about clocks.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use units::whole_within;

use super::ClockLiveCommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ClockCommand {
    /// Find a parent and a backup parent for every node, so that any single failure is survived.
    Plan(Box<ClockPlanArgs>),

    /// Hold a plan against every property and every single failure. Exit code 1 if something does not hold.
    Check(ClockCheckArgs),

    /// Say what leads from one plan to another, in an order in which everybody hears the root after every step.
    Diff(ClockDiffArgs),

    /// Simulate all clocks of a fabric with the truth beside them: how large ε is, what failures do to it, whether it is ever wrong.
    Simulate(Box<super::ClockSimulateArgs>),
    #[command(flatten)]
    Live(ClockLiveCommand),
}

/// Nodes, links and failure domains.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClockGraphArgs {
    #[command(flatten)]
    pub wiring: ClockWiringArgs,

    /// Links of hosts [default: dual with --jupiter and --testbed, none otherwise].
    #[arg(long, value_enum)]
    pub hosts: Option<HostsArg>,

    /// Failure domains, each of which fails as a whole: `pods` or `agg` by the names of nodes, `none`, or a file, TOML with
    /// `[[domain]]` tables or CSV of domain and member [default: those of the topology's file; agg with --jupiter; pods
    /// with the others].
    #[arg(long, value_name = "FILE|pods|agg|none")]
    pub domains: Option<DomainsArg>,
}

#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ClockWiringArgs {
    /// A topology from a file: TOML, or a CSV of links.
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,

    /// A fat-tree of switches with K ports.
    #[arg(long, value_name = "K", value_parser = whole_within::<u32>(2..))]
    pub fat_tree: Option<u32>,

    /// Facebook's fabric with N pods [default: 261].
    #[arg(long, value_name = "N", value_parser = whole_within::<u32>(1..))]
    pub pods: Option<u32>,

    /// Google's Jupiter with 88,064 nodes.
    #[arg(long)]
    pub jupiter: bool,

    /// The thesis's testbed: 23 pods of 12 switches and 24 servers.
    #[arg(long)]
    pub testbed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostsArg {
    /// Two links, to a pair of ToRs.
    Dual,
    /// One link; such hosts can have no backup parent.
    Single,
    /// No hosts.
    None,
}

/// Source of failure domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DomainsArg {
    Pods,
    Agg,
    None,
    File(PathBuf),
}

impl FromStr for DomainsArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "pods" => Self::Pods,
            "agg" => Self::Agg,
            "none" => Self::None,
            file => Self::File(file.into()),
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct ClockPlanArgs {
    #[command(flatten)]
    pub graph: ClockGraphArgs,

    /// Node at which waves begin; a node from which no other is far if not given.
    #[arg(long, value_name = "NODE")]
    pub root: Option<String>,

    /// Node that takes over when the root is dead: a neighbour of the root.
    #[arg(long, value_name = "NODE")]
    pub backup_root: Option<String>,

    /// Links that corrupt, used only where nothing else covers: what monitors publish as JSON, a CSV of link, loss and state, or names,
    /// one in each line.
    #[arg(long, value_name = "FILE")]
    pub avoid: Option<PathBuf>,

    /// Failed nodes, links and domains: names of nodes and links, and domain:NAME, one in each line.
    #[arg(long, value_name = "FILE")]
    pub without: Option<PathBuf>,

    /// Say of one node why it has its parent and its backup parent.
    #[arg(long, value_name = "NODE")]
    pub explain: Option<String>,

    /// Write the topology that was planned for: a CSV of links, or TOML with domains as well.
    #[arg(long, value_name = "FILE")]
    pub write_topology: Option<PathBuf>,

    /// Write a configuration of linuxptp's ptp4l for each node into this folder, and a README.
    #[arg(long, value_name = "DIR")]
    pub ptp4l: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ClockCheckArgs {
    /// A plan, as `clock plan --json` prints it.
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,

    #[command(flatten)]
    pub graph: ClockGraphArgs,

    /// Failed nodes, links and domains: names of nodes and links, and domain:NAME, one in each line.
    #[arg(long, value_name = "FILE")]
    pub without: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ClockDiffArgs {
    /// The plan in force.
    #[arg(value_name = "OLD")]
    pub old: PathBuf,

    /// The plan to be in force.
    #[arg(value_name = "NEW")]
    pub new: PathBuf,

    /// Write the plan that is in force after each step into this folder, as 001.json and so on: `clock replan` gives a node its part of
    /// the step's plan.
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
}

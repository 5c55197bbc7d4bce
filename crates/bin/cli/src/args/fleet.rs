//! Commands about a fleet of links.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use fleet::paths::Constraint;
use fleet::trace::RepairTime;
use fleet::upgrade::UpgradeOrder;
use settings::Seeds;
use units::{ParseError, Prob, whole_within};

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// A year of corrupting links: what CorrOpt and protection make of it.
    #[command(allow_negative_numbers = true)]
    Simulate(Box<SimulateArgs>),

    /// Plan what to disable now, what to protect, and in which order to repair.
    #[command(allow_negative_numbers = true)]
    Plan(PlanArgs),

    /// Plan anew at every event that monitors publish, until ended.
    ///
    /// Observes and prints what it would do, unless --act is given.
    #[command(allow_negative_numbers = true)]
    Watch(FleetWatchArgs),

    /// Say that a link was repaired: orders both its ends back into service.
    Repaired(RepairedArgs),

    /// Choose the switches to upgrade first, if only upgraded ones can protect their links.
    #[command(allow_negative_numbers = true)]
    Upgrade(Box<UpgradeArgs>),

    /// Write a topology to start from.
    Topology(TopologyArgs),
}

/// Links of a fabric.
#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct FabricArgs {
    /// Facebook's fabric with N pods of 48 ToRs and 4 fabric switches, and 4 planes of 48 spines [default: 261].
    #[arg(long, value_name = "N", value_parser = whole_within::<u32>(1..))]
    pub pods: Option<u32>,

    /// A fat-tree of switches with K ports.
    #[arg(long, value_name = "K", value_parser = whole_within::<u32>(2..))]
    pub fat_tree: Option<u32>,

    /// A topology from a file: TOML, or a CSV of links.
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
}

/// Time and events to simulate.
#[derive(Clone, Debug, Args)]
pub(crate) struct YearArgs {
    /// Days to simulate.
    #[arg(long, default_value_t = 365.0)]
    pub days: f64,

    /// Share of its paths to the top that every ToR must keep.
    #[arg(long, value_name = "SHARE", default_value = "0.75", value_parser = constraint)]
    pub constraint: Constraint,

    /// Mean time to failure of a link: 10000h, 400d.
    #[arg(long, value_name = "TIME", default_value = "10000h")]
    pub mttf: Hours,

    /// β of the Weibull distribution: 1 for failures without memory.
    #[arg(long, default_value_t = 1.0)]
    pub shape: f64,

    /// Times that repairs take, each with its weight.
    #[arg(long, value_name = "TIME:WEIGHT,…", default_value = "2d:80,4d:20")]
    pub repair: RepairTimes,

    /// Runs at the same time; as many as there are cores if not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyArg {
    /// Disable and repair where the constraint allows it.
    Corropt,
    /// Disable and repair where the constraint allows it, and protect what has to stay.
    #[value(name = "corropt+guard")]
    CorroptGuard,
    /// Protect, and never repair.
    GuardOnly,
    /// Leave it.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NumberingArg {
    /// In turn.
    RoundRobin,
    /// One pipe after the other.
    Contiguous,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub fabric: FabricArgs,

    #[command(flatten)]
    pub year: YearArgs,

    /// Policy for corrupting links.
    #[arg(long, value_enum, default_value_t = PolicyArg::CorroptGuard)]
    pub policy: PolicyArg,

    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Several seeds, each a run: 1..8 or 1,5,9.
    #[arg(long, conflicts_with = "seed")]
    pub seeds: Option<Seeds>,

    /// Read the events from a CSV of hours, link, loss and hours of repair.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "seeds", "mttf", "shape", "repair"])]
    pub trace: Option<PathBuf>,

    /// Write the trace as CSV.
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    pub write_trace: Option<PathBuf>,

    /// Ports of a switch that share a pipe.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = whole_within::<u32>(1..))]
    pub ports_per_pipe: u32,

    /// Order in which the ports of a switch are dealt to its pipes.
    #[arg(long, value_enum, default_value_t = NumberingArg::RoundRobin)]
    pub pipe_numbering: NumberingArg,

    /// Loss of a healthy link, so that there is something to divide by when nothing corrupts.
    #[arg(long, value_name = "LOSS", default_value = "1e-18")]
    pub healthy_loss: Prob,

    /// Share of switches that can protect their links.
    #[arg(long, value_name = "SHARE", default_value = "1")]
    pub upgraded: Prob,

    /// Order in which switches were upgraded: greedy, pods, top-pods, planes, random, or levels such as levels:1-0-2.
    #[arg(long, value_name = "ORDER", default_value = "pods")]
    pub upgrade_order: UpgradeOrder,

    /// Write the state after every event: FILE.csv, FILE.parquet, or a folder for both of every seed.
    #[arg(long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Links of the network: TOML, or a CSV of links.
    #[arg(long, value_name = "FILE")]
    pub topology: PathBuf,

    /// Corrupting links: what monitors publish as JSON, or a CSV of link, loss and state; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub corrupting: PathBuf,

    /// Share of its paths to the top that every ToR must keep.
    #[arg(long, value_name = "SHARE", default_value = "0.75", value_parser = constraint)]
    pub constraint: Constraint,

    /// Switches that can protect their links, one in each line; all can if not given.
    #[arg(long, value_name = "FILE")]
    pub capable: Option<PathBuf>,

    /// Say why, link by link.
    #[arg(long)]
    pub explain: bool,
}

/// The bus between monitors and planners, and the key of orders on it.
#[derive(Debug, Args)]
pub(crate) struct OrderBusArgs {
    /// Bus on which monitors publish and get orders: redis://HOST, or rediss://HOST with TLS.
    #[arg(long, value_name = "URL")]
    pub bus: String,

    /// The certificate authority of a rediss:// bus, in PEM; those of the system if not given.
    #[arg(long, value_name = "FILE")]
    pub bus_ca: Option<PathBuf>,

    /// Sign orders with the key that monitors have as their order-key: a file with 32 hexadecimal digits.
    #[arg(long, value_name = "FILE")]
    pub order_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FleetWatchArgs {
    /// Links of the network: TOML, or a CSV of links.
    #[arg(long, value_name = "FILE")]
    pub topology: PathBuf,

    #[command(flatten)]
    pub orders: OrderBusArgs,

    /// Share of its paths to the top that every ToR must keep.
    #[arg(long, value_name = "SHARE", default_value = "0.75", value_parser = constraint)]
    pub constraint: Constraint,

    /// Switches that can protect their links, one in each line; all can if not given.
    #[arg(long, value_name = "FILE")]
    pub capable: Option<PathBuf>,

    /// Order ports to be disabled, instead of only saying so. Monitors obey if they are configured to.
    #[arg(long)]
    pub act: bool,

    /// Append every event to this file, as lines of JSON.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RepairedArgs {
    /// The link, or a port at one of its ends.
    pub link: String,

    /// Links of the network: TOML, or a CSV of links.
    #[arg(long, value_name = "FILE")]
    pub topology: PathBuf,

    #[command(flatten)]
    pub orders: OrderBusArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    pub fabric: FabricArgs,

    #[command(flatten)]
    pub year: YearArgs,

    /// Seeds, each a year: 1..8 or 1,5,9.
    #[arg(long, default_value = "1")]
    pub seeds: Seeds,

    /// Orders to compare, separated by commas; all if not given.
    #[arg(long, value_name = "ORDER", value_delimiter = ',')]
    pub orders: Vec<UpgradeOrder>,

    /// Write the curves as CSV.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TopologyArgs {
    #[command(flatten)]
    pub fabric: FabricArgs,

    /// File to write as CSV; `-` for standard output.
    #[arg(long, value_name = "FILE")]
    pub write: PathBuf,
}

fn constraint(text: &str) -> Result<Constraint, ParseError> {
    const EXPECTED: ParseError = ParseError::new("a share between 0 and 1, such as 0.75 or 75%");
    text.parse::<Prob>().ok().and_then(|share| Constraint::new(share.get())).ok_or(EXPECTED)
}

/// A long time, in hours: `10000h`, `2d`, `90m`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hours(pub f64);

impl FromStr for Hours {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a time such as 10000h, 2d or 90m");
        let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
        let hours = match unit {
            "h" | "" => 1.0,
            "d" => 24.0,
            "m" => 1.0 / 60.0,
            _ => return Err(EXPECTED),
        };
        let hours = number.trim().parse::<f64>().map_err(|_| EXPECTED)? * hours;
        if (0.0..=MOST_HOURS).contains(&hours) { Ok(Self(hours)) } else { Err(EXPECTED) }
    }
}

/// A thousand years.
const MOST_HOURS: f64 = 8_766_000.0;

/// Times that repairs take, with weights: `2d:80,4d:20`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RepairTimes(pub Vec<RepairTime>);

impl FromStr for RepairTimes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("times with weights such as 2d:80,4d:20");
        let repair = |part: &str| {
            let (takes, weight) = part.split_once(':').unwrap_or((part, "1"));
            let takes = takes.parse::<Hours>().map_err(|_| EXPECTED)?;
            let weight = weight.parse().map_err(|_| EXPECTED)?;
            Ok(RepairTime { takes: Duration::from_secs_f64(takes.0 * 3_600.0), weight })
        };
        text.split(',').map(repair).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shares_read_as_people_write_them() {
        for (text, hours) in [("10000h", 10_000.0), ("2d", 48.0), ("90m", 1.5), ("7", 7.0)] {
            assert_eq!(text.parse(), Ok(Hours(hours)), "{text}");
        }
        for text in ["", "h", "2w", "-1h", "1e99d", "nan", "infh"] {
            assert!(text.parse::<Hours>().is_err(), "{text}");
        }
        let RepairTimes(repairs) = "2d:80,4d:20".parse().unwrap();
        assert_eq!(repairs.iter().map(|repair| repair.takes.as_secs() / 3_600).collect::<Vec<_>>(), [48, 96]);
        assert!("2d:".parse::<RepairTimes>().is_err() && "".parse::<RepairTimes>().is_err());
        assert_eq!(constraint("75%"), Ok(Constraint::new(0.75).unwrap()));
        assert!(constraint("1.5").is_err() && constraint("-0.1").is_err());
    }
}

//! The command that simulates clocks.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clock::node::DepthRule;
use clocksim::{ClockScheme, DriftModel};
use units::{Prob, Span};

use super::ClockGraphArgs;

#[derive(Debug, Args)]
pub(crate) struct ClockSimulateArgs {
    #[command(flatten)]
    pub graph: ClockGraphArgs,

    /// A plan, as `clock plan --json` prints it; without an option for the fabric, of the links that the plan uses. A plan is made
    /// for the fabric if none is given.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,

    /// Method of synchronising clocks: sundial, ptp, ptp+dtp, huygens, marzullo, ptp+freq, ptp+freq+sync.
    #[arg(long, value_name = "SCHEME", default_value_t = ClockScheme::Sundial)]
    pub scheme: ClockScheme,

    /// Differences of frequencies, within 100 ppm: const, walk, ramp, adversary; or broken:NODE@PPM.
    #[arg(long, value_name = "MODEL", default_value_t = DriftModel::Constant)]
    pub drift: DriftModel,

    /// Source of ε_base.
    #[arg(long, value_enum, default_value_t = DepthArg::Planned)]
    pub depth: DepthArg,

    /// The chance that a link loses a message.
    #[arg(long, value_name = "P")]
    pub loss: Option<Prob>,

    /// Failures, each with its time: link:A--B@TIME, node:X@TIME, domain:D@TIME, root@TIME; or random:N, spread over the
    /// run and repaired one after the other. May be given more than once.
    #[arg(long, value_name = "WHAT@TIME")]
    pub fail: Vec<String>,

    /// Time from a failure to the new plan.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub controller: Span,

    /// Time from the first node that is told the new plan, the root, to the last; 0s tells all at once.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub rollout: Span,

    /// Time to simulate.
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Span,

    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Simulate every wave, also those that nothing disturbs.
    #[arg(long)]
    pub full: bool,

    /// Write what happened to which node, with ε and the true error.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DepthArg {
    /// The plan's depth, as in the thesis.
    Planned,
    /// The hops that a message has come over.
    Carried,
}

impl DepthArg {
    pub(crate) fn rule(self) -> DepthRule {
        match self {
            Self::Planned => DepthRule::Planned,
            Self::Carried => DepthRule::Carried,
        }
    }
}

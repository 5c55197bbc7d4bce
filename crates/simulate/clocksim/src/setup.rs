//! Setup of a simulation.

use std::fmt;

use clock::graph::Graph;
use clock::node::NodeParams;
use clock::plan::ClockPlan;
use units::Span;

use crate::failure::TimedFailure;
use crate::oscillator::DriftModel;
use crate::scheme::ClockScheme;

/// Error of a message's measured way, within what a hop may add to ε.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WayError {
    /// Always by the same, for each direction of each link.
    #[default]
    Constant,
    /// Another amount for each message.
    PerMessage,
}

/// A run.
#[derive(Clone, Debug)]
pub struct ClockSetup<'a> {
    /// The fabric.
    pub graph: &'a Graph,
    /// The plan that it begins with.
    pub plan: &'a ClockPlan,
    /// Scheme that synchronises the clocks.
    pub scheme: ClockScheme,
    /// Intervals and rules of nodes.
    pub node: NodeParams,
    /// Differences of frequencies.
    pub drift: DriftModel,
    /// Error of measured ways.
    pub way_error: WayError,
    /// The chance that a message is lost on a link.
    pub loss: f64,
    /// Set if links retransmit lost messages, 2 to 6 µs later; true if the copy gets a new time stamp.
    pub link_retries: Option<bool>,
    /// Failures of the run.
    pub failures: Vec<TimedFailure>,
    /// Time from a failure or a repair until the controller begins to distribute the new plan.
    pub controller: Span,
    /// Time from the first node that gets a new plan to the last; zero if all get it at once.
    pub rollout: Span,
    /// Duration of the run.
    pub duration: Span,
    /// Seed of all that is random.
    pub seed: u64,
    /// Simulates every wave.
    pub in_full: bool,
    /// Keeps a row for everything that happens.
    pub log: bool,
}

impl<'a> ClockSetup<'a> {
    /// Sundial with the thesis's parameters, nothing lost and nothing failing.
    pub fn new(graph: &'a Graph, plan: &'a ClockPlan, duration: Span) -> Self {
        Self {
            graph,
            plan,
            scheme: ClockScheme::Sundial,
            node: NodeParams::THESIS,
            drift: DriftModel::Constant,
            way_error: WayError::Constant,
            loss: 0.0,
            link_retries: None,
            failures: Vec::new(),
            controller: Span::from_ms(100),
            rollout: Span::ZERO,
            duration,
            seed: 1,
            in_full: false,
            log: false,
        }
    }
}

/// Reason why a run cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// The broken clock is no node of the fabric.
    UnknownNode(String),
    /// A scheme whose waves all differ would take too many events.
    TooLong {
        /// The scheme.
        scheme: ClockScheme,
        /// Longest duration that is allowed here.
        most: Span,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownNode(name) => write!(f, "no node {name:?} in this fabric"),
            Self::TooLong { scheme, most } => {
                write!(f, "{scheme} is simulated message by message: on this fabric at most --for {most}")
            }
        }
    }
}

impl std::error::Error for SetupError {}

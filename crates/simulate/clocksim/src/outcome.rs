//! Result of a run.

use serde::Serialize;
use units::{Span, Time};

/// Result of a run. Times without a message count from the last one before.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClockOutcome {
    /// The scheme's name.
    pub scheme: String,
    /// Nodes of the fabric.
    pub nodes: usize,
    /// The largest ε of a node that has missed nothing and has heard at least one message under the plan in force.
    pub eps_normal_max_ns: f64,
    /// The median of ε over nodes and time, when nothing fails.
    pub eps_p50_ns: f64,
    /// The largest ε of a node that has missed nothing since some turned to their backup parents, until its first message under the
    /// next plan.
    pub eps_turned_max_ns: f64,
    /// The largest ε of a node that missed messages because of a failure that spared the root, or of loss.
    pub eps_failure_max_ns: f64,
    /// The largest ε of a node that missed messages because the root failed.
    pub eps_root_max_ns: f64,
    /// The longest time without a message after a failure that spared the root.
    pub recovery_us_max: f64,
    /// The longest time without a message after the root's failure.
    pub root_recovery_us: f64,
    /// Nodes that missed at least one message, each counted once.
    pub affected: usize,
    /// Affected nodes that are switches.
    pub affected_switches: usize,
    /// Times that switches missed messages, each time counted.
    pub silences_switches: u64,
    /// Time without a message after missing one, over all nodes.
    pub impacted_ms: f64,
    /// Milliseconds of impact, over all switches.
    pub impacted_switches_ms: f64,
    /// Nodes that turned to their backup parents, each time counted.
    pub turns: u64,
    /// Backup roots that made themselves roots.
    pub elections: u64,
    /// Elections while other nodes still followed another root.
    pub second_roots: u64,
    /// Messages whose time could not be true.
    pub rejected: u64,
    /// Nodes that found their own clock broken.
    pub evicted: u64,
    /// Instants at which a node's true error exceeded its ε.
    pub wrong: u64,
    /// Nodes that were wrong.
    pub wrong_nodes: usize,
    /// Time of the last such instant; 0 if there was none.
    pub wrong_until_us: f64,
    /// The smallest difference between ε and the true error.
    pub worst_margin_ns: f64,
    /// Largest possible move of the time by a change of root.
    pub handover_max_ns: f64,
    /// Waves that the root sent, those in closed form included.
    pub waves: u64,
    /// Events that were simulated.
    pub events: u64,
    /// The largest ε by depth in the first plan, the root's first (Fig. 3.22); `normal_ns` until the next plan.
    pub by_depth: Vec<DepthBounds>,
    /// True if the run was stopped before its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Causes of each second root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub second_root_causes: Vec<SecondRoot>,
    /// Events of the run, if they were asked for.
    #[serde(skip)]
    pub log: Vec<ClockLogRow>,
}

impl ClockOutcome {
    /// True if another run had the same result in another number of events; what is measured to the picosecond may differ
    /// by the rounding of single waves.
    pub fn is_same_as(&self, other: &Self) -> bool {
        const ROUNDING: f64 = 0.02;
        let measured = |of: &Self| {
            let epsilons = [of.eps_normal_max_ns, of.eps_p50_ns, of.eps_failure_max_ns, of.eps_root_max_ns];
            let others = [of.recovery_us_max, of.root_recovery_us, of.worst_margin_ns, of.handover_max_ns];
            epsilons.into_iter().chain(others).chain([of.impacted_ms, of.impacted_switches_ms])
        };
        let counted = |of: &Self| {
            let (turns, roots) = (of.turns, (of.elections, of.second_roots));
            (of.affected, of.affected_switches, turns, roots, of.rejected, of.evicted, of.wrong, of.waves)
        };
        measured(self).zip(measured(other)).all(|(one, other)| (one - other).abs() < ROUNDING)
            && counted(self) == counted(other)
    }
}

/// Instants at which ε did not hold.
#[derive(Debug)]
pub(crate) struct BoundBreaches {
    instants: u64,
    is_wrong: Vec<bool>,
    until: Time,
}

impl BoundBreaches {
    pub(crate) fn none(nodes: usize) -> Self {
        Self { instants: 0, is_wrong: vec![false; nodes], until: Time::ZERO }
    }

    /// Counts one; instants come in order.
    pub(crate) fn record(&mut self, at: Time, node: usize) {
        self.instants += 1;
        self.is_wrong[node] = true;
        self.until = at;
    }

    pub(crate) fn write(&self, outcome: &mut ClockOutcome) {
        outcome.wrong = self.instants;
        outcome.wrong_nodes = self.is_wrong.iter().filter(|wrong| **wrong).count();
        outcome.wrong_until_us = self.until.since(Time::ZERO).as_us();
    }
}

/// The largest ε of the nodes of one depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DepthBounds {
    /// Largest ε of nodes that have missed nothing.
    pub normal_ns: f64,
    /// Largest ε of nodes that missed messages.
    pub failure_ns: f64,
}

/// A second root, and why nobody told it of the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SecondRoot {
    /// Time at which it made itself the root.
    pub at_us: f64,
    /// Number of the node.
    pub node: u32,
    /// Neighbour that it listened to, the one that this one listened to, and so on.
    pub chain: Vec<u32>,
    /// End of the chain.
    pub end: ChainEnd,
}

/// Ways in which a chain of listeners ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainEnd {
    /// The chain ends at a node that listens to one of its own nodes: a loop, cut off from the root.
    Loop,
    /// The chain ends at a failed link or node, or at a node that listens to nobody.
    Failed,
    /// The chain ends at a root: every message on the way was lost.
    Loss,
}

/// An event at a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockLogRow {
    /// True time.
    pub at: Time,
    /// The node's number; none for what concerns all.
    pub node: Option<u32>,
    /// Name of the event.
    pub event: &'static str,
    /// ε, if the node has one.
    pub epsilon: Option<Span>,
    /// The true error in picoseconds, if the node has a time.
    pub error_ps: Option<i64>,
}

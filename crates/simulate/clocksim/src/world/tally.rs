//! Measurements while the simulation runs.

use units::{Span, Time};

use super::quiet::missed_after;
use crate::outcome::{BoundBreaches, ClockLogRow, SecondRoot};
use crate::setup::ClockSetup;

/// ε and the true error of a node at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) epsilon: Span,
    pub(super) error_ps: i64,
}

/// Kind of the last failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureClass {
    SparesRoot,
    Root,
}

#[derive(Debug)]
pub(super) struct Tally {
    missed_after: Span,
    heard: Vec<Time>,
    /// Nodes for which quiet waves were left out since they last heard one.
    steady: Vec<bool>,
    steady_nodes: usize,
    is_affected: Vec<bool>,
    is_switch: Vec<bool>,
    pub(super) kind: FailureClass,
    /// Time since which the controller has answered everything; `None` while it has not. From then on the plan decides a node's
    /// ε.
    pub(super) planned_since: Option<Time>,
    /// True as long as no other plan has come.
    pub(super) is_first_plan: bool,
    /// Depth of each node in the first plan.
    depths: Vec<u16>,
    /// The largest ε by depth, of nodes that missed nothing and of others.
    pub(super) by_depth: Vec<(Span, Span)>,
    pub(super) normal: Span,
    pub(super) turned: Span,
    pub(super) failure: Span,
    pub(super) root: Span,
    pub(super) recovery: Span,
    pub(super) root_recovery: Span,
    pub(super) silences_switches: u64,
    pub(super) impacted_ps: u128,
    pub(super) impacted_switches_ps: u128,
    pub(super) turns: u64,
    pub(super) elections: u64,
    pub(super) second_roots: Vec<SecondRoot>,
    pub(super) rejected: u64,
    pub(super) evicted: u64,
    pub(super) breaches: BoundBreaches,
    pub(super) worst_margin: i64,
    pub(super) handover: Span,
    pub(super) waves: u64,
    pub(super) events: u64,
    pub(super) interrupted: bool,
    keep_log: bool,
    pub(super) rows: Vec<ClockLogRow>,
}

impl Tally {
    pub(super) fn new(setup: &ClockSetup<'_>, nodes: usize) -> Self {
        let interval = setup.scheme.interval(&setup.node);
        Self {
            missed_after: missed_after(interval),
            heard: vec![Time::NEVER; nodes],
            steady: vec![false; nodes],
            steady_nodes: 0,
            is_affected: vec![false; nodes],
            is_switch: setup.graph.nodes().map(|node| is_switch(setup.graph.name(node))).collect(),
            kind: FailureClass::SparesRoot,
            planned_since: Some(Time::ZERO),
            is_first_plan: true,
            by_depth: vec![(Span::ZERO, Span::ZERO); setup.plan.max_depth() as usize + 1],
            depths: setup.plan.depth.iter().map(|depth| depth.unwrap_or(0) as u16).collect(),
            normal: Span::ZERO,
            turned: Span::ZERO,
            failure: Span::ZERO,
            root: Span::ZERO,
            recovery: Span::ZERO,
            root_recovery: Span::ZERO,
            silences_switches: 0,
            impacted_ps: 0,
            impacted_switches_ps: 0,
            turns: 0,
            elections: 0,
            second_roots: Vec::new(),
            rejected: 0,
            evicted: 0,
            breaches: BoundBreaches::none(nodes),
            worst_margin: i64::MAX,
            handover: Span::ZERO,
            waves: 0,
            events: 0,
            interrupted: false,
            keep_log: setup.log,
            rows: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn is_steady(&self, node: usize) -> bool {
        self.steady[node]
    }

    pub(super) fn set_steady(&mut self, node: usize) {
        self.steady_nodes += usize::from(!self.steady[node]);
        self.steady[node] = true;
    }

    pub(super) fn steady_nodes(&self) -> usize {
        self.steady_nodes
    }

    /// True if quiet waves were left out; ends that for the node.
    fn resume(&mut self, node: usize) -> bool {
        self.steady_nodes -= usize::from(self.steady[node]);
        std::mem::replace(&mut self.steady[node], false)
    }

    /// Forgets what a node heard: it begins anew.
    pub(super) fn forget(&mut self, node: usize) {
        self.heard[node] = Time::NEVER;
        self.resume(node);
    }

    pub(super) fn has_heard_since(&self, node: usize, since: Time) -> bool {
        self.heard[node] != Time::NEVER && self.heard[node] >= since
    }

    pub(super) fn last_heard(&self, node: usize) -> Option<Time> {
        Some(self.heard[node]).filter(|heard| *heard != Time::NEVER)
    }

    /// Compares a node's ε with the truth.
    #[inline]
    pub(super) fn check(&mut self, at: Time, node: usize, seen: Option<Observation>) {
        let Some(Observation { epsilon, error_ps }) = seen else { return };
        if epsilon == Span::ZERO && error_ps == 0 {
            return; // a root
        }
        let margin = (epsilon.as_ps() as i64).saturating_sub(error_ps.abs());
        self.worst_margin = self.worst_margin.min(margin);
        if margin < 0 {
            self.breaches.record(at, node);
            self.log(at, Some(node), "wrong", seen);
        }
    }

    /// A node has applied a message; `before` is what it was before.
    #[inline]
    pub(super) fn synchronised(&mut self, at: Time, node: usize, before: Option<Observation>) {
        let last = std::mem::replace(&mut self.heard[node], at);
        if self.resume(node) || last == Time::NEVER {
            return;
        }
        let Some(seen) = before else { return };
        let gap = at.since(last);
        if gap <= self.missed_after {
            if self.planned_since.is_some_and(|since| last >= since) {
                self.normal = self.normal.max(seen.epsilon);
                if self.is_first_plan {
                    let depth = &mut self.by_depth[usize::from(self.depths[node])];
                    depth.0 = depth.0.max(seen.epsilon);
                }
            } else {
                self.turned = self.turned.max(seen.epsilon);
            }
        } else {
            self.missed(at, node, gap, seen);
        }
    }

    fn missed(&mut self, at: Time, node: usize, gap: Span, seen: Observation) {
        let (epsilon, recovery) = match self.kind {
            FailureClass::SparesRoot => (&mut self.failure, &mut self.recovery),
            FailureClass::Root => (&mut self.root, &mut self.root_recovery),
        };
        *epsilon = (*epsilon).max(seen.epsilon);
        *recovery = (*recovery).max(gap);
        let depth = &mut self.by_depth[usize::from(self.depths[node])];
        depth.1 = depth.1.max(seen.epsilon);
        self.is_affected[node] = true;
        self.silences_switches += u64::from(self.is_switch[node]);
        self.impacted_ps += u128::from(gap.as_ps());
        if self.is_switch[node] {
            self.impacted_switches_ps += u128::from(gap.as_ps());
        }
        self.log(at, Some(node), "recovered", Some(seen));
    }

    /// Counts nodes that are still silent at the end.
    pub(super) fn still_silent(&mut self, at: Time, node: usize, seen: Option<Observation>) {
        let last = self.heard[node];
        if self.steady[node] || last == Time::NEVER || at.since(last) <= self.missed_after * 2 {
            return;
        }
        if let Some(seen) = seen {
            self.missed(at, node, at.since(last), seen);
        }
    }

    pub(super) fn affected(&self) -> (usize, usize) {
        let switches = self.is_affected.iter().zip(&self.is_switch).filter(|(affected, switch)| **affected && **switch);
        (self.is_affected.iter().filter(|affected| **affected).count(), switches.count())
    }

    pub(super) fn log(&mut self, at: Time, node: Option<usize>, event: &'static str, seen: Option<Observation>) {
        if self.keep_log {
            let (epsilon, error_ps) = (seen.map(|seen| seen.epsilon), seen.map(|seen| seen.error_ps));
            self.rows.push(ClockLogRow { at, node: node.map(|node| node as u32), event, epsilon, error_ps });
        }
    }
}

/// True for a switch, by the names that fabrics give: hosts and servers are none.
fn is_switch(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    !last.starts_with("host") && !last.starts_with("server")
}

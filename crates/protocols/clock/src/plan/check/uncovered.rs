//! Nodes that a plan leaves without a backup parent: whether they have to be, and whether the plan says why.
//!
//! A node has to be if one failure elsewhere, of a node or a domain, leaves no way to it from the root, or from the backup root if the
//! root is dead. Such a failure is on the node's way in the primary tree, so only those are tried. Where none is, no plan may leave the
//! node out if there are no domains; with domains nobody may be left out who could be covered as the plan is.

use std::collections::HashMap;

use super::super::{UncoveredReason, Uplink};
use super::PlanCheck;
use crate::graph::{DomainId, Graph, GraphNode};

/// Failure to be considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WayBreak {
    Nothing,
    Node(GraphNode),
    Domain(DomainId),
}

/// Nodes that are reached after each failure that was asked for.
#[derive(Debug, Default)]
struct ReachAfter(HashMap<WayBreak, Vec<bool>>);

impl PlanCheck<'_> {
    /// Every uncovered node, and what the file says of itself.
    pub(super) fn uncovered(&mut self, says_complete: bool) {
        let mut reach = ReachAfter::default();
        let mut unproven: Option<GraphNode> = None;
        for (node, says) in self.plan.uncovered.clone() {
            let UncoveredReason::Other(says) = says else { continue };
            let reason = self.reason(&mut reach, node, &says);
            if reason == UncoveredReason::NotFound {
                unproven = unproven.or(Some(node));
                self.left_out(node);
            }
            let expected = reason.describe(self.graph, node);
            if !says.is_empty() && says != expected {
                let how = format!("'{}' is said to have no backup parent because \"{says}\": ", self.name(node));
                self.wrong("uncovered", how + &format!("that does not hold; expected \"{expected}\""));
            }
        }
        match (says_complete, unproven) {
            (true, Some(node)) => {
                let how =
                    format!("the plan is said to be complete, but nothing proves that '{}' cannot", self.name(node));
                self.wrong("complete", how + " have a backup parent");
            }
            (false, None) => self.wrong(
                "complete",
                "the plan is said to be incomplete, but every node has a backup parent that can have one".to_owned(),
            ),
            _ => (),
        }
    }

    /// The file's statement about all nodes, whatever the reasons of those without a backup parent.
    pub(super) fn covers_all(&mut self, says: Option<bool>) {
        let count = self.plan.uncovered.len();
        match says {
            Some(true) if count > 0 => {
                self.wrong(
                    "covers_all",
                    format!("the plan is said to cover every node, but {count} have no backup parent"),
                );
            }
            Some(false) if count == 0 => {
                self.wrong(
                    "covers_all",
                    "the plan is said to leave nodes out, but every node has a backup parent".to_owned(),
                );
            }
            _ => (),
        }
    }

    /// Reason why a node cannot be covered: the file's reason if it holds, or else any reason that does.
    fn reason(&self, reach: &mut ReachAfter, node: GraphNode, says: &str) -> UncoveredReason {
        if self.plan.parent[node.index()].is_none() {
            let is_cut_off = !reach.reaches(self, WayBreak::Nothing, node);
            return if is_cut_off { UncoveredReason::CutOff } else { UncoveredReason::NotFound };
        }
        let mut holding = None;
        for reason in self.candidates(node) {
            // Reasons that are obvious nearby are cheaper to check than the whole graph, and there are many hosts.
            let is_only = |gate| self.graph.neighbours(node).iter().all(|(there, _)| *there == gate);
            let holds = match &reason {
                UncoveredReason::BehindNode(gate) => {
                    is_only(*gate) || !reach.reaches(self, WayBreak::Node(*gate), node)
                }
                UncoveredReason::BehindDomain(name) => self.graph.domains().iter().zip(0..).any(|(domain, id)| {
                    domain.name == *name && !reach.reaches(self, WayBreak::Domain(DomainId(id)), node)
                }),
                _ => false,
            };
            if holds {
                let is_said = reason.describe(self.graph, node) == says;
                if is_said || says.is_empty() {
                    return reason;
                }
                holding = holding.or(Some(reason));
            }
        }
        holding.unwrap_or(UncoveredReason::NotFound)
    }

    /// Possible reasons on a node's way, from the node up.
    fn candidates(&self, node: GraphNode) -> Vec<UncoveredReason> {
        let mut found = Vec::new();
        let mut here = node;
        while let Some(up) = self.plan.parent[here.index()] {
            here = up.node;
            found.push(UncoveredReason::BehindNode(here));
        }
        let domains = self.on_way(node).into_iter().filter(|domain| !self.holds(*domain, node));
        found.extend(domains.map(|domain| UncoveredReason::BehindDomain(self.graph.domain(domain).name.clone())));
        found
    }

    /// A node that is left out, although nothing proves that it has to be.
    fn left_out(&mut self, node: GraphNode) {
        let name = self.name(node);
        if self.plan.parent[node.index()].is_none() {
            return self.wrong("uncovered", format!("'{name}' is not cut off: links that work lead to it"));
        }
        let links = self.graph.neighbours(node).iter().map(|(there, link)| Uplink { node: *there, link: *link });
        if let Some(backup) = links.into_iter().find(|backup| self.could_cover(node, *backup)) {
            let how = format!("'{name}' has no backup parent, but could have '{}'", self.name(backup.node));
            self.wrong("uncovered", how);
        } else if self.graph.domains().is_empty() {
            let how = format!("'{name}' has no backup parent, but another plan with these roots would give it one");
            self.wrong("uncovered", how);
        }
    }

    fn could_cover(&self, node: GraphNode, backup: Uplink) -> bool {
        let mut here = node;
        while let Some(up) = self.plan.parent[here.index()] {
            here = up.node;
            if here == backup.node {
                return false;
            }
        }
        self.plan.backup[backup.node.index()].is_some() && self.shared_domains(node, backup).is_empty()
    }
}

impl ReachAfter {
    /// True if a way leads to a node after a failure that spares it.
    fn reaches(&mut self, check: &PlanCheck<'_>, failure: WayBreak, node: GraphNode) -> bool {
        let reached = self.0.entry(failure).or_insert_with(|| {
            let mut rest = check.graph.clone();
            match failure {
                WayBreak::Nothing => (),
                WayBreak::Node(node) => rest.fail_node(node),
                WayBreak::Domain(domain) => rest.fail_domain(domain),
            }
            let is_dead = rest.is_failed(check.plan.root);
            reached(&rest, if is_dead { check.plan.backup_root } else { check.plan.root })
        });
        reached[node.index()]
    }
}

fn reached(graph: &Graph, start: GraphNode) -> Vec<bool> {
    let mut reached = vec![false; graph.node_count()];
    let mut open = vec![start];
    reached[start.index()] = !graph.is_failed(start);
    while let Some(here) = open.pop() {
        for (there, _) in graph.neighbours(here) {
            if !std::mem::replace(&mut reached[there.index()], true) {
                open.push(*there);
            }
        }
    }
    reached
}

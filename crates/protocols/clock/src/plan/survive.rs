//! Effects of each single failure on a plan: link, node, root, domain.
//!
//! Nodes whose way to the root is broken turn to their backup parents, all at once. A node that then reaches neither an unaffected node
//! nor, with the root dead, the backup root, is *stranded*. Only what is below a failure is looked at, so all failures of a large
//! plan cost about as much as its depth times its size. This file does not depend on how plans are made.

use super::ClockPlan;
use crate::graph::{DomainId, Graph, GraphLink, GraphNode};

/// Single failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleFailure {
    /// A link alone.
    Link(GraphLink),
    /// A node with its links; the root as well.
    Node(GraphNode),
    /// All members of a domain.
    Domain(DomainId),
}

/// Effects of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureOutcome {
    /// Nodes that work, had a backup parent and hear nobody, in order.
    pub stranded: Vec<GraphNode>,
    /// The backup root elects itself although the root lives.
    pub second_root: bool,
    /// The largest depth of a node that turned.
    pub deepest: u32,
}

/// A plan with tables that make the check of a failure fast.
#[derive(Debug)]
pub struct Survival<'a> {
    graph: &'a Graph,
    plan: &'a ClockPlan,
    /// Index of each node's first child; `children` lists all children.
    begins: Vec<u32>,
    children: Vec<GraphNode>,
    /// Failure that concerned each node last, and the node's fate then.
    stamps: Vec<(u32, NodeFate)>,
    stamp: u32,
    failed_links: Vec<GraphLink>,
}

/// A node during one failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeFate {
    Dead,
    /// The node's way to the root is broken.
    Broken,
    /// The node's backup parent is being looked at.
    Asking,
    Turned(u32),
    Stranded,
}

impl SingleFailure {
    /// Every failure that can matter to a plan: links that are nobody's parent link cut nobody off.
    pub fn all<'a>(graph: &'a Graph, plan: &'a ClockPlan) -> impl Iterator<Item = Self> + 'a {
        let links = plan.parent.iter().flatten().map(|uplink| Self::Link(uplink.link));
        let domains = (0..graph.domains().len() as u32).map(|number| Self::Domain(DomainId(number)));
        links.chain(plan.nodes().map(Self::Node)).chain(domains)
    }

    /// Names the failure as a simulation does: `link:a--b`, `node:x`, `domain:d`.
    pub fn describe(self, graph: &Graph) -> String {
        match self {
            Self::Link(link) => format!("link:{}", graph.link_name(link)),
            Self::Node(node) => format!("node:{}", graph.name(node)),
            Self::Domain(domain) => format!("domain:{}", graph.domain(domain).name),
        }
    }
}

impl<'a> Survival<'a> {
    /// Prepares a plan whose parents form a tree.
    pub fn of(graph: &'a Graph, plan: &'a ClockPlan) -> Self {
        let count = graph.node_count();
        let mut begins = vec![0u32; count + 1];
        for uplink in plan.parent.iter().flatten() {
            begins[uplink.node.index() + 1] += 1;
        }
        (1..begins.len()).for_each(|node| begins[node] += begins[node - 1]);
        let mut next = begins.clone();
        let mut children = vec![GraphNode(0); begins[count] as usize];
        for (node, uplink) in (0..).map(GraphNode).zip(&plan.parent) {
            if let Some(uplink) = uplink {
                children[next[uplink.node.index()] as usize] = node;
                next[uplink.node.index()] += 1;
            }
        }
        let stamps = vec![(0, NodeFate::Dead); count];
        Self { graph, plan, begins, children, stamps, stamp: 0, failed_links: Vec::new() }
    }

    /// The largest depth of any node after any single failure.
    pub fn worst_depth(&mut self) -> u32 {
        let failures: Vec<SingleFailure> = SingleFailure::all(self.graph, self.plan).collect();
        let deepest = failures.into_iter().map(|failure| self.after(failure).deepest).max();
        deepest.unwrap_or_default().max(self.plan.max_depth())
    }

    /// Computes the effects of one failure.
    pub fn after(&mut self, failure: SingleFailure) -> FailureOutcome {
        self.stamp += 1;
        self.failed_links.clear();
        let dead: Vec<GraphNode> = match failure {
            SingleFailure::Link(_) => Vec::new(),
            SingleFailure::Node(node) => vec![node],
            SingleFailure::Domain(domain) => self.graph.domain(domain).nodes.clone(),
        };
        match failure {
            SingleFailure::Link(link) => self.failed_links.push(link),
            SingleFailure::Domain(domain) => self.failed_links.extend(&self.graph.domain(domain).links),
            SingleFailure::Node(_) => (),
        }
        dead.iter().for_each(|node| self.stamps[node.index()] = (self.stamp, NodeFate::Dead));
        let below_links = self.failed_links.iter().flat_map(|link| self.graph.ends(*link).map(|end| (*link, end)));
        let cut = below_links.filter(|(link, end)| self.plan.parent[end.index()].is_some_and(|up| up.link == *link));
        let mut broken: Vec<GraphNode> = cut.map(|(_, end)| end).chain(dead.iter().copied()).collect();
        let mut affected = Vec::new();
        while let Some(node) = broken.pop() {
            let is_new = self.stamps[node.index()].0 != self.stamp;
            if is_new {
                self.stamps[node.index()] = (self.stamp, NodeFate::Broken);
                affected.push(node);
            }
            if is_new || dead.contains_sorted(&node) {
                let [begin, end] = [node.index(), node.index() + 1].map(|place| self.begins[place] as usize);
                let unseen = |child: &&GraphNode| self.stamps[child.index()].0 != self.stamp;
                broken.extend(self.children[begin..end].iter().filter(unseen));
            }
        }
        self.turn(affected)
    }

    fn turn(&mut self, mut affected: Vec<GraphNode>) -> FailureOutcome {
        let mut outcome = FailureOutcome::default();
        let root_is_dead = self.fate(self.plan.root) == Some(NodeFate::Dead);
        affected.sort_unstable();
        for node in affected {
            match self.resolve(node, root_is_dead) {
                NodeFate::Turned(depth) => outcome.deepest = outcome.deepest.max(depth),
                _ if self.plan.backup[node.index()].is_some() => outcome.stranded.push(node),
                _ => (),
            }
        }
        outcome.second_root = !root_is_dead && outcome.stranded.binary_search(&self.plan.backup_root).is_ok();
        outcome
    }

    fn fate(&self, node: GraphNode) -> Option<NodeFate> {
        let (stamp, fate) = self.stamps[node.index()];
        (stamp == self.stamp).then_some(fate)
    }

    /// Follows backup parents until somebody hears the root.
    fn resolve(&mut self, start: GraphNode, root_is_dead: bool) -> NodeFate {
        let (mut way, mut here) = (Vec::new(), start);
        let mut fate = loop {
            match self.fate(here) {
                None => break NodeFate::Turned(self.plan.depth[here.index()].unwrap_or_default()),
                Some(NodeFate::Asking | NodeFate::Dead) => break NodeFate::Stranded,
                Some(known @ (NodeFate::Turned(_) | NodeFate::Stranded)) => break known,
                Some(NodeFate::Broken) if root_is_dead && here == self.plan.backup_root => {
                    self.stamps[here.index()].1 = NodeFate::Turned(0);
                    break NodeFate::Turned(0);
                }
                Some(NodeFate::Broken) => {
                    self.stamps[here.index()].1 = NodeFate::Asking;
                    way.push(here);
                    match self.plan.backup[here.index()].filter(|up| !self.failed_links.contains(&up.link)) {
                        Some(up) => here = up.node,
                        None => break NodeFate::Stranded,
                    }
                }
            }
        };
        for node in way.into_iter().rev() {
            fate = if let NodeFate::Turned(depth) = fate { NodeFate::Turned(depth + 1) } else { NodeFate::Stranded };
            self.stamps[node.index()].1 = fate;
        }
        match self.fate(start) {
            Some(fate) => fate,
            None => fate,
        }
    }
}

/// Membership in a list that is sorted.
trait ContainsSorted<T> {
    fn contains_sorted(&self, item: &T) -> bool;
}

impl<T: Ord> ContainsSorted<T> for [T] {
    fn contains_sorted(&self, item: &T) -> bool {
        self.binary_search(item).is_ok()
    }
}

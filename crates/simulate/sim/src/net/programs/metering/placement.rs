//! Places of meters: li-thesis §5.4.1 and, around black boxes, §5.4.2.
//!
//! An upstream meter stands at every output port of every node, a downstream meter at every input port, hosts included;
//! none at black boxes. A node behind a black box has a downstream meter for each upstream meter from which a route leads
//! through the box to it.

use std::collections::BTreeSet;

use crate::topology::{DirectedLink, NodeId, Routes, Topology};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// True for each directed link that has an upstream meter.
    upstream: Vec<bool>,
    /// Downstream meters: the link at whose end it is, and the one whose upstream meter it listens to.
    downstream: BTreeSet<(DirectedLink, DirectedLink)>,
}

impl Placement {
    pub fn of(topology: &Topology, black_boxes: &[NodeId]) -> Self {
        let is_black = |node: NodeId| black_boxes.contains(&node);
        let upstream: Vec<bool> = topology.directed().map(|link| !is_black(topology.from(link))).collect();
        let mut downstream = BTreeSet::new();
        let metered = || topology.directed().filter(|link| upstream[link.index()]);
        downstream.extend(metered().filter(|link| !is_black(topology.to(*link))).map(|link| (link, link)));
        if metered().any(|link| is_black(topology.to(link))) {
            let routes = Routes::of(topology);
            for link in metered().filter(|link| is_black(topology.to(*link))) {
                for to in topology.hosts() {
                    follow(topology, &routes, &is_black, link, to, &mut downstream);
                }
            }
        }
        Self { upstream, downstream }
    }

    pub(crate) fn has_upstream(&self, link: DirectedLink) -> bool {
        self.upstream[link.index()]
    }

    /// The link at whose end each is, and the one whose upstream meter it listens to.
    pub fn downstream(&self) -> impl Iterator<Item = (DirectedLink, DirectedLink)> + '_ {
        self.downstream.iter().copied()
    }

    /// Upstream and downstream meters of a node.
    pub fn at(&self, topology: &Topology, node: NodeId) -> [usize; 2] {
        let up = topology.directed().filter(|link| topology.from(*link) == node && self.has_upstream(*link));
        let down = self.downstream.iter().filter(|(link, _)| topology.to(*link) == node);
        [up.count(), down.count()]
    }

    /// Number of meters of all nodes.
    pub fn meters(&self) -> usize {
        self.upstream.iter().filter(|has| **has).count() + self.downstream.len()
    }
}

/// Links by which packets for a host that enter a black box come out of it.
fn follow(
    topology: &Topology,
    routes: &Routes,
    is_black: &impl Fn(NodeId) -> bool,
    entered_by: DirectedLink,
    to: NodeId,
    found: &mut BTreeSet<(DirectedLink, DirectedLink)>,
) {
    if !routes.choices(topology.from(entered_by), to).contains(&entered_by) {
        return;
    }
    let mut to_follow = vec![entered_by];
    while let Some(link) = to_follow.pop() {
        let node = topology.to(link);
        if is_black(node) {
            to_follow.extend(routes.choices(node, to));
        } else {
            found.insert((link, entered_by));
        }
    }
}

#[cfg(test)]
mod tests {
    use units::{Rate, Span};

    use super::*;

    fn fat_tree() -> Topology {
        Topology::fat_tree(8, Rate::gbps(10), Span::ZERO).unwrap()
    }

    fn named(topology: &Topology, prefix: &str) -> Vec<NodeId> {
        topology.switches().filter(|node| topology.name(*node).starts_with(prefix)).collect()
    }

    #[test]
    fn every_interface_has_two_meters() {
        let topology = fat_tree();
        assert_eq!(Placement::of(&topology, &[]).meters(), 1_536, "as in li-thesis §5.7.2");
    }

    #[test]
    fn whoever_is_next_to_a_black_box_listens_to_all_behind_it() {
        let topology = fat_tree();
        let at = |black: &str, node: &str| {
            let placement = Placement::of(&topology, &named(&topology, black));
            placement.at(&topology, topology.node(node).unwrap())
        };
        assert_eq!(at("edge", "agg0-0"), [8, 20], "4 hosts behind each of 4 ToRs, 4 cores");
        assert_eq!(at("edge", "core3"), [8, 8]);
        assert_eq!(at("agg", "core3"), [8, 32]);
        assert_eq!(at("agg", "edge2-1"), [8, 32], "4 hosts; 3 ToRs and 4 cores behind each of 4 switches");
        assert_eq!(at("core", "agg0-0"), [8, 32]);
        assert_eq!(at("core", "core0"), [0, 0]);
    }
}

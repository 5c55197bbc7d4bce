//! Topologies: hosts, switches and the full-duplex links between them.
//!
//! A [`Topology`] is data. It comes from one of the builders (`testbed`, `leaf_spine`, `fat_tree`, …) or, node by
//! node, through [`Topology::new`], which refuses what no builder makes. [`Routes`] are the equal-cost shortest paths
//! through it.
//!
//! Invariants of a checked topology: names are unique; every link joins two different nodes; a host has exactly one
//! link, its access link; every node can reach every other. Two nodes may be joined by several links.

mod builders;
mod error;
mod hpcc_ns3;
mod route_hash;
mod routes;

use std::collections::BTreeSet;

use ::topology::ShapeSize;
use units::{Rate, Span, nearest};

pub use error::TopologyError;
pub use hpcc_ns3::LossyTopology;
pub use route_hash::RouteHash;
pub use routes::{Routes, Unreachable};

/// A node, by its place in [`Topology::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A link, by its place in [`Topology::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologyLinkId(pub u32);

/// One direction of a link, and equally the port that sends in that direction: twice the link, plus one from b to a.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectedLink(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    Host,
    Switch,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyNode {
    pub name: String,
    pub kind: NodeKind,
}

/// Full duplex: both directions have the whole rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyLink {
    pub a: NodeId,
    pub b: NodeId,
    pub rate: Rate,
    pub delay: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub nodes: Vec<TopologyNode>,
    pub links: Vec<TopologyLink>,
}

impl NodeId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TopologyLinkId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The direction from a to b.
    pub const fn forward(self) -> DirectedLink {
        DirectedLink(2 * self.0)
    }

    /// The direction from b to a.
    pub const fn backward(self) -> DirectedLink {
        DirectedLink(2 * self.0 + 1)
    }
}

impl DirectedLink {
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub const fn link(self) -> TopologyLinkId {
        TopologyLinkId(self.0 / 2)
    }

    /// The other direction of the link.
    pub const fn reversed(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// Side of the link that sends in this direction: 0 is a, 1 is b.
    pub const fn side(self) -> usize {
        self.0 as usize % 2
    }

    const fn is_forward(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

impl Topology {
    /// Checks what the builders guarantee.
    pub fn new(nodes: Vec<TopologyNode>, links: Vec<TopologyLink>) -> Result<Self, TopologyError> {
        let topology = Self { nodes, links };
        topology.check_size()?;
        topology.check_names()?;
        topology.check_links()?;
        topology.check_connected()?;
        Ok(topology)
    }

    pub fn node(&self, name: &str) -> Result<NodeId, TopologyError> {
        match self.nodes.iter().position(|node| node.name == name) {
            Some(index) => Ok(NodeId(index as u32)),
            None => Err(TopologyError::UnknownNode {
                name: name.to_string(),
                nearest: nearest(name, self.nodes.iter().map(|node| node.name.as_str())).map(str::to_string),
            }),
        }
    }

    /// The link from the node of one name to the node of the other, the first if there are several.
    pub fn link_between(&self, from: &str, to: &str) -> Result<DirectedLink, TopologyError> {
        let (a, b) = (self.node(from)?, self.node(to)?);
        self.leaving(a).find(|port| self.to(*port) == b).ok_or_else(|| TopologyError::NoLink {
            from: from.to_string(),
            to: to.to_string(),
            neighbours: self.leaving(a).map(|port| self.name(self.to(port)).to_string()).collect(),
        })
    }

    pub fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    pub fn is_host(&self, node: NodeId) -> bool {
        self.nodes[node.index()].kind == NodeKind::Host
    }

    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.node_ids().filter(|node| self.is_host(*node))
    }

    pub fn switches(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.node_ids().filter(|node| !self.is_host(*node))
    }

    pub fn link(&self, id: TopologyLinkId) -> &TopologyLink {
        &self.links[id.index()]
    }

    pub fn link_ids(&self) -> impl Iterator<Item = TopologyLinkId> + use<> {
        (0..self.links.len() as u32).map(TopologyLinkId)
    }

    /// Directions of every link, by number.
    pub fn directed(&self) -> impl Iterator<Item = DirectedLink> + use<> {
        self.link_ids().flat_map(|link| [link.forward(), link.backward()])
    }

    /// The node that sends.
    pub fn from(&self, port: DirectedLink) -> NodeId {
        self.to(port.reversed())
    }

    /// The node that receives.
    pub fn to(&self, port: DirectedLink) -> NodeId {
        let link = self.link(port.link());
        if port.is_forward() { link.b } else { link.a }
    }

    fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    fn leaving(&self, node: NodeId) -> impl Iterator<Item = DirectedLink> + '_ {
        self.link_ids().flat_map(|link| [link.forward(), link.backward()]).filter(move |port| self.from(*port) == node)
    }

    /// Ports that leave each node, in the order of the links.
    fn ports(&self) -> Vec<Vec<DirectedLink>> {
        let mut ports = vec![Vec::new(); self.nodes.len()];
        for link in self.link_ids() {
            for port in [link.forward(), link.backward()] {
                ports[self.from(port).index()].push(port);
            }
        }
        ports
    }

    fn check_size(&self) -> Result<(), TopologyError> {
        let hosts = self.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
        let [hosts, nodes, links] = [hosts, self.nodes.len(), self.links.len()].map(|count| count as u128);
        match nodes {
            0 => Err(TopologyError::Empty),
            _ => error::check_size(ShapeSize { hosts, switches: nodes - hosts, links }),
        }
    }

    fn check_names(&self) -> Result<(), TopologyError> {
        let mut seen = BTreeSet::new();
        match self.nodes.iter().find(|node| !seen.insert(node.name.as_str())) {
            Some(node) => Err(TopologyError::DuplicateName(node.name.clone())),
            None => Ok(()),
        }
    }

    fn check_links(&self) -> Result<(), TopologyError> {
        for link in &self.links {
            if let Some(end) = [link.a, link.b].into_iter().find(|end| end.index() >= self.nodes.len()) {
                return Err(TopologyError::NoSuchNode(end));
            }
            if link.a == link.b {
                return Err(TopologyError::SelfLink(self.name(link.a).to_string()));
            }
        }
        let ports = self.ports();
        match self.hosts().find(|host| ports[host.index()].len() != 1) {
            Some(host) => {
                Err(TopologyError::HostLinks { host: self.name(host).to_string(), links: ports[host.index()].len() })
            }
            None => Ok(()),
        }
    }

    fn check_connected(&self) -> Result<(), TopologyError> {
        let ports = self.ports();
        let mut reached = vec![false; self.nodes.len()];
        let mut to_visit = vec![NodeId(0)];
        while let Some(node) = to_visit.pop() {
            if !std::mem::replace(&mut reached[node.index()], true) {
                to_visit.extend(ports[node.index()].iter().map(|port| self.to(*port)));
            }
        }
        match self.node_ids().find(|node| !reached[node.index()]) {
            Some(node) => Err(TopologyError::Disconnected {
                from: self.name(NodeId(0)).to_string(),
                to: self.name(node).to_string(),
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> TopologyNode {
        TopologyNode { name: name.to_string(), kind: NodeKind::Host }
    }

    fn switch(name: &str) -> TopologyNode {
        TopologyNode { name: name.to_string(), kind: NodeKind::Switch }
    }

    fn link(a: u32, b: u32) -> TopologyLink {
        TopologyLink { a: NodeId(a), b: NodeId(b), rate: Rate::gbps(100), delay: Span::from_us(1) }
    }

    fn refusal(nodes: Vec<TopologyNode>, links: Vec<TopologyLink>) -> String {
        Topology::new(nodes, links).unwrap_err().to_string()
    }

    #[test]
    fn a_topology_is_put_together_node_by_node() {
        let topology = Topology::new(vec![host("a"), host("b"), switch("s")], vec![link(0, 2), link(2, 1), link(2, 1)]);
        assert_eq!(topology.unwrap_err().to_string(), "host 'b' has 2 links: expected exactly one");
        let topology = Topology::new(vec![host("a"), host("b"), switch("s")], vec![link(0, 2), link(2, 1)]).unwrap();
        assert_eq!(topology.hosts().collect::<Vec<_>>(), [NodeId(0), NodeId(1)]);
        assert_eq!(topology.switches().collect::<Vec<_>>(), [NodeId(2)]);
    }

    #[test]
    fn what_is_wrong_with_a_topology_is_named() {
        assert_eq!(refusal(vec![], vec![]), "expected at least one node");
        assert_eq!(refusal(vec![host("h"), host("h")], vec![link(0, 1)]), "two nodes are called 'h'");
        assert_eq!(refusal(vec![switch("s")], vec![link(0, 0)]), "'s' is linked to itself");
        assert_eq!(
            refusal(vec![host("h"), switch("s")], vec![link(0, 2)]),
            "a link ends at node 2, which there is not"
        );
        assert_eq!(refusal(vec![host("h"), switch("s")], vec![]), "host 'h' has 0 links: expected exactly one");
        let islands = vec![host("h0"), host("h1"), switch("s"), switch("t")];
        assert_eq!(refusal(islands, vec![link(0, 2), link(1, 2)]), "'t' cannot be reached from 'h0'");
    }

    #[test]
    fn nodes_and_links_are_found_by_name() {
        let topology = Topology::testbed(Rate::gbps(100));
        let port = topology.link_between("sw2", "sw6").unwrap();
        assert_eq!(
            (topology.from(port), topology.to(port)),
            (topology.node("sw2").unwrap(), topology.node("sw6").unwrap())
        );
        assert_eq!(topology.link_between("sw6", "sw2").unwrap(), port.reversed());
        assert_eq!(port.reversed().link(), port.link());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let topology = Topology::testbed(Rate::gbps(100));
        let said = |result: Result<NodeId, TopologyError>| result.unwrap_err().to_string();
        assert_eq!(said(topology.node("sw7")), "no node is called 'sw7': did you mean 'sw2'?");
        assert_eq!(said(topology.node("gateway")), "no node is called 'gateway'");
        let missing = topology.link_between("sw2", "h8").unwrap_err().to_string();
        assert_eq!(missing, "no link between 'sw2' and 'h8': 'sw2' is linked to h4, sw6");
    }
}

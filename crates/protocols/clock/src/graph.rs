//! Graph of nodes, links and failure domains, as compressed adjacency.
//!
//! Nodes are clocks: switch chips and NICs. Links are undirected; two nodes may have several. A failure domain is a set of nodes and
//! links that fail together (§3.4.2.1, property 4). A node that fails takes its links with it, so a domain need not list them.
//!
//! Failed nodes and links stay in the graph with their numbers and names, but have no neighbours, so that plans from before
//! and after a failure can be compared.
//!
//! Invariants: names are unique; a link joins two different nodes; [`Graph::neighbours`] of a node are those over links that work.
//!
//! | file | what it does |
//! | --- | --- |
//! | `build` | names and ends of links to a graph, checked |
//! | `builders` | graphs of the shapes of `topology`: fat trees, Facebook's pods, Jupiter, the testbed of the thesis |
//! | `domains` | failure domains, and the sets of them that a node or a link belongs to |
//! | `names` | from names to numbers |

mod build;
mod builders;
mod domains;
mod names;

use std::collections::HashMap;
use std::fmt;

pub use build::GraphError;
pub(crate) use domains::DomainSet;
pub use domains::{DomainError, DomainId, FailureDomain};
pub use names::{GraphNames, UnknownMember};
pub use topology::HostLinks;

use domains::Domains;

/// A node, by its place in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphNode(pub u32);

/// A link, by its place in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphLink(pub u32);

impl GraphNode {
    /// Index of the node in a list with an entry for every node.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl GraphLink {
    /// Index of the link in a list with an entry for every link.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Nodes, links and failure domains.
#[derive(Clone, Debug)]
pub struct Graph {
    /// All names in one text, and where each ends.
    text: String,
    name_ends: Vec<u32>,
    ends: Vec<[GraphNode; 2]>,
    /// Index of each node's first neighbour; one more entry at the end.
    starts: Vec<u32>,
    /// Number of each node's neighbours over working links; the other neighbours follow them.
    degrees: Vec<u32>,
    neighbours: Vec<(GraphNode, GraphLink)>,
    failed_nodes: Vec<bool>,
    failed_links: Vec<bool>,
    domains: Domains,
    /// Interfaces at both ends of each link; empty if they are not known.
    ports: Vec<Option<[Box<str>; 2]>>,
    /// Ordinal of each parallel link after the first (2, 3, …).
    parallel: HashMap<GraphLink, u32>,
    name_digests: Vec<u64>,
    usual_roots: Vec<GraphNode>,
}

impl Graph {
    /// Number of nodes, failed ones included.
    pub fn node_count(&self) -> usize {
        self.name_ends.len()
    }

    /// Number of links, failed ones included.
    pub fn link_count(&self) -> usize {
        self.ends.len()
    }

    /// All nodes, in order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = GraphNode> + use<> {
        (0..self.node_count() as u32).map(GraphNode)
    }

    /// All links, in order.
    pub fn links(&self) -> impl DoubleEndedIterator<Item = GraphLink> + use<> {
        (0..self.link_count() as u32).map(GraphLink)
    }

    /// Name of a node.
    pub fn name(&self, node: GraphNode) -> &str {
        let begin = node.index().checked_sub(1).map_or(0, |before| self.name_ends[before]);
        &self.text[begin as usize..self.name_ends[node.index()] as usize]
    }

    /// The node of a name. For many names, [`GraphNames`] is faster.
    pub fn node_named(&self, name: &str) -> Option<GraphNode> {
        self.nodes().find(|node| self.name(*node) == name)
    }

    /// Name of a link: `a--b`, with `#2` for the second of parallel ones.
    pub fn link_name(&self, link: GraphLink) -> GraphLinkName<'_> {
        GraphLinkName { graph: self, link }
    }

    /// The nodes that a link joins, in the order in which they were given.
    pub fn ends(&self, link: GraphLink) -> [GraphNode; 2] {
        self.ends[link.index()]
    }

    /// The other end of a link.
    pub fn across(&self, link: GraphLink, node: GraphNode) -> GraphNode {
        let [a, b] = self.ends(link);
        if a == node { b } else { a }
    }

    /// The interface at this end of a link, if it is known.
    pub fn port(&self, link: GraphLink, node: GraphNode) -> Option<&str> {
        let ports = self.ports.get(link.index())?.as_ref()?;
        Some(&ports[usize::from(self.ends(link)[0] != node)])
    }

    /// Says which interfaces links have: for each link those at its ends, in their order.
    #[must_use]
    pub fn with_ports(self, ports: Vec<Option<[Box<str>; 2]>>) -> Self {
        Self { ports, ..self }
    }

    /// Neighbours over links that work, one entry for each link.
    pub fn neighbours(&self, node: GraphNode) -> &[(GraphNode, GraphLink)] {
        let begin = self.starts[node.index()] as usize;
        &self.neighbours[begin..begin + self.degrees[node.index()] as usize]
    }

    /// The links between two nodes that work.
    pub fn links_between(&self, one: GraphNode, other: GraphNode) -> impl Iterator<Item = GraphLink> {
        self.neighbours(one).iter().filter(move |(there, _)| *there == other).map(|(_, link)| *link)
    }

    /// True if more than one link joins the ends of this one.
    pub fn is_parallel(&self, link: GraphLink) -> bool {
        let [a, b] = self.ends(link);
        !self.parallel.is_empty() && self.links_between(a, b).nth(1).is_some()
    }

    /// The node at which a plan begins unless one is asked for, if the wiring suggests one.
    pub fn usual_root(&self) -> Option<GraphNode> {
        self.usual_roots.iter().copied().find(|root| !self.neighbours(*root).is_empty())
    }

    /// A number that depends on the node's name.
    pub(crate) fn name_digest(&self, node: GraphNode) -> u64 {
        self.name_digests[node.index()]
    }

    /// Ordinal of this link among the links between its ends; 1 for the first.
    pub(crate) fn link_number(&self, link: GraphLink) -> u32 {
        self.parallel.get(&link).copied().unwrap_or(1)
    }

    /// A node fails, and its links with it.
    pub fn fail_node(&mut self, node: GraphNode) {
        while let Some((_, link)) = self.neighbours(node).last().copied() {
            self.fail_link(link);
        }
        self.failed_nodes[node.index()] = true;
    }

    /// A link fails.
    pub fn fail_link(&mut self, link: GraphLink) {
        if std::mem::replace(&mut self.failed_links[link.index()], true) {
            return;
        }
        for end in self.ends(link) {
            let begin = self.starts[end.index()] as usize;
            let working = &mut self.neighbours[begin..begin + self.degrees[end.index()] as usize];
            if let Some(place) = working.iter().position(|(_, known)| *known == link) {
                // The order of the others stays, so that a plan changes no more than it must.
                working[place..].rotate_left(1);
                self.degrees[end.index()] -= 1;
            }
        }
    }

    /// A whole domain fails.
    pub fn fail_domain(&mut self, domain: DomainId) {
        let FailureDomain { nodes, links, .. } = self.domain(domain).clone();
        nodes.into_iter().for_each(|node| self.fail_node(node));
        links.into_iter().for_each(|link| self.fail_link(link));
    }

    /// True if a node has failed.
    pub fn is_failed(&self, node: GraphNode) -> bool {
        self.failed_nodes[node.index()]
    }

    /// True if a link has failed, alone or with one of its ends.
    pub fn is_link_failed(&self, link: GraphLink) -> bool {
        self.failed_links[link.index()]
    }
}

/// A link's name, to be printed.
#[derive(Clone, Copy, Debug)]
pub struct GraphLinkName<'a> {
    graph: &'a Graph,
    link: GraphLink,
}

impl fmt::Display for GraphLinkName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { graph, link } = *self;
        let [a, b] = graph.ends(link);
        write!(f, "{}--{}", graph.name(a), graph.name(b))?;
        match graph.link_number(link) {
            1 => Ok(()),
            number => write!(f, "#{number}"),
        }
    }
}

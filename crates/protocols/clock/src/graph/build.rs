//! Builds a [`Graph`] from names and the ends of links, and finds every error in them.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::domains::Domains;
use super::{Graph, GraphLink, GraphNode};

/// More than any datacenter has; what is larger is a slip of the keyboard and would fill the memory.
const MOST_NODES: u64 = 2_000_000;
const MOST_LINKS: u64 = 10_000_000;

/// Links are counted from 0 in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphError {
    /// Numbers that make no such graph; what was expected.
    Shape(&'static str),
    /// More nodes or links than are allowed.
    TooLarge {
        /// Number of nodes.
        nodes: u64,
        /// Number of links.
        links: u64,
    },
    /// The graph has so few nodes that there is nobody to listen to.
    TooSmall(usize),
    /// A name that could not be written to a file and read from it.
    BadName(String),
    /// Two nodes of one name.
    DuplicateName(String),
    /// A link to a node that there is not.
    NoSuchNode {
        /// Index of the link.
        link: usize,
        /// The number at one of its ends.
        number: u32,
    },
    /// A link from a node to itself.
    SelfLoop {
        /// Index of the link.
        link: usize,
        /// The node's name.
        node: String,
    },
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(expected) => write!(f, "expected {expected}"),
            Self::TooLarge { nodes, links } => {
                write!(f, "{nodes} nodes and {links} links: expected at most {MOST_NODES} and {MOST_LINKS}")
            }
            Self::TooSmall(nodes) => {
                write!(f, "{nodes} {}: expected at least 2", if *nodes == 1 { "node" } else { "nodes" })
            }
            Self::BadName(name) => write!(
                f,
                "'{name}' is no name of a node: expected no commas, quotes or control characters, no blanks at either end, \
                 and no '#' at the beginning"
            ),
            Self::DuplicateName(name) => write!(f, "two nodes are called '{name}'"),
            Self::NoSuchNode { number, .. } => write!(f, "a link ends at node {number}, which there is not"),
            Self::SelfLoop { node, .. } => write!(f, "'{node}' is linked to itself"),
        }
    }
}

impl std::error::Error for GraphError {}

impl Graph {
    /// Nodes by their names, links by the numbers of the nodes that they join. Several links may join the same nodes.
    pub fn new(
        names: impl IntoIterator<Item = impl AsRef<str>>,
        links: impl IntoIterator<Item = [u32; 2]>,
    ) -> Result<Self, GraphError> {
        let (mut text, mut name_ends) = (String::new(), Vec::new());
        for name in names {
            let name = name.as_ref();
            if !is_name(name) {
                return Err(GraphError::BadName(name.to_owned()));
            }
            text.push_str(name);
            name_ends.push(text.len() as u32);
        }
        let ends: Vec<[GraphNode; 2]> = links.into_iter().map(|ends| ends.map(GraphNode)).collect();
        check_size(name_ends.len(), ends.len())?;
        let nodes = name_ends.len();
        for (link, pair) in ends.iter().enumerate() {
            if let Some(end) = pair.iter().find(|end| end.index() >= nodes) {
                return Err(GraphError::NoSuchNode { link, number: end.0 });
            }
        }
        let (starts, neighbours) = adjacency(nodes, &ends);
        let mut graph = Self {
            degrees: starts.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            failed_nodes: vec![false; nodes],
            failed_links: vec![false; ends.len()],
            domains: Domains::none(nodes, ends.len()),
            ports: Vec::new(),
            usual_roots: Vec::new(),
            parallel: parallel(nodes, &starts, &neighbours),
            name_digests: Vec::new(),
            text,
            name_ends,
            ends,
            starts,
            neighbours,
        };
        graph.check_names()?;
        graph.check_self_loops()?;
        graph.name_digests = graph.nodes().map(|node| digest(graph.name(node))).collect();
        Ok(graph)
    }

    /// Says at which nodes a plan may begin, best first.
    #[must_use]
    pub fn with_usual_roots(self, roots: impl IntoIterator<Item = GraphNode>) -> Self {
        Self { usual_roots: roots.into_iter().collect(), ..self }
    }

    fn check_names(&self) -> Result<(), GraphError> {
        let mut known = HashSet::with_capacity(self.node_count());
        match self.nodes().map(|node| self.name(node)).find(|name| !known.insert(*name)) {
            Some(twice) => Err(GraphError::DuplicateName(twice.to_owned())),
            None => Ok(()),
        }
    }

    fn check_self_loops(&self) -> Result<(), GraphError> {
        match self.ends.iter().position(|[a, b]| a == b) {
            Some(link) => Err(GraphError::SelfLoop { link, node: self.name(self.ends[link][0]).to_owned() }),
            None => Ok(()),
        }
    }
}

/// Names must survive being written to a file and read from it.
fn is_name(name: &str) -> bool {
    let strange = |letter: char| letter.is_control() || matches!(letter, ',' | '"');
    !name.is_empty() && name.trim() == name && !name.starts_with('#') && !name.contains(strange)
}

pub(super) fn check_size(nodes: usize, links: usize) -> Result<(), GraphError> {
    let [many_nodes, many_links] = [nodes as u64, links as u64];
    if many_nodes > MOST_NODES || many_links > MOST_LINKS {
        return Err(GraphError::TooLarge { nodes: many_nodes, links: many_links });
    }
    if nodes < 2 { Err(GraphError::TooSmall(nodes)) } else { Ok(()) }
}

/// Neighbours of each node, in the order of the links.
fn adjacency(nodes: usize, ends: &[[GraphNode; 2]]) -> (Vec<u32>, Vec<(GraphNode, GraphLink)>) {
    let mut starts = vec![0u32; nodes + 1];
    for end in ends.iter().flatten() {
        starts[end.index() + 1] += 1;
    }
    for node in 0..nodes {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut neighbours = vec![(GraphNode(0), GraphLink(0)); ends.len() * 2];
    for (link, &[a, b]) in ends.iter().enumerate() {
        for (here, there) in [(a, b), (b, a)] {
            neighbours[next[here.index()] as usize] = (there, GraphLink(link as u32));
            next[here.index()] += 1;
        }
    }
    (starts, neighbours)
}

/// FNV-1a.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Ordinal of each parallel link after the first (2, 3, …).
fn parallel(nodes: usize, starts: &[u32], neighbours: &[(GraphNode, GraphLink)]) -> HashMap<GraphLink, u32> {
    let mut numbers = HashMap::new();
    // By node, who saw it last and how many links led there.
    let mut seen = vec![(u32::MAX, 0); nodes];
    for here in 0..nodes as u32 {
        for (there, link) in &neighbours[starts[here as usize] as usize..starts[here as usize + 1] as usize] {
            let (who, count) = &mut seen[there.index()];
            *count = if *who == here { *count + 1 } else { 1 };
            *who = here;
            if *count > 1 {
                numbers.insert(*link, *count);
            }
        }
    }
    numbers
}

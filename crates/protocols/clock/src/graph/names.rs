//! From names to numbers: nodes (`pod3/tor7`), links (`pod3/tor7--pod3/fabric1`, `a--b#2`) and ports (`leaf3/eth1`).

use std::collections::HashMap;
use std::fmt;

use units::nearest;

use super::{Graph, GraphLink, GraphNode};

/// The nodes of a graph by their names.
#[derive(Clone, Debug)]
pub struct GraphNames<'a> {
    graph: &'a Graph,
    numbers: HashMap<&'a str, GraphNode>,
}

/// An unknown name, with the nearest known one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMember {
    what: &'static str,
    name: String,
    nearest: Option<String>,
}

impl fmt::Display for UnknownMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {} is called '{}'", self.what, self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, ": did you mean '{nearest}'?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownMember {}

impl<'a> GraphNames<'a> {
    /// Reads all names.
    pub fn of(graph: &'a Graph) -> Self {
        Self { graph, numbers: graph.nodes().map(|node| (graph.name(node), node)).collect() }
    }

    /// The graph that they are of.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The node of a name, if there is one.
    pub fn find(&self, name: &str) -> Option<GraphNode> {
        self.numbers.get(name).copied()
    }

    /// The node of a name.
    pub fn node(&self, name: &str) -> Result<GraphNode, UnknownMember> {
        self.find(name).ok_or_else(|| UnknownMember {
            what: "node",
            name: name.to_owned(),
            nearest: self.nearest(name).map(|node| self.graph.name(node).to_owned()),
        })
    }

    fn nearest(&self, name: &str) -> Option<GraphNode> {
        self.find(nearest(name, self.graph.nodes().map(|node| self.graph.name(node)))?)
    }

    /// A link by its name, either end first, or by a port at one of its ends.
    pub fn link(&self, name: &str) -> Result<GraphLink, UnknownMember> {
        self.find_link(name).ok_or_else(|| {
            let nearest = parts(name).find_map(|(one, other)| {
                let [one, other] = [one, other].map(|name| self.find(name).or_else(|| self.nearest(name)));
                self.between(one?, other?).next()
            });
            let nearest = nearest.map(|link| self.graph.link_name(link).to_string());
            UnknownMember { what: "link", name: name.to_owned(), nearest }
        })
    }

    /// A link by its name, if there is one.
    pub fn find_link(&self, name: &str) -> Option<GraphLink> {
        // Names of nodes may have dashes themselves, so each place is tried.
        parts(name).find_map(|(one, other)| self.link_of(one, other)).or_else(|| self.link_at(name))
    }

    /// Finds a link by its ends; `other` may end with the ordinal of a parallel link (`#2`).
    fn link_of(&self, one: &str, other: &str) -> Option<GraphLink> {
        let numbered =
            || other.rsplit_once('#').and_then(|(name, number)| Some((self.find(name)?, number.parse().ok()?)));
        let (there, number): (GraphNode, usize) = self.find(other).map(|there| (there, 1)).or_else(numbered)?;
        self.between(self.find(one)?, there).nth(number.checked_sub(1)?)
    }

    /// All links between two nodes, those that failed included.
    fn between(&self, one: GraphNode, other: GraphNode) -> impl Iterator<Item = GraphLink> {
        let mut found: Vec<GraphLink> =
            self.all_links_of(one).filter(|link| self.graph.across(*link, one) == other).collect();
        found.sort_unstable();
        found.into_iter()
    }

    fn all_links_of(&self, node: GraphNode) -> impl Iterator<Item = GraphLink> + use<'a> {
        let graph = self.graph;
        let range = graph.starts[node.index()] as usize..graph.starts[node.index() + 1] as usize;
        graph.neighbours[range].iter().map(|(_, link)| *link)
    }

    fn link_at(&self, port: &str) -> Option<GraphLink> {
        // Names of nodes may have slashes themselves; a port's name has none.
        let (node, port) = port.rsplit_once('/')?;
        let node = self.find(node)?;
        self.all_links_of(node).find(|link| self.graph.port(*link, node) == Some(port))
    }
}

fn parts(name: &str) -> impl Iterator<Item = (&str, &str)> {
    name.match_indices("--").map(|(at, dashes)| (&name[..at], &name[at + dashes.len()..]))
}

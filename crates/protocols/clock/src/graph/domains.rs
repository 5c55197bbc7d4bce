//! Failure domains (§3.4.2.1, property 4): nodes and links that fail together.
//!
//! A plan only needs the domains that a node or a link belongs to. Few different sets of domains exist, so each is kept
//! once, and nodes and links have its number: a [`DomainSet`]. Number 0 is the empty set.

use std::collections::HashMap;
use std::fmt;

use super::{Graph, GraphLink, GraphNames, GraphNode};

/// A failure domain, by its place in the graph's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u32);

/// Nodes and links that fail together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureDomain {
    /// Name of the domain.
    pub name: String,
    /// Nodes, in order; a node takes all its links with it.
    pub nodes: Vec<GraphNode>,
    /// Links, in order; only those that fail although both their ends live need be here.
    pub links: Vec<GraphLink>,
}

/// A set of domains, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DomainSet(pub(crate) u32);

impl DomainSet {
    /// The empty set.
    pub(crate) const EMPTY: Self = Self(0);
}

/// Errors in the description of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainError {
    /// The domain has no members.
    Empty(String),
    /// The domain holds every node.
    Everything(String),
    /// Two domains have the same name.
    Twice(String),
    /// Prefix that no name of a node has.
    NoSuchGroup(String),
}

impl fmt::Display for DomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty(name) => write!(f, "domain '{name}' has no members"),
            Self::Everything(name) => write!(f, "domain '{name}' holds every node: no plan can survive its failure"),
            Self::Twice(name) => write!(f, "two domains are called '{name}'"),
            Self::NoSuchGroup(prefix) => {
                write!(f, "no node is called {prefix}<number>/…, so there are no such domains")
            }
        }
    }
}

impl std::error::Error for DomainError {}

#[derive(Clone, Debug)]
pub(super) struct Domains {
    list: Vec<FailureDomain>,
    /// Sets of domains, each sorted; the first is empty.
    sets: Vec<Vec<DomainId>>,
    of_nodes: Vec<DomainSet>,
    of_links: Vec<DomainSet>,
}

impl Domains {
    pub(super) fn none(nodes: usize, links: usize) -> Self {
        let of_links = vec![DomainSet::EMPTY; links];
        Self { list: Vec::new(), sets: vec![Vec::new()], of_nodes: vec![DomainSet::EMPTY; nodes], of_links }
    }
}

impl Graph {
    /// Replaces the failure domains.
    pub fn with_domains(mut self, mut list: Vec<FailureDomain>) -> Result<Self, DomainError> {
        let mut known = std::collections::HashSet::new();
        for domain in &mut list {
            domain.nodes.sort_unstable();
            domain.nodes.dedup();
            domain.links.sort_unstable();
            domain.links.dedup();
            if domain.nodes.is_empty() && domain.links.is_empty() {
                return Err(DomainError::Empty(domain.name.clone()));
            }
            if domain.nodes.len() == self.node_count() {
                return Err(DomainError::Everything(domain.name.clone()));
            }
            if !known.insert(domain.name.clone()) {
                return Err(DomainError::Twice(domain.name.clone()));
            }
        }
        self.domains = Domains::none(self.node_count(), self.link_count());
        let mut numbers = HashMap::from([(Vec::new(), DomainSet::EMPTY)]);
        let mut of_nodes: Vec<Vec<DomainId>> = vec![Vec::new(); self.node_count()];
        let mut of_links: HashMap<GraphLink, Vec<DomainId>> = HashMap::new();
        for (domain, id) in list.iter().zip((0..).map(DomainId)) {
            domain.nodes.iter().for_each(|node| of_nodes[node.index()].push(id));
            domain.links.iter().for_each(|link| of_links.entry(*link).or_default().push(id));
        }
        let sets = &mut self.domains.sets;
        let mut number = |set: Vec<DomainId>| {
            *numbers.entry(set).or_insert_with_key(|set| {
                sets.push(set.clone());
                DomainSet(sets.len() as u32 - 1)
            })
        };
        self.domains.of_nodes = of_nodes.into_iter().map(&mut number).collect();
        let mut of_links: Vec<(GraphLink, Vec<DomainId>)> = of_links.into_iter().collect();
        of_links.sort_unstable();
        for (link, set) in of_links {
            self.domains.of_links[link.index()] = number(set);
        }
        self.domains.list = list;
        Ok(self)
    }

    /// One domain for each group of nodes whose names begin with `prefix`, a number and a slash: `pod`, `agg`.
    pub fn with_domains_named(self, prefix: &str) -> Result<Self, DomainError> {
        let mut list: Vec<FailureDomain> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for node in self.nodes() {
            let Some(group) = group(self.name(node), prefix) else { continue };
            let place = *places.entry(group.to_owned()).or_insert_with(|| {
                list.push(FailureDomain { name: group.to_owned(), ..FailureDomain::default() });
                list.len() - 1
            });
            list[place].nodes.push(node);
        }
        if list.is_empty() { Err(DomainError::NoSuchGroup(prefix.to_owned())) } else { self.with_domains(list) }
    }

    /// All failure domains.
    pub fn domains(&self) -> &[FailureDomain] {
        &self.domains.list
    }

    /// Failure domain with this number.
    pub fn domain(&self, id: DomainId) -> &FailureDomain {
        &self.domains.list[id.0 as usize]
    }

    /// The set of domains that a node belongs to.
    pub(crate) fn domains_of(&self, node: GraphNode) -> DomainSet {
        self.domains.of_nodes[node.index()]
    }

    /// The set of domains that name a link itself.
    pub(crate) fn domains_of_link(&self, link: GraphLink) -> DomainSet {
        self.domains.of_links[link.index()]
    }

    /// The domains of a set, in order.
    pub(crate) fn domain_set(&self, set: DomainSet) -> &[DomainId] {
        &self.domains.sets[set.0 as usize]
    }
}

/// `pod12` of `pod12/tor3`, for the prefix `pod`.
fn group<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (group, _) = name.split_once('/')?;
    let number = group.strip_prefix(prefix)?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some(group)
}

impl FailureDomain {
    /// Adds a node or a link by its name; false if there is neither.
    pub fn add(&mut self, member: &str, names: &GraphNames<'_>) -> bool {
        match (names.find(member), names.find_link(member)) {
            (Some(node), _) => self.nodes.push(node),
            (None, Some(link)) => self.links.push(link),
            (None, None) => return false,
        }
        true
    }
}

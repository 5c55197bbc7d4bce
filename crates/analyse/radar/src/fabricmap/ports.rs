//! The switches of a fabric, the links between them, and which port each link has at either end.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Distances between all switches are kept.
const MOST_SWITCHES: usize = 1_024;
const UNREACHED: u16 = u16::MAX;

/// A link between two switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLink {
    pub name: String,
    /// Switches, lower first, and the port at each.
    pub ends: [LinkPort; 2],
    /// Bits per second.
    pub rate: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPort {
    pub switch: usize,
    pub port: String,
}

/// Problem with the ports of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortsError {
    TooMany(usize),
    /// Two links at one port.
    Twice(String, String),
    NoPort(String),
    /// A name that cannot be printed.
    Name(String),
}

impl fmt::Display for PortsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(switches) => write!(f, "{switches} switches; a map has {MOST_SWITCHES} at most"),
            Self::Twice(switch, port) => write!(f, "two links are at {switch}/{port}: give each its own port"),
            Self::NoPort(link) => {
                write!(f, "{link} has no ports: a map needs the columns lower_port and upper_port of every link")
            }
            Self::Name(name) => write!(f, "{name:?}: expected a name of 1 to 255 characters that can be printed"),
        }
    }
}

impl std::error::Error for PortsError {}

/// An end of a link: the link, and 0 for its lower switch or 1 for its upper one.
pub type EndOfLink = (usize, usize);

#[derive(Clone, Debug)]
pub struct FabricPorts {
    switches: Vec<String>,
    links: Vec<PortLink>,
    ids: BTreeMap<String, usize>,
    /// Links of each switch.
    at: Vec<Vec<EndOfLink>>,
    hops: Vec<Vec<u16>>,
}

impl FabricPorts {
    pub fn new(switches: Vec<String>, links: Vec<PortLink>) -> Result<Self, PortsError> {
        if switches.len() > MOST_SWITCHES {
            return Err(PortsError::TooMany(switches.len()));
        }
        let ports = links.iter().flat_map(|link| link.ends.iter().map(|end| &end.port));
        if let Some(name) = switches.iter().chain(ports).find(|name| !super::slot_report::is_name(name)) {
            return Err(PortsError::Name(name.clone()));
        }
        let mut at: Vec<Vec<EndOfLink>> = vec![Vec::new(); switches.len()];
        for (number, link) in links.iter().enumerate() {
            for (end, LinkPort { switch, port }) in link.ends.iter().enumerate() {
                if at[*switch].iter().any(|(link, end)| links[*link].ends[*end].port == *port) {
                    return Err(PortsError::Twice(switches[*switch].clone(), port.clone()));
                }
                at[*switch].push((number, end));
            }
        }
        let ids = switches.iter().cloned().zip(0..).collect();
        let mut fabric = Self { switches, links, ids, at, hops: Vec::new() };
        fabric.hops = (0..fabric.switches.len()).map(|from| fabric.distances(from)).collect();
        Ok(fabric)
    }

    pub fn switches(&self) -> &[String] {
        &self.switches
    }

    pub fn links(&self) -> &[PortLink] {
        &self.links
    }

    pub fn switch(&self, name: &str) -> Option<usize> {
        self.ids.get(name).copied()
    }

    /// Ends of links at a switch.
    pub fn at(&self, switch: usize) -> &[EndOfLink] {
        &self.at[switch]
    }

    /// The link at a port, unless the port leads out of the fabric.
    pub fn link_at(&self, switch: usize, port: &str) -> Option<EndOfLink> {
        self.at[switch].iter().copied().find(|(link, end)| self.links[*link].ends[*end].port == port)
    }

    /// The switch at an end.
    pub fn switch_of(&self, (link, end): EndOfLink) -> usize {
        self.links[link].ends[end].switch
    }

    /// Name of a port at an end, as `leaf1/eth1`.
    pub fn port_name(&self, (link, end): EndOfLink) -> String {
        let LinkPort { switch, port } = &self.links[link].ends[end];
        format!("{}/{port}", self.switches[*switch])
    }

    /// Links on a shortest path; `None` between parts of the fabric that no link joins.
    pub fn hops(&self, from: usize, to: usize) -> Option<u16> {
        Some(self.hops[from][to]).filter(|hops| *hops != UNREACHED)
    }

    /// Switches next to each.
    pub fn neighbours(&self) -> Vec<Vec<usize>> {
        let of = |ends: &Vec<EndOfLink>| {
            let mut list: Vec<usize> = ends.iter().map(|(link, end)| self.switch_of((*link, 1 - end))).collect();
            list.sort_unstable();
            list.dedup();
            list
        };
        self.at.iter().map(of).collect()
    }

    /// Groups of ports between which a hash may choose: at each switch its links upwards of one rate, and parallel links to one
    /// switch below. Each group has at least two ends.
    pub fn equal_ports(&self) -> Vec<Vec<EndOfLink>> {
        let mut groups: BTreeMap<(usize, u64, usize), Vec<EndOfLink>> = BTreeMap::new();
        for (switch, ends) in self.at.iter().enumerate() {
            for (link, end) in ends.iter().copied() {
                // Upwards any switch will do; downwards only one leads there.
                let to = if end == 0 { usize::MAX } else { self.switch_of((link, 0)) };
                groups.entry((switch, self.links[link].rate, to)).or_default().push((link, end));
            }
        }
        groups.into_values().filter(|group| group.len() > 1).collect()
    }

    fn distances(&self, from: usize) -> Vec<u16> {
        let mut hops = vec![UNREACHED; self.switches.len()];
        hops[from] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(switch) = queue.pop_front() {
            for (link, end) in &self.at[switch] {
                let next = self.switch_of((*link, 1 - end));
                if hops[next] == UNREACHED {
                    hops[next] = hops[switch] + 1;
                    queue.push_back(next);
                }
            }
        }
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabricmap::stories::leaf_spine;

    #[test]
    fn links_are_found_by_their_ports_and_paths_have_lengths() {
        let fabric = leaf_spine();
        let [leaf1, leaf2, spine1] = ["leaf1", "leaf2", "spine1"].map(|name| fabric.switch(name).unwrap());
        assert_eq!(
            fabric.link_at(leaf1, "up1"),
            fabric.links().iter().position(|link| link.name == "leaf1--spine1").map(|at| (at, 0))
        );
        assert_eq!(fabric.link_at(leaf1, "host1"), None);
        assert_eq!(
            [fabric.hops(leaf1, leaf2), fabric.hops(leaf1, spine1), fabric.hops(leaf1, leaf1)],
            [Some(2), Some(1), Some(0)]
        );
        let groups = fabric.equal_ports();
        assert_eq!(groups.len(), 2, "the uplinks of each leaf; a spine has one way down to each");
        assert!(groups.iter().all(|group| group.iter().all(|(_, end)| *end == 0) && group.len() == 2));
    }

    #[test]
    fn topologies_that_make_no_sense_are_refused_with_the_port() {
        let end = |switch, port: &str| LinkPort { switch, port: port.into() };
        let link =
            |ports: [&str; 2]| PortLink { name: "a--b".into(), ends: [end(0, ports[0]), end(1, ports[1])], rate: 1 };
        let of = |links| FabricPorts::new(vec!["a".into(), "b".into()], links).unwrap_err().to_string();
        assert!(of(vec![link(["p", "q"]), link(["p", "r"])]).contains("two links are at a/p"));
        assert!(of(vec![link(["p\n", "q"])]).contains(r#""p\n""#));
        let many = (0..2_000).map(|nth| nth.to_string()).collect();
        assert!(FabricPorts::new(many, Vec::new()).unwrap_err().to_string().contains("1024 at most"));
    }
}

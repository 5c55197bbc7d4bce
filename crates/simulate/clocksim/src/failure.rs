//! Failures and their times: `link:A--B@1s`, `node:X@1s`, `domain:D@1s`, `root@1s`, or a number of them at random.

use clock::graph::{DomainId, Graph, GraphLink, GraphNames, GraphNode};
use faults::Random;
use units::{Span, Time};

/// Part of the network that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockFailure {
    /// A link, in both directions.
    Link(GraphLink),
    /// A node with its links.
    Node(GraphNode),
    /// All that is in a domain.
    Domain(DomainId),
    /// Whoever is the root then.
    Root,
}

/// A failure, when it happens, and when it is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedFailure {
    /// Part that fails.
    pub what: ClockFailure,
    /// Time of the failure.
    pub at: Time,
    /// Time at which it works again; [`Time::NEVER`] if it does not.
    pub until: Time,
}

impl TimedFailure {
    /// Reads `WHAT@TIME`.
    pub fn parse(text: &str, names: &GraphNames<'_>) -> Result<Self, String> {
        let expected = "expected WHAT@TIME, with WHAT one of link:A--B, node:X, domain:D, root";
        let (what, time) = text.rsplit_once('@').ok_or_else(|| format!("no time: {expected}"))?;
        let at: Span = time.parse().map_err(|error: units::ParseError| error.to_string())?;
        let what = match what.split_once(':') {
            Some(("link", link)) => {
                let unknown = || format!("no link {link:?}: expected A--B with names of nodes that are linked");
                ClockFailure::Link(names.find_link(link).ok_or_else(unknown)?)
            }
            Some(("node", node)) => {
                ClockFailure::Node(names.find(node).ok_or_else(|| format!("no node {node:?} in this fabric"))?)
            }
            Some(("domain", domain)) => {
                let mut domains = names.graph().domains().iter();
                let place = domains.position(|known| known.name == domain);
                let unknown = || format!("no domain {domain:?}: give them with --domains");
                ClockFailure::Domain(DomainId(place.ok_or_else(unknown)? as u32))
            }
            None if what == "root" => ClockFailure::Root,
            _ => return Err(expected.to_owned()),
        };
        Ok(Self { what, at: Time::ZERO + at, until: Time::NEVER })
    }

    /// Draws failures in the proportions of §3.6.1.3 (of 50, 24 links, 23 nodes, 2 domains and the root), spread over the run,
    /// one after the other: each is repaired when half of the time to the next has passed.
    pub fn random(graph: &Graph, root: GraphNode, count: u32, duration: Span, seed: u64) -> Vec<Self> {
        let mut random = Random::new(seed, 2);
        let mut kinds: Vec<u32> = (0..count).map(|number| number * 50 / count.max(1)).collect();
        for place in (1..kinds.len()).rev() {
            kinds.swap(place, random.below(place as u64 + 1) as usize);
        }
        let slot = duration / (u64::from(count) + 1);
        let spares_root = |domain: &usize| !graph.domains()[*domain].nodes.contains(&root);
        let domains: Vec<usize> = (0..graph.domains().len()).filter(spares_root).collect();
        let draw = |kind: u32, random: &mut Random| match kind {
            0 => ClockFailure::Root,
            1 | 2 if !domains.is_empty() => {
                ClockFailure::Domain(DomainId(domains[random.below(domains.len() as u64) as usize] as u32))
            }
            kind if kind % 2 == 0 => ClockFailure::Link(GraphLink(random.below(graph.link_count() as u64) as u32)),
            _ => {
                let other = random.below(graph.node_count() as u64 - 1) as u32;
                ClockFailure::Node(GraphNode(if other >= root.0 { other + 1 } else { other }))
            }
        };
        let place = |(number, kind): (usize, u32)| {
            let at = Time::ZERO + slot * (number as u64) + slot / 2 + Span::from_ps(random.below(slot.as_ps() / 4 + 1));
            TimedFailure { what: draw(kind, &mut random), at, until: at + slot / 2 }
        };
        kinds.into_iter().enumerate().map(place).collect()
    }
}

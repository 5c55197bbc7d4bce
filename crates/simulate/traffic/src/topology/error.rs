//! Errors of a topology.

use std::fmt;

use ::topology::ShapeSize;

use super::NodeId;

/// Room for a fat-tree of 64-port switches, which has 65,536 hosts, 5,120 switches and 196,608 links; with more
/// switches, tables of routes would fill the memory.
const MAX_HOSTS: u128 = 100_000;
const MAX_SWITCHES: u128 = 10_000;
const MAX_LINKS: u128 = 500_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyError {
    Empty,
    TooLarge {
        hosts: u128,
        switches: u128,
        links: u128,
    },
    /// Numbers that make no such topology; what was expected.
    Shape(&'static str),
    DuplicateName(String),
    SelfLink(String),
    NoSuchNode(NodeId),
    HostLinks {
        host: String,
        links: usize,
    },
    Disconnected {
        from: String,
        to: String,
    },
    UnknownNode {
        name: String,
        nearest: Option<String>,
    },
    NoLink {
        from: String,
        to: String,
        neighbours: Vec<String>,
    },
    /// An error in a file, with its line.
    Line {
        line: usize,
        problem: String,
    },
}

/// Refuses what would fill the memory, before it is built.
pub(super) fn check_size(ShapeSize { hosts, switches, links }: ShapeSize) -> Result<(), TopologyError> {
    if hosts <= MAX_HOSTS && switches <= MAX_SWITCHES && links <= MAX_LINKS {
        Ok(())
    } else {
        Err(TopologyError::TooLarge { hosts, switches, links })
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("expected at least one node"),
            Self::TooLarge { hosts, switches, links } => write!(
                f,
                "{hosts} hosts, {switches} switches and {links} links: expected at most {MAX_HOSTS}, {MAX_SWITCHES} and \
                 {MAX_LINKS}"
            ),
            Self::Shape(expected) => write!(f, "expected {expected}"),
            Self::DuplicateName(name) => write!(f, "two nodes are called '{name}'"),
            Self::SelfLink(name) => write!(f, "'{name}' is linked to itself"),
            Self::NoSuchNode(node) => write!(f, "a link ends at node {}, which there is not", node.0),
            Self::HostLinks { host, links } => write!(f, "host '{host}' has {links} links: expected exactly one"),
            Self::Disconnected { from, to } => write!(f, "'{to}' cannot be reached from '{from}'"),
            Self::UnknownNode { name, nearest: Some(nearest) } => {
                write!(f, "no node is called '{name}': did you mean '{nearest}'?")
            }
            Self::UnknownNode { name, nearest: None } => write!(f, "no node is called '{name}'"),
            Self::NoLink { from, to, neighbours } => {
                write!(f, "no link between '{from}' and '{to}': '{from}' is linked to {}", neighbours.join(", "))
            }
            Self::Line { line, problem } => write!(f, "line {line}: {problem}"),
        }
    }
}

impl std::error::Error for TopologyError {}

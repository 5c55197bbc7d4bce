//! Errors in the description of a fabric.

use std::fmt;

/// More than any datacenter has; what is larger is a slip of the keyboard and would fill the memory.
pub(super) const MOST_LINKS: u64 = 10_000_000;
pub(super) const MOST_SWITCHES: u64 = 1_000_000;

/// Most paths of which a share can be taken without rounding.
pub(super) const MOST_PATHS: u64 = 1 << 53;

/// Wires are counted from 0 in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FabricError {
    /// Numbers that make no such fabric; what was expected.
    Shape(&'static str),
    TooLarge {
        switches: u64,
        links: u64,
    },
    NoLinks,
    NoTors,
    BadName(String),
    DuplicateName(String),
    NoSuchSwitch {
        wire: usize,
        number: u32,
    },
    SelfLink {
        wire: usize,
        switch: String,
    },
    BadPort {
        wire: usize,
        port: String,
    },
    /// Two links between the same switches that have no ports to distinguish them.
    DuplicateLink {
        wire: usize,
        first: usize,
        name: String,
    },
    PortTwice {
        wire: usize,
        first: usize,
        port: String,
    },
    /// A cycle: each switch is below the next, and the last below the first.
    Cycle {
        wire: usize,
        switches: Vec<String>,
    },
    TooHigh(String),
    /// More than can be counted.
    TooManyPaths(String),
    Unlinked(String),
    Disconnected(String),
    /// A ToR with something below it.
    NoTor {
        switch: String,
        below: String,
    },
    /// A top switch with something above it.
    NoTop {
        switch: String,
        above: String,
    },
}

impl FabricError {
    /// The wire that is to blame, and an earlier one that it contradicts.
    pub fn wires(&self) -> (Option<usize>, Option<usize>) {
        match self {
            Self::DuplicateLink { wire, first, .. } | Self::PortTwice { wire, first, .. } => {
                (Some(*wire), Some(*first))
            }
            Self::NoSuchSwitch { wire, .. }
            | Self::SelfLink { wire, .. }
            | Self::BadPort { wire, .. }
            | Self::Cycle { wire, .. } => (Some(*wire), None),
            _ => (None, None),
        }
    }

    /// The switch that is to blame.
    pub fn switch(&self) -> Option<&str> {
        match self {
            Self::BadName(name)
            | Self::DuplicateName(name)
            | Self::TooHigh(name)
            | Self::TooManyPaths(name)
            | Self::Unlinked(name)
            | Self::Disconnected(name)
            | Self::NoTor { switch: name, .. }
            | Self::NoTop { switch: name, .. } => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(expected) => write!(f, "expected {expected}"),
            Self::TooLarge { switches, links } => {
                write!(f, "{switches} switches and {links} links: expected at most {MOST_SWITCHES} and {MOST_LINKS}")
            }
            Self::NoLinks => f.write_str("expected at least one link"),
            Self::NoTors => f.write_str("no switch is a ToR: expected at least one"),
            Self::BadName(name) => write!(
                f,
                "'{name}' is no name of a switch: expected no commas, quotes or control characters, no blanks at either \
                 end, and no '#' at the beginning"
            ),
            Self::DuplicateName(name) => write!(f, "two switches are called '{name}'"),
            Self::NoSuchSwitch { number, .. } => write!(f, "a link ends at switch {number}, which there is not"),
            Self::SelfLink { switch, .. } => write!(f, "'{switch}' is linked to itself"),
            Self::BadPort { port, .. } => write!(
                f,
                "'{port}' is no name of a port: expected no commas, quotes, slashes or control characters, no blanks at \
                 either end, and no '#' at the beginning"
            ),
            Self::DuplicateLink { name, .. } => {
                write!(f, "there is a link {name} already: expected different ports if they are parallel")
            }
            Self::PortTwice { port, .. } => write!(f, "port {port} has a link already"),
            Self::Cycle { switches, .. } => {
                let first = switches.first().map_or("", String::as_str);
                write!(f, "links go in a circle: {} below {first}", switches.join(" below "))
            }
            Self::TooHigh(name) => write!(f, "'{name}' is more than 255 levels above a ToR"),
            Self::TooManyPaths(name) => write!(f, "'{name}' has more than {MOST_PATHS} paths to the top"),
            Self::Unlinked(name) => write!(f, "'{name}' has no links"),
            Self::Disconnected(name) => write!(f, "ToR '{name}' does not reach the top"),
            Self::NoTor { switch, below } => write!(f, "'{switch}' is called a ToR, but '{below}' is below it"),
            Self::NoTop { switch, above } => write!(f, "'{switch}' is called a top switch, but '{above}' is above it"),
        }
    }
}

impl std::error::Error for FabricError {}

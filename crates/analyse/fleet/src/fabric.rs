//! Switches in levels and the links between them: what is needed to count paths.
//!
//! Every link joins a lower switch to an upper one. A ToR has nothing below it; a top switch (spine, core) has
//! nothing above it. Paths of a ToR are the ways up to any top switch (LinkGuardian §2, after CorrOpt).
//!
//! A *segment* is a part of the fabric that no path leaves on its way up before it reaches the top: a pod. Links of
//! different segments share no ToR below them, so constraints never cross segments.
//!
//! Invariants: names are unique; no switch has more than 2^53 paths; links point from a lower level to a higher one; every ToR reaches the top; links are
//! sorted by segment, so that a segment's links are a range.
//!
//! | file | what it does |
//! | --- | --- |
//! | `build`, `segments` | switches and wires to a fabric, checked: levels, segments, order |
//! | `builders` | fabrics of the shapes of `topology`: Facebook's, fat-trees, Jupiter, leaf–spine |
//! | `file`, `toml` | files that say which switches and links there are |
//! | `table` | CSV, of links and of other things |
//! | `graph` | the same files as graphs for clocks, with failure domains |
//! | `names` | from the names of links, ports and switches to their numbers |

mod build;
mod builders;
mod error;
mod file;
mod graph;
mod names;
mod segments;
pub(crate) mod table;
mod toml;

use std::fmt;
use std::ops::Range;

use units::Rate;

pub use build::{FabricNode, FabricWire, Role};
pub use builders::Facebook;
pub use error::FabricError;
pub use graph::{GraphFaults, load_domains, load_faults, load_graph, write_graph};
pub use names::{LinkEnd, SwitchNames, UnknownName};
pub use table::FileError;

/// A switch, by its place in [`Fabric::switches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u32);

/// A link, by its place in [`Fabric::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl SwitchId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    pub name: String,
    /// Zero with nothing below it, as for a ToR; one more than the highest switch below it otherwise.
    pub level: u8,
    /// Segment that it belongs to; none for a top switch, which belongs to all.
    pub segment: Option<u32>,
}

/// A link. Its name is not stored: [`Fabric::name`] makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricLink {
    pub lower: SwitchId,
    pub upper: SwitchId,
    pub rate: Rate,
    pub segment: u32,
    /// Interfaces at the lower and the upper switch, where they are known: how a monitor's ports are found.
    pub ports: Option<[Box<str>; 2]>,
}

/// Links, ToRs and inner switches (all that are not tops) of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricSegment {
    pub name: String,
    pub links: Range<u32>,
    pub tors: Vec<SwitchId>,
    /// Switches from the top down, ToRs included: every switch comes after all those above it.
    pub switches: Vec<SwitchId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    switches: Vec<Switch>,
    links: Vec<FabricLink>,
    segments: Vec<FabricSegment>,
    /// Links up from each switch, and down from each: where its slice of `up` and `down` ends.
    up: Adjacency,
    down: Adjacency,
}

/// Links of each switch, in one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Adjacency {
    ends: Vec<u32>,
    links: Vec<LinkId>,
}

impl Adjacency {
    fn of(&self, switch: SwitchId) -> &[LinkId] {
        let begin = if switch.0 == 0 { 0 } else { self.ends[switch.index() - 1] };
        &self.links[begin as usize..self.ends[switch.index()] as usize]
    }
}

impl Fabric {
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    pub fn switch(&self, id: SwitchId) -> &Switch {
        &self.switches[id.index()]
    }

    pub fn links(&self) -> &[FabricLink] {
        &self.links
    }

    pub fn link(&self, id: LinkId) -> &FabricLink {
        &self.links[id.index()]
    }

    pub fn segments(&self) -> &[FabricSegment] {
        &self.segments
    }

    pub fn segment_of(&self, link: LinkId) -> &FabricSegment {
        &self.segments[self.links[link.index()].segment as usize]
    }

    /// Links from this switch up, and links from it down.
    pub fn up(&self, switch: SwitchId) -> &[LinkId] {
        self.up.of(switch)
    }

    pub fn down(&self, switch: SwitchId) -> &[LinkId] {
        self.down.of(switch)
    }

    /// Name of the link: `lower--upper`, with `#2` for the second of parallel ones.
    pub fn name(&self, link: LinkId) -> LinkName<'_> {
        LinkName { fabric: self, link }
    }

    /// Ways from each switch to the top over all links: one for a top switch itself.
    pub(crate) fn ways(&self) -> Vec<u64> {
        let mut ways: Vec<u64> = self.switches.iter().map(|switch| u64::from(switch.segment.is_none())).collect();
        for &switch in self.segments.iter().flat_map(|segment| &segment.switches) {
            let up = self.up(switch).iter().map(|&link| ways[self.link(link).upper.index()]);
            ways[switch.index()] = up.fold(0, u64::saturating_add);
        }
        ways
    }

    pub fn is_top(&self, switch: SwitchId) -> bool {
        self.switches[switch.index()].segment.is_none()
    }
}

/// A link's name, to be printed.
#[derive(Clone, Copy, Debug)]
pub struct LinkName<'a> {
    fabric: &'a Fabric,
    link: LinkId,
}

impl fmt::Display for LinkName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FabricLink { lower, upper, .. } = *self.fabric.link(self.link);
        let [low, up] = [lower, upper].map(|end| &self.fabric.switch(end).name);
        let earlier = self.fabric.up(lower).iter().take_while(|other| **other != self.link);
        match earlier.filter(|other| self.fabric.link(**other).upper == upper).count() {
            0 => f.pad(&format!("{low}--{up}")),
            parallel => f.pad(&format!("{low}--{up}#{}", parallel + 1)),
        }
    }
}

//! Switches in levels and the links between them: what is needed to count paths.
//!
//! Every link joins a lower switch to an upper one. A ToR has nothing below it; a top switch (spine, core) has
//! nothing above it. Paths of a ToR are the ways up to any top switch (LinkGuardian §2, after CorrOpt).
//!
//! A *segment* is a part of the fabric that no path leaves on its way up before it reaches the top: a pod. Links of
//! different segments share no ToR below them, so constraints never cross segments.
//!
//! Invariants: names are unique; links point from a lower level to a higher one; every ToR reaches the top; links are
//! sorted by segment, so that a segment's links are a range.

use std::ops::Range;

use units::Rate;

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
    /// Zero for a ToR; one more than the highest switch below it otherwise.
    pub level: u8,
    /// Which segment it belongs to; none for a top switch, which belongs to all.
    pub segment: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub lower: SwitchId,
    pub upper: SwitchId,
    pub rate: Rate,
    pub segment: u32,
    /// Interfaces at the lower and the upper switch, where they are known: how a monitor's ports are found.
    pub ports: Option<[Box<str>; 2]>,
}

/// Links, ToRs and inner switches (all that are not tops) of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub name: String,
    pub links: Range<u32>,
    pub tors: Vec<SwitchId>,
    /// From the top down: every switch comes after all those above it. ToRs included.
    pub switches: Vec<SwitchId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    switches: Vec<Switch>,
    links: Vec<Link>,
    segments: Vec<Segment>,
    /// Links up from each switch, and down from each: where its slice of `up` and `down` ends.
    up: Adjacency,
    down: Adjacency,
}

/// For each switch its links, all in one list.
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

    pub fn links(&self) -> &[Link] {
        &self.links
    }

    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub fn segment_of(&self, link: LinkId) -> &Segment {
        &self.segments[self.links[link.index()].segment as usize]
    }

    /// Links from this switch up, and links from it down.
    pub fn up(&self, switch: SwitchId) -> &[LinkId] {
        self.up.of(switch)
    }

    pub fn down(&self, switch: SwitchId) -> &[LinkId] {
        self.down.of(switch)
    }

    pub fn is_top(&self, switch: SwitchId) -> bool {
        self.switches[switch.index()].segment.is_none()
    }
}

//! Builds a [`Fabric`] from switches and wires, and finds every error in them.

use std::collections::HashMap;
use std::fmt;

use units::Rate;

use super::error::{MOST_LINKS, MOST_PATHS, MOST_SWITCHES};
use super::segments::segments;
use super::{Adjacency, Fabric, FabricError, FabricLink, LinkId, Switch, SwitchId};

/// Declared role of a switch. Roles that are not declared follow from the wires: ToRs are those with nothing below them,
/// tops those with nothing above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A switch whose paths to the top count. If one ToR is declared, undeclared switches are no ToRs.
    Tor,
    /// Neither a ToR nor a top, even if nothing is below or above it.
    Inner,
    /// End of paths. If one is declared, those that are not are none.
    Top,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tor => "ToR",
            Self::Inner => "inner switch",
            Self::Top => "top switch",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricNode {
    pub name: String,
    pub role: Option<Role>,
}

impl FabricNode {
    pub fn new(name: impl Into<String>, role: Option<Role>) -> Self {
        Self { name: name.into(), role }
    }
}

impl From<String> for FabricNode {
    fn from(name: String) -> Self {
        Self { name, role: None }
    }
}

impl From<&str> for FabricNode {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

/// A link before it has its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricWire {
    pub lower: SwitchId,
    pub upper: SwitchId,
    pub rate: Rate,
    pub ports: Option<[Box<str>; 2]>,
}

impl FabricWire {
    /// 100G, ports not known.
    pub const fn new(lower: SwitchId, upper: SwitchId) -> Self {
        Self { lower, upper, rate: Rate::gbps(100), ports: None }
    }

    #[must_use]
    pub(crate) fn with_rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// Ports at the lower and at the upper switch. Parallel links cannot be distinguished without them.
    #[must_use]
    pub fn with_ports(self, lower: impl Into<Box<str>>, upper: impl Into<Box<str>>) -> Self {
        Self { ports: Some([lower.into(), upper.into()]), ..self }
    }
}

impl Fabric {
    /// Switches keep their order, links theirs within a segment. Segments are in the order of their first switches.
    pub fn new(
        nodes: impl IntoIterator<Item = impl Into<FabricNode>>,
        wires: impl IntoIterator<Item = FabricWire>,
    ) -> Result<Self, FabricError> {
        let nodes: Vec<FabricNode> = nodes.into_iter().map(Into::into).collect();
        let wires: Vec<FabricWire> = wires.into_iter().collect();
        let fabric = FabricDraft::new(&nodes, &wires)?.finish(nodes, wires);
        match fabric.ways().iter().position(|ways| *ways > MOST_PATHS) {
            Some(switch) => Err(FabricError::TooManyPaths(fabric.switches[switch].name.clone())),
            None => Ok(fabric),
        }
    }
}

/// Switches by the segment that they belong to, and their roles.
struct FabricDraft {
    levels: Vec<u8>,
    tors: Vec<bool>,
    /// Segment of each node; `None` for a top.
    segments: Vec<Option<u32>>,
    count: u32,
}

impl FabricDraft {
    fn new(nodes: &[FabricNode], wires: &[FabricWire]) -> Result<Self, FabricError> {
        check_size(nodes, wires)?;
        check_names(nodes)?;
        check_ends(nodes, wires)?;
        let up = Adjacency::new(nodes.len(), wires.iter().map(|wire| wire.lower));
        let down = Adjacency::new(nodes.len(), wires.iter().map(|wire| wire.upper));
        let around = WireGraph { nodes, wires, up, down };
        around.check_duplicates()?;
        around.check_ports()?;
        let levels = around.levels()?;
        let (tors, tops) = around.roles()?;
        around.check_reach(&levels, &tors, &tops)?;
        let (segments, count) = around.segments(&tops);
        Ok(Self { levels, tors, segments, count })
    }

    fn finish(self, nodes: Vec<FabricNode>, wires: Vec<FabricWire>) -> Fabric {
        let segment_of = |lower: SwitchId| self.segments[lower.index()].unwrap_or_default();
        let mut links: Vec<FabricLink> = wires
            .into_iter()
            .map(|FabricWire { lower, upper, rate, ports }| FabricLink {
                lower,
                upper,
                rate,
                segment: segment_of(lower),
                ports,
            })
            .collect();
        links.sort_by_key(|link| link.segment);
        let up = Adjacency::new(nodes.len(), links.iter().map(|link| link.lower));
        let down = Adjacency::new(nodes.len(), links.iter().map(|link| link.upper));
        let switches: Vec<Switch> = nodes
            .into_iter()
            .zip(self.levels.iter().zip(&self.segments))
            .map(|(node, (level, segment))| Switch { name: node.name, level: *level, segment: *segment })
            .collect();
        let segments = segments(&switches, &links, &self.tors, self.count);
        Fabric { switches, links, segments, up, down }
    }
}

fn check_size(nodes: &[FabricNode], wires: &[FabricWire]) -> Result<(), FabricError> {
    let [switches, links] = [nodes.len() as u64, wires.len() as u64];
    match links {
        0 => Err(FabricError::NoLinks),
        _ if switches > MOST_SWITCHES || links > MOST_LINKS => Err(FabricError::TooLarge { switches, links }),
        _ => Ok(()),
    }
}

/// Names must survive being written to a file and read from it.
fn is_name(name: &str) -> bool {
    let strange = |letter: char| letter.is_control() || matches!(letter, ',' | '"');
    !name.is_empty() && name.trim() == name && !name.starts_with('#') && !name.contains(strange)
}

fn check_names(nodes: &[FabricNode]) -> Result<(), FabricError> {
    let mut names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    if let Some(bad) = names.iter().find(|name| !is_name(name)) {
        return Err(FabricError::BadName((*bad).to_owned()));
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(FabricError::DuplicateName(pair[0].to_owned())),
        None => Ok(()),
    }
}

fn check_ends(nodes: &[FabricNode], wires: &[FabricWire]) -> Result<(), FabricError> {
    for (number, wire) in wires.iter().enumerate() {
        if let Some(end) = [wire.lower, wire.upper].into_iter().find(|end| end.index() >= nodes.len()) {
            return Err(FabricError::NoSuchSwitch { wire: number, number: end.0 });
        }
        if wire.lower == wire.upper {
            return Err(FabricError::SelfLink { wire: number, switch: nodes[wire.lower.index()].name.clone() });
        }
        let ports = wire.ports.iter().flatten();
        if let Some(bad) = ports.into_iter().find(|port| !is_name(port) || port.contains('/')) {
            return Err(FabricError::BadPort { wire: number, port: bad.to_string() });
        }
    }
    Ok(())
}

/// Switches and wires with both ways to look at them; links are numbered as the wires are.
struct WireGraph<'a> {
    nodes: &'a [FabricNode],
    wires: &'a [FabricWire],
    up: Adjacency,
    down: Adjacency,
}

impl WireGraph<'_> {
    fn ids(&self) -> impl DoubleEndedIterator<Item = SwitchId> + use<> {
        (0..self.nodes.len() as u32).map(SwitchId)
    }

    fn name(&self, switch: SwitchId) -> String {
        self.nodes[switch.index()].name.clone()
    }

    fn above(&self, switch: SwitchId) -> impl Iterator<Item = SwitchId> {
        self.up.of(switch).iter().map(|link| self.wires[link.index()].upper)
    }

    fn below(&self, switch: SwitchId) -> impl Iterator<Item = SwitchId> {
        self.down.of(switch).iter().map(|link| self.wires[link.index()].lower)
    }

    /// Links between the same switches must both have ports, and not the same ones.
    fn check_duplicates(&self) -> Result<(), FabricError> {
        let mut parallel: Vec<LinkId> = Vec::new();
        for switch in self.ids() {
            parallel.clear();
            parallel.extend(self.up.of(switch));
            parallel.sort_by_key(|link| self.wires[link.index()].upper);
            for pair in parallel.windows(2) {
                let [first, second] = [pair[0], pair[1]].map(|link| &self.wires[link.index()]);
                let differ = first.ports.is_some() && second.ports.is_some() && first.ports != second.ports;
                if first.upper == second.upper && !differ {
                    let name = format!("{}--{}", self.name(switch), self.name(first.upper));
                    return Err(FabricError::DuplicateLink { wire: pair[1].index(), first: pair[0].index(), name });
                }
            }
        }
        Ok(())
    }

    fn check_ports(&self) -> Result<(), FabricError> {
        let mut taken: HashMap<(SwitchId, &str), usize> = HashMap::new();
        for (wire, link) in self.wires.iter().enumerate() {
            let Some(ports) = &link.ports else { continue };
            for (switch, port) in [link.lower, link.upper].into_iter().zip(ports) {
                if let Some(first) = taken.insert((switch, port), wire) {
                    let port = format!("{}/{port}", self.name(switch));
                    return Err(FabricError::PortTwice { wire, first, port });
                }
            }
        }
        Ok(())
    }

    /// The longest way up from a switch with nothing below it; switches are taken when all below them have been.
    fn levels(&self) -> Result<Vec<u8>, FabricError> {
        let mut levels = vec![0u8; self.nodes.len()];
        let mut below: Vec<usize> = self.ids().map(|switch| self.down.of(switch).len()).collect();
        let mut ready: Vec<SwitchId> = self.ids().filter(|switch| below[switch.index()] == 0).collect();
        let mut taken = 0;
        while let Some(switch) = ready.pop() {
            taken += 1;
            let level = levels[switch.index()].checked_add(1);
            for upper in self.above(switch) {
                let level = level.ok_or_else(|| FabricError::TooHigh(self.name(upper)))?;
                levels[upper.index()] = levels[upper.index()].max(level);
                below[upper.index()] -= 1;
                if below[upper.index()] == 0 {
                    ready.push(upper);
                }
            }
        }
        if taken < self.nodes.len() { Err(self.cycle(&below)) } else { Ok(levels) }
    }

    /// Every switch that was never ready has one like it below it: downwards from any, one comes round.
    fn cycle(&self, below: &[usize]) -> FabricError {
        let stuck = |switch: &SwitchId| below[switch.index()] > 0;
        let down_from = |switch: SwitchId| self.below(switch).find(stuck);
        let mut way: Vec<SwitchId> = Vec::new();
        let mut next = self.ids().find(stuck);
        while let Some(switch) = next {
            if let Some(begin) = way.iter().position(|seen| *seen == switch) {
                way.drain(..begin);
                break;
            }
            way.push(switch);
            next = down_from(switch);
        }
        way.reverse();
        let is_part = |wire: &FabricWire| way.contains(&wire.lower) && way.contains(&wire.upper);
        let wire = self.wires.iter().rposition(is_part).unwrap_or_default();
        FabricError::Cycle { wire, switches: way.into_iter().map(|switch| self.name(switch)).collect() }
    }

    /// Flags for the switches that are ToRs, and for those that are tops.
    fn roles(&self) -> Result<(Vec<bool>, Vec<bool>), FabricError> {
        let declared = |role| self.nodes.iter().any(|node| node.role == Some(role));
        let [tors_declared, tops_declared] = [Role::Tor, Role::Top].map(declared);
        let mut tors = vec![false; self.nodes.len()];
        let mut tops = vec![false; self.nodes.len()];
        for switch in self.ids() {
            let [above, below] = [self.above(switch).next(), self.below(switch).next()];
            let role = self.nodes[switch.index()].role;
            match (role, above, below) {
                (Some(Role::Tor), _, Some(below)) => {
                    return Err(FabricError::NoTor { switch: self.name(switch), below: self.name(below) });
                }
                (Some(Role::Top), Some(above), _) => {
                    return Err(FabricError::NoTop { switch: self.name(switch), above: self.name(above) });
                }
                (Some(Role::Tor), None, None) => return Err(FabricError::Disconnected(self.name(switch))),
                (_, None, None) => return Err(FabricError::Unlinked(self.name(switch))),
                _ => {}
            }
            tors[switch.index()] = role == Some(Role::Tor) || role.is_none() && !tors_declared && below.is_none();
            tops[switch.index()] = role == Some(Role::Top) || role.is_none() && !tops_declared && above.is_none();
        }
        if tors.contains(&true) { Ok((tors, tops)) } else { Err(FabricError::NoTors) }
    }

    fn check_reach(&self, levels: &[u8], tors: &[bool], tops: &[bool]) -> Result<(), FabricError> {
        let mut reaches = tops.to_vec();
        let mut from_the_top: Vec<SwitchId> = self.ids().collect();
        from_the_top.sort_by_key(|switch| std::cmp::Reverse(levels[switch.index()]));
        for switch in from_the_top {
            reaches[switch.index()] |= self.above(switch).any(|upper| reaches[upper.index()]);
        }
        match self.ids().find(|switch| tors[switch.index()] && !reaches[switch.index()]) {
            Some(tor) => Err(FabricError::Disconnected(self.name(tor))),
            None => Ok(()),
        }
    }

    /// Parts that hold together without the tops, numbered by their first switches; and the number of such parts.
    fn segments(&self, tops: &[bool]) -> (Vec<Option<u32>>, u32) {
        let mut segments = vec![None; self.nodes.len()];
        let mut count = 0;
        let mut found = Vec::new();
        for first in self.ids() {
            if tops[first.index()] || segments[first.index()].is_some() {
                continue;
            }
            segments[first.index()] = Some(count);
            found.push(first);
            while let Some(switch) = found.pop() {
                for other in self.above(switch).chain(self.below(switch)) {
                    if !tops[other.index()] && segments[other.index()].is_none() {
                        segments[other.index()] = Some(count);
                        found.push(other);
                    }
                }
            }
            count += 1;
        }
        (segments, count)
    }
}

impl Adjacency {
    /// Groups links by switch from an iterator over the switch of each link.
    pub(super) fn new(switches: usize, of_links: impl Iterator<Item = SwitchId> + Clone) -> Self {
        let mut ends = vec![0u32; switches];
        for switch in of_links.clone() {
            ends[switch.index()] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            // For now the beginning of the node's links: each link that is stored moves it towards their end.
            let begin = sum;
            sum += *end;
            *end = begin;
        }
        let mut links = vec![LinkId(0); sum as usize];
        for (link, switch) in (0..).map(LinkId).zip(of_links) {
            let place = &mut ends[switch.index()];
            links[*place as usize] = link;
            *place += 1;
        }
        Self { ends, links }
    }
}

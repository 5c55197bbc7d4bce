//! Slots of all switches side by side: lists as they are, flowsets decoded with their neighbours.
//!
//! A flowset that its switch could not decode may be decoded here: what came in by a port left the other end of its link,
//! and leaves its own switch by another port. So the ways that are taken together are each such flowset, the opposite way of its
//! link, and the opposite ways of the other ports of its switch, like the neighbours of a switch in
//! [`flowset::network`](crate::flowset::network).
//!
//! Invariant: a way that is complete has exactly the flows that passed.

use std::collections::BTreeMap;

use units::Prob;

use super::ports::{EndOfLink, FabricPorts};
use super::slot_report::{PortSlot, SlotFlow, SwitchSlot, WayFlows, WaySlot};
use crate::flowset::network::{CandidateSwitches, FlowsetNetwork, SwitchFlows};
use crate::flowset::sizing::DecoderKind;
use crate::flowset::{FlowKey, Flowset, FlowsetShape};

/// Places of the two ways of a port.
pub const IN: usize = 0;
pub const OUT: usize = 1;

/// A flow's counters at one way of a port, where they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCount {
    pub flow: FlowKey,
    pub packets: Option<u32>,
    pub bytes: Option<u64>,
}

/// Contents of one way of a port in a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WayPicture {
    pub packets: u64,
    pub bytes: u64,
    /// Sorted by flow.
    pub flows: Vec<FlowCount>,
    /// Flows that could not be decoded.
    pub left: u64,
}

impl WayPicture {
    /// True if every flow and its packets are known.
    pub fn is_whole(&self) -> bool {
        self.left == 0 && self.flows.iter().all(|count| count.packets.is_some())
    }

    pub fn of(&self, flow: &FlowKey) -> Option<&FlowCount> {
        self.flows.binary_search_by(|count| count.flow.cmp(flow)).ok().map(|at| &self.flows[at])
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPicture {
    pub name: String,
    /// `None` for a port that leads out of the fabric.
    pub link: Option<EndOfLink>,
    pub ways: [WayPicture; 2],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPicture {
    pub missed: u64,
    pub ports: Vec<PortPicture>,
    /// Sorted.
    pub ended: Vec<FlowKey>,
    pub ended_more: bool,
}

/// One slot of the whole fabric.
#[derive(Clone, Debug)]
pub struct SlotPicture {
    pub slot: u64,
    /// By switch; `None` for those that did not report.
    pub switches: Vec<Option<SwitchPicture>>,
    /// Switch and port of each end of a link, where it is metered.
    places: Vec<[Option<(usize, usize)>; 2]>,
}

impl SlotPicture {
    /// Puts reports together, by the number of their switch.
    pub fn new(fabric: &FabricPorts, slot: u64, reports: BTreeMap<usize, SwitchSlot>) -> Self {
        let mut switches: Vec<Option<SwitchPicture>> = fabric.switches().iter().map(|_| None).collect();
        let mut places = vec![[None; 2]; fabric.links().len()];
        let mut tables: Vec<UndecodedWay> = Vec::new();
        for (switch, report) in reports {
            let SwitchSlot { missed, mut ended, ended_more, .. } = report;
            let mut ports = Vec::with_capacity(report.ports.len());
            for PortSlot { name, ways } in report.ports {
                let link = fabric.link_at(switch, &name);
                if let Some((link, end)) = link {
                    places[link][end] = Some((switch, ports.len()));
                }
                let [came, left] = ways;
                let mut way = |way: WaySlot, at| picture(way, [switch, ports.len(), at], &mut tables);
                let ways = [way(came, IN), way(left, OUT)];
                ports.push(PortPicture { name, link, ways });
            }
            ended.sort_unstable();
            switches[switch] = Some(SwitchPicture { missed, ports, ended, ended_more });
        }
        let mut picture = Self { slot, switches, places };
        if !tables.is_empty() {
            picture.decode(fabric, tables);
        }
        picture
    }

    /// A way of the port at an end of a link, if its switch reported and meters it.
    pub fn at(&self, (link, end): EndOfLink, way: usize) -> Option<&WayPicture> {
        let (switch, port) = self.places[link][end]?;
        Some(&self.switches[switch].as_ref()?.ports[port].ways[way])
    }

    /// True if the switch at this end counted every packet of the slot.
    pub fn is_sound(&self, (link, end): EndOfLink) -> bool {
        let switch = self.places[link][end].and_then(|(switch, _)| self.switches[switch].as_ref());
        switch.is_some_and(|switch| switch.missed == 0)
    }

    /// Decodes the flowsets with the ways that have the same flows.
    fn decode(&mut self, fabric: &FabricPorts, tables: Vec<UndecodedWay>) {
        let mut nodes: Vec<WayPlace> = tables.iter().map(|table| table.place).collect();
        for place in nodes.clone() {
            for next in self.related(fabric, place) {
                if !nodes.contains(&next) {
                    nodes.push(next);
                }
            }
        }
        let number: BTreeMap<WayPlace, usize> = nodes.iter().copied().zip(0..).collect();
        let near = |place: &WayPlace| {
            let list: Vec<usize> = self.related(fabric, *place).filter_map(|next| number.get(&next).copied()).collect();
            list
        };
        let neighbours: Vec<Vec<usize>> = nodes.iter().map(near).collect();
        let undecoded = tables.len();
        let mut flowsets: Vec<Flowset> = tables.into_iter().map(|table| table.flowset).collect();
        for [switch, port, way] in &nodes[undecoded..] {
            let known = self.switches[*switch].as_ref().map(|switch| &switch.ports[*port].ways[*way].flows);
            // Seeds that no meter has, so that neighbours never share one.
            flowsets.push(table_of(known.map_or(&[], Vec::as_slice), !(flowsets.len() as u64)));
        }
        // Two meters with one seed cannot help each other: what they could not decode stays so.
        let Ok(network) = FlowsetNetwork::new(flowsets, CandidateSwitches::Neighbours(&neighbours)) else { return };
        for (decoded, [switch, port, way]) in network.decode().into_iter().zip(nodes).take(undecoded) {
            let bytes: BTreeMap<FlowKey, f64> = self.sizes(fabric, [switch, port, way]);
            if let Some(switch) = &mut self.switches[switch] {
                switch.ports[port].ways[way].fill(decoded, &bytes);
            }
        }
    }

    /// Ways that have flows of this one.
    fn related(&self, fabric: &FabricPorts, [switch, port, way]: WayPlace) -> impl Iterator<Item = WayPlace> + use<> {
        let ports = self.switches[switch].as_ref().map_or(&[][..], |picture| &picture.ports);
        let far = ports[port].link.and_then(|(link, end)| self.places[link][1 - end]);
        let far = far.map(|(switch, port)| [switch, port, 1 - way]);
        let others = (0..ports.len()).filter(|other| *other != port).map(|other| [switch, other, 1 - way]);
        debug_assert!(switch < fabric.switches().len());
        far.into_iter().chain(others).collect::<Vec<_>>().into_iter()
    }

    /// Bytes of a packet of each flow, on average, as neighbours counted them.
    fn sizes(&self, fabric: &FabricPorts, place: WayPlace) -> BTreeMap<FlowKey, f64> {
        let mut sizes = BTreeMap::new();
        for [switch, port, way] in self.related(fabric, place) {
            let flows = self.switches[switch].as_ref().map(|switch| &switch.ports[port].ways[way].flows);
            for FlowCount { flow, packets, bytes } in flows.into_iter().flatten() {
                if let (Some(packets @ 1..), Some(bytes)) = (*packets, *bytes) {
                    sizes.entry(*flow).or_insert(bytes as f64 / f64::from(packets));
                }
            }
        }
        sizes
    }
}

/// Switch, port, way.
type WayPlace = [usize; 3];

struct UndecodedWay {
    place: WayPlace,
    flowset: Flowset,
}

/// A way as far as it is known before decoding.
fn picture(way: WaySlot, place: WayPlace, tables: &mut Vec<UndecodedWay>) -> WayPicture {
    let WaySlot { packets, bytes, flows } = way;
    match flows {
        WayFlows::List(flows) => {
            let count =
                |SlotFlow { flow, packets, bytes }| FlowCount { flow, packets: Some(packets), bytes: Some(bytes) };
            WayPicture { packets, bytes, flows: flows.into_iter().map(count).collect(), left: 0 }
        }
        WayFlows::Table(flowset) => {
            let left = flowset.flows().max(1);
            tables.push(UndecodedWay { place, flowset: *flowset });
            WayPicture { packets, bytes, flows: Vec::new(), left }
        }
    }
}

/// A flowset of flows that are known already, so that neighbours can borrow them.
fn table_of(flows: &[FlowCount], seed: u64) -> Flowset {
    const SUCCESS: Prob = Prob::literal(0.999);
    let mut flowset = Flowset::new(FlowsetShape::for_flows(flows.len() as u64, SUCCESS, 3, DecoderKind::Single, seed));
    flows.iter().for_each(|count| flowset.add(&count.flow, count.packets.unwrap_or(0)));
    flowset
}

impl WayPicture {
    fn fill(&mut self, decoded: SwitchFlows, sizes: &BTreeMap<FlowKey, f64>) {
        let count = |(flow, packets): (FlowKey, Option<u32>)| {
            let bytes = packets.zip(sizes.get(&flow)).map(|(packets, size)| (f64::from(packets) * size) as u64);
            FlowCount { flow, packets, bytes }
        };
        self.flows = decoded.flows.into_iter().map(count).collect();
        self.flows.sort_unstable_by_key(|count| count.flow);
        self.left = decoded.left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabricmap::stories::{SlotStory, flow, leaf_spine};

    /// A spine that was sized for 1,000 flows has 1,200 of leaf1's; the leaves have room.
    #[test]
    fn a_switch_with_too_many_flows_is_decoded_with_its_neighbours() {
        let fabric = leaf_spine();
        let mut story = SlotStory::new(&fabric, 5);
        (0..1_200).for_each(|nth| story.path(nth, 3 + nth as u32 % 9, &["leaf1", "spine1", "leaf2"]));
        let whole = story.reports();
        let mut reports = story.reports();
        let spine = fabric.switch("spine1").unwrap();
        let shape = FlowsetShape::for_flows(1_000, Prob::literal(0.99), 3, DecoderKind::Single, 0);
        let mut tables = 0;
        for (port, slot) in reports.get_mut(&spine).unwrap().ports.iter_mut().enumerate() {
            for (way, slot) in slot.ways.iter_mut().enumerate().filter(|(_, way)| way.packets > 0) {
                let WayFlows::List(flows) = &slot.flows else { continue };
                let mut table = Flowset::new(shape.with_seed((port * 2 + way) as u64));
                flows.iter().for_each(|flow| table.add(&flow.flow, flow.packets));
                assert!(!table.decode().is_complete(), "so many do not decode alone");
                slot.flows = WayFlows::Table(Box::new(table));
                tables += 1;
            }
        }
        assert_eq!(tables, 2);
        let [truth, decoded] = [whole, reports].map(|reports| SlotPicture::new(&fabric, 5, reports));
        for (truth, decoded) in truth.switches[spine].iter().zip(&decoded.switches[spine]) {
            for (truth, decoded) in truth.ports.iter().zip(&decoded.ports) {
                assert!(decoded.ways.iter().all(WayPicture::is_whole));
                let flows = |port: &PortPicture| port.ways.clone().map(|way| way.flows);
                assert_eq!(flows(truth), flows(decoded));
            }
        }
    }

    #[test]
    fn what_nobody_can_decode_is_counted_as_left() {
        let fabric = leaf_spine();
        let mut story = SlotStory::new(&fabric, 5);
        story.path(1, 3, &["leaf1", "spine1", "leaf2"]);
        let mut reports = story.reports();
        let mut table = Flowset::new(FlowsetShape::new(3, 30, 20, 4_096, 9));
        (0..300).for_each(|nth| table.insert(&flow(nth)));
        let way = &mut reports.get_mut(&fabric.switch("leaf1").unwrap()).unwrap().ports[0].ways[IN];
        *way = WaySlot { packets: 300, bytes: 0, flows: WayFlows::Table(Box::new(table)) };
        let picture = SlotPicture::new(&fabric, 5, reports);
        let leaf = picture.switches[fabric.switch("leaf1").unwrap()].as_ref().unwrap();
        assert!(!leaf.ports[0].ways[IN].is_whole() && leaf.ports[0].ways[IN].left > 200);
    }
}

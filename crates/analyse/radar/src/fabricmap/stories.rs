//! A fabric and its slots for tests: flows along paths, and what befalls them.

use std::collections::BTreeMap;

use super::picture::{IN, OUT};
use super::ports::{FabricPorts, LinkPort, PortLink};
use super::slot_report::{PortSlot, SlotFlow, SwitchSlot, WayFlows, WaySlot};
use crate::flowset::FlowKey;
use crate::packet::Flow;

pub(crate) const SLOT: u64 = 10_000_000;
pub(crate) const RATE: u64 = 1_000_000_000;
/// Bytes of a packet.
pub(crate) const SIZE: u64 = 1_000;

/// The nth flow of some traffic.
pub(crate) fn flow(nth: u64) -> FlowKey {
    let [src, dst] = [[10, 0, 1, (nth % 4) as u8], [10, 0, 2, (nth / 4 % 4) as u8]].map(Into::into);
    FlowKey::from(&Flow { src, dst, protocol: 17, src_port: nth as u16, dst_port: (nth >> 16) as u16 })
}

pub(crate) fn list(flows: &[(u64, u32)]) -> WaySlot {
    let sized = |(nth, packets): &(u64, u32)| SlotFlow {
        flow: flow(*nth),
        packets: *packets,
        bytes: u64::from(*packets) * SIZE,
    };
    let mut flows: Vec<SlotFlow> = flows.iter().map(sized).collect();
    flows.sort_unstable();
    way(flows)
}

fn way(flows: Vec<SlotFlow>) -> WaySlot {
    let packets = flows.iter().map(|flow| u64::from(flow.packets)).sum();
    let bytes = flows.iter().map(|flow| flow.bytes).sum();
    WaySlot { packets, bytes, flows: WayFlows::List(flows) }
}

/// Two leaves under two spines: `leaf1/up1` is at `spine1/down1`, and so on; `leaf1/host` leads to hosts.
pub(crate) fn leaf_spine() -> FabricPorts {
    let switches: Vec<String> = ["leaf1", "leaf2", "spine1", "spine2"].map(String::from).to_vec();
    let mut links = Vec::new();
    for leaf in 1..=2 {
        for spine in 1..=2 {
            links.push(PortLink {
                name: format!("leaf{leaf}--spine{spine}"),
                ends: [
                    LinkPort { switch: leaf - 1, port: format!("up{spine}") },
                    LinkPort { switch: spine + 1, port: format!("down{leaf}") },
                ],
                rate: RATE,
            });
        }
    }
    FabricPorts::new(switches, links).expect("a fabric")
}

/// Packets and bytes of each flow, by switch, port and way.
type Counts = BTreeMap<(usize, String, usize), BTreeMap<FlowKey, (u32, u64)>>;

/// One slot of a fabric, told by the paths of its flows.
pub(crate) struct SlotStory<'a> {
    fabric: &'a FabricPorts,
    slot: u64,
    counts: Counts,
    pub missed: BTreeMap<usize, u64>,
}

impl<'a> SlotStory<'a> {
    pub(crate) fn new(fabric: &'a FabricPorts, slot: u64) -> Self {
        Self { fabric, slot, counts: BTreeMap::new(), missed: BTreeMap::new() }
    }

    /// Packets of the nth flow pass a way of a port.
    pub(crate) fn add(&mut self, nth: u64, packets: u32, switch: usize, port: &str, way: usize) {
        self.add_sized(nth, packets, SIZE, switch, port, way);
    }

    fn add_sized(&mut self, nth: u64, packets: u32, size: u64, switch: usize, port: &str, way: usize) {
        if packets > 0 {
            let flows = self.counts.entry((switch, port.to_owned(), way)).or_default();
            let count = flows.entry(flow(nth)).or_default();
            *count = (count.0 + packets, count.1 + u64::from(packets) * size);
        }
    }

    /// Packets cross the link from one switch to another: so many leave, and so many arrive.
    pub(crate) fn cross(&mut self, nth: u64, [left, came]: [u32; 2], from: &str, to: &str) {
        let [from, to] = [from, to].map(|name| self.fabric.switch(name).expect("a switch"));
        let joins = |(link, end): &(usize, usize)| self.fabric.switch_of((*link, 1 - end)) == to;
        let (link, end) = *self.fabric.at(from).iter().find(|end| joins(end)).expect("a link");
        let [near, far] = [end, 1 - end].map(|end| self.fabric.links()[link].ends[end].port.clone());
        self.add(nth, left, from, &near, OUT);
        self.add(nth, came, to, &far, IN);
    }

    /// Packets come from a host at the first switch and go to one at the last.
    pub(crate) fn path(&mut self, nth: u64, packets: u32, path: &[&str]) {
        let switch = |name: &str| self.fabric.switch(name).expect("a switch");
        let (first, last) = (switch(path[0]), switch(path[path.len() - 1]));
        self.add(nth, packets, first, "host", IN);
        path.windows(2).for_each(|hop| self.cross(nth, [packets; 2], hop[0], hop[1]));
        self.add(nth, packets, last, "host", OUT);
    }

    pub(crate) fn reports(&self) -> BTreeMap<usize, SwitchSlot> {
        (0..self.fabric.switches().len()).map(|switch| (switch, self.report(switch))).collect()
    }

    fn report(&self, switch: usize) -> SwitchSlot {
        let links = self.fabric.at(switch).iter().map(|(link, end)| self.fabric.links()[*link].ends[*end].port.clone());
        let port = |name: String| {
            let ways = [IN, OUT].map(|at| {
                let flows = self.counts.get(&(switch, name.clone(), at)).into_iter().flatten();
                way(flows
                    .map(|(flow, (packets, bytes))| SlotFlow { flow: *flow, packets: *packets, bytes: *bytes })
                    .collect())
            });
            PortSlot { name, ways }
        };
        SwitchSlot {
            switch: self.fabric.switches()[switch].clone(),
            life: switch as u64,
            slot: self.slot,
            length: SLOT,
            missed: self.missed.get(&switch).copied().unwrap_or(0),
            ports: links.chain(["host".to_owned()]).map(port).collect(),
            ended: Vec::new(),
            ended_more: false,
        }
    }
}

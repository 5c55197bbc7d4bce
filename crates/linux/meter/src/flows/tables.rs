//! Flowsets of the slots that are open, for each way of each port.
//!
//! Usually two slots are open. A meter that was held up finds packets of more in its rings: up to [`OPEN`] wait for those of other
//! ports, and what is later still makes all of them doubtful.

use std::collections::{BTreeSet, VecDeque};

use radar::fabricmap::slot_report::{MOST_ENDED, PortSlot, SlotFlow, SwitchSlot, WayFlows, WaySlot};
use radar::flowset::{FlowKey, Flowset, FlowsetShape};

use super::FlowMeterConfig;

/// Slots that may be open.
const OPEN: usize = 8;
/// Tables that are kept for further slots.
const KEPT: usize = 2;

pub(super) struct SlotTables {
    /// One for each port and way: seeds differ, so that neighbours can help each other.
    shapes: Vec<[FlowsetShape; 2]>,
    next: u64,
    open: VecDeque<OpenSlot>,
    /// Slots up to this one may lack packets.
    doubted: u64,
    spare: Vec<OpenSlot>,
}

#[derive(Default)]
struct OpenSlot {
    ways: Vec<[WayTable; 2]>,
    ended: BTreeSet<FlowKey>,
    ended_more: bool,
    missed: u64,
}

struct WayTable {
    flowset: Flowset,
    packets: u64,
    bytes: u64,
}

impl SlotTables {
    pub(super) fn new(switch: &str, ports: &[String], shape: FlowsetShape, next: u64) -> Self {
        let seed = |port: &String, way: u64| {
            let text = [switch, "/", port].concat();
            text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ way, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            })
        };
        let shapes = ports.iter().map(|port| [0, 1].map(|way| shape.with_seed(seed(port, way)))).collect();
        Self { shapes, next, open: VecDeque::new(), doubted: 0, spare: Vec::new() }
    }

    /// Number of the first slot that is open.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn most_memory(&self) -> usize {
        // Flow and counters of a cell, and the filter.
        let table = |shape: &FlowsetShape| shape.cells() * 32 + shape.filter_bits() as usize / 8;
        OPEN * self.shapes.iter().flatten().map(table).sum::<usize>()
    }

    /// Counts packets of a flow at a port and way. False if the slot is not open yet: then they count in the last one.
    pub(super) fn add(
        &mut self,
        slot: u64,
        [port, way]: [usize; 2],
        flow: &FlowKey,
        (packets, bytes): (u32, u64),
        ends: bool,
    ) -> bool {
        // What is late counts in the first open slot.
        let at = slot.saturating_sub(self.next);
        let is_open = at < OPEN as u64;
        let open = self.slot((at as usize).min(OPEN - 1));
        let table = &mut open.ways[port][way];
        table.flowset.add_sized(flow, packets, bytes);
        table.packets += u64::from(packets);
        table.bytes += bytes;
        if ends && !open.ended.contains(flow) {
            match open.ended.len() < MOST_ENDED {
                true => _ = open.ended.insert(*flow),
                false => open.ended_more = true,
            }
        }
        is_open
    }

    /// Frames have passed unseen, at any time from the first open slot to this one.
    pub(super) fn note_missed(&mut self, frames: u64, until: u64) {
        self.doubted = self.doubted.max(until);
        self.slot(0).missed += frames;
    }

    /// Begins anew with a slot, without what is open.
    pub(super) fn begin(&mut self, next: u64) {
        self.next = next;
        self.doubted = 0;
        self.open.clear();
    }

    /// Ends the first open slot; its report, and how many ways of it did not decode.
    pub(super) fn over(&mut self, config: &FlowMeterConfig, length: u64) -> (SwitchSlot, u64) {
        self.slot(0);
        let mut open = self.open.pop_front().unwrap_or_default();
        let slot = self.next;
        self.next += 1;
        let mut undecoded = 0;
        let ports = open.ways.iter().zip(&config.interfaces).map(|(ways, name)| {
            let ways = ways.each_ref().map(WayTable::report);
            undecoded += ways.iter().filter(|way| matches!(way.flows, WayFlows::Table(_))).count() as u64;
            PortSlot { name: name.clone(), ways }
        });
        let report = SwitchSlot {
            switch: config.switch.clone(),
            life: config.life,
            slot,
            length,
            missed: open.missed.max(u64::from(slot <= self.doubted)),
            ports: ports.collect(),
            ended: open.ended.iter().copied().collect(),
            ended_more: open.ended_more,
        };
        if self.spare.len() < KEPT {
            open.clear();
            self.spare.push(open);
        }
        (report, undecoded)
    }

    /// The slot so many behind the first one.
    fn slot(&mut self, at: usize) -> &mut OpenSlot {
        while self.open.len() <= at {
            let new = self.spare.pop().unwrap_or_else(|| OpenSlot::new(&self.shapes));
            self.open.push_back(new);
        }
        &mut self.open[at]
    }
}

impl OpenSlot {
    fn new(shapes: &[[FlowsetShape; 2]]) -> Self {
        let table = |shape| WayTable { flowset: Flowset::with_bytes(shape), packets: 0, bytes: 0 };
        Self { ways: shapes.iter().map(|shapes| shapes.map(table)).collect(), ..Self::default() }
    }

    fn clear(&mut self) {
        for table in self.ways.as_flattened_mut().iter_mut().filter(|table| table.packets > 0) {
            table.flowset.clear();
            (table.packets, table.bytes) = (0, 0);
        }
        self.ended.clear();
        (self.ended_more, self.missed) = (false, 0);
    }
}

impl WayTable {
    fn report(&self) -> WaySlot {
        let Self { flowset, packets, bytes } = self;
        let (packets, bytes) = (*packets, *bytes);
        if packets == 0 {
            return WaySlot { packets, bytes, flows: WayFlows::List(Vec::new()) };
        }
        let decoded = flowset.decode();
        if !decoded.is_complete() {
            return WaySlot { packets, bytes, flows: WayFlows::Table(Box::new(flowset.clone())) };
        }
        let flows = decoded.flows.into_iter().zip(decoded.bytes);
        let mut flows: Vec<SlotFlow> =
            flows.map(|((flow, packets), bytes)| SlotFlow { flow, packets, bytes }).collect();
        flows.sort_unstable();
        WaySlot { packets, bytes, flows: WayFlows::List(flows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radar::packet::Flow;
    use std::time::Duration;

    fn key(nth: u32) -> FlowKey {
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
        FlowKey::from(&Flow { src, dst, protocol: 17, src_port: nth as u16, dst_port: (nth >> 16) as u16 })
    }

    fn config() -> FlowMeterConfig {
        let slot = Duration::from_millis(10);
        FlowMeterConfig { interfaces: vec!["a".into(), "b".into()], switch: "s".into(), slot, flows: 100, life: 1 }
    }

    fn tables() -> SlotTables {
        let config = config();
        SlotTables::new(&config.switch, &config.interfaces, FlowsetShape::new(3, 300, 8, 4_096, 0), 50)
    }

    fn lists(report: &SwitchSlot) -> Vec<Vec<(FlowKey, u32, u64)>> {
        let ways = report.ports.iter().flat_map(|port| &port.ways);
        let list = |way: &WaySlot| match &way.flows {
            WayFlows::List(flows) => flows.iter().map(|flow| (flow.flow, flow.packets, flow.bytes)).collect(),
            WayFlows::Table(_) => panic!("it decodes"),
        };
        ways.map(list).collect()
    }

    #[test]
    fn every_slot_port_and_way_has_its_own_counters() {
        let mut tables = tables();
        let mut add = |slot, place, nth, count| assert!(tables.add(slot, place, &key(nth), count, false));
        add(50, [0, 0], 1, (2, 200));
        add(51, [0, 0], 1, (7, 700));
        add(50, [1, 1], 1, (2, 200));
        add(50, [1, 1], 2, (1, 64));
        let first = tables.over(&config(), 10_000_000).0;
        assert_eq!(lists(&first), [vec![(key(1), 2, 200)], vec![], vec![], vec![(key(1), 2, 200), (key(2), 1, 64)]]);
        assert_eq!((first.slot, first.missed), (50, 0));
        let second = tables.over(&config(), 10_000_000).0;
        assert_eq!(lists(&second), [vec![(key(1), 7, 700)], vec![], vec![], vec![]]);
        assert_eq!(lists(&tables.over(&config(), 10_000_000).0), vec![vec![]; 4]);
    }

    #[test]
    fn a_flood_of_new_flows_is_sent_as_a_flowset_in_the_same_memory() {
        let mut tables = tables();
        for nth in 0..100_000 {
            tables.add(50, [0, 0], &key(nth), (1, 64), nth % 2 == 0);
        }
        let (report, undecoded) = tables.over(&config(), 10_000_000);
        assert_eq!((undecoded, report.ports[0].ways[0].packets), (1, 100_000));
        assert!(report.ended_more && report.ended.len() == MOST_ENDED);
        assert!(report.to_bytes().len() < 60_000, "{}", report.to_bytes().len());
        assert!(tables.spare.len() + tables.open.len() <= KEPT);
    }

    #[test]
    fn a_meter_that_was_held_up_says_which_slots_are_doubtful() {
        let mut tables = tables();
        assert!(tables.add(50 + OPEN as u64 - 1, [0, 0], &key(1), (1, 64), false));
        assert!(!tables.add(90, [0, 0], &key(1), (1, 64), false));
        // A full ring loses the latest: of slots of which nothing came, too.
        tables.note_missed(3, 62);
        let missed: Vec<u64> = (50..=63).map(|_| tables.over(&config(), 10_000_000).0.missed).collect();
        assert_eq!(missed, [3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    }
}

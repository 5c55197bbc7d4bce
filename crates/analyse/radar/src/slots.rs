//! Packets of every flow, slot by slot: what a FlowRadar switch exports, decoded (li-thesis §4.4.1).
//!
//! Memory is that of one flowset, however many flows pass and for how long. If a slot has more flows than the flowset
//! can decode, the slot says how many are missing.

use crate::flowset::{FlowKey, Flowset, FlowsetShape};
use crate::packet::Flow;
use units::Timestamp;

#[derive(Debug)]
pub struct FlowsetSlots {
    /// Nanoseconds.
    length: u64,
    number: Option<u64>,
    flowset: Flowset,
}

/// Flows that passed in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowsetSlot {
    pub begin: Timestamp,
    pub packets: u64,
    /// Flows with their packets, the largest first.
    pub flows: Vec<(Flow, u32)>,
    /// The number of flows that could not be decoded.
    pub left: u64,
    /// Two flows could not be distinguished: the flows are right, their counters may not be.
    pub overcounted: bool,
}

impl FlowsetSlots {
    pub fn new(length: u64, shape: FlowsetShape) -> Self {
        Self { length: length.max(1), number: None, flowset: Flowset::new(shape) }
    }

    /// Counts a packet. Returns the slot that is over because of it, if one is. A late packet counts in the slot that is
    /// open.
    pub fn insert(&mut self, at: Timestamp, flow: Flow) -> Option<FlowsetSlot> {
        let number = at.0 / self.length;
        let over = if self.number.is_some_and(|open| open < number) { self.finish() } else { None };
        self.number.get_or_insert(number);
        self.flowset.insert(&FlowKey::from(&flow));
        over
    }

    /// The open slot; `None` if no packet was in it.
    pub fn finish(&mut self) -> Option<FlowsetSlot> {
        let number = self.number.take()?;
        let decoded = self.flowset.decode();
        let mut flows: Vec<(Flow, u32)> = decoded.flows.iter().map(|(key, packets)| (key.flow(), *packets)).collect();
        flows.sort_unstable_by_key(|(flow, packets)| (std::cmp::Reverse(*packets), *flow));
        let slot = FlowsetSlot {
            begin: Timestamp(number * self.length),
            packets: self.flowset.packets(),
            flows,
            left: decoded.left,
            overcounted: decoded.overcounted,
        };
        self.flowset.clear();
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::tests::packet;

    fn slots() -> FlowsetSlots {
        FlowsetSlots::new(10, FlowsetShape::new(3, 60, 8, 4_096, 1))
    }

    #[test]
    fn every_slot_has_its_own_counters() {
        let [a, b] = [1, 2].map(|nth| packet(nth).flow);
        let mut slots = slots();
        assert_eq!([(3, a), (4, a), (9, b)].map(|(at, flow)| slots.insert(Timestamp(at), flow)), [None, None, None]);
        let first = slots.insert(Timestamp(25), b).unwrap();
        assert_eq!((first.begin, first.packets, first.left), (Timestamp(0), 3, 0));
        assert_eq!(first.flows, [(a, 2), (b, 1)]);
        // Late, but not lost.
        assert_eq!(slots.insert(Timestamp(19), b), None);
        assert_eq!(slots.finish().unwrap().flows, [(b, 2)]);
        assert_eq!(slots.finish(), None);
    }

    #[test]
    fn more_flows_than_fit_are_counted() {
        let mut slots = slots();
        (0..500).for_each(|nth| drop(slots.insert(Timestamp(1), packet(nth).flow)));
        let slot = slots.finish().unwrap();
        assert_eq!(slot.packets, 500);
        assert!(slot.left > 0 && slot.flows.len() as u64 + slot.left <= 500, "{} {}", slot.flows.len(), slot.left);
    }
}

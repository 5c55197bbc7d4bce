//! Every flow that passed a switch and how many packets it had, in memory of a fixed size: FlowRadar's encoded flowset,
//! li-thesis §4.4.1, Algorithm 6.
//!
//! A packet of a flow that the filter does not know adds the flow to one cell of each row; every packet is counted in the
//! cells of its flow. Flows share cells, and nobody looks: that is sorted out at the collector.
//!
//! ```text
//!   packet ──▶ flow filter (Bloom) ──new──▶ FlowXOR ^= flow, FlowCount += 1 ──┐
//!                    └──────────known──────────────────────────────────────────┴──▶ PacketCount += 1
//! ```
//!
//! [`Flowset::decode`] is SingleDecode (Algorithm 7), [`network`] what several switches can do together (Algorithms 8 and
//! 9), [`sizing`] how large a flowset must be. Beside the cells there are two sums over all flows and all packets, eight
//! bytes each, that the thesis does not have. With them a decoder knows, not hopes, that what it found is what passed.
//!
//! Invariants: what a decoder calls complete is exactly what was inserted; counters wrap at 2³², so a slot must have fewer
//! packets of each flow.

mod counters;
mod differences;
mod form;
mod key;
pub mod network;
mod shape;
mod single;
pub mod sizing;
pub mod solver;
mod switch;
mod table;

pub use crate::form::FormError;
pub use key::FlowKey;
pub use shape::{FlowsetMismatch, FlowsetShape};
pub use single::DecodedFlowset;

use key::{WORDS, WORDS_V4};
use shape::{CellPlaces, Hashing};

/// Words that only IPv6 has.
type High = [u64; WORDS - WORDS_V4];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flowset {
    hashing: Hashing,
    filter: Vec<u64>,
    /// FlowXOR: the words that every flow has, and those of IPv6, which are there once one such flow was.
    low: Vec<[u64; WORDS_V4]>,
    high: Vec<High>,
    /// FlowCount and PacketCount. Most packets touch only the latter, so they lie close together.
    flow_counts: Vec<u32>,
    packet_counts: Vec<u32>,
    /// Bytes beside packets; empty if nobody wants them.
    byte_counts: Vec<u64>,
    flows: u64,
    packets: u64,
    /// Sums over flows, and over packets, of the flow's hash.
    flow_check: u64,
    packet_check: u64,
}

impl Flowset {
    pub fn new(shape: FlowsetShape) -> Self {
        let cells = shape.cells();
        Self {
            hashing: Hashing::new(shape),
            filter: vec![0; shape.filter_words() as usize],
            low: vec![[0; WORDS_V4]; cells],
            high: Vec::new(),
            flow_counts: vec![0; cells],
            packet_counts: vec![0; cells],
            byte_counts: Vec::new(),
            flows: 0,
            packets: 0,
            flow_check: 0,
            packet_check: 0,
        }
    }

    /// A flowset that counts the bytes of each flow, too. They stay at the switch: [`to_bytes`](Self::to_bytes) leaves
    /// them out, since only a decoder that needs no neighbour gets them right.
    pub fn with_bytes(shape: FlowsetShape) -> Self {
        Self { byte_counts: vec![0; shape.cells()], ..Self::new(shape) }
    }

    pub fn shape(&self) -> &FlowsetShape {
        self.hashing.shape()
    }

    /// Flows that were new to the filter.
    pub fn flows(&self) -> u64 {
        self.flows
    }

    pub fn packets(&self) -> u64 {
        self.packets
    }

    pub fn is_empty(&self) -> bool {
        self.packets == 0 && self.flows == 0
    }

    /// Clears the flowset for the next slot.
    pub fn clear(&mut self) {
        self.filter.fill(0);
        self.low.fill([0; WORDS_V4]);
        self.high.clear();
        self.flow_counts.fill(0);
        self.packet_counts.fill(0);
        self.byte_counts.fill(0);
        (self.flows, self.packets, self.flow_check, self.packet_check) = (0, 0, 0, 0);
    }

    /// A packet of this flow has passed.
    #[inline]
    pub fn insert(&mut self, flow: &FlowKey) {
        self.add(flow, 1);
    }

    /// Adds packets of a flow.
    #[inline]
    pub fn add(&mut self, flow: &FlowKey, packets: u32) {
        self.count(flow, packets);
    }

    /// So many packets of this flow have passed, with so many bytes together.
    #[inline]
    pub fn add_sized(&mut self, flow: &FlowKey, packets: u32, bytes: u64) {
        for at in self.count(flow, packets).iter() {
            if let Some(count) = self.byte_counts.get_mut(at) {
                *count = count.wrapping_add(bytes);
            }
        }
    }

    #[inline]
    fn count(&mut self, flow: &FlowKey, packets: u32) -> CellPlaces {
        let hash = self.hashing.of(flow);
        if !self.filter_has(hash) {
            self.admit(flow, hash);
        }
        self.packets = self.packets.wrapping_add(packets.into());
        self.packet_check = self.packet_check.wrapping_add(hash.wrapping_mul(packets.into()));
        let places = self.hashing.places(hash);
        for at in places.iter() {
            let count = &mut self.packet_counts[at];
            *count = count.wrapping_add(packets);
        }
        places
    }

    /// True if the flow filter has the flow, or bits that look like it.
    #[cfg(test)]
    fn may_have(&self, flow: &FlowKey) -> bool {
        self.filter_has(self.hashing.of(flow))
    }

    #[inline]
    fn filter_has(&self, hash: u64) -> bool {
        self.hashing.filter_words(hash).all(|(at, bits)| self.filter[at] & bits == bits)
    }

    #[cold]
    fn admit(&mut self, flow: &FlowKey, hash: u64) {
        self.hashing.filter_words(hash).for_each(|(at, bits)| self.filter[at] |= bits);
        self.flows = self.flows.wrapping_add(1);
        self.flow_check = self.flow_check.wrapping_add(hash);
        if !flow.is_short() && self.high.is_empty() {
            self.high = vec![High::default(); self.shape().cells()];
        }
        let [a, b, high @ ..] = flow.words();
        for at in self.hashing.places(hash).iter() {
            self.low[at] = [self.low[at][0] ^ a, self.low[at][1] ^ b];
            if !flow.is_short() {
                self.high[at].iter_mut().zip(high).for_each(|(sum, word)| *sum ^= word);
            }
            self.flow_counts[at] = self.flow_counts[at].wrapping_add(1);
        }
    }

    /// Takes in what another meter saw. The two must share no flow, as with meters at two ports of the same switch. A
    /// flow that both saw cannot be decoded any more, and decoding reports that flows are left.
    pub fn merge(&mut self, other: &Self) -> Result<(), FlowsetMismatch> {
        if self.hashing != other.hashing {
            return Err(FlowsetMismatch { ours: *self.shape(), theirs: *other.shape() });
        }
        if self.high.is_empty() && !other.high.is_empty() {
            self.high = vec![High::default(); self.shape().cells()];
        }
        self.filter.iter_mut().zip(&other.filter).for_each(|(ours, theirs)| *ours |= theirs);
        let xor = |ours: &mut [u64], theirs: &[u64]| ours.iter_mut().zip(theirs).for_each(|(ours, word)| *ours ^= word);
        xor(self.low.as_flattened_mut(), other.low.as_flattened());
        xor(self.high.as_flattened_mut(), other.high.as_flattened());
        let add = |ours: &mut [u32], theirs: &[u32]| {
            ours.iter_mut().zip(theirs).for_each(|(ours, count)| *ours = ours.wrapping_add(*count));
        };
        add(&mut self.flow_counts, &other.flow_counts);
        add(&mut self.packet_counts, &other.packet_counts);
        let bytes = self.byte_counts.iter_mut().zip(&other.byte_counts);
        bytes.for_each(|(ours, count)| *ours = ours.wrapping_add(*count));
        self.flows = self.flows.wrapping_add(other.flows);
        self.packets = self.packets.wrapping_add(other.packets);
        self.flow_check = self.flow_check.wrapping_add(other.flow_check);
        self.packet_check = self.packet_check.wrapping_add(other.packet_check);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

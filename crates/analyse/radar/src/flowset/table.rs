//! The counting table as decoders see it: cells that flows are taken out of.
//!
//! A decoder that was lent a flow by a neighbour may take out one that was never there. That leaves a hole: a flow with its
//! sign reversed, which is found and filled like any other flow is found and taken out. So counts of flows have a sign here.

use super::key::{FlowKey, WORDS, WORDS_V4};
use super::shape::{CellPlaces, Hashing};
use super::{Flowset, High};

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct FlowsetCell {
    low: [u64; WORDS_V4],
    flows: i32,
    packets: u32,
    /// Zero where bytes are not counted.
    bytes: u64,
}

#[derive(Clone, Debug)]
pub(super) struct FlowsetTable {
    pub hashing: Hashing,
    cells: Vec<FlowsetCell>,
    /// Empty if there is no IPv6.
    high: Vec<High>,
}

/// The only flow of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct SingletonCell {
    pub key: FlowKey,
    /// Hash at this switch.
    pub hash: u64,
    pub places: CellPlaces,
    pub packets: u32,
    pub bytes: u64,
    /// True if the flow was taken out without having been in.
    pub is_hole: bool,
}

impl FlowsetTable {
    pub(crate) fn new(flowset: &Flowset) -> Self {
        let counts = flowset.flow_counts.iter().zip(&flowset.packet_counts);
        let cell = |(low, (flows, packets)): (&[u64; WORDS_V4], (&u32, &u32))| FlowsetCell {
            low: *low,
            flows: *flows as i32,
            packets: *packets,
            bytes: 0,
        };
        let mut cells: Vec<FlowsetCell> = flowset.low.iter().zip(counts).map(cell).collect();
        cells.iter_mut().zip(&flowset.byte_counts).for_each(|(cell, bytes)| cell.bytes = *bytes);
        Self { hashing: flowset.hashing, cells, high: flowset.high.clone() }
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// True if the cell could have one flow alone.
    #[inline]
    pub(crate) fn is_candidate(&self, at: usize) -> bool {
        self.cells[at].flows.unsigned_abs() == 1
    }

    /// The one flow of a cell. The sum of several flows hardly ever looks like a flow that belongs there.
    #[inline]
    pub(crate) fn alone(&self, at: usize) -> Option<SingletonCell> {
        let cell = &self.cells[at];
        if cell.flows.unsigned_abs() != 1 {
            return None;
        }
        let mut words = [0; WORDS];
        words[..WORDS_V4].copy_from_slice(&cell.low);
        if let Some(high) = self.high.get(at) {
            words[WORDS_V4..].copy_from_slice(high);
        }
        let key = FlowKey::from_words(words)?;
        let hash = self.hashing.of(&key);
        let places = self.hashing.places(hash);
        let alone =
            SingletonCell { key, hash, places, packets: cell.packets, bytes: cell.bytes, is_hole: cell.flows < 0 };
        places.contains(at).then_some(alone)
    }

    /// Takes a flow out of its cells, or a hole; `then` hears of each cell whether it could have one flow alone now.
    #[inline]
    pub(crate) fn take(
        &mut self,
        key: &FlowKey,
        places: &CellPlaces,
        (packets, bytes): (u32, u64),
        is_hole: bool,
        mut then: impl FnMut(usize, bool),
    ) {
        let sign = if is_hole { -1 } else { 1 };
        let [a, b, high @ ..] = key.words();
        for at in places.iter() {
            let cell = &mut self.cells[at];
            cell.low = [cell.low[0] ^ a, cell.low[1] ^ b];
            cell.flows = cell.flows.wrapping_sub(sign);
            cell.packets = cell.packets.wrapping_sub(packets);
            cell.bytes = cell.bytes.wrapping_sub(bytes);
            then(at, cell.flows.unsigned_abs() == 1);
        }
        if !key.is_short() {
            if self.high.is_empty() {
                self.high = vec![High::default(); self.cells.len()];
            }
            for at in places.iter() {
                self.high[at].iter_mut().zip(high).for_each(|(sum, word)| *sum ^= word);
            }
        }
    }

    /// True if every flow has been taken out.
    pub(crate) fn has_no_flows(&self) -> bool {
        self.cells.iter().all(|cell| cell.flows == 0 && cell.low == [0; WORDS_V4])
            && self.high.as_flattened().iter().all(|word| *word == 0)
    }

    /// True if cells without a flow count packets: those of a flow that the filter took for another.
    pub(crate) fn has_stray_packets(&self) -> bool {
        self.cells.iter().any(|cell| cell.flows == 0 && cell.low == [0; WORDS_V4] && cell.packets != 0)
    }
}

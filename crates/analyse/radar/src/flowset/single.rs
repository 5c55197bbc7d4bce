//! SingleDecode: the flows of one switch out of its own flowset (li-thesis §4.4.1, Algorithm 7).
//!
//! A cell with one flow shows which flow it is and how many packets it had. The decoder takes that flow out of its
//! other cells, which leaves other flows alone in theirs.

use super::Flowset;
use super::key::FlowKey;
use super::table::{FlowsetTable, SingletonCell};

/// Contents found in a flowset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedFlowset {
    /// Decoded flows with their packets, in no particular order.
    pub flows: Vec<(FlowKey, u32)>,
    /// Bytes of each of them, zero if the flowset does not count bytes.
    pub bytes: Vec<u64>,
    /// The number of flows that could not be decoded. The decoded ones are right nevertheless.
    pub left: u64,
    /// The flow filter took a new flow for one it had, so packets of one are counted as those of others: the flows are right,
    /// their counters may not be.
    ///
    /// If flows are left, this may be so and not be seen.
    pub overcounted: bool,
}

impl DecodedFlowset {
    /// True if flows and counters are exactly those that passed.
    pub fn is_complete(&self) -> bool {
        self.left == 0 && !self.overcounted
    }
}

impl Flowset {
    pub fn decode(&self) -> DecodedFlowset {
        let mut table = FlowsetTable::new(self);
        let most = (self.flows as usize).min(table.len());
        let (mut flows, mut bytes) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let (mut flow_check, mut packet_check) = (0_u64, 0_u64);
        peel(&mut table, |SingletonCell { key, hash, packets, bytes: of_flow, .. }| {
            flows.push((*key, *packets));
            bytes.push(*of_flow);
            flow_check = flow_check.wrapping_add(*hash);
            packet_check = packet_check.wrapping_add(hash.wrapping_mul(u64::from(*packets)));
        });
        let all = table.has_no_flows() && flows.len() as u64 == self.flows && flow_check == self.flow_check;
        let left = if all { 0 } else { self.flows.saturating_sub(flows.len() as u64).max(1) };
        let overcounted = table.has_stray_packets() || (all && packet_check != self.packet_check);
        DecodedFlowset { flows, bytes, left, overcounted }
    }
}

/// Cells that are looked at together, so that the processor fetches all of them at once.
const BATCH: usize = 16;

/// Takes out every flow that is alone in a cell, until no flow is alone.
pub(super) fn peel(table: &mut FlowsetTable, mut found: impl FnMut(&SingletonCell)) {
    let mut candidates = CellCandidates::all(table);
    let mut batch: Vec<(usize, SingletonCell)> = Vec::with_capacity(BATCH);
    while let Some(cells) = candidates.next() {
        let alone =
            |at: &u32| table.alone(*at as usize).filter(|alone| !alone.is_hole).map(|alone| (*at as usize, alone));
        batch.extend(cells.iter().filter_map(alone));
        for (at, alone) in batch.drain(..) {
            // Another of its cells may have been in the same batch.
            if table.is_candidate(at) {
                table.take(&alone.key, &alone.places, (alone.packets, alone.bytes), false, |at, is_candidate| {
                    candidates.add(at, is_candidate)
                });
                found(&alone);
            }
        }
    }
}

/// Cells that may have a flow alone, and when to look at them.
struct CellCandidates {
    cells: Vec<u32>,
    len: usize,
    next: usize,
}

impl CellCandidates {
    fn all(table: &FlowsetTable) -> Self {
        let mut candidates = Self { cells: vec![0; table.len() + 1], len: 0, next: 0 };
        (0..table.len()).for_each(|at| candidates.add(at, table.is_candidate(at)));
        candidates
    }

    /// Adds a cell to the candidates without a branch, because the outcome cannot be foreseen. A cell comes to have one
    /// flow once, so there is room; a forged table ends when the room does.
    #[inline]
    fn add(&mut self, at: usize, is_candidate: bool) {
        if let Some(cell) = self.cells.get_mut(self.len) {
            *cell = at as u32;
            self.len += usize::from(is_candidate);
        }
    }

    fn next(&mut self) -> Option<&[u32]> {
        let from = self.next;
        self.next = self.len.min(from + BATCH);
        (from < self.next).then(|| &self.cells[from..self.next])
    }
}

//! A switch among others: what it counted, what is known of that, and what is left of its table.

use super::Flowset;
use super::key::FlowKey;
use super::shape::CellPlaces;
use super::table::FlowsetTable;

/// A flow that was found at a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchFlow {
    pub flow: u32,
    /// Exact for flows that the switch decoded by itself before any flow was lent to it, else a guess.
    pub packets: u32,
    /// The flow's own.
    pub hash: u64,
}

#[derive(Debug)]
pub(super) struct DecodedSwitch {
    pub flowset: Flowset,
    pub table: FlowsetTable,
    pub found: Vec<SwitchFlow>,
    /// The number of flows at the start of `found` that the switch decoded without help.
    pub unaided: usize,
    /// Flows that have ever been found here.
    pub known: Bits,
    /// Candidates that turned out to be none.
    pub returned: Bits,
    /// Cells that may have a flow alone.
    pub candidates: Vec<u32>,
    /// Number of each neighbour's flows that have been examined. If routes are known, `inbox` has the flows that others
    /// sent to this switch, and `sent` is the number of its own flows that it has sent to others.
    pub seen: Vec<usize>,
    pub inbox: Vec<SwitchFlow>,
    pub sent: usize,
    /// All flows are known for certain.
    pub is_told: bool,
}

impl DecodedSwitch {
    pub(crate) fn new(mut flowset: Flowset, neighbours: usize) -> Self {
        let table = FlowsetTable::new(&flowset);
        let candidates = (0..table.len() as u32).filter(|at| table.is_candidate(*at as usize)).collect();
        // The table has them now.
        (flowset.low, flowset.high, flowset.flow_counts) = Default::default();
        Self {
            flowset,
            table,
            found: Vec::new(),
            unaided: 0,
            known: Bits::default(),
            returned: Bits::default(),
            candidates,
            seen: vec![0; neighbours],
            inbox: Vec::new(),
            sent: 0,
            is_told: false,
        }
    }

    /// Takes out a flow that a neighbour knows, if it may be here.
    pub(crate) fn take_lent(&mut self, lent: SwitchFlow, keys: &[FlowKey]) {
        if self.known.has(lent.flow) {
            return;
        }
        let hash = self.table.hashing.of_hash(lent.hash);
        if !self.flowset.filter_has(hash) {
            return;
        }
        self.known.set(lent.flow);
        self.found.push(lent);
        let places = self.table.hashing.places(hash);
        let Self { table, candidates, .. } = self;
        table.take(&keys[lent.flow as usize], &places, (lent.packets, 0), false, add_to(candidates));
    }

    /// A flow's hash at this switch.
    #[inline]
    pub(crate) fn hash(&self, found: &SwitchFlow) -> u64 {
        self.table.hashing.of_hash(found.hash)
    }

    #[inline]
    pub(crate) fn places(&self, found: &SwitchFlow) -> CellPlaces {
        self.table.hashing.places(self.hash(found))
    }

    pub(crate) fn keeps(&self, found: &SwitchFlow) -> bool {
        !self.returned.has(found.flow)
    }

    /// Flows that were found and not returned.
    fn kept(&self) -> impl Iterator<Item = &SwitchFlow> {
        self.found.iter().filter(|found| self.keeps(found))
    }

    /// The flows that the switch decoded without help.
    pub(crate) fn own(&self) -> &[SwitchFlow] {
        &self.found[..self.unaided]
    }

    /// Flows that were found with the help of neighbours, and not returned.
    pub(crate) fn lent(&self) -> impl Iterator<Item = &SwitchFlow> {
        self.found[self.unaided..].iter().filter(|found| self.keeps(found))
    }

    /// Flows that were returned: each looked like a flow of this switch, and its cells do not have it.
    pub(crate) fn returned(&self) -> impl Iterator<Item = &SwitchFlow> {
        self.found.iter().filter(|found| !self.keeps(found))
    }

    /// True if the flows that were found are those that passed: nothing is left in the cells, and the sum over all flows is
    /// what it was at the switch.
    pub(crate) fn has_all_flows(&self) -> bool {
        let sum = |sum: u64, found: &SwitchFlow| sum.wrapping_add(self.hash(found));
        self.table.has_no_flows()
            && self.kept().count() as u64 == self.flowset.flows
            && self.kept().fold(0, sum) == self.flowset.flow_check
    }
}

pub(super) fn add_to(candidates: &mut Vec<u32>) -> impl FnMut(usize, bool) {
    |at, is_candidate| {
        if is_candidate {
            candidates.push(at as u32);
        }
    }
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    #[inline]
    pub(crate) fn has(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub(crate) fn set(&mut self, at: u32) {
        let word = at as usize / 64;
        if word >= self.0.len() {
            self.0.resize((word + 1).next_power_of_two(), 0);
        }
        self.0[word] |= 1 << (at % 64);
    }
}

//! FlowDecode: what a switch cannot decode, a neighbour may (li-thesis §4.4.2, Algorithm 8).
//!
//! Switches have hash functions of their own, so flows that hide each other at one do not at the next. A flow that is known at
//! one switch and that the flow filter of its neighbour has is taken out there, too, which leaves others alone in their cells:
//!
//! ```text
//!   SingleDecode at every switch ──▶ for each switch: flows of neighbours that its filter has ──▶ SingleDecode ──┐
//!                                          ▲───────────────────── as long as anything is found ──────────────────┘
//! ```
//!
//! A filter may have bits that look like a flow that never passed. Taking such a flow out leaves a hole in each of its cells,
//! and holes are found like flows and filled (`table` says how). Packets of lent flows are not known, because hops lose some and
//! have others on their way at the end of a slot; `counters` finds them.
//!
//! Invariants: [`SwitchFlows::flows`] has no flow that did not pass. Either everything adds up, or it has only the
//! flows that the switch decoded by itself.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use super::key::FlowKey;
use super::switch::{DecodedSwitch, SwitchFlow, add_to};
use super::{Flowset, counters};

/// Other switches at which a flow that was seen at one switch may have been seen.
#[derive(Clone, Copy)]
pub enum CandidateSwitches<'a> {
    /// Each switch may send to any of its neighbours, in a list for each switch.
    Neighbours(&'a [Vec<usize>]),
    /// The hops before and after a switch, if routes are known as well.
    Routes(&'a [Vec<usize>], &'a dyn Fn(&FlowKey, usize) -> [Option<usize>; 2]),
}

/// Error in the description of switches that are to be decoded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// A list of neighbours for each switch is needed.
    Lists { switches: usize, lists: usize },
    /// A neighbour that there is not.
    NoSwitch { switch: usize, neighbour: usize },
    /// Neighbours with the same hash functions, which cannot help each other.
    SameSeed { switch: usize, neighbour: usize },
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lists { switches, lists } => {
                write!(f, "{lists} lists of neighbours for {switches} switches: each switch needs one")
            }
            Self::NoSwitch { switch, neighbour } => {
                write!(f, "switch {switch} has neighbour {neighbour}, and there is no such switch")
            }
            Self::SameSeed { switch, neighbour } => {
                write!(
                    f,
                    "switches {switch} and {neighbour} have flowsets with the same seed: give each switch its own"
                )
            }
        }
    }
}

impl std::error::Error for NetworkError {}

/// Flows and packets that passed a switch, as far as all switches together can decode them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchFlows {
    /// Flows that passed, with their packets where those are known.
    pub flows: Vec<(FlowKey, Option<u32>)>,
    /// Flows that probably passed: a neighbour has them, and this switch's filter does.
    pub likely: Vec<FlowKey>,
    /// Flows that are not among those that passed; some may be among the likely ones.
    pub left: u64,
    /// True if flows and counters are exactly those that passed.
    pub is_complete: bool,
}

/// The flowsets of switches in one slot, and what is known of them.
pub struct FlowsetNetwork<'a> {
    ways: CandidateSwitches<'a>,
    pub(super) switches: Vec<DecodedSwitch>,
    pub(super) keys: Vec<FlowKey>,
    ids: HashMap<u64, u32, BuildHasherDefault<PrehashedHasher>>,
    /// Packets of each flow, about.
    numbers: Vec<f64>,
}

impl<'a> FlowsetNetwork<'a> {
    pub fn new(flowsets: Vec<Flowset>, ways: CandidateSwitches<'a>) -> Result<Self, NetworkError> {
        let (CandidateSwitches::Neighbours(neighbours) | CandidateSwitches::Routes(neighbours, _)) = ways;
        if neighbours.len() != flowsets.len() {
            return Err(NetworkError::Lists { switches: flowsets.len(), lists: neighbours.len() });
        }
        for (switch, list) in neighbours.iter().enumerate() {
            for neighbour in list.iter().copied() {
                let Some(theirs) = flowsets.get(neighbour) else {
                    return Err(NetworkError::NoSwitch { switch, neighbour });
                };
                if theirs.shape().seed == flowsets[switch].shape().seed {
                    return Err(NetworkError::SameSeed { switch, neighbour });
                }
            }
        }
        let switch = |(flowset, list): (Flowset, &Vec<usize>)| DecodedSwitch::new(flowset, list.len());
        let switches = flowsets.into_iter().zip(neighbours).map(switch).collect();
        Ok(Self { ways, switches, keys: Vec::new(), ids: HashMap::default(), numbers: Vec::new() })
    }

    /// Finds flows, without their packets.
    pub fn find_flows(&mut self) {
        for at in 0..self.switches.len() {
            self.peel(at);
            self.switches[at].unaided = self.switches[at].found.len();
        }
        if let CandidateSwitches::Routes(_, hops) = self.ways {
            (0..self.switches.len()).for_each(|at| self.send(at, hops));
        }
        while (0..self.switches.len()).filter(|at| self.borrow(*at)).count() > 0 {}
        for switch in &mut self.switches {
            switch.is_told = switch.has_all_flows();
        }
    }

    /// Flows of a switch that are not known, after [`find_flows`](Self::find_flows).
    pub fn flows_left(&self, at: usize) -> u64 {
        let switch = &self.switches[at];
        if switch.is_told { 0 } else { switch.flowset.flows.saturating_sub(switch.found.len() as u64).max(1) }
    }

    /// Finds out about how many packets each flow had, after [`find_flows`](Self::find_flows).
    pub fn guess_counters(&mut self) {
        self.numbers = counters::consensus(self);
    }

    /// Decodes what passed each switch. Determines the counters of switches at which all flows are known.
    pub fn decode(mut self) -> Vec<SwitchFlows> {
        self.find_flows();
        self.guess_counters();
        (0..self.switches.len()).map(|at| self.switch(at)).collect()
    }

    /// Flows that passed one switch, with its counters if all flows are known: after
    /// [`guess_counters`](Self::guess_counters).
    pub fn switch(&self, at: usize) -> SwitchFlows {
        let switch = &self.switches[at];
        let key = |found: &SwitchFlow| self.keys[found.flow as usize];
        let unaided = switch.own();
        if !switch.is_told {
            let flows: Vec<_> = unaided.iter().map(|found| (key(found), Some(found.packets))).collect();
            let likely = switch.lent().map(key).collect();
            let left = switch.flowset.flows.saturating_sub(flows.len() as u64).max(1);
            return SwitchFlows { flows, likely, left, is_complete: false };
        }
        match counters::solve(switch, &self.numbers) {
            Some(counted) => {
                let flows =
                    counted.into_iter().map(|(flow, packets)| (self.keys[flow as usize], Some(packets))).collect();
                SwitchFlows { flows, is_complete: true, ..SwitchFlows::default() }
            }
            None => {
                let alone = unaided.iter().map(|found| (key(found), Some(found.packets)));
                let lent = switch.lent().map(|found| (key(found), None));
                SwitchFlows { flows: alone.chain(lent).collect(), ..SwitchFlows::default() }
            }
        }
    }

    /// Takes out flows that neighbours know and this switch's filter has. True if any was found.
    fn borrow(&mut self, at: usize) -> bool {
        let before = self.switches[at].found.len();
        match self.ways {
            CandidateSwitches::Neighbours(lists) => {
                for (nth, neighbour) in lists[at].iter().copied().enumerate() {
                    let from = self.switches[at].seen[nth];
                    self.switches[at].seen[nth] = self.switches[neighbour].found.len();
                    for lent in from..self.switches[neighbour].found.len() {
                        let found = self.switches[neighbour].found[lent];
                        self.switches[at].take_lent(found, &self.keys);
                    }
                }
                self.peel(at);
            }
            CandidateSwitches::Routes(_, hops) => {
                let inbox = std::mem::take(&mut self.switches[at].inbox);
                inbox.into_iter().for_each(|found| self.switches[at].take_lent(found, &self.keys));
                self.peel(at);
                self.send(at, hops);
            }
        }
        self.switches[at].found.len() > before
    }

    /// Tells the hops before and after of what a switch has found and they do not know yet.
    fn send(&mut self, at: usize, hops: &dyn Fn(&FlowKey, usize) -> [Option<usize>; 2]) {
        for nth in self.switches[at].sent..self.switches[at].found.len() {
            let found = self.switches[at].found[nth];
            for hop in hops(&self.keys[found.flow as usize], at).into_iter().flatten() {
                if let Some(switch) = self.switches.get_mut(hop).filter(|switch| !switch.known.has(found.flow)) {
                    switch.inbox.push(found);
                }
            }
        }
        self.switches[at].sent = self.switches[at].found.len();
    }

    /// Takes out every flow and every hole that is alone in a cell, until none is alone.
    fn peel(&mut self, at: usize) {
        let switch = &mut self.switches[at];
        while let Some(cell) = switch.candidates.pop() {
            let Some(alone) = switch.table.alone(cell as usize) else { continue };
            let hash = alone.key.hash();
            let next = self.keys.len() as u32;
            let flow = match alone.is_hole {
                true => match self.ids.get(&hash) {
                    Some(flow) => *flow,
                    None => continue,
                },
                false => *self.ids.entry(hash).or_insert(next),
            };
            if flow == next {
                self.keys.push(alone.key);
            }
            // Two flows with the same hash are one too many, whichever it is.
            let is_known = switch.known.has(flow);
            let is_fitting = if alone.is_hole { is_known && !switch.returned.has(flow) } else { !is_known };
            if self.keys[flow as usize] != alone.key || !is_fitting {
                continue;
            }
            if alone.is_hole {
                switch.returned.set(flow);
            } else {
                switch.known.set(flow);
                switch.found.push(SwitchFlow { flow, packets: alone.packets, hash });
            }
            let DecodedSwitch { table, candidates, .. } = switch;
            table.take(&alone.key, &alone.places, (alone.packets, 0), alone.is_hole, add_to(candidates));
        }
    }
}

/// Hashes are what is looked up, so they need no hashing.
#[derive(Clone, Copy, Default)]
struct PrehashedHasher(u64);

impl Hasher for PrehashedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl fmt::Debug for FlowsetNetwork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (switches, flows) = (self.switches.len(), self.keys.len());
        f.debug_struct("Network").field("switches", &switches).field("flows", &flows).finish_non_exhaustive()
    }
}

impl fmt::Debug for CandidateSwitches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Neighbours(_) => "Neighbours",
            Self::Routes(..) => "Routes",
        })
    }
}

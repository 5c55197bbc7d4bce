//! Conclusions about a network from decoded flows and counters: FlowRadar's analyzer, li-thesis §4.6.
//!
//! Everything here is a function of counters by switch and slot, from any decoder. [`loops`] and [`blackholes`] look at
//! where a flow was in a slot (§4.6.1), [`Flowlet`] at how its counters differ along its path (§4.6.2).
//!
//! Invariant: unknown counters lead to no conclusion. To know that a flow stopped at a switch takes no counters.

mod flowlets;
mod paths;

use std::collections::BTreeMap;

pub use flowlets::Flowlet;
pub use paths::{Blackhole, ForwardingLoop, blackholes, loops};

use crate::flowset::FlowKey;

/// Thresholds above which something is called a loop, a blackhole, a flowlet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowmapThresholds {
    /// Two neighbours that both have at least this many times the packets that came to them send them to and fro. In
    /// longer cycles, which no right path has, any more packets than outside are a loop, as in the thesis.
    pub loop_factor: f64,
    /// A flow that loses this share of its packets from one hop to the next within a slot has met a blackhole for part of it.
    /// The thesis says "a large difference"; what is on its way at the end of a slot is far less than half.
    pub blackhole_share: f64,
    /// Fewest packets in a slot for which a share is meaningful.
    pub blackhole_packets: u32,
    /// Slots without a packet that separate two flowlets: what has not arrived by then is lost.
    pub flowlet_gap: u32,
}

impl Default for FlowmapThresholds {
    fn default() -> Self {
        Self { loop_factor: 2.0, blackhole_share: 0.5, blackhole_packets: 8, flowlet_gap: 1 }
    }
}

/// Packets of a flow at each switch that saw it in a slot; `None` where it was seen and could not be counted.
pub type SwitchCounts = BTreeMap<usize, Option<u32>>;

/// The switches that a flow should pass, first to last; empty if that is not known.
pub type SwitchPath<'a> = &'a dyn Fn(&FlowKey) -> Vec<usize>;

/// Flows and counters that switches saw in one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotView {
    flows: BTreeMap<FlowKey, SwitchCounts>,
}

impl SlotView {
    /// A switch saw a flow.
    pub fn add(&mut self, switch: usize, flow: FlowKey, packets: Option<u32>) {
        self.flows.entry(flow).or_default().insert(switch, packets);
    }

    /// Counts of a flow at the switches that saw it.
    pub fn of(&self, flow: &FlowKey) -> Option<&SwitchCounts> {
        self.flows.get(flow)
    }

    pub fn flows(&self) -> impl Iterator<Item = (&FlowKey, &SwitchCounts)> {
        self.flows.iter()
    }
}

#[cfg(test)]
mod tests;

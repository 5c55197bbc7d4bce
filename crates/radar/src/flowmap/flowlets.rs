//! The per-flow loss map: li-thesis §4.6.2.
//!
//! Two switches never count the same packets in a slot: some are always on their way. But what has not arrived for a whole slot
//! is lost. So counters are compared over a *flowlet*, packets of a flow between slots that have none at either switch:
//!
//! ```text
//!   slot          1   2   3   4   5
//!   upstream      ·   9   4   ·   ·
//!   downstream    ·   7   5   ·   ·       13 − 12: one lost, known at the end of slot 4
//! ```

use std::collections::BTreeMap;

use super::{Route, Slot, Thresholds};
use crate::flowset::FlowKey;

/// Between two switches that follow each other on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    pub upstream: usize,
    pub downstream: usize,
}

/// What a flowlet lost on a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowletLoss {
    pub flow: FlowKey,
    pub hop: Hop,
    /// First and last slot with a packet of it.
    pub slots: [u64; 2],
    /// The slot at the end of which it is known.
    pub known: u64,
    pub sent: u64,
    pub lost: u64,
}

/// The flowlet of a flow that is passing a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flowlet {
    /// First and last slot with a packet.
    slots: Option<[u64; 2]>,
    sent: u64,
    arrived: u64,
    /// A counter was missing.
    is_unclear: bool,
}

impl Flowlet {
    /// The counters of a slot at both switches: zero if the flow was not seen, `None` if it could not be counted.
    pub fn count(&mut self, slot: u64, upstream: Option<u32>, downstream: Option<u32>) {
        if (upstream, downstream) == (Some(0), Some(0)) {
            return;
        }
        self.slots = Some([self.slots.map_or(slot, |[first, _]| first), slot]);
        self.sent += u64::from(upstream.unwrap_or(0));
        self.arrived += u64::from(downstream.unwrap_or(0));
        self.is_unclear |= upstream.is_none() || downstream.is_none();
    }

    /// If the flowlet is over by the end of this slot: its slots, packets sent and packets lost, and nothing of it is kept. Of
    /// one that could not be counted only that it is over.
    pub fn end(&mut self, slot: u64, thresholds: &Thresholds) -> Option<([u64; 2], u64, u64)> {
        let slots = self.slots.filter(|[_, last]| slot >= last + u64::from(thresholds.flowlet_gap))?;
        let Self { sent, arrived, is_unclear, .. } = std::mem::take(self);
        (!is_unclear).then(|| (slots, sent, sent.saturating_sub(arrived)))
    }
}

/// What flowlets lost, hop by hop, among consecutive slots of which `first` is the number of the first. Flowlets that are not
/// over are not judged.
pub fn losses(first: u64, slots: &[Slot], route: Route<'_>, thresholds: &Thresholds) -> Vec<FlowletLoss> {
    let mut open: BTreeMap<FlowKey, Vec<(Hop, Flowlet)>> = BTreeMap::new();
    let mut found = Vec::new();
    for (number, slot) in (first..).zip(slots) {
        for (flow, seen) in slot.flows() {
            let flowlets =
                open.entry(*flow).or_insert_with(|| hops(&route(flow)).map(|hop| (hop, Flowlet::default())).collect());
            for (Hop { upstream, downstream }, flowlet) in flowlets {
                let [upstream, downstream] =
                    [upstream, downstream].map(|switch| seen.get(switch).copied().unwrap_or(Some(0)));
                flowlet.count(number, upstream, downstream);
            }
        }
        for (flow, flowlets) in &mut open {
            for (hop, flowlet) in flowlets {
                if let Some((slots, sent, lost)) = flowlet.end(number, thresholds).filter(|(_, _, lost)| *lost > 0) {
                    found.push(FlowletLoss { flow: *flow, hop: *hop, slots, known: number, sent, lost });
                }
            }
        }
        open.retain(|_, flowlets| flowlets.iter().any(|(_, flowlet)| *flowlet != Flowlet::default()));
    }
    found
}

fn hops(route: &[usize]) -> impl Iterator<Item = Hop> + use<'_> {
    route.windows(2).map(|pair| Hop { upstream: pair[0], downstream: pair[1] })
}

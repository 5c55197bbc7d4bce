//! The per-flow loss map: li-thesis §4.6.2.
//!
//! Two switches never count the same packets in a slot: some are always on their way. But what has not arrived for a whole slot
//! is lost. So counters are compared for each *flowlet*: the packets of a flow between two slots in which neither switch saw any.
//!
//! ```text
//!   slot          1   2   3   4   5
//!   upstream      ·   9   4   ·   ·
//!   downstream    ·   7   5   ·   ·       13 − 12: one lost, known at the end of slot 4
//! ```

use super::FlowmapThresholds;

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

    /// Ends the flowlet if it is over by the end of this slot, and returns its slots, packets sent and packets lost. A
    /// flowlet that could not be counted has no packets.
    pub fn end(&mut self, slot: u64, thresholds: &FlowmapThresholds) -> Option<([u64; 2], u64, u64)> {
        let slots = self.slots.filter(|[_, last]| slot >= last + u64::from(thresholds.flowlet_gap))?;
        let Self { sent, arrived, is_unclear, .. } = std::mem::take(self);
        (!is_unclear).then(|| (slots, sent, sent.saturating_sub(arrived)))
    }
}

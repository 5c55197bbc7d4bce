//! Packets at a rate, or as fast as the wire takes them.
//!
//! A waiting packet follows a change of the rate at once: the time at which the next packet may leave is computed from the
//! last one with the rate of now, so it can also come earlier.

use units::{Bytes, Rate, Time};
use wire::ethernet::WireFraming;

#[derive(Debug, Default)]
pub(super) struct RocePacer {
    /// Time at which the last packet was due, or left if nothing held it. `bytes` is its length.
    from: Time,
    bytes: Bytes,
    framing: WireFraming,
}

impl RocePacer {
    pub(super) fn new(framing: WireFraming) -> Self {
        Self { framing, ..Self::default() }
    }

    /// Time at which the packet after the last one is due at this rate.
    #[inline]
    fn due(&self, rate: Rate) -> Time {
        self.from + self.framing.busy(rate.span_of(self.bytes))
    }

    /// Time until which the pacer holds the next packet back at this rate, if it does.
    #[inline]
    pub(super) fn holds(&self, now: Time, rate: Option<Rate>) -> Option<Time> {
        let until = self.due(rate?);
        (now < until).then_some(until)
    }

    /// A packet leaves that takes this much of the wire.
    #[inline]
    pub(super) fn sends(&mut self, now: Time, bytes: Bytes, rate: Option<Rate>) {
        let due = rate.map_or(now, |rate| self.due(rate));
        self.from = now.max(due);
        self.bytes = bytes;
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;

    #[test]
    fn a_faster_rate_lets_what_waits_go_earlier() {
        let ns = |ns| Time::ZERO + Span::from_ns(ns);
        let mut pacer = RocePacer::default();
        let [slow, fast] = [1, 100].map(Rate::gbps);
        pacer.sends(ns(100), Bytes::new(1_000), Some(slow));
        assert_eq!(pacer.holds(ns(100), Some(slow)), Some(ns(8_100)));
        assert_eq!(pacer.holds(ns(150), Some(fast)), Some(ns(180)));
        assert_eq!(pacer.holds(ns(180), Some(fast)), None);
        assert_eq!(pacer.holds(ns(150), None), None);
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let ns = |ns| Time::ZERO + Span::from_ns(ns);
        let mut pacer = RocePacer::default();
        let rate = Some(Rate::gbps(8));
        pacer.sends(ns(0), Bytes::new(1_000), rate);
        pacer.sends(ns(5_000), Bytes::new(1_000), rate);
        assert_eq!(pacer.holds(ns(5_000), rate), Some(ns(6_000)));
    }
}

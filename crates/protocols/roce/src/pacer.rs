//! Packets at a rate, or as fast as the wire takes them.
//!
//! By [`PaceRule::Current`] a waiting packet follows a change of the rate at once: the time at which the next packet may leave is
//! computed from the last one with the rate of now, so it can also come earlier.

use congestion::ControllerConfig;
use units::{Bytes, Rate, Time};
use wire::ethernet::WireFraming;

/// Rate by which the distance of a packet to the one before is reckoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PaceRule {
    /// The rate of now.
    #[default]
    Current,
    /// The rate when the packet before left: a change concerns the packet after the next one.
    AtDeparture,
}

impl PaceRule {
    /// Rule of a sender with this framing. In the simulator of HPCC's authors only HPCC moves the next packet when it changes the rate.
    pub(super) fn of(framing: WireFraming, congestion: &ControllerConfig) -> Self {
        match (framing, congestion) {
            (WireFraming::Ethernet, _) | (WireFraming::HpccNs3, ControllerConfig::Hpcc(_)) => Self::Current,
            (WireFraming::HpccNs3, _) => Self::AtDeparture,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RocePacer {
    /// Time at which the last packet was due, or left if nothing held it. `bytes` is its length.
    from: Time,
    bytes: Bytes,
    /// Rate when it left, if that counts.
    left_at: Option<Rate>,
    framing: WireFraming,
    rule: PaceRule,
}

impl RocePacer {
    pub(super) fn new(framing: WireFraming, rule: PaceRule) -> Self {
        Self { framing, rule, ..Self::default() }
    }

    /// Time at which the packet after the last one is due if the rate is this one now.
    #[inline]
    fn due(&self, rate: Rate) -> Time {
        self.from + self.framing.busy(self.left_at.unwrap_or(rate).span_of(self.bytes))
    }

    /// True if the next packet follows a change of the rate.
    pub(super) fn follows_changes(&self) -> bool {
        self.rule == PaceRule::Current
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
        self.left_at = rate.filter(|_| !self.follows_changes());
    }
}

#[cfg(test)]
mod tests {
    use congestion::{DcqcnConfig, HpccConfig};
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
    fn in_their_simulator_a_packet_that_waits_keeps_its_time() {
        let ns = |ns| Time::ZERO + Span::from_ns(ns);
        let dcqcn = ControllerConfig::Dcqcn(DcqcnConfig::VENDOR);
        let framing = WireFraming::HpccNs3;
        assert_eq!(PaceRule::of(framing, &ControllerConfig::Hpcc(HpccConfig::default())), PaceRule::Current);
        assert_eq!(PaceRule::of(WireFraming::Ethernet, &dcqcn), PaceRule::Current);
        let mut pacer = RocePacer::new(framing, PaceRule::of(framing, &dcqcn));
        let [slow, fast] = [1, 100].map(|gbps| Some(Rate::gbps(gbps)));
        pacer.sends(ns(100), Bytes::new(1_000), slow);
        assert_eq!([slow, fast].map(|rate| pacer.holds(ns(150), rate)), [Some(ns(8_100)); 2]);
        pacer.sends(ns(8_100), Bytes::new(1_000), fast);
        assert_eq!([slow, fast].map(|rate| pacer.holds(ns(8_100), rate)), [Some(ns(8_180)); 2]);
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

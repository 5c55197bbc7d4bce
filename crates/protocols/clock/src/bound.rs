//! Clock error: ε over time (Eq. 3.1), and intervals that contain the truth.
//!
//! ```text
//!   ε(now) = ε_base + (now − last message) × drift         ε_base = per hop × depth
//! ```
//!
//! Two corrections make it a bound that can be asserted to the picosecond. *Drift*: the time since the last message is
//! measured by the oscillator that is in question. If two oscillators differ by up to ρ (each is within ρ/2 of nominal) and
//! the local one is the slow one, their difference grows by ρ/(1−ρ/2) of what it measures: 200.02 ppm, not 200.
//! *Residence*: what passes between a node's correction and its sending, and on the way, is drift as well; [`PerHop`] has it.
//!
//! Invariant: every operation rounds away from zero, so a bound is never too small.

use units::{Span, Time};

/// Maximum rate at which two oscillators of a network drift apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriftBound {
    parts_per_billion: u32,
}

impl DriftBound {
    /// Oscillators within ±100 ppm of nominal: two of them differ by 200 ppm (§3.6.1).
    pub const THESIS: Self = Self::from_ppm(200);

    /// Bound between two oscillators, in parts per million; at most 1,000,000.
    pub const fn from_ppm(ppm: u32) -> Self {
        assert!(ppm <= 1_000_000, "more than the time itself");
        Self { parts_per_billion: ppm * 1_000 }
    }

    /// Bound between two oscillators, in parts per billion.
    pub const fn ppb(self) -> u32 {
        self.parts_per_billion
    }

    /// Maximum by which two oscillators drift apart while a third, itself one of the network's, measures `elapsed`.
    #[inline]
    pub const fn over(self, elapsed: Span) -> Span {
        let (rho, whole) = (self.parts_per_billion as u64, 2_000_000_000 - self.parts_per_billion as u64);
        match elapsed.as_ps().checked_mul(2 * rho) {
            Some(product) => Span::from_ps(product.div_ceil(whole)),
            None => {
                let wide = (elapsed.as_ps() as u128 * 2 * rho as u128).div_ceil(whole as u128);
                Span::from_ps(if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 })
            }
        }
    }
}

/// Contribution of each hop of a wave to ε_base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerHop {
    /// Maximum error of the measured way of a message: 5 ns (§3.4.1.3).
    pub measurement: Span,
    /// The longest time between a node's correction and the arrival of what it sends then: residence and way.
    pub dwell: Span,
}

impl PerHop {
    /// Contribution of one hop, with the drift while the message is on its way.
    pub const fn total(self, drift: DriftBound) -> Span {
        Span::from_ps(self.measurement.as_ps() + drift.over(self.dwell).as_ps())
    }
}

/// ε of one node: where it started, and since when it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorBound {
    /// ε_base.
    pub base: Span,
    /// Time at which the last message was applied, by the node's own oscillator.
    pub since: Time,
}

impl ErrorBound {
    /// ε at `now`.
    #[inline]
    pub const fn at(self, now: Time, drift: DriftBound) -> Span {
        Span::from_ps(self.base.as_ps().saturating_add(drift.over(now.since(self.since)).as_ps()))
    }
}

/// Interval that contains the reading of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockInterval {
    /// The clock shows this or more.
    pub earliest: Time,
    /// The clock shows this or less.
    pub latest: Time,
}

impl ClockInterval {
    /// Exactly one reading.
    pub const fn exactly(reading: Time) -> Self {
        Self { earliest: reading, latest: reading }
    }

    /// All readings at most `epsilon` away.
    pub const fn around(reading: Time, epsilon: Span) -> Self {
        let (reading, epsilon) = (reading.as_ps(), epsilon.as_ps());
        let (earliest, latest) = (reading.saturating_sub(epsilon), reading.saturating_add(epsilon));
        Self { earliest: Time::from_ps(earliest), latest: Time::from_ps(latest) }
    }

    /// The reading in the middle, from which none is farther away than [`Self::half`].
    pub const fn middle(self) -> Time {
        Time::from_ps(self.earliest.as_ps().midpoint(self.latest.as_ps()))
    }

    /// Half of its width, rounded up.
    pub const fn half(self) -> Span {
        Span::from_ps(self.latest.since(self.earliest).as_ps().div_ceil(2))
    }

    /// Intersection of both intervals. `None` if they are disjoint: then one of them does not contain the truth.
    pub fn intersection(self, other: Self) -> Option<Self> {
        let both = Self { earliest: self.earliest.max(other.earliest), latest: self.latest.min(other.latest) };
        (both.earliest <= both.latest).then_some(both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_oscillator_measures_less_than_it_drifts() {
        // 1 s at −100 ppm is 0.9999 s to the node, while one at +100 ppm has gained 200 µs on it.
        let measured = Span::from_ps(999_900_000_000);
        let (apart, thesis) = (Span::from_ps(200_000_000), measured.scale(200e-6));
        assert!(thesis < apart, "200 ppm of what it measured are {thesis}");
        assert!(DriftBound::THESIS.over(measured) >= apart);
        assert!(DriftBound::THESIS.over(measured) <= apart + Span::from_ps(1));
    }

    #[test]
    fn long_silence_neither_overflows_nor_shrinks_the_bound() {
        let year = Span::from_ps(u64::MAX);
        let over = DriftBound::THESIS.over(year);
        assert!(over > Span::from_ms(3_600_000) && over < year);
        let bound = ErrorBound { base: Span::from_ps(u64::MAX), since: Time::ZERO };
        assert_eq!(bound.at(Time::NEVER, DriftBound::THESIS), Span::from_ps(u64::MAX));
    }

    #[test]
    fn the_thesis_sums_are_within_a_nanosecond() {
        let hop = PerHop { measurement: Span::from_ns(5), dwell: Span::from_ns(500) }.total(DriftBound::THESIS);
        let epsilon = |depth: u64, us: u64| {
            let bound = ErrorBound { base: hop * depth, since: Time::ZERO };
            bound.at(Time::ZERO + Span::from_us(us), DriftBound::THESIS).as_ps() as f64 / 1_000.0
        };
        for (depth, us, thesis) in [(5, 90, 43.0), (6, 270, 84.0), (6, 365, 103.0)] {
            let found = epsilon(depth, us);
            assert!(found >= thesis && found < thesis + 1.0, "{found} for {thesis}");
        }
    }

    #[test]
    fn intervals_that_do_not_meet_cannot_both_be_right() {
        let at = |ps| Time::from_ps(ps);
        let one = ClockInterval::around(at(100), Span::from_ps(10));
        let other = ClockInterval { earliest: at(107), latest: at(130) };
        assert_eq!(one.intersection(other), Some(ClockInterval { earliest: at(107), latest: at(110) }));
        assert_eq!(one.intersection(ClockInterval::exactly(at(111))), None);
        let odd = ClockInterval { earliest: at(1), latest: at(4) };
        assert_eq!((odd.middle(), odd.half()), (at(2), Span::from_ps(2)));
    }
}

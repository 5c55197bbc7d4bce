//! Bounds on the time from a neighbour's messages: the earliest and the latest that it can be.
//!
//! ```text
//!   neighbour     E at sending             L at arrival
//!                      ╲  wave               ╱ ╲  wave, with the echo: request n, L
//!                       ╲                   ╱   ╲
//!   here            time ≥ E at arrival    ╱  time ≤ L at the sending of n
//!                                    request n
//! ```
//!
//! A wave that arrives proves that the time is at least what it was for the neighbour when it sent; a request that arrived
//! there proves that when it was sent here the time was at most what it was for the neighbour when it came. Neither needs to
//! know how long anything was on its way, nor that both ways take the same time. A bound holds for ever, and becomes worse by
//! the drift bound; the best of all is kept, so that a message that waited somewhere does no harm.
//!
//! The neighbour knows exactly when a wave left only after it has left, and says so in its next wave.

use clock::bound::DriftBound;
use units::Span;

/// Waves that were received, and requests that were sent, of which more may be heard.
const KEPT: usize = 16;

/// A bound on the time at one reading of the oscillator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeBound {
    /// The oscillator.
    pub local_ns: u64,
    /// The time then, or a bound on it.
    pub time_ns: u64,
}

/// Change that the drift bound allows over this many nanoseconds, rounded up.
fn drift_over(drift: DriftBound, ns: u64) -> u64 {
    // The unit does not matter to a share.
    drift.over(Span::from_ps(ns)).as_ps()
}

impl TimeBound {
    /// A lower bound, at another reading of the oscillator.
    pub(crate) fn least_at(self, local_ns: u64, drift: DriftBound) -> u64 {
        let passed = local_ns.abs_diff(self.local_ns);
        let apart = drift_over(drift, passed);
        if local_ns >= self.local_ns {
            self.time_ns.saturating_add(passed - apart.min(passed))
        } else {
            self.time_ns.saturating_sub(passed.saturating_add(apart))
        }
    }

    /// An upper bound, at another reading of the oscillator.
    pub(crate) fn most_at(self, local_ns: u64, drift: DriftBound) -> u64 {
        let passed = local_ns.abs_diff(self.local_ns);
        let apart = drift_over(drift, passed);
        if local_ns >= self.local_ns {
            self.time_ns.saturating_add(passed.saturating_add(apart))
        } else {
            self.time_ns.saturating_sub(passed - apart.min(passed))
        }
    }
}

/// The last frames of a kind, by number.
#[derive(Clone, Copy, Debug)]
struct RecentFrames {
    frames: [Option<(u32, u64)>; KEPT],
    next: usize,
}

impl RecentFrames {
    const NONE: Self = Self { frames: [None; KEPT], next: 0 };

    /// Records a frame. For a frame that is known already, the later time counts.
    fn note(&mut self, number: u32, local_ns: u64) {
        if let Some((_, known_ns)) = self.frames.iter_mut().flatten().find(|(known, _)| *known == number) {
            *known_ns = local_ns.max(*known_ns);
            return;
        }
        self.frames[self.next % KEPT] = Some((number, local_ns));
        self.next += 1;
    }

    fn find(&self, number: u32) -> Option<u64> {
        self.frames.iter().flatten().find(|(known, _)| *known == number).map(|(_, local_ns)| *local_ns)
    }
}

/// Bounds on the time from one neighbour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeighbourBounds {
    drift: DriftBound,
    least: Option<TimeBound>,
    most: Option<TimeBound>,
    waves: RecentFrames,
    requests: RecentFrames,
}

impl NeighbourBounds {
    pub(crate) fn new(drift: DriftBound) -> Self {
        Self { drift, least: None, most: None, waves: RecentFrames::NONE, requests: RecentFrames::NONE }
    }

    /// Forgets the neighbour's earlier statements: the time is another one now, or another process makes them.
    pub(crate) fn forget(&mut self) {
        *self = Self { requests: self.requests, ..Self::new(self.drift) };
    }

    /// A request left here, not before this.
    pub(crate) fn request_sent(&mut self, number: u32, local_ns: u64) {
        self.requests.note(number, local_ns);
    }

    /// A wave came, not after this.
    pub(crate) fn wave_received(&mut self, number: u32, local_ns: u64) {
        self.waves.note(number, local_ns);
    }

    /// Takes the neighbour's statement that the time was not before `time_ns` when it sent the wave of this number.
    pub(crate) fn wave_left(&mut self, number: u32, time_ns: u64) {
        let Some(local_ns) = self.waves.find(number) else { return };
        let (new, drift) = (TimeBound { local_ns, time_ns }, self.drift);
        let at = |bound: TimeBound| bound.least_at(local_ns, drift);
        if self.least.is_none_or(|known| at(known) <= at(new)) {
            self.least = Some(new);
        }
    }

    /// Takes the neighbour's statement that the time was not after `time_ns` when the request of this number arrived there.
    pub(crate) fn request_arrived(&mut self, number: u32, time_ns: u64) {
        let Some(local_ns) = self.requests.find(number) else { return };
        let (new, drift) = (TimeBound { local_ns, time_ns }, self.drift);
        let at = |bound: TimeBound| bound.most_at(local_ns, drift);
        if self.most.is_none_or(|known| at(new) <= at(known)) {
            self.most = Some(new);
        }
    }

    /// Bounds on the time now, if both are known. They may contradict each other: then one of the clocks drifts more than
    /// it may, or somebody lies.
    pub(crate) fn at(&self, local_ns: u64) -> Option<(u64, u64)> {
        let (least, most) = (self.least?, self.most?);
        Some((least.least_at(local_ns, self.drift), most.most_at(local_ns, self.drift)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DRIFT: DriftBound = DriftBound::THESIS;

    #[test]
    fn a_round_trip_bounds_the_time_whatever_each_way_takes() {
        let mut bounds = NeighbourBounds::new(DRIFT);
        // The neighbour is 1,000,000 ahead. The request takes 300, the wave 7,000.
        bounds.request_sent(4, 10_000);
        bounds.wave_received(9, 20_000);
        assert_eq!(bounds.at(20_000), None);
        bounds.request_arrived(4, 1_010_300);
        bounds.wave_left(9, 1_013_000);
        assert_eq!(bounds.at(20_000), Some((1_013_000, 1_020_300 + 3)));
        // A longer wait does not make it worse, and reports about unknown frames change nothing.
        bounds.wave_received(10, 40_000);
        bounds.wave_left(10, 1_025_000);
        bounds.wave_left(99, 9_999_999);
        bounds.request_arrived(99, 1);
        assert_eq!(bounds.at(40_000), Some((1_033_000 - 5, 1_040_300 + 7)));
        bounds.forget();
        assert_eq!(bounds.at(40_000), None);
    }

    proptest! {
        /// Two oscillators within ±100 ppm, frames that take any time, bounds asked for before and after: the truth is inside.
        #[test]
        fn the_time_is_always_inside(
            rates in prop::array::uniform2(-100i64..=100),
            steps in prop::collection::vec((0u64..5_000_000, 0u64..3_000_000, any::<bool>()), 1..40),
        ) {
            let clock = |true_ns: u64, ppm: i64| true_ns.saturating_add_signed(true_ns as i64 * ppm / 1_000_000);
            let mut bounds = NeighbourBounds::new(DRIFT);
            let mut now = 1_000_000_000;
            for (number, (wait, way, is_wave)) in (0..).zip(steps) {
                now += wait;
                if is_wave {
                    // A neighbour's times are rounded, as its own bounds are.
                    let said = clock(now, rates[0]) - 1;
                    bounds.wave_received(number, clock(now + way, rates[1]) + 1);
                    bounds.wave_left(number, said);
                } else {
                    bounds.request_sent(number, clock(now, rates[1]) - 1);
                    bounds.request_arrived(number, clock(now + way, rates[0]) + 1);
                }
                for at in [now + way, now + way + 10_000_000] {
                    if let Some((least, most)) = bounds.at(clock(at, rates[1])) {
                        let truth = clock(at, rates[0]);
                        prop_assert!(least <= truth && truth <= most, "{least} {truth} {most}");
                    }
                }
            }
        }

        #[test]
        fn backwards_a_bound_widens_as_forwards(ns in 0u64..1_000_000_000_000, back in 0u64..1_000_000_000) {
            let bound = TimeBound { local_ns: 2_000_000_000_000, time_ns: 5_000_000_000_000 };
            for local_ns in [bound.local_ns + ns, bound.local_ns - back] {
                let (least, most) = (bound.least_at(local_ns, DRIFT), bound.most_at(local_ns, DRIFT));
                prop_assert!(most - least >= 2 * (local_ns.abs_diff(bound.local_ns) / 5_000));
            }
        }
    }
}

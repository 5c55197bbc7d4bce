//! Frames received between two readings of the counters.
//!
//! Counters wrap, and they start over when a driver is reloaded. Both make them smaller, and taking one for the other
//! is expensive on one side only: a start taken for a wrap invents up to four billion clean frames, while a wrap taken
//! for a start costs one interval that is not counted. So a wrap is believed only if it is plausible by what the port
//! has been seen to receive; anything else that cannot be is refused.
//!
//! Invariants: a difference has no more bad frames than frames; a reading that is refused for its time changes nothing.

use std::time::Duration;

use units::Moment;

use crate::reading::ReceivedFrames;

/// Frames that no port receives in a millisecond: 800G in frames of 64 bytes is 1.2 M.
const MOST_PER_MS: u64 = 1_500_000;

/// Frames of 64 bytes in a millisecond at 10G: what a wrap may amount to on a port of which no rate is known. Faster
/// ports have counters of 64 bits.
const WRAP_PER_MS: u64 = 15_000;

/// A wrap may amount to this many times the fastest rate that the port has been seen to receive.
const WRAP_TIMES: u64 = 8;

/// Counters are read somewhat after the moment that the reading says, and some devices refresh them once a second.
const SLACK_MS: u64 = 1_000;

/// More than a port receives in a year, and small enough that sums stay within 64 bits.
const MOST: u64 = 1 << 56;

/// Readings in a row, each later than the one before but all before the latest, after which it is the clock that was
/// set back, not the readings that came late.
const SET_BACK: u32 = 8;

/// Counts of anomalous readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterAnomalies {
    /// Counters that wrapped, and were counted on.
    pub wraps: u64,
    /// Counters that started over or jumped: the interval since the last reading was not counted.
    pub resets: u64,
    /// Another device under the same name.
    pub devices: u64,
    /// Readings refused: twice the same time, time going backwards, more bad frames than frames.
    pub refused: u64,
}

/// The time between readings, which the rest of the detector uses as its clock: it never goes backwards.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingClock {
    latest: Option<Moment>,
    age: Moment,
    /// The latest of the readings that were too early, and how many of them came in order.
    behind: Option<(Moment, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    First,
    Passed(Duration),
    Duplicate,
    Backwards,
    /// Readings go on from an earlier time: as after a first one.
    SetBack,
}

impl ReadingClock {
    pub(super) fn tick(&mut self, at: Moment) -> Tick {
        let Some(latest) = self.latest else {
            self.latest = Some(at);
            return Tick::First;
        };
        if at > latest {
            let passed = at.since(latest);
            self.age = self.age.after(passed);
            (self.latest, self.behind) = (Some(at), None);
            return Tick::Passed(passed);
        }
        if at == latest {
            return Tick::Duplicate;
        }
        let row = match self.behind {
            Some((before, _)) if at == before => return Tick::Duplicate,
            Some((before, row)) if at > before => row + 1,
            _ => 1,
        };
        self.behind = Some((at, row));
        if row < SET_BACK {
            return Tick::Backwards;
        }
        (self.latest, self.behind) = (Some(at), None);
        Tick::SetBack
    }

    /// Time passed since the first reading, as far as it was believed.
    pub(super) fn age(&self) -> Moment {
        self.age
    }
}

/// The counters of a port as last read.
#[derive(Clone, Debug, Default)]
pub(super) struct PortBaseline {
    last: Option<ReceivedFrames>,
    /// The most that was received in a millisecond, on average between two readings.
    fastest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterStep {
    /// First reading: nothing to compare with yet.
    First,
    Counted {
        frames: u64,
        bad: u64,
        wrapped: bool,
    },
    /// The counters started over; `bad` is whether they show bad frames since.
    StartedOver {
        bad: bool,
    },
    /// More than a port can receive in that time.
    Jumped,
    /// True if counters of this width may have wrapped more than once in this time.
    TooLong,
    /// More bad frames than frames.
    Nonsense,
}

impl PortBaseline {
    /// The next reading is the first one.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Takes the difference to the last reading. Whatever the result, the next difference is taken from `now`: counters
    /// that jumped once would otherwise be found plausible as soon as the rest has caught up with them.
    pub(super) fn step(&mut self, now: ReceivedFrames, passed: Duration) -> CounterStep {
        let Some(before) = self.last.replace(now) else { return CounterStep::First };
        let ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).max(1);
        let step = self.difference(before, now, ms);
        if let CounterStep::Counted { frames, .. } = step {
            self.fastest = self.fastest.max(frames / ms);
        }
        step
    }

    fn difference(&self, before: ReceivedFrames, now: ReceivedFrames, ms: u64) -> CounterStep {
        let over = CounterStep::StartedOver { bad: now.bad > 0 };
        if before.bits != now.bits {
            return over;
        }
        if now.bits < 64 && self.fastest.saturating_mul(ms) >> now.bits > 0 {
            return CounterStep::TooLong;
        }
        let allowed = ms.saturating_add(SLACK_MS);
        let most = allowed.saturating_mul(MOST_PER_MS).min(MOST);
        let wrap = (self.fastest.saturating_mul(WRAP_TIMES)).max(WRAP_PER_MS).saturating_mul(allowed).min(most);
        let Some((frames, frames_wrapped)) = difference(before.all, now.all, now.bits, wrap) else { return over };
        let Some((bad, bad_wrapped)) = difference(before.bad, now.bad, now.bits, frames) else { return over };
        if frames > most {
            CounterStep::Jumped
        } else if bad > frames {
            CounterStep::Nonsense
        } else {
            CounterStep::Counted { frames, bad, wrapped: frames_wrapped || bad_wrapped }
        }
    }
}

/// Difference of two values of a counter, and whether it wrapped; `None` if the counter started over. A wrap explains at most
/// `most` frames.
fn difference(before: u64, now: u64, bits: u32, most: u64) -> Option<(u64, bool)> {
    if now >= before {
        return Some((now - before, false));
    }
    let mask = match bits {
        1..64 => (1 << bits) - 1,
        _ => u64::MAX,
    };
    let around = now.wrapping_sub(before) & mask;
    (before <= mask && around <= most).then_some((around, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn frames(all: u64, bad: u64, bits: u32) -> ReceivedFrames {
        ReceivedFrames { all, bad, bits }
    }

    fn step(before: ReceivedFrames, now: ReceivedFrames) -> CounterStep {
        let mut counters = PortBaseline::default();
        assert_eq!(counters.step(before, SECOND), CounterStep::First);
        counters.step(now, SECOND)
    }

    #[test]
    fn counters_of_32_and_64_bits_are_counted_on_when_they_wrap() {
        let wrapped = CounterStep::Counted { frames: 1_100, bad: 3, wrapped: true };
        assert_eq!(step(frames((1 << 32) - 100, 5, 32), frames(1_000, 8, 32)), wrapped);
        assert_eq!(step(frames(u64::MAX - 99, 5, 64), frames(1_000, 8, 64)), wrapped);
        assert_eq!(step(frames(500, (1 << 32) - 1, 32), frames(1_600, 2, 32)), wrapped, "the bad ones alone");
    }

    #[test]
    fn counters_that_start_over_are_not_taken_for_wrapped() {
        let over = |bad| CounterStep::StartedOver { bad };
        assert_eq!(step(frames(3_000_000_000, 0, 32), frames(100, 0, 32)), over(false));
        assert_eq!(step(frames(3_000_000_000, 17, 64), frames(100, 2, 64)), over(true));
        assert_eq!(step(frames(4_000, 17, 64), frames(5_000, 2, 64)), over(true), "it overtook what it was");
        assert_eq!(step(frames(4_000, 17, 32), frames(5_000, 17, 64)), over(true), "another kind of counter");
    }

    #[test]
    fn a_busy_port_may_wrap_by_more_than_a_quiet_one() {
        let mut counters = PortBaseline::default();
        let wrapping = |by: u64| frames(by, 0, 32);
        counters.step(wrapping((1 << 32) - 150_000_000), SECOND);
        counters.step(wrapping((1 << 32) - 10_000_000), SECOND);
        let counted = CounterStep::Counted { frames: 150_000_000, bad: 0, wrapped: true };
        assert_eq!(counters.step(wrapping(140_000_000), SECOND), counted);
    }

    #[test]
    fn narrow_counters_tell_nothing_after_a_long_silence() {
        let mut counters = PortBaseline::default();
        counters.step(frames(0, 0, 32), SECOND);
        counters.step(frames(100_000_000, 0, 32), SECOND);
        assert_eq!(counters.step(frames(200_000_000, 0, 32), 60 * SECOND), CounterStep::TooLong);
        let counted = CounterStep::Counted { frames: 1_000, bad: 0, wrapped: false };
        assert_eq!(counters.step(frames(200_001_000, 0, 32), SECOND), counted);
    }

    #[test]
    fn what_cannot_be_is_refused_and_does_not_become_plausible_later() {
        assert_eq!(step(frames(0, 0, 64), frames(1 << 50, 0, 64)), CounterStep::Jumped);
        let mut counters = PortBaseline::default();
        counters.step(frames(1_000, 0, 64), SECOND);
        assert_eq!(counters.step(frames(2_000, 5_000, 64), SECOND), CounterStep::Nonsense);
        let counted = CounterStep::Counted { frames: 4_000, bad: 0, wrapped: false };
        assert_eq!(counters.step(frames(6_000, 5_000, 64), SECOND), counted);
    }

    #[test]
    fn time_that_stands_still_or_goes_back_is_refused_until_it_is_plain_that_the_clock_was_set() {
        let at = |s: u64| Moment::from_ms(s * 1_000);
        let mut clock = ReadingClock::default();
        assert_eq!(
            [100, 101, 101, 50].map(|s| clock.tick(at(s))),
            [Tick::First, Tick::Passed(SECOND), Tick::Duplicate, Tick::Backwards]
        );
        assert_eq!(clock.tick(at(102)), Tick::Passed(SECOND), "one straggler changes nothing");
        let ticks: Vec<Tick> = (10..20).map(|s| clock.tick(at(s))).collect();
        assert_eq!(ticks[..7], [Tick::Backwards; 7]);
        assert_eq!(ticks[7..], [Tick::SetBack, Tick::Passed(SECOND), Tick::Passed(SECOND)]);
        assert_eq!(clock.age(), at(4));
    }
}

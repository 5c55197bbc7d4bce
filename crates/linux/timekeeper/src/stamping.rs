//! Conversion of the kernel's time stamps to the oscillator.
//!
//! The kernel stamps frames with CLOCK_REALTIME, which may be slewed or set at any moment. So it is read together with
//! CLOCK_MONOTONIC_RAW every time the loop goes round, one reading of it between two of the other. How far the two clocks were
//! apart when a frame was stamped is between what they were at the readings around it, and that gives the stamp a place on the
//! oscillator with a lower and an upper bound. A clock that is set makes these bounds wide, and then what the program itself
//! saw, before it sent or after it received, is the better bound.
//!
//! Assumption: between two readings CLOCK_REALTIME is slewed or set in one direction, not there and back.

use linux::clock::KernelClock;

/// Readings that are kept: a frame may wait in a socket for some turns of the loop.
const KEPT: usize = 8;

/// One reading of both clocks: CLOCK_REALTIME minus CLOCK_MONOTONIC_RAW is between these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockPair {
    real_ns: u64,
    least: i64,
    most: i64,
}

impl ClockPair {
    pub(crate) fn read() -> Self {
        let before = KernelClock::Raw.nanoseconds();
        let real = KernelClock::Real.nanoseconds();
        Self::new(before, real, KernelClock::Raw.nanoseconds())
    }

    fn new(raw_before: u64, real_ns: u64, raw_after: u64) -> Self {
        Self { real_ns, least: real_ns.wrapping_sub(raw_after) as i64, most: real_ns.wrapping_sub(raw_before) as i64 }
    }
}

/// The last readings of both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StampConverter {
    pairs: [ClockPair; KEPT],
    read: usize,
}

impl StampConverter {
    /// Call it after frames were taken from sockets, before their stamps are converted.
    pub(crate) fn add(&mut self, pair: ClockPair) {
        self.pairs[self.read % KEPT] = pair;
        self.read += 1;
    }

    /// Earliest and latest reading of the oscillator at which a stamp can have been made; none if it is too old or in
    /// the future.
    fn between(&self, stamp: u64) -> Option<(u64, u64)> {
        let last = self.read.checked_sub(1)?;
        let kept = || (0..KEPT.min(self.read)).map(|back| &self.pairs[(last - back) % KEPT]);
        if self.pairs[last % KEPT].real_ns < stamp {
            return None;
        }
        // The readings since the last one before the stamp, and that one.
        let before = kept().position(|pair| pair.real_ns <= stamp)?;
        let around = || kept().take(before + 1);
        let least = around().map(|pair| pair.least).min()?;
        let most = around().map(|pair| pair.most).max()?;
        Some((stamp.checked_add_signed(most.checked_neg()?)?, stamp.checked_add_signed(least.checked_neg()?)?))
    }

    /// Reading not after the frame left: the kernel's stamp, unless the program knows better from before it sent the frame.
    pub(crate) fn sent(&self, stamp: u64, program_ns: u64) -> u64 {
        self.between(stamp).map_or(program_ns, |(earliest, _)| earliest.max(program_ns))
    }

    /// Reading not before the frame came: the kernel's stamp, unless the program knows better from after it received the
    /// frame.
    pub(crate) fn received(&self, stamp: Option<u64>, program_ns: u64) -> u64 {
        let latest = stamp.and_then(|stamp| self.between(stamp));
        latest.map_or(program_ns, |(_, latest)| latest.min(program_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CLOCK_REALTIME is 1,000,000 ahead; a reading takes 20 ns.
    fn pair(raw: u64, offset: u64) -> ClockPair {
        ClockPair::new(raw - 10, raw + offset, raw + 10)
    }

    fn converter(pairs: &[(u64, u64)]) -> StampConverter {
        let mut converter = StampConverter::default();
        pairs.iter().for_each(|(raw, offset)| converter.add(pair(*raw, *offset)));
        converter
    }

    #[test]
    fn a_stamp_is_as_sure_as_the_readings_around_it() {
        let clocks = converter(&[(1_000, 1_000_000), (2_000, 1_000_000)]);
        assert_eq!(clocks.between(1_001_500), Some((1_490, 1_510)));
        assert_eq!((clocks.sent(1_001_500, 1_200), clocks.received(Some(1_001_500), 1_900)), (1_490, 1_510));
        // The program knows that it sent later, and received earlier.
        assert_eq!((clocks.sent(1_001_500, 1_495), clocks.received(Some(1_001_500), 1_505)), (1_495, 1_505));
    }

    #[test]
    fn while_the_clock_is_slewed_the_bounds_are_as_wide_as_it_moved() {
        let clocks = converter(&[(1_000, 1_000_000), (2_000, 1_000_080)]);
        assert_eq!(clocks.between(1_001_500), Some((1_410, 1_510)));
    }

    #[test]
    fn a_clock_that_is_set_leaves_what_the_program_saw() {
        for set_to in [900_000, 1_000_000_000] {
            let clocks = converter(&[(1_000, 1_000_000), (2_000, set_to)]);
            // Stamped at 1,500 by the oscillator, before the clock was set and after.
            for stamp in [1_001_500, 1_500 + set_to] {
                let (sent, received) = (clocks.sent(stamp, 1_300), clocks.received(Some(stamp), 1_800));
                assert!((1_300..=1_500).contains(&sent), "{sent}");
                assert!((1_500..=1_800).contains(&received), "{received}");
            }
        }
    }

    #[test]
    fn a_stamp_that_is_too_old_or_in_the_future_says_nothing() {
        let clocks = converter(&[(1_000, 1_000_000), (2_000, 1_000_000)]);
        assert_eq!((clocks.between(1_000_500), clocks.between(1_002_500)), (None, None));
        assert_eq!(StampConverter::default().between(7), None);
        assert_eq!(clocks.received(None, 1_800), 1_800);
    }

    #[test]
    fn the_clocks_of_this_machine_agree_with_themselves() {
        let mut clocks = StampConverter::default();
        clocks.add(ClockPair::read());
        let (before, stamp) = (KernelClock::Raw.nanoseconds(), KernelClock::Real.nanoseconds());
        let after = KernelClock::Raw.nanoseconds();
        clocks.add(ClockPair::read());
        let (earliest, latest) = clocks.between(stamp).unwrap();
        assert!(earliest <= after && before <= latest, "{before} {earliest} {latest} {after}");
    }
}

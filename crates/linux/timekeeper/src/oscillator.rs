//! The oscillator of a node: CLOCK_MONOTONIC_RAW, from the time of day at which the daemon began.
//!
//! So what a root's oscillator shows is a time since 1970 from the start, and nobody sets the system's clock for it. To try out
//! drift, an oscillator may run faster or slower than the machine's by a known share.

use linux::clock::KernelClock;

/// A billion.
const BILLION: i128 = 1_000_000_000;

/// Oscillator of a node, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Oscillator {
    raw_start: u64,
    local_start: u64,
    /// Relative frequency offset from the machine's clock, in units of 2⁻³².
    pub(crate) faster_q32: i64,
}

impl Oscillator {
    /// Begins now; `ppb` is what it runs faster.
    pub(crate) fn start(ppb: i64) -> Self {
        let (raw_start, local_start) = (KernelClock::Raw.nanoseconds(), KernelClock::Real.nanoseconds());
        Self { raw_start, local_start, faster_q32: ((i128::from(ppb) << 32) / BILLION) as i64 }
    }

    /// Reading of the oscillator when CLOCK_MONOTONIC_RAW shows `raw_ns`.
    pub(crate) fn at(&self, raw_ns: u64) -> u64 {
        let elapsed = i128::from(raw_ns) - i128::from(self.raw_start);
        let passed = elapsed + ((elapsed * i128::from(self.faster_q32)) >> 32);
        (i128::from(self.local_start) + passed).clamp(0, i128::from(u64::MAX)) as u64
    }

    pub(crate) fn now(&self) -> u64 {
        self.at(KernelClock::Raw.nanoseconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oscillator_that_is_100_ppm_fast_gains_100_us_a_second() {
        let fast = Oscillator { raw_start: 5, local_start: 1_000, ..Oscillator::start(100_000) };
        assert_eq!(fast.at(5), 1_000);
        let gained = fast.at(1_000_000_005) as i64 - 1_000_001_000;
        assert!((gained - 100_000).abs() <= 1, "{gained}");
        assert_eq!(fast.at(4), 998);
        let today = KernelClock::Real.nanoseconds();
        assert!(Oscillator::start(0).now().abs_diff(today) < 60_000_000_000);
    }
}

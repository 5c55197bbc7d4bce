//! Counters of a live link, and the delays of its recoveries.

use hdrhistogram::Histogram;
use standin::Tally;
use units::Span;

/// What a live link counts and measures.
#[derive(Debug)]
pub struct LinkStatistics {
    pub tally: Tally,
    /// Delays of recoveries, in nanoseconds: all of them, and those since somebody last asked.
    recovery: Histogram<u64>,
    recent_recovery: Histogram<u64>,
}

impl LinkStatistics {
    pub(super) fn new() -> Self {
        Self { tally: Tally::default(), recovery: recovery_histogram(), recent_recovery: recovery_histogram() }
    }

    /// Counters begin again; delays are those of all incarnations.
    pub(super) fn start_over(&mut self) {
        self.tally = Tally::default();
    }

    pub(super) fn record_recovery(&mut self, after: Span) {
        let delay = (after.as_ps() / 1_000).max(1);
        self.recovery.saturating_record(delay);
        self.recent_recovery.saturating_record(delay);
    }

    /// Delays of all recoveries, in nanoseconds.
    pub(crate) fn recovery(&self) -> &Histogram<u64> {
        &self.recovery
    }

    /// Delays of the recoveries since this was last asked, in nanoseconds.
    pub(crate) fn take_recent_recovery(&mut self) -> Histogram<u64> {
        std::mem::replace(&mut self.recent_recovery, recovery_histogram())
    }
}

/// Histogram for delays in nanoseconds, up to a minute.
pub fn recovery_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order")
}

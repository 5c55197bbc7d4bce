//! Slow time: what counts in seconds to years, where 64 bits of picoseconds would not last.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since a zero that the owner chose: the Unix epoch for what people read, the start of a run for what
/// is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    /// The start of the scale.
    pub const ZERO: Self = Self(0);

    /// Makes a moment from milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Makes a moment from hours, at most 500 million years.
    pub fn from_hours(hours: f64) -> Self {
        Self((hours * 3_600_000.0) as u64)
    }

    /// The moment in milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The moment in hours.
    pub fn as_hours(self) -> f64 {
        self.0 as f64 / 3_600_000.0
    }

    /// The moment in days.
    pub fn as_days(self) -> f64 {
        self.as_hours() / 24.0
    }

    /// Zero if `earlier` is later: clocks that people set go backwards now and then.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The moment that lies `lapse` later; the last one there is, if that would be beyond it.
    #[must_use]
    pub fn after(self, lapse: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(lapse.as_millis()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_century_fits_and_a_clock_set_back_gives_no_time_at_all() {
        let century = Moment::from_hours(24.0 * 365.25 * 100.0);
        assert_eq!(century.as_days(), 36_525.0);
        assert_eq!(Moment::ZERO.since(century), Duration::ZERO);
        assert_eq!(century.after(Duration::from_secs(1)).since(century), Duration::from_secs(1));
    }
}

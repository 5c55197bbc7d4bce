//! The time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Since 1970.
#[expect(clippy::disallowed_methods, reason = "the edge of the program: here the time of day comes in")]
pub(crate) fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

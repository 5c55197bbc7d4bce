//! The edge of the program: here the time comes in.

#[cfg(feature = "redis")]
use std::time::Instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of day, since 1970.
#[expect(clippy::disallowed_methods, reason = "the edge of the program: here the time of day comes in")]
pub(crate) fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Time for waiting, by a clock that is not set back.
#[cfg(feature = "redis")]
#[expect(clippy::disallowed_methods, reason = "waiting for a connection is at the edge of the program")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

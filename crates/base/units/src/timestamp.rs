//! Wall-clock times of packets.

use serde::Serialize;

/// Nanoseconds since 1970, or since the beginning of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Nanoseconds since an earlier time; zero if that is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

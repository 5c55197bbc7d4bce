//! Seals with a shared key, without I/O: a frame that opens was neither altered, forged nor replayed.
//!
//! Two ends that know the same key agree on a session ([`greeting`]); frames open in no other ([`keyed`]). Protected links seal
//! their frames so, and clocks their waves.

pub mod greeting;
pub mod keyed;

pub use keyed::{GREETING_LEN, KeyedSeal, SealKey};

/// Reason why a seal was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The check sum does not fit: altered on the way.
    Corrupted,
    /// The tag does not fit: not from someone with the key.
    Forged,
    /// Seen before, or too old to know whether it was.
    Replayed,
    /// The tag does not fit, but the two ends have yet to agree on a session: from an earlier one, most likely.
    Early,
}

/// Readiness to seal frames so that the peer opens them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealReadiness {
    Open,
    /// There is no session yet; the peer may answer at any moment.
    Soon,
    /// There is no session: the peer is absent, or has another key.
    Alone,
}

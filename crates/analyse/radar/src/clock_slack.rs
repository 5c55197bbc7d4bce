//! Batches cut by clocks instead of by a tag in the packets: li-thesis §5.8, which leaves it open.
//!
//! Each meter puts a packet into the batch that its own clock shows. If each clock is wrong by no more than ε, a packet that
//! takes `way` from meter to meter is in the two meters' batches of times at most 2ε + way apart. So
//!
//! ```text
//!   batches apart      ≤ ⌊(2ε + way) ∕ batch⌋ + 1                 wait so long before a packet is called lost
//!   packets in between ≤ ⌈(2ε + way) × packet rate⌉               once as missing, once as too many a batch later
//! ```
//!
//! A digest must hold those beside the losses. With clocks of a microsecond that is next to nothing, as the thesis expects;
//! with clocks of NTP it is most of the digest.
//!
//! Invariant: if ε and way are what was said, no packet is called lost that arrived.

use units::{Prob, Span};

use crate::digest::DigestShape;

/// Bounds that two meters know of their clocks and of the way between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSlack {
    /// ε: each clock is wrong by at most this.
    pub clock_error: Span,
    /// The longest time from meter to meter.
    pub way: Span,
    /// Duration of a batch.
    pub batch: Span,
}

impl ClockSlack {
    /// Greatest difference between the times of a packet, as the two meters see them.
    pub fn spread(&self) -> Span {
        self.clock_error * 2 + self.way
    }

    /// Batches that a packet may be missing before it is lost: what a [`MeteredSegment`](crate::segment::MeteredSegment)
    /// calls its patience.
    pub fn patience(&self) -> u64 {
        self.spread().as_ps() / self.batch.as_ps().max(1) + 1
    }

    /// Packets that are in different batches at the two ends, at this many packets a second.
    pub fn packets(&self, per_second: u64) -> u64 {
        // At most all packets of a batch can be in another batch.
        let apart = u128::from(self.spread().min(self.batch).as_ps());
        u64::try_from((apart * u128::from(per_second)).div_ceil(1_000_000_000_000)).unwrap_or(u64::MAX)
    }

    /// The shape of digests that name `losses` packets of a batch beside those that are on their way.
    pub fn shape(&self, losses: u64, per_second: u64, success: Prob) -> DigestShape {
        let differences = losses.saturating_add(self.packets(per_second).saturating_mul(2));
        DigestShape::for_losses(usize::try_from(differences).unwrap_or(usize::MAX), success)
    }
}

#[cfg(test)]
mod tests;

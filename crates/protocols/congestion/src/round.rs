//! Round trips by sequence: lastUpdateSeq of Alg. 1, which everything that acts once per round trip has.

use crate::AckFeedback;

/// Remembers the first packet that was sent after something was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTracker {
    /// `None` before the first.
    first_sent_after: Option<u64>,
}

impl RoundTracker {
    pub(crate) fn has_begun(&self) -> bool {
        self.first_sent_after.is_some()
    }

    /// True if a packet sent after the round began has been acknowledged.
    #[inline]
    pub(crate) fn is_over(&mut self, ack: &AckFeedback<'_>) -> bool {
        match &mut self.first_sent_after {
            None => false,
            Some(first) => {
                // A requester that has gone back sends again what it had sent before.
                *first = (*first).min(ack.sent);
                ack.acked > *first
            }
        }
    }

    /// Begins another round.
    #[inline]
    pub(crate) fn begin(&mut self, ack: &AckFeedback<'_>) {
        self.first_sent_after = Some(ack.sent);
    }
}

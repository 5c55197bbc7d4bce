//! Finding out that nothing had been lost. RFC 3522 and RFC 4015 (Eifel, by timestamps), RFC 3708 (by DSACK).

use super::record::before;

/// Retransmissions since repair began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// First byte that was not acknowledged then.
    marker: u64,
    /// Timestamp of the first copy.
    first_copy: Option<u32>,
    /// Copies that no DSACK proved to be superfluous.
    unproven: u32,
    /// Copies of another repair were still out.
    copies_before: bool,
}

impl Undo {
    pub(super) fn new(marker: u64) -> Self {
        Self { marker, first_copy: None, unproven: 0, copies_before: false }
    }

    /// Notes that copies of another repair may be under way.
    pub(super) fn with_copies(self, copies_before: bool) -> Self {
        Self { copies_before, ..self }
    }

    /// True if nothing was sent again yet: the segment was late, and not lost (`tcp_packet_delayed`).
    pub(super) fn is_untouched(&self) -> bool {
        self.first_copy.is_none() && !self.copies_before
    }

    pub(super) fn on_copy(&mut self, timestamp: u32) {
        self.first_copy.get_or_insert(timestamp);
        self.unproven += 1;
    }

    /// The peer got a segment that begins at `start` twice.
    pub(super) fn on_dsack(&mut self, start: u64) {
        if start >= self.marker {
            self.unproven = self.unproven.saturating_sub(1);
        }
    }

    /// Position at which repair began.
    pub(super) fn marker(&self) -> u64 {
        self.marker
    }

    /// Every copy was superfluous.
    pub(super) fn is_proven(&self) -> bool {
        self.unproven == 0
    }

    /// The acknowledgement was caused by something that left before any copy.
    pub(super) fn is_answered_by_original(&self, echo: u32) -> bool {
        self.first_copy.is_some_and(|first| before(echo, first))
    }

    pub(super) fn has_copies(&self) -> bool {
        self.first_copy.is_some()
    }
}

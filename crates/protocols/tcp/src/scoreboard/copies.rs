//! Segments declared lost: a kernel counts a segment as lost until it arrives, also while its copy is in flight.

use super::Scoreboard;
use crate::record::{CopyKind, SegmentRecord, SegmentState};

impl Scoreboard {
    /// Copies ever found lost.
    pub(crate) fn lost_copies(&self) -> u64 {
        self.lost_copies
    }

    /// Segments taken for lost whose copies are in flight.
    fn copies_of_lost(&self) -> impl Iterator<Item = &SegmentRecord> {
        self.records.iter().filter(|record| record.state == SegmentState::Flight && record.copy == CopyKind::Repair)
    }

    /// True if the copy of a segment that was declared lost is in flight.
    pub(crate) fn has_copies_out(&self) -> bool {
        self.copies_of_lost().next().is_some()
    }

    /// True if the first segment was ever sent again.
    pub(crate) fn is_head_resent(&self) -> bool {
        self.records.front().is_some_and(SegmentRecord::is_resent)
    }

    /// True if any segment is declared lost, sent again or not.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0 || self.has_copies_out()
    }

    /// Segments taken for lost, whether sent again or not (`lost_out`).
    pub(crate) fn lost_and_resent(&self) -> u64 {
        self.lost_segments() + self.copies_of_lost().count() as u64
    }
}

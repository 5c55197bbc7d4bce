//! Losses by what has arrived above a segment: RFC 6675 and FACK.

use super::Scoreboard;
use crate::record::SegmentState;

impl Scoreboard {
    /// Segments up to the highest that arrived (`fackets_out`).
    pub(crate) fn segments_below_sacked_end(&self) -> u64 {
        self.sacked_end().map_or(0, |end| self.index_of(end) as u64)
    }

    /// Marks the first segment lost, unless it was sent again or has arrived.
    pub(crate) fn mark_head_lost(&mut self) {
        self.mark_first_lost(1);
    }

    /// Marks lost every one of the first `count` segments that left once and has not arrived.
    pub(crate) fn mark_first_lost(&mut self, count: u64) {
        for index in 0..self.records.len().min(usize::try_from(count).unwrap_or(usize::MAX)) {
            self.mark_original_lost(index);
        }
    }

    /// Segments are lost that left once, and above which `threshold` segments have arrived (RFC 6675's `IsLost`).
    pub(crate) fn mark_lost_below(&mut self, threshold: u64) {
        let mut above = u64::from(self.sacked_segments);
        for index in 0..self.records.len() {
            if above < threshold {
                break;
            }
            if self.records[index].state == SegmentState::Sacked {
                above -= 1;
            } else {
                self.mark_original_lost(index);
            }
        }
    }

    fn mark_original_lost(&mut self, index: usize) {
        if self.records[index].state == SegmentState::Flight && !self.records[index].is_resent() {
            self.mark_lost(index);
        }
    }
}

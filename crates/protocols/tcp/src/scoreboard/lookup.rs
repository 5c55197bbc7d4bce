//! Look-up of segments, for a sender that is notified of what left.

use super::super::record::SegmentState;
use super::Scoreboard;

impl Scoreboard {
    /// The record that holds this position of the stream, unless it is known to have arrived.
    pub(in super::super) fn place_of(&self, position: u64) -> Option<usize> {
        let index = self.index_of(position);
        let record = self.records.get(index)?;
        (record.start <= position && record.state != SegmentState::Sacked).then_some(index)
    }
}

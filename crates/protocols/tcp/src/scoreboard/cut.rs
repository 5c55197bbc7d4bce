//! Changes of segment boundaries: a copy is cut to the peer's window, or takes along what follows it.

use super::Scoreboard;
use crate::record::{SegmentRecord, SegmentState};

impl Scoreboard {
    /// A segment that lies on both sides of `position` becomes two; false if none does.
    pub(crate) fn split(&mut self, index: usize, position: u64) -> bool {
        let record = &mut self.records[index];
        if !(record.start < position && position < record.end()) {
            return false;
        }
        let rest = SegmentRecord { start: position, len: (record.end() - position) as u16, ..*record };
        record.len -= rest.len;
        self.records.insert(index + 1, rest);
        match rest.state {
            SegmentState::Flight => {}
            SegmentState::Lost => self.lost_segments += 1,
            SegmentState::Sacked => self.sacked_segments += 1,
        }
        self.enlist(rest);
        true
    }

    /// A record begins where none did.
    fn enlist(&mut self, record: SegmentRecord) {
        match record.state {
            SegmentState::Flight if record.is_resent() => {
                let place = self.resent.partition_point(|(_, sent_at)| *sent_at <= record.sent_at);
                self.resent.insert(place, (record.start, record.sent_at));
            }
            SegmentState::Lost => {
                let place = self.repairs.partition_point(|start| *start < record.start);
                self.repairs.insert(place, record.start);
            }
            SegmentState::Flight | SegmentState::Sacked => {}
        }
    }

    /// End of a segment, and bytes below `until` that it could hold in addition; `None` if none.
    pub(crate) fn room_for_next(&self, index: usize, mss: u64, until: u64) -> Option<(u64, u64)> {
        let record = self.records.get(index)?;
        let room = mss.saturating_sub(record.bytes()).min(until.saturating_sub(record.end()));
        (room > 0 && self.records.get(index + 1).is_some()).then_some((record.end(), room))
    }

    /// A segment grows by up to `room` bytes of the next one, or by all of it if a part will not do. False if it cannot.
    pub(crate) fn take_from_next(&mut self, index: usize, room: u64, parts: bool) -> bool {
        let (record, next) = (self.records[index], self.records[index + 1]);
        let alike = next.state == record.state && next.is_resent() == record.is_resent();
        let whole = next.bytes() <= room;
        if next.state == SegmentState::Sacked || !(whole || parts && alike) {
            return false;
        }
        let moved = next.bytes().min(room);
        self.recount(next.state, moved, false);
        self.recount(record.state, moved, true);
        self.records[index].len += moved as u16;
        if whole {
            self.lost_segments -= u32::from(next.state == SegmentState::Lost);
            self.records.remove(index + 1);
        } else {
            self.records[index + 1].start += moved;
            self.records[index + 1].len -= moved as u16;
            self.enlist(self.records[index + 1]);
        }
        true
    }

    fn recount(&mut self, state: SegmentState, bytes: u64, more: bool) {
        let sum = match state {
            SegmentState::Flight => &mut self.flight,
            SegmentState::Lost => &mut self.lost,
            SegmentState::Sacked => &mut self.sacked,
        };
        *sum = if more { *sum + bytes } else { *sum - bytes };
    }
}

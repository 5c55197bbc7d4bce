//! Processing of what left: new data, data that was late, and data sent again.

use super::TrackedSender;
use crate::losses::LossNote;
use crate::shadow::Shadow;
use crate::terms::{LossWitness, RepairKind};

/// More than this is nothing that a network lost: the capture missed it.
const WIDEST_HOLE: u64 = 4 << 20;
/// Segments in flight that are kept. In a capture of one direction nothing is ever acknowledged.
const MOST_IN_FLIGHT: usize = 1 << 16;

/// A segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlightSegment {
    pub start: u64,
    pub len: u32,
    /// TSval of its first copy, or of itself.
    pub stamp: u32,
    pub first_at: u64,
    pub last_at: u64,
    /// The packet that carried it last.
    pub number: u64,
    pub copies: u16,
    pub is_sacked: bool,
    /// The capture has not seen it: a hole, because later ones came.
    pub is_unseen: bool,
}

impl FlightSegment {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// Payload as it is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub at: u64,
    pub start: u64,
    pub len: u32,
    pub stamp: u32,
    pub number: u64,
}

impl Payload {
    /// A copy of this that left earlier and never came: identifications show it.
    pub(crate) fn lost_before(&self, at: u64, repaired_by: RepairKind) -> LossNote {
        LossNote {
            at,
            position: self.start,
            len: self.len,
            repaired_by,
            repaired_at: self.at,
            seen_by: LossWitness::IpId,
            is_spurious: false,
        }
    }
}

impl TrackedSender {
    /// New data, cut up into the segments that it has on the wire. Returns the bytes that were passed over before it.
    pub(crate) fn on_new(&mut self, payload: Payload, rtt: Option<u64>, late: bool) -> u64 {
        let hole = payload.start.saturating_sub(self.nxt);
        let start = if hole > 0 { payload.start } else { self.nxt };
        if hole > WIDEST_HOLE {
            self.skip_to(start);
        } else {
            self.open_hole(start, payload, late);
        }
        let len = (payload.start + u64::from(payload.len)).saturating_sub(start) as u32;
        self.start_shadow(payload.at, start, rtt);
        self.push_cut(Payload { start, len, ..payload }, false, late);
        self.bytes += u64::from(len);
        self.last_sent = payload.at;
        if hole > WIDEST_HOLE { 0 } else { hole }
    }

    fn start_shadow(&mut self, at: u64, start: u64, rtt: Option<u64>) {
        if self.shadow.is_none() {
            self.shadow = Some(Box::new(Shadow::new(at, start, self.mss, rtt, self.hz)));
        }
    }

    fn open_hole(&mut self, until: u64, payload: Payload, late: bool) {
        if until > self.nxt {
            let (start, len) = (self.nxt, (until - self.nxt) as u32);
            self.ids.explain_earlier(len.div_ceil(self.mss.max(1)) as u16, payload.at);
            self.start_shadow(payload.at, start, None);
            self.push_cut(Payload { start, len, number: 0, ..payload }, true, late);
        }
    }

    fn push_cut(&mut self, payload: Payload, is_unseen: bool, late: bool) {
        let (mut start, end) = (payload.start, payload.start + u64::from(payload.len));
        while start < end {
            let len = (end - start).min(u64::from(self.mss.max(1))) as u32;
            if self.segments.len() >= MOST_IN_FLIGHT {
                self.forget_oldest();
            }
            self.segments.push_back(FlightSegment {
                start,
                len,
                stamp: payload.stamp,
                first_at: payload.at,
                last_at: payload.at,
                number: payload.number,
                copies: 0,
                is_sacked: false,
                is_unseen,
            });
            self.ask_shadow(payload.at, start, len, late);
            start += u64::from(len);
        }
        self.nxt = self.nxt.max(end);
    }

    /// Forgets the oldest segment, which is too old to be kept, and takes it for acknowledged.
    fn forget_oldest(&mut self) {
        let Some(oldest) = self.segments.pop_front() else { return };
        if oldest.is_sacked {
            self.sacked = self.sacked.saturating_sub(u64::from(oldest.len));
            self.sacked_segments = self.sacked_segments.saturating_sub(1);
        }
        self.una = self.una.max(oldest.end());
    }

    fn ask_shadow(&mut self, at: u64, start: u64, len: u32, late: bool) {
        if let Some(shadow) = &mut self.shadow {
            self.asked += 1;
            self.agreed += u64::from(shadow.on_sent(at, start, len, late));
        }
    }

    /// Skips data that the capture missed, and takes it for acknowledged.
    fn skip_to(&mut self, position: u64) {
        self.segments.clear();
        (self.sacked, self.sacked_segments) = (0, 0);
        self.nxt = position;
        self.una = self.una.max(position);
        self.seen_una = self.seen_una.max(position);
        self.shadow = None;
    }

    /// Index in the queue of the segment that holds a position.
    pub(super) fn place_of(&self, position: u64) -> Option<usize> {
        let place = self.segments.partition_point(|segment| segment.end() <= position);
        self.segments.get(place).filter(|segment| segment.start <= position).map(|_| place)
    }

    pub(crate) fn segment_at(&self, position: u64) -> Option<&FlightSegment> {
        self.segments.get(self.place_of(position)?)
    }

    /// The first hole that has not been filled.
    pub(crate) fn first_unseen(&self) -> Option<&FlightSegment> {
        self.segments.iter().find(|segment| segment.is_unseen)
    }

    /// Segments below this position that have not been seen.
    pub(crate) fn unseen_below(&self, position: u64) -> u16 {
        let below = self.segments.iter().take_while(|segment| segment.start < position);
        below.filter(|segment| segment.is_unseen).count() as u16
    }

    /// An original that others overtook.
    pub(crate) fn on_late(&mut self, payload: Payload) {
        self.reordering_seen = true;
        let end = payload.start + u64::from(payload.len);
        if self.segment_at(payload.start).is_none_or(|segment| !segment.is_unseen) {
            // Its copy came first.
            self.losses.on_original_arrived(payload.start);
            return;
        }
        let Some(mut place) = self.place_of(payload.start) else { return };
        while let Some(segment) = self.segments.get_mut(place).filter(|segment| segment.start < end) {
            if segment.is_unseen {
                segment.is_unseen = false;
                segment.stamp = payload.stamp;
                segment.number = payload.number;
                self.bytes += u64::from(segment.len);
            }
            place += 1;
        }
    }

    /// Records a retransmission; calls `each` with every segment that it repeats, as it was before.
    pub(crate) fn on_copy(&mut self, payload: Payload, late: bool, mut each: impl FnMut(&FlightSegment)) {
        let end = payload.start + u64::from(payload.len);
        let mut position = payload.start;
        while position < end {
            let Some(place) = self.place_of(position) else { break };
            let segment = &mut self.segments[place];
            let (start, len) = (segment.start, segment.len);
            if !segment.is_sacked {
                each(segment);
            }
            if segment.is_unseen {
                self.bytes += u64::from(len);
            }
            segment.is_unseen = false;
            if segment.copies == 0 {
                segment.stamp = payload.stamp;
            }
            segment.copies = segment.copies.saturating_add(1);
            segment.last_at = payload.at;
            segment.number = payload.number;
            position = segment.end();
            self.ask_shadow(payload.at, start, len, late);
        }
        self.last_sent = payload.at;
    }
}

//! Segments in flight. RFC 2018 §4, RFC 6675 §3 and §4 (with RACK in place of `IsLost`).
//!
//! ```text
//!            SACK                           SACK
//!   Sacked ◀────── Flight ──lost──▶ Lost ──────▶ Sacked
//!                         ◀─resent─
//! ```
//!
//! Records lie in the order of the stream. Segments that were never sent again lie in order of time, too: RACK may stop
//! at the first that is too young, and never looks again at those it has judged. Copies wait in `resent`, in order of
//! time. Work per acknowledgement is in proportion to the segments it newly covers and to the holes, not to the window.
//!
//! Invariants: `flight`, `lost` and `sacked` are the sums over the records in that state; each lost record has an
//! entry in `repairs`; ranges in `sacked_ranges` begin and end with records.

mod copies;
mod counted;
mod cut;
mod lookup;
mod unlisted;

use std::collections::VecDeque;

use machine::Out;
use units::{Span, Time};

use super::connection::TcpConnection;
use super::delivery::DeliveryStamp;
use super::rack::{RackState, RackVerdict};
use super::record::{CopyKind, DeliveredBytes, SegmentRecord, SegmentState};
use super::sites::TcpSite;
use units::StreamRanges;
use unlisted::UnlistedSegments;

#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    records: VecDeque<SegmentRecord>,
    flight: u64,
    lost: u64,
    sacked: u64,
    sacked_segments: u32,
    lost_segments: u32,
    /// Segments ever marked lost, and copies that were.
    lost_ever: u64,
    lost_copies: u64,
    sacked_ranges: StreamRanges,
    /// RACK has judged all segments below that left once.
    judged: u64,
    /// Segments sent again and when, in order of time; stale once the record says something else.
    resent: VecDeque<(u64, Time)>,
    /// Positions of lost segments in order of the stream; stale as above.
    repairs: VecDeque<u64>,
    /// Segments of a socket that RACK declared lost and that did not leave again.
    unlisted: Option<UnlistedSegments>,
}

impl Scoreboard {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Segments that are not acknowledged.
    pub(super) fn segments(&self) -> u64 {
        self.records.len() as u64
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &SegmentRecord> {
        self.records.iter()
    }

    /// Exactly one segment is not acknowledged.
    #[inline]
    pub(super) fn is_lone(&self) -> bool {
        self.records.len() == 1
    }

    /// RFC 6675's pipe.
    #[inline]
    pub(super) fn flight(&self) -> u64 {
        self.flight
    }

    /// Bytes to be sent again.
    #[inline]
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn lost_ever(&self) -> u64 {
        self.lost_ever
    }

    #[inline]
    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    pub(super) fn lost_segments(&self) -> u64 {
        u64::from(self.lost_segments)
    }

    pub(super) fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// End of the bytes known to have arrived out of order.
    #[inline]
    pub(super) fn sacked_end(&self) -> Option<u64> {
        if self.sacked_ranges.is_empty() { None } else { self.sacked_ranges.last().map(|range| range.to) }
    }

    /// Last departure of the first segment that is not acknowledged.
    #[inline]
    pub(super) fn head_sent_at(&self) -> Option<Time> {
        self.records.front().map(|record| record.sent_at)
    }

    #[inline]
    pub(super) fn push(&mut self, start: u64, len: u16, now: Time, stamp: DeliveryStamp) {
        self.flight += u64::from(len);
        if self.records.len() == self.records.capacity() {
            // Doubling would leave a quarter empty, and records are much of a simulation's memory.
            self.records.reserve_exact(16 + self.records.len() / 4);
        }
        self.records.push_back(SegmentRecord::new(start, len, now, stamp));
    }

    /// Acknowledges everything below `to`, in order.
    #[inline]
    pub(super) fn ack<O: Out<TcpConnection>>(&mut self, to: u64, got: &mut DeliveredBytes, out: &mut O) {
        while let Some(record) = self.records.front()
            && record.end() <= to
        {
            let record = *record;
            self.records.pop_front();
            match record.state {
                SegmentState::Flight => self.flight -= record.bytes(),
                SegmentState::Lost => {
                    self.lost -= record.bytes();
                    self.lost_segments -= 1;
                }
                SegmentState::Sacked => {
                    self.sacked -= record.bytes();
                    self.sacked_segments -= 1;
                    got.sacked_resent |= record.is_resent();
                    continue;
                }
            }
            got.acked(&record, out);
        }
        self.trim(to, got);
        if !self.sacked_ranges.is_empty() {
            self.sacked_ranges.drop_below(to);
        }
    }

    /// An acknowledgement within the first segment.
    #[inline]
    fn trim(&mut self, to: u64, got: &mut DeliveredBytes) {
        let Some(record) = self.records.front_mut().filter(|record| record.start < to) else { return };
        let cut = to - record.start;
        record.start = to;
        record.len -= cut as u16;
        match record.state {
            SegmentState::Flight => self.flight -= cut,
            SegmentState::Lost => self.lost -= cut,
            SegmentState::Sacked => {
                self.sacked -= cut;
                return;
            }
        }
        got.bytes += cut;
    }

    /// The peer holds these bytes out of order; segments that lie in them as a whole need not be sent again.
    pub(super) fn sack<O: Out<TcpConnection>>(&mut self, from: u64, to: u64, got: &mut DeliveredBytes, out: &mut O) {
        if self.sacked_ranges.holding(from).is_some_and(|range| range.to >= to) {
            return;
        }
        let mut first = self.index_of(from);
        first += usize::from(self.records.get(first).is_some_and(|record| record.start < from));
        let behind = self.index_of(to);
        if first >= behind {
            return;
        }
        let mut index = first;
        while index < behind {
            match self.records[index].state {
                SegmentState::Sacked => index = self.behind_sacked(index),
                SegmentState::Flight | SegmentState::Lost => {
                    self.mark_sacked(index, got, out);
                    index += 1;
                }
            }
        }
        self.sacked_ranges.insert(self.records[first].start, self.records[behind - 1].end());
    }

    fn mark_sacked<O: Out<TcpConnection>>(&mut self, index: usize, got: &mut DeliveredBytes, out: &mut O) {
        let record = &mut self.records[index];
        match record.state {
            SegmentState::Flight => self.flight -= record.bytes(),
            SegmentState::Lost => {
                self.lost -= record.bytes();
                self.lost_segments -= 1;
            }
            SegmentState::Sacked => return,
        }
        got.sacked(record, out);
        record.state = SegmentState::Sacked;
        self.sacked += record.bytes();
        self.sacked_segments += 1;
    }

    /// The first record behind the range that the one at `index` is in.
    fn behind_sacked(&self, index: usize) -> usize {
        let start = self.records[index].start;
        match self.sacked_ranges.holding(start) {
            Some(range) if range.to > self.records[index].end() => self.index_of(range.to),
            _ => index + 1,
        }
    }

    /// The first record that ends behind `position`. Most have the same length: a guess saves the search.
    #[inline]
    fn index_of(&self, position: u64) -> usize {
        let Some(head) = self.records.front().filter(|head| head.end() <= position) else { return 0 };
        let guess = 1 + ((position - head.end()) / head.bytes().max(1)) as usize;
        match self.records.get(guess) {
            Some(record) if record.start <= position && position < record.end() => guess,
            _ => self.records.partition_point(|record| record.end() <= position),
        }
    }

    /// `RACK_detect_loss` (RFC 8985 §6.2, step 5). Returns how long until all of those that may be lost are overdue;
    /// zero if there are none.
    #[inline]
    pub(super) fn detect<O: Out<TcpConnection>>(&mut self, judge: &RackState, out: &mut O) -> Span {
        let wait = self.judge_originals(judge, out);
        if self.resent.is_empty() { wait } else { wait.max(self.judge_copies(judge, out)) }
    }

    #[inline]
    fn judge_originals<O: Out<TcpConnection>>(&mut self, judge: &RackState, out: &mut O) -> Span {
        let mut wait = Span::ZERO;
        let mut settled = true;
        let mut index = self.index_of(self.judged);
        while let Some(record) = self.records.get(index) {
            if record.state == SegmentState::Sacked {
                index = self.behind_sacked(index);
            } else {
                if record.state == SegmentState::Flight && !record.is_resent() && !self.is_unlisted(record.start) {
                    match judge.verdict(record, out) {
                        RackVerdict::TooYoung => break,
                        RackVerdict::Lost => {
                            self.unlist(index);
                            self.mark_lost(index);
                        }
                        RackVerdict::Overdue(in_span) => {
                            wait = wait.max(in_span);
                            settled = false;
                        }
                    }
                }
                index += 1;
            }
            if settled {
                self.judged = self.records[index - 1].end();
            }
        }
        wait
    }

    fn judge_copies<O: Out<TcpConnection>>(&mut self, judge: &RackState, out: &mut O) -> Span {
        let mut wait = Span::ZERO;
        let mut place = 0;
        while let Some(&(start, sent_at)) = self.resent.get(place) {
            let index = self.index_of(start);
            let fresh = |record: &&SegmentRecord| {
                record.state == SegmentState::Flight && record.is_resent() && record.sent_at == sent_at
            };
            match self.records.get(index).filter(fresh).map(|record| judge.verdict(record, out)) {
                Some(RackVerdict::TooYoung) => break,
                Some(RackVerdict::Overdue(in_span)) => {
                    wait = wait.max(in_span);
                    place += 1;
                    continue;
                }
                Some(RackVerdict::Lost) => {
                    self.lost_copies += 1;
                    self.mark_lost(index);
                }
                None => {}
            }
            if place == 0 {
                self.resent.pop_front();
            } else {
                place += 1;
            }
        }
        wait
    }

    fn mark_lost(&mut self, index: usize) {
        let record = &mut self.records[index];
        debug_assert_eq!(record.state, SegmentState::Flight, "only what is in flight gets lost");
        record.state = SegmentState::Lost;
        self.flight -= record.bytes();
        self.lost += record.bytes();
        self.lost_segments += 1;
        self.lost_ever += record.bytes();
        let start = record.start;
        match self.repairs.back() {
            Some(last) if *last > start => {
                let place = self.repairs.partition_point(|other| *other < start);
                self.repairs.insert(place, start);
            }
            _ => self.repairs.push_back(start),
        }
    }

    /// The retransmission timer went off: the first segment is lost, and all others that left a round trip ago
    /// (`RACK_mark_losses_on_RTO`, RFC 8985 §6.3). If the peer no longer holds what it said, believe none of it.
    pub(super) fn time_out<O: Out<TcpConnection>>(&mut self, now: Time, rtt: Span, out: &mut O) {
        if self.records.front().is_some_and(|head| head.state == SegmentState::Sacked) {
            self.forget_sacks();
        }
        for index in 0..self.records.len() {
            let record = &self.records[index];
            let is_fresh = now.since(record.sent_at) < rtt;
            if record.state == SegmentState::Flight && (index == 0 || !TcpSite::TooFresh.ask(out, is_fresh)) {
                self.mark_lost(index);
            }
        }
    }

    fn forget_sacks(&mut self) {
        for record in self.records.iter_mut().filter(|record| record.state == SegmentState::Sacked) {
            record.state = SegmentState::Flight;
            self.flight += record.bytes();
        }
        self.sacked = 0;
        self.sacked_segments = 0;
        self.sacked_ranges.clear();
        self.judged = 0;
    }

    /// Forgets losses that did not happen: segments not yet sent again need not be.
    pub(super) fn forget_losses(&mut self) {
        for record in &mut self.records {
            if record.state == SegmentState::Lost {
                record.state = SegmentState::Flight;
                self.flight += record.bytes();
            }
            if record.copy == CopyKind::Repair {
                record.copy = CopyKind::Probe;
            }
        }
        self.lost = 0;
        self.lost_segments = 0;
        self.repairs.clear();
        self.judged = 0;
    }

    /// Length of the lost segment to send next; 0 if none is lost.
    pub(super) fn next_repair_len(&self) -> u64 {
        self.first_lost().map_or(0, SegmentRecord::bytes)
    }

    /// Position of the lost segment to send next.
    pub(super) fn next_repair_start(&self) -> Option<u64> {
        self.first_lost().map(|record| record.start)
    }

    fn first_lost(&self) -> Option<&SegmentRecord> {
        let mut records = self.repairs.iter().filter_map(|start| self.records.get(self.index_of(*start)));
        records.find(|record| record.state == SegmentState::Lost)
    }

    /// The lost segment to send next.
    pub(super) fn next_repair(&mut self) -> Option<usize> {
        while let Some(&start) = self.repairs.front() {
            let index = self.index_of(start);
            self.repairs.pop_front();
            if self.records.get(index).is_some_and(|record| record.state == SegmentState::Lost) {
                return Some(index);
            }
        }
        None
    }

    /// The last segment that the peer is not known to hold.
    pub(super) fn last_unsacked(&self) -> Option<usize> {
        self.records.iter().rposition(|record| record.state != SegmentState::Sacked)
    }

    /// A segment leaves again; returns its position and length.
    pub(super) fn resend(&mut self, index: usize, now: Time, stamp: DeliveryStamp) -> (u64, u16) {
        self.list_again(index);
        let record = &mut self.records[index];
        if record.state == SegmentState::Sacked {
            // Only a probe repeats what has arrived.
            return (record.start, record.len);
        }
        if record.state == SegmentState::Lost {
            self.lost -= record.bytes();
            self.lost_segments -= 1;
            self.flight += record.bytes();
            record.copy = CopyKind::Repair;
        } else if record.copy == CopyKind::None {
            record.copy = CopyKind::Probe;
        }
        record.state = SegmentState::Flight;
        record.sent_at = now;
        record.stamp = stamp;
        self.resent.push_back((record.start, now));
        (record.start, record.len)
    }
}

#[cfg(test)]
mod tests;

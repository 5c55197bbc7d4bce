//! The receiving half of a connection: what arrived, and what the peer is to know of it.
//!
//! RFC 2018 §4 (SACK), RFC 2883 (DSACK), RFC 7323 §4.3 (which timestamp to return); when to acknowledge is in
//! [`delayed`], marks are in [`echo`]. Segments may come several at a time before anything can be sent: an
//! acknowledgement that is due is a state, and one carries them all.

mod delayed;
mod echo;

use machine::Out;
use units::{Span, Time};

use self::delayed::DelayedAcks;
use self::echo::{EarlierAck, Echo};
use super::config::TcpConfig;
use super::connection::TcpConnection;
use super::record::before;
use super::segment::{MAX_SACKS, Sack, TcpSegment};
use super::sender::EcnResponse;
use units::{StreamRange, StreamRanges};

/// What a segment with payload was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentArrival {
    InOrder,
    /// In order, with a gap behind it filled or still open.
    Filling,
    OutOfOrder,
    Duplicate,
    /// Beyond the window.
    Outside,
}

#[derive(Debug)]
pub(super) struct TcpReceiver {
    /// The next byte expected.
    next: u64,
    buffer: u64,
    /// What the last acknowledgement said.
    acknowledged: u64,
    /// RFC 7323's TS.Recent; `None` before the first segment.
    timestamp: Option<u32>,
    acks: DelayedAcks,
    echo: Echo,
    /// Arrived beyond a gap.
    held: StreamRanges,
    /// Positions in those that changed last, the latest first.
    recent: [u64; MAX_SACKS],
    /// A range that arrived twice and has not been reported yet.
    duplicate: Option<StreamRange>,
}

impl TcpReceiver {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let mss = u64::from(config.mss.max(1));
        let buffer = config.receive_buffer.max(2 * mss);
        Self {
            next: 0,
            buffer,
            acknowledged: 0,
            timestamp: None,
            acks: DelayedAcks::new(config, buffer),
            echo: Echo::new(EcnResponse::new(config)),
            held: StreamRanges::default(),
            recent: [u64::MAX; MAX_SACKS],
            duplicate: None,
        }
    }

    /// In order so far.
    pub(super) fn delivered(&self) -> u64 {
        self.next
    }

    pub(super) fn owes_ack(&self) -> bool {
        self.acks.is_owed() || self.echo.has_earlier()
    }

    /// An acknowledgement should leave now.
    #[inline]
    pub(super) fn is_ack_due(&self) -> bool {
        self.acks.is_due() || self.echo.has_earlier()
    }

    /// Whether an acknowledgement is due that reports the state before marks began or ended.
    #[inline]
    pub(super) fn owes_earlier_ack(&self) -> bool {
        self.echo.has_earlier()
    }

    /// A segment with payload. `rto` is how long a sender in the peer's place would wait.
    #[inline]
    pub(super) fn on_data<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        segment: &TcpSegment,
        rto: Span,
        srtt: Option<Span>,
        out: &mut O,
    ) -> SegmentArrival {
        let marked = self.echo.on_data(segment, self.next, self.acks.is_owed());
        let arrival = self.place(segment);
        let unacknowledged = self.next - self.acknowledged;
        self.acks.on_data(now, arrival, unacknowledged, rto, srtt);
        if marked {
            self.acks.on_mark_change();
        }
        self.acks.arm(out);
        arrival
    }

    #[inline]
    fn place(&mut self, segment: &TcpSegment) -> SegmentArrival {
        let from = segment.seq;
        let Some(to) = from.checked_add(u64::from(segment.len)).filter(|to| *to <= self.next + self.buffer) else {
            return SegmentArrival::Outside;
        };
        let is_newer = self.timestamp.is_none_or(|recent| !before(segment.timestamp, recent));
        if from <= self.acknowledged && is_newer {
            self.timestamp = Some(segment.timestamp);
        }
        if to <= self.next {
            self.duplicate = Some(StreamRange { from, to });
            SegmentArrival::Duplicate
        } else if from <= self.next {
            self.take_in_order(from, to)
        } else {
            self.hold(from, to)
        }
    }

    #[inline]
    fn take_in_order(&mut self, from: u64, to: u64) -> SegmentArrival {
        if from < self.next {
            self.duplicate = Some(StreamRange { from, to: self.next });
        }
        self.next = to;
        if self.held.is_empty() {
            return SegmentArrival::InOrder;
        }
        while let Some(range) = self.held.first().filter(|range| range.from <= self.next) {
            self.next = self.next.max(range.to);
            self.held.drop_below(self.next);
        }
        SegmentArrival::Filling
    }

    fn hold(&mut self, from: u64, to: u64) -> SegmentArrival {
        if self.held.holding(from).is_some_and(|range| range.to >= to) {
            self.duplicate = Some(StreamRange { from, to });
            // The block after the duplicate's is the one that holds it (RFC 2883 §4).
            self.remember(from);
            return SegmentArrival::Duplicate;
        }
        self.held.insert(from, to);
        self.remember(from);
        SegmentArrival::OutOfOrder
    }

    /// Makes the range that holds `position` the first to be reported.
    fn remember(&mut self, position: u64) {
        let Some(range) = self.held.holding(position) else { return };
        let same = |other: &u64| range.from <= *other && *other < range.to;
        let place = self.recent.iter().position(same).unwrap_or(MAX_SACKS - 1);
        self.recent[..=place].rotate_right(1);
        self.recent[0] = position;
    }

    /// Writes the acknowledgement into a segment that leaves now. The receiver then owes nothing, unless the segment
    /// reports an earlier state.
    #[inline]
    pub(super) fn fill(&mut self, now: Time, segment: &mut TcpSegment) {
        segment.window = u32::try_from(self.buffer).unwrap_or(u32::MAX);
        segment.echo = self.timestamp.unwrap_or_default();
        if let Some(EarlierAck { ack, echo }) = self.echo.take_earlier() {
            segment.ack = ack;
            segment.ece = echo;
            self.acknowledged = self.acknowledged.max(ack);
            return;
        }
        segment.ack = self.next;
        segment.ece = self.echo.is_on();
        if !self.held.is_empty() || self.duplicate.is_some() {
            segment.sack = self.sack();
        }
        self.acknowledged = self.next;
        self.acks.on_sent(now, segment.len > 0);
    }

    /// A duplicate first, then the ranges that changed last, then any others that fit.
    fn sack(&mut self) -> Sack {
        let mut sack = Sack::default();
        if let Some((from, to)) = self.duplicate.take().and_then(|range| self.offsets(range)) {
            sack.push(from, to);
        }
        let duplicates = sack.blocks().len();
        let recent = self.recent.iter().filter_map(|position| self.held.holding(*position));
        let ranges = recent.chain(self.held.descending().take(MAX_SACKS));
        for block in ranges.filter_map(|range| self.offsets(range)) {
            let told = sack.blocks()[duplicates..].contains(&block);
            if !told && !sack.push(block.0, block.1) {
                break;
            }
        }
        sack
    }

    /// `None` if that is too far away for a block.
    fn offsets(&self, range: StreamRange) -> Option<(i32, i32)> {
        let offset = |position: u64| i32::try_from(position as i64 - self.next as i64).ok();
        Some((offset(range.from)?, offset(range.to)?))
    }

    /// The acknowledgement's timer went off.
    pub(super) fn on_timer<O: Out<TcpConnection>>(&mut self, now: Time, rto: Span, out: &mut O) {
        self.acks.on_timer(now, rto, out);
    }
}

#[cfg(test)]
mod tests;

//! One segment in flight, and what an acknowledgement says about several.

use machine::Out;
use units::{Span, Time};

use super::connection::TcpConnection;
use super::delivery::DeliveryStamp;
use super::sites::TcpSite;

/// State of a segment that was sent and is not acknowledged in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentState {
    Flight,
    Sacked,
    /// To be sent again.
    Lost,
}

/// Reason why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyKind {
    /// The segment was not sent again.
    None,
    /// Sent as a probe.
    Probe,
    /// The segment was sent again because it was taken for lost.
    Repair,
}

/// 32 bytes: a window has thousands.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRecord {
    pub start: u64,
    /// Time at which it last left.
    pub sent_at: Time,
    pub stamp: DeliveryStamp,
    pub len: u16,
    pub state: SegmentState,
    pub copy: CopyKind,
}

impl SegmentRecord {
    #[inline]
    pub(super) fn new(start: u64, len: u16, now: Time, stamp: DeliveryStamp) -> Self {
        Self { start, sent_at: now, stamp, len, state: SegmentState::Flight, copy: CopyKind::None }
    }

    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.len)
    }

    #[inline]
    pub(super) fn is_resent(&self) -> bool {
        self.copy != CopyKind::None
    }

    /// `RACK_sent_after` (RFC 8985 §6.1): of two that left at the same time, the later in the stream.
    #[inline]
    pub(super) fn sent_after(&self, sent_at: Time, start: u64) -> bool {
        (self.sent_at, self.start) > (sent_at, start)
    }
}

/// Bytes that one acknowledgement newly delivered.
#[derive(Debug)]
pub(super) struct DeliveredBytes {
    now: Time,
    min_rtt: Span,
    /// The timestamp that the acknowledgement returns.
    echo: u32,
    pub bytes: u64,
    /// Number of whole segments.
    pub segments: u32,
    /// Departures of the first and the last of those acknowledged in order.
    acked_sent: Option<(Time, Time)>,
    /// Something sent again was among those: it may have filled the gap that held the others up, and of itself nobody
    /// knows which copy it was (Karn).
    pub acked_resent: bool,
    /// A segment that was sent again was among those known to have arrived: a kernel then takes no round trip either.
    pub sacked_resent: bool,
    /// Earliest departure among the segments that SACK reports and that left once, and departure of the last of them.
    pub sack_sent: Option<Time>,
    sack_last: Option<Time>,
    /// The one that left last, unless it may be an earlier copy that arrived.
    pub newest: Option<SegmentRecord>,
    /// Departure of the segment that was looked at last, of those that may be `newest`.
    pub last_sent: Option<Time>,
    /// Lowest position of a segment that left once.
    pub lowest: u64,
    /// Something sent again was among them.
    pub resent: bool,
}

impl DeliveredBytes {
    #[inline]
    pub(super) fn new(now: Time, min_rtt: Span, echo: u32) -> Self {
        Self {
            now,
            min_rtt,
            echo,
            bytes: 0,
            segments: 0,
            acked_sent: None,
            acked_resent: false,
            sacked_resent: false,
            sack_sent: None,
            sack_last: None,
            newest: None,
            last_sent: None,
            lowest: u64::MAX,
            resent: false,
        }
    }

    /// A segment that was not known to have arrived is acknowledged in order.
    #[inline]
    pub(super) fn acked<O: Out<TcpConnection>>(&mut self, record: &SegmentRecord, out: &mut O) {
        self.acked_resent |= record.is_resent();
        let first = self.acked_sent.map_or(record.sent_at, |(first, _)| first);
        self.acked_sent = Some((first, record.sent_at));
        self.add(record, out);
    }

    /// Send times of the segments whose round trips this acknowledgement measures: the longest waiting, and the last.
    #[inline]
    pub(super) fn measured(&self) -> Option<(Time, Time)> {
        let acked = if self.acked_resent { None } else { self.acked_sent };
        acked.or(self.sack_sent.map(|sent| (sent, sent)))
    }

    /// The segment whose round trip measures the path: a kernel takes the last that SACK reports, if it reports any.
    pub(super) fn latest(&self, kernel: bool) -> Option<Time> {
        let last = self.measured().map(|(_, last)| last)?;
        Some(self.sack_last.filter(|_| kernel).unwrap_or(last))
    }

    /// Adds a segment that SACK reports as received.
    pub(super) fn sacked<O: Out<TcpConnection>>(&mut self, record: &SegmentRecord, out: &mut O) {
        if !record.is_resent() {
            self.sack_sent = Some(self.sack_sent.map_or(record.sent_at, |earliest| earliest.min(record.sent_at)));
            self.sack_last = Some(record.sent_at);
        }
        self.add(record, out);
    }

    #[inline]
    fn add<O: Out<TcpConnection>>(&mut self, record: &SegmentRecord, out: &mut O) {
        self.bytes += record.bytes();
        self.segments += 1;
        if record.is_resent() {
            self.resent = true;
            if TcpSite::EarlierCopy.ask(out, self.may_be_an_earlier_copy(record)) {
                return;
            }
        } else {
            self.lowest = self.lowest.min(record.start);
        }
        self.last_sent = Some(record.sent_at);
        if self.newest.is_none_or(|newest| record.sent_after(newest.sent_at, newest.start)) {
            self.newest = Some(*record);
        }
    }

    /// RFC 8985 §6.2, step 2: the answer is too early for the last copy.
    fn may_be_an_earlier_copy(&self, record: &SegmentRecord) -> bool {
        before(self.echo, timestamp(record.sent_at)) || self.now.since(record.sent_at) < self.min_rtt
    }
}

/// RFC 7323 timestamps: microseconds, which wrap.
#[inline]
pub(super) fn timestamp(now: Time) -> u32 {
    (now.as_ps() / 1_000_000) as u32
}

/// True if timestamp `a` is earlier than `b`.
#[inline]
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_half_a_cache_line() {
        assert_eq!(size_of::<SegmentRecord>(), 32);
    }

    #[test]
    fn timestamps_wrap() {
        assert!(before(u32::MAX, 3) && !before(3, u32::MAX) && !before(7, 7));
    }
}

//! The receiving half of a connection: what arrived, and what the peer is to know of it.
//!
//! RFC 2018 §4 (SACK), RFC 2883 (DSACK), RFC 7323 §4.3 (which timestamp to return); when to acknowledge is in
//! [`delayed`], marks are in [`echo`]. Segments may come several at a time before anything can be sent: an
//! acknowledgement that is due is a state, and one carries them all.

mod compression;
mod delayed;
mod echo;
mod growth;
mod window;

use machine::Out;
use units::{Span, Time};

use self::delayed::DelayedAcks;
use self::echo::{EarlierAck, Echo};
use self::window::{ReceiveSocket, StreamPlace};
use super::config::TcpConfig;
use super::connection::TcpConnection;
use super::info::TcpInfo;
use super::record::before;
use super::segment::{MAX_SACKS, Sack, SegmentFlags, TcpSegment};
use super::sender::EcnResponse;
use super::sites::TcpSite;
use units::{StreamRange, StreamRanges};

/// Kind of a segment with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentArrival {
    InOrder,
    /// The segment is in order, and a gap behind it is filled or still open.
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
    /// Position that was acknowledged last.
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
    /// Selective acknowledgements were agreed on.
    sack: bool,
    socket: Option<Box<ReceiveSocket>>,
}

impl TcpReceiver {
    pub(super) fn new(config: &TcpConfig, now: Time) -> Self {
        let mss = u64::from(config.mss.max(1));
        let buffer = config.receive_buffer.max(2 * mss);
        Self {
            next: 0,
            buffer,
            acknowledged: 0,
            timestamp: config.socket.and_then(|socket| socket.peer_timestamp),
            acks: DelayedAcks::new(config, buffer),
            echo: Echo::new(EcnResponse::new(config)),
            held: StreamRanges::default(),
            recent: [u64::MAX; MAX_SACKS],
            duplicate: None,
            sack: config.sack,
            socket: ReceiveSocket::new(config, now),
        }
    }

    /// Payload in order so far; a FIN is none.
    #[inline]
    pub(super) fn delivered(&self) -> u64 {
        match &self.socket {
            None => self.next,
            Some(socket) => socket.fin.map_or(self.next, |fin| self.next.min(fin)),
        }
    }

    /// The peer's FIN has arrived, in order.
    pub(super) fn is_finished(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.fin.is_some_and(|fin| self.next > fin))
    }

    /// Bytes in order that were not read.
    pub(super) fn unread(&self) -> u64 {
        self.socket.as_ref().map_or(0, |socket| socket.unread(self.delivered()))
    }

    /// The next position expected, a FIN counted.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The application takes `bytes` of a socket.
    pub(super) fn read<O: Out<TcpConnection>>(&mut self, bytes: u64, out: &mut O) {
        let place = StreamPlace { delivered: self.delivered(), next: self.next, acknowledged: self.acknowledged };
        let answers = (self.acks.is_owed(), self.acks.is_interactive());
        if let Some(socket) = &mut self.socket
            && socket.on_read(bytes, &place, answers, |over| TcpSite::ReceiveRoundOver.ask(out, over))
        {
            self.acks.force();
        }
    }

    /// Reads what has arrived, if the application reads at once.
    #[inline]
    pub(super) fn read_at_once<O: Out<TcpConnection>>(&mut self, out: &mut O) {
        if self.socket.as_ref().is_some_and(|socket| socket.reads_at_once) {
            self.read(self.unread(), out);
        }
    }

    /// `tcp_sequence`: whether a segment overlaps the window, or what was acknowledged last.
    pub(super) fn accepts(&self, segment: &TcpSegment) -> bool {
        let len = u64::from(segment.len) + u64::from(segment.flags.has(SegmentFlags::FIN));
        let left = self.socket.as_ref().map_or(self.buffer, |socket| socket.left(self.next, self.acknowledged));
        let behind = |position: u64, other: u64| (position.wrapping_sub(other) as i64) < 0;
        !behind(segment.seq.wrapping_add(len), self.acknowledged) && !behind(self.next + left, segment.seq)
    }

    /// RFC 7323 §5, PAWS: the segment is older than what was acknowledged last.
    pub(super) fn is_stale(&self, segment: &TcpSegment) -> bool {
        self.timestamp.is_some_and(|recent| before(segment.timestamp, recent))
    }

    /// Takes note of the timestamp of a segment that is acceptable.
    pub(super) fn heed_timestamp(&mut self, segment: &TcpSegment) {
        let is_newer = self.timestamp.is_none_or(|recent| !before(segment.timestamp, recent));
        if is_newer && (segment.seq.wrapping_sub(self.acknowledged) as i64) <= 0 {
            self.timestamp = Some(segment.timestamp);
        }
    }

    /// An acknowledgement leaves as soon as it can.
    pub(super) fn force_ack(&mut self) {
        self.acks.force();
    }

    /// The connection is over.
    pub(super) fn stop(&mut self) {
        self.acks.forget();
    }

    /// Completes what the sending half says of itself.
    pub(super) fn complete_info(&self, now: Time, info: &mut TcpInfo) {
        info.bytes_received = self.delivered();
        if let Some(socket) = &self.socket {
            info.rcv_mss = socket.peer_mss() as u32;
            info.last_data_recv = now.since(socket.last_data);
            info.rcv_wnd = socket.left(self.next, self.acknowledged);
        }
    }

    pub(super) fn owes_ack(&self) -> bool {
        self.acks.is_owed() || self.echo.has_earlier()
    }

    /// An acknowledgement should leave now.
    #[inline]
    pub(super) fn is_ack_due(&self) -> bool {
        self.acks.is_due() || self.echo.has_earlier()
    }

    /// True if an acknowledgement is due that reports the state before marks began or ended.
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
        let plenty = match &self.socket {
            None => self.acks.is_plenty(self.next - self.acknowledged),
            Some(_) => self.take_segment(now, segment, arrival),
        };
        if segment.len > 0 {
            self.acks.on_data(now, arrival, plenty, (rto, srtt, self.gap(srtt)), out);
        } else {
            self.acks.on_lone_fin(now, arrival);
        }
        if marked {
            self.acks.on_mark_change();
        }
        self.acks.arm(out);
        arrival
    }

    /// The byte that is missing, if data behind it are held, and the round trip that decides how long its report may wait.
    #[inline]
    fn gap(&self, srtt: Option<Span>) -> Option<(u64, Span)> {
        let socket = self.socket.as_ref().filter(|_| !self.held.is_empty() && self.sack)?;
        let rtt = socket.rtt();
        Some((self.next, srtt.map_or(rtt, |srtt| srtt.min(rtt))))
    }

    /// Takes a segment for a socket. True if more than a segment waits for its acknowledgement and the window keeps its size;
    /// otherwise a read acknowledges.
    fn take_segment(&mut self, now: Time, segment: &TcpSegment, arrival: SegmentArrival) -> bool {
        let delivered = self.delivered();
        let Some(socket) = &mut self.socket else { return false };
        let in_order = matches!(arrival, SegmentArrival::InOrder | SegmentArrival::Filling);
        if in_order && segment.len > 0 {
            if socket.on_segment(now, segment, delivered) {
                self.acks.quicken();
            }
        } else if matches!(arrival, SegmentArrival::OutOfOrder) {
            let held = self.held.last().map_or(0, |range| range.to.saturating_sub(self.next));
            if socket.on_out_of_order(segment, delivered, held) {
                self.acks.quicken();
            }
        }
        if in_order && segment.flags.has(SegmentFlags::FIN) {
            self.acks.on_fin();
        }
        self.next - self.acknowledged > socket.peer_mss() && socket.keeps_its_size(delivered)
    }

    /// End of a socket's window for a segment that begins at `from`: one that begins within it is taken whole.
    fn limit_of_socket(&self, socket: &ReceiveSocket, from: u64, to: u64) -> u64 {
        let end = self.next + socket.left(self.next, self.acknowledged);
        if to <= self.next || from < end { to } else { end }
    }

    #[inline]
    fn place(&mut self, segment: &TcpSegment) -> SegmentArrival {
        let from = segment.seq;
        let len = u64::from(segment.len) + u64::from(segment.flags.has(SegmentFlags::FIN));
        let end = from.checked_add(len);
        let limit = match (&self.socket, end) {
            (Some(socket), Some(to)) => self.limit_of_socket(socket, from, to),
            _ => self.next + self.buffer,
        };
        let Some(to) = end.filter(|to| *to <= limit) else {
            return SegmentArrival::Outside;
        };
        if let Some(socket) = &mut self.socket
            && segment.flags.has(SegmentFlags::FIN)
        {
            socket.fin.get_or_insert(to - 1);
        }
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
    pub(super) fn fill<O: Out<TcpConnection>>(&mut self, now: Time, segment: &mut TcpSegment, out: &mut O) {
        segment.window = match &self.socket {
            None => u32::try_from(self.buffer).unwrap_or(u32::MAX),
            Some(_) => self.offer_window(),
        };
        segment.echo = self.timestamp.unwrap_or_default();
        if let Some(EarlierAck { ack, echo }) = self.echo.take_earlier() {
            segment.ack = ack;
            segment.ece = echo;
            self.acknowledged = self.acknowledged.max(ack);
            return;
        }
        segment.ack = self.next;
        segment.ece = self.echo.is_on();
        if (!self.held.is_empty() || self.duplicate.is_some()) && self.sack {
            segment.sack = self.sack();
        }
        self.acknowledged = self.next;
        self.acks.on_sent(now, segment.len > 0, out);
    }

    fn offer_window(&mut self) -> u32 {
        let delivered = self.delivered();
        let Some(socket) = &mut self.socket else { return 0 };
        let (window, roomy) = socket.offer(delivered, self.next, self.acknowledged);
        if !roomy {
            self.acks.calm();
        }
        u32::try_from(window).unwrap_or(u32::MAX)
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

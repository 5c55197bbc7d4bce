//! The receive window of a socket: what the application has not read yet takes room away.
//!
//! Rules of Linux: the window grows by two segments for each one that arrives, up to the buffer (`tcp_grow_window`). It is
//! a multiple of its scale, or of a segment. It shuts before the buffer is full, and opens again only for a segment or a
//! sixteenth of the buffer, which avoids silly windows (RFC 9293 §3.8.6.2, `__tcp_select_window`). An offer is never taken
//! back. A read acknowledges if that was due anyway, if it empties the buffer after a small segment, or if it doubles the
//! window (`tcp_cleanup_rbuf`).

use units::{Span, Time};

use super::super::config::TcpConfig;
use super::super::record::timestamp;
use super::super::segment::{SegmentFlags, TcpSegment};
use super::growth::{BufferGrowth, ReceivePlace};

/// `TCP_MSS_DEFAULT` and `TCP_MIN_MSS`.
const DEFAULT_MSS: u64 = 536;
const MIN_MSS: u64 = 88;
/// Smaller segments do not let the window grow.
const GROWS_FROM: u32 = 128;
/// Largest window without scaling: a header has 16 bits for it.
const LARGEST: u64 = 65_535;

#[derive(Debug)]
pub(super) struct ReceiveSocket {
    /// Read below.
    read: u64,
    /// Offered with the last acknowledgement.
    window: u64,
    /// Upper limit of the window now (`rcv_ssthresh`).
    threshold: u64,
    buffer: u64,
    scale: u32,
    /// Segment size that own headers announce, and the size that the peer's segments seem to have.
    mss: u64,
    peer_mss: u64,
    last_len: u64,
    /// Small segments since the last acknowledgement: none, one, more (`ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`).
    pushed: u8,
    /// Position of the peer's FIN.
    pub(super) fin: Option<u64>,
    pub(super) last_data: Time,
    pub(super) received: u64,
    /// Segments out of order let the window grow, too.
    grows_out_of_order: bool,
    /// Round trip as far as it is known, and the growth of the buffer by it.
    growth: Option<Box<BufferGrowth>>,
    buffer_grows: bool,
    pub(super) reads_at_once: bool,
}

impl ReceiveSocket {
    /// `None` without a socket.
    pub(super) fn new(config: &TcpConfig, now: Time) -> Option<Box<Self>> {
        let socket = config.socket?;
        let mss = u64::from(config.mss.max(1));
        let window = u64::from(socket.first_window);
        let cap = config.receive_buffer.max(2 * mss);
        let buffer = socket.first_buffer.map_or(cap, |first| first.clamp(2 * mss, cap));
        let growth = BufferGrowth::new(socket.version, cap, mss, window.min(buffer), now);
        Some(Box::new(Self {
            read: 0,
            window,
            threshold: window.min(buffer),
            buffer,
            scale: u32::from(socket.window_scale.min(14)),
            mss,
            peer_mss: mss.min(window / 2).clamp(MIN_MSS, DEFAULT_MSS),
            last_len: 0,
            pushed: 0,
            fin: None,
            last_data: now,
            received: 0,
            grows_out_of_order: config.sack || socket.grows_without_sack,
            growth: (socket.compresses_sacks || socket.first_buffer.is_some()).then(|| Box::new(growth)),
            buffer_grows: socket.first_buffer.is_some(),
            reads_at_once: socket.reads_at_once,
        }))
    }

    pub(super) fn peer_mss(&self) -> u64 {
        self.peer_mss
    }

    /// Rest of the window that was offered when `acknowledged` was.
    pub(super) fn left(&self, next: u64, acknowledged: u64) -> u64 {
        (acknowledged + self.window).saturating_sub(next)
    }

    /// Bytes in order that were not read.
    pub(super) fn unread(&self, delivered: u64) -> u64 {
        delivered - self.read
    }

    /// Takes note of a segment with payload. True if the window may grow by it, which makes acknowledgements quick.
    pub(super) fn on_segment(&mut self, now: Time, segment: &TcpSegment, delivered: u64) -> bool {
        self.last_data = now;
        self.received += u64::from(segment.len);
        self.measure(segment);
        let place = ReceivePlace { next: delivered, read: self.read, window: self.window };
        if let Some(growth) = &mut self.growth {
            let full = u64::from(segment.len) >= self.peer_mss && !segment.flags.has(SegmentFlags::NO_TIMESTAMP);
            let age = Span::from_us(u64::from(timestamp(now).wrapping_sub(segment.echo)));
            growth.on_segment(now, &place, full.then_some((segment.echo, age)), segment.seq > self.read);
        }
        self.grow(segment, delivered)
    }

    /// Round trip that the receiver knows; zero if none.
    pub(super) fn rtt(&self) -> Span {
        self.growth.as_ref().map_or(Span::ZERO, |growth| growth.rtt())
    }

    /// The buffer never shrinks.
    fn set_buffer(&mut self, bytes: Option<u64>) {
        if let Some(bytes) = bytes.filter(|_| self.buffer_grows) {
            self.buffer = self.buffer.max(bytes);
        }
    }

    /// A segment behind a gap: it only lets the window grow. True if it did. The bytes held end `held` beyond what is
    /// expected.
    pub(super) fn on_out_of_order(&mut self, segment: &TcpSegment, delivered: u64, held: u64) -> bool {
        let bytes = self.growth.as_mut().and_then(|growth| growth.on_out_of_order(held));
        self.set_buffer(bytes);
        self.grows_out_of_order && self.grow(segment, delivered)
    }

    /// Lets the window grow; true if there was room.
    fn grow(&mut self, segment: &TcpSegment, delivered: u64) -> bool {
        let room = self.buffer.saturating_sub(self.unread(delivered)).saturating_sub(self.threshold);
        if segment.len < GROWS_FROM || room == 0 {
            return false;
        }
        self.threshold += room.min(2 * self.mss.max(u64::from(segment.len)));
        true
    }

    /// `tcp_measure_rcv_mss`.
    fn measure(&mut self, segment: &TcpSegment) {
        let len = u64::from(segment.len);
        let push = segment.flags.has(SegmentFlags::PSH);
        if len >= self.peer_mss {
            self.peer_mss = len.min(self.mss);
            self.pushed = self.pushed.max(u8::from(push));
            return;
        }
        if len >= DEFAULT_MSS || len >= MIN_MSS && !push {
            let last = std::mem::replace(&mut self.last_len, len);
            if last == len {
                self.peer_mss = len;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
    }

    /// `__tcp_select_window`: what to offer now. False beside it if the buffer fills up: no more quick acknowledgements.
    fn select(&self, delivered: u64) -> (u64, bool) {
        let mss = self.peer_mss.min(self.buffer);
        let mut free = self.buffer.saturating_sub(self.unread(delivered));
        let roomy = free >= self.buffer / 2;
        if !roomy {
            free = free >> self.scale << self.scale;
            if free < self.buffer / 16 || free < mss {
                return (0, roomy);
            }
        }
        let free = free.min(self.threshold);
        if self.scale > 0 {
            return (align(free, self.scale), roomy);
        }
        let keep = self.window + mss > free && self.window <= free;
        (if keep { self.window } else { free / mss * mss }, roomy)
    }

    /// Window that an acknowledgement offers now (`tcp_select_window`), and whether the buffer is roomy.
    pub(super) fn offer(&mut self, delivered: u64, next: u64, acknowledged: u64) -> (u64, bool) {
        let left = self.left(next, acknowledged);
        let (mut window, roomy) = self.select(delivered);
        if window < left {
            window = align(left, self.scale);
        }
        self.window = window.min(LARGEST << self.scale);
        self.pushed = 0;
        (self.window, roomy)
    }

    /// True if an acknowledgement that left now would not shrink the window. Otherwise the next read sends one.
    pub(super) fn keeps_its_size(&self, delivered: u64) -> bool {
        self.unread(delivered) < 1 || self.select(delivered).0 >= self.window
    }

    /// The application takes `bytes`. True if that calls for an acknowledgement; `owed` if one is delayed, and
    /// `interactive` if answers usually carry them.
    pub(super) fn on_read(
        &mut self,
        bytes: u64,
        place: &StreamPlace,
        (owed, interactive): (bool, bool),
        is_round_over: impl FnOnce(bool) -> bool,
    ) -> bool {
        let bytes = bytes.min(self.unread(place.delivered));
        self.read += bytes;
        if bytes == 0 {
            return false;
        }
        // A kernel's clock stands still between segments.
        let (now, read) =
            (self.last_data, ReceivePlace { next: place.delivered, read: self.read, window: self.window });
        let grown = self.growth.as_mut().and_then(|growth| growth.on_read(now, &read, is_round_over));
        self.set_buffer(grown);
        let emptied = self.unread(place.delivered) == 0;
        let small = self.pushed > 1 || self.pushed == 1 && !interactive;
        if owed && (place.next - place.acknowledged > self.peer_mss || small && emptied) {
            return true;
        }
        let left = self.left(place.next, place.acknowledged);
        if 2 * left > self.buffer {
            return false;
        }
        let window = self.select(place.delivered).0;
        window > 0 && window >= 2 * left
    }
}

/// Position in the peer's stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamPlace {
    /// Payload in order.
    pub delivered: u64,
    /// Next expected position; `acknowledged` is that of the last acknowledgement.
    pub next: u64,
    pub acknowledged: u64,
}

fn align(bytes: u64, scale: u32) -> u64 {
    let unit = 1_u64 << scale;
    bytes.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::super::super::socket::TcpSocketConfig;
    use super::*;

    fn socket(buffer: u64, scale: u8) -> ReceiveSocket {
        let socket = TcpSocketConfig { first_window: 10_000, window_scale: scale, ..TcpSocketConfig::default() };
        let config = TcpConfig { mss: 1_000, receive_buffer: buffer, socket: Some(socket), ..TcpConfig::default() };
        *ReceiveSocket::new(&config, Time::ZERO).expect("a socket")
    }

    fn segment(seq: u64, len: u32) -> TcpSegment {
        TcpSegment { seq, len, ..TcpSegment::default() }
    }

    #[test]
    fn a_window_grows_by_two_segments_for_each_that_arrives_and_is_read() {
        let mut socket = socket(100_000, 0);
        for n in 0..5 {
            assert!(socket.on_segment(Time::ZERO, &segment(n * 1_000, 1_000), n * 1_000));
            socket.read = (n + 1) * 1_000;
            let delivered = (n + 1) * 1_000;
            assert_eq!(socket.offer(delivered, delivered, n * 1_000).0, 12_000 + n * 2_000);
        }
    }

    #[test]
    fn it_shuts_before_the_buffer_is_full_and_opens_for_a_segment() {
        let mut socket = socket(10_000, 0);
        socket.peer_mss = 1_000;
        assert_eq!(socket.offer(9_000, 9_000, 0).0, 1_000, "what was offered is not taken back");
        assert_eq!(socket.offer(9_500, 9_500, 9_000).0, 500);
        assert_eq!(socket.offer(10_000, 10_000, 9_500).0, 0);
        let place = StreamPlace { delivered: 10_000, next: 10_000, acknowledged: 10_000 };
        assert!(!socket.on_read(999, &place, (false, false), |over| over), "less than a segment");
        assert!(socket.on_read(1, &place, (false, false), |over| over), "it opens");
        assert_eq!(socket.offer(10_000, 10_000, 10_000).0, 1_000);
    }

    #[test]
    fn a_read_that_empties_the_buffer_acknowledges_a_small_segment_at_once() {
        let mut socket = socket(100_000, 7);
        let mut small = segment(0, 200);
        small.flags = SegmentFlags::PSH;
        socket.on_segment(Time::ZERO, &small, 0);
        let place = StreamPlace { delivered: 200, next: 200, acknowledged: 0 };
        assert!(!socket.on_read(100, &place, (true, false), |over| over), "something is left to read");
        assert!(socket.on_read(100, &place, (true, false), |over| over));
        assert!(!socket.on_read(100, &place, (true, false), |over| over), "there is nothing left to read");
    }
}

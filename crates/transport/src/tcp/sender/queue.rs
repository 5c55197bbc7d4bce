//! What a socket holds back, and what it marks: Nagle's algorithm, corks, PSH, the send buffer, FIN.
//!
//! Nagle's algorithm with Minshall's change (`tcp_nagle_check`): a partial segment waits while another partial one is not
//! acknowledged. A cork makes every partial segment wait, until the window probe's timer takes it along. `MSG_MORE` is a
//! cork until the next reason to look: an acknowledgement, another write.
//!
//! The send buffer is counted as the kernel does, in buffers with an overhead (`truesize`): a write may begin a buffer
//! as long as the sum is below the limit, and fill it.

use std::collections::VecDeque;

use units::{Span, Time};

use super::super::socket::{TcpSocketConfig, TsoConfig};
use super::TcpSender;
use super::waits::{SendClocks, SendWait};

/// `SKB_TRUESIZE` of a buffer's header, beside its payload.
const OVERHEAD: u64 = 1_280;
/// Payload of the largest super-frame.
const MAX_BURST: u64 = 65_536 - 320;
/// `TCP_MSS_DEFAULT`.
const DEFAULT_MSS: u64 = 536;

#[derive(Debug)]
pub(super) struct SendSocket {
    pub(super) nodelay: bool,
    cork: bool,
    /// What waits now leaves whatever holds it back (`TCP_NAGLE_PUSH`).
    push: bool,
    /// The last write said that more would follow, and there was no reason to look since.
    pub(super) more: bool,
    /// End of the last write that did not say so.
    pushed: u64,
    /// End of the last partial segment that left (`snd_sml`).
    partial_end: u64,
    /// Ends of segments that left with PSH because a write ended there.
    push_ends: VecDeque<u64>,
    /// Position of the FIN, once nothing more is written.
    pub(super) fin: Option<u64>,
    shut_when_taken: bool,
    buffer: Option<u64>,
    /// Written by the application, without room in the buffer yet.
    blocked: u64,
    /// Ends of the buffers that payload lies in.
    ends: VecDeque<u64>,
    /// Where the segment came from that last changed the window (`snd_wl1`), and what it offered.
    pub(super) window_from: u64,
    pub(super) window: u64,
    pub(super) max_window: u64,
    pub(super) user_timeout: Option<Span>,
    /// Window probes without an answer, and the doublings of their wait.
    pub(super) probes: u32,
    pub(super) backoff: u32,
    /// When the first copy left since the peer last answered.
    pub(super) silent_since: Option<Time>,
    pub(super) gave_up: bool,
    tso: TsoConfig,
    /// Segments of the super-frame under way: how many left, and how many may.
    burst: (u64, u64),
    pub(super) counters: SendCounters,
    pub(super) clocks: SendClocks,
}

/// Whether the next new segment of a socket waits, beside what the windows say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendHold {
    Free,
    /// For more to be written, or the last partial segment to be acknowledged.
    ForMoreData,
    /// For a larger part of the window.
    ForMoreWindow,
}

/// What only `TCP_INFO` wants to know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendCounters {
    pub copies: u32,
    pub dsacks: u32,
    pub delivered: u32,
    pub delivered_marked: u32,
    /// Timeouts in a row.
    pub timeouts: u32,
}

impl SendCounters {
    pub(super) fn on_delivered(&mut self, segments: u32, marked: bool) {
        self.delivered += segments;
        self.delivered_marked += if marked { segments } else { 0 };
    }
}

impl SendSocket {
    pub(super) fn new(config: &TcpSocketConfig) -> Self {
        Self {
            nodelay: config.nodelay,
            cork: false,
            push: false,
            more: false,
            pushed: 0,
            partial_end: 0,
            push_ends: VecDeque::new(),
            fin: None,
            shut_when_taken: false,
            buffer: config.send_buffer,
            blocked: 0,
            ends: VecDeque::new(),
            window_from: 0,
            window: config.peer_window,
            max_window: config.peer_window,
            user_timeout: config.user_timeout,
            probes: 0,
            backoff: 0,
            silent_since: None,
            gave_up: false,
            tso: config.tso,
            burst: (0, 0),
            counters: SendCounters::default(),
            clocks: SendClocks::default(),
        }
    }

    /// How much of the stream one buffer takes (`tcp_xmit_size_goal`).
    fn buffer_len(&self, mss: u64) -> u64 {
        let half = if self.max_window > DEFAULT_MSS { self.max_window / 2 } else { self.max_window };
        let goal = if half > 0 { MAX_BURST.min(half) } else { MAX_BURST };
        (goal / mss * mss).max(mss)
    }
}

impl TcpSender {
    /// The application appends to the stream of a socket; what has no room waits.
    pub(super) fn write_to_socket(&mut self, bytes: u64, more: bool) -> u64 {
        let Some(socket) = self.socket.as_mut().filter(|socket| socket.fin.is_none()) else { return 0 };
        socket.blocked = socket.blocked.saturating_add(bytes);
        let taken = self.take_blocked(true);
        let Some(socket) = &mut self.socket else { return taken };
        socket.more = more;
        if !more {
            socket.pushed = self.written + taken;
        }
        taken
    }

    /// How much of what is blocked fits now. A writer that waits goes on once a third of the buffer is free
    /// (`sk_stream_is_writeable`).
    pub(super) fn take_blocked(&mut self, at_once: bool) -> u64 {
        let (una, unsent, mut end, mss) = (self.una, self.nxt, self.written, self.mss);
        let Some(socket) = self.socket.as_mut().filter(|socket| socket.blocked > 0) else { return 0 };
        let Some(limit) = socket.buffer else { return std::mem::take(&mut socket.blocked) };
        while socket.ends.front().is_some_and(|end| *end <= una) {
            socket.ends.pop_front();
        }
        let memory = |socket: &SendSocket, end: u64| end - una + OVERHEAD * socket.ends.len() as u64;
        let queued = memory(socket, end);
        if !at_once && limit.saturating_sub(queued) < queued / 2 {
            return 0;
        }
        let start = end;
        let len = socket.buffer_len(mss);
        // The last buffer goes on being filled while nothing of it has left.
        let mut room = match socket.ends.back() {
            Some(_) if end > unsent => (len - end.saturating_sub(unsent) % len) % len,
            _ => 0,
        };
        while socket.blocked > 0 {
            if room == 0 {
                if memory(socket, end) >= limit {
                    break;
                }
                socket.ends.push_back(end);
                room = len;
            }
            let part = room.min(socket.blocked);
            end += part;
            room -= part;
            socket.blocked -= part;
            if let Some(last) = socket.ends.back_mut() {
                *last = end;
            }
        }
        end - start
    }

    /// What the send buffer has room for now.
    pub(crate) fn room(&self) -> u64 {
        let Some(socket) = &self.socket else { return u64::MAX };
        let Some(limit) = socket.buffer else { return u64::MAX };
        let used =
            self.written - self.una + OVERHEAD * socket.ends.iter().filter(|end| **end > self.una).count() as u64;
        let len = socket.buffer_len(self.mss);
        limit.saturating_sub(used).div_ceil(len + OVERHEAD) * len
    }

    /// A change that may let out what was held back.
    pub(crate) fn set_nodelay(&mut self, on: bool) {
        if let Some(socket) = &mut self.socket {
            socket.nodelay = on;
            socket.push |= on;
            socket.more = false;
        }
    }

    pub(crate) fn set_cork(&mut self, on: bool) {
        if let Some(socket) = &mut self.socket {
            socket.cork = on;
            socket.push |= !on && socket.nodelay;
            socket.more &= on;
        }
    }

    pub(crate) fn set_send_buffer(&mut self, bytes: u64) {
        if let Some(socket) = &mut self.socket {
            socket.buffer = Some(bytes);
        }
    }

    pub(crate) fn set_user_timeout(&mut self, timeout: Option<Span>) {
        if let Some(socket) = &mut self.socket {
            socket.user_timeout = timeout;
        }
    }

    /// A FIN follows what was written.
    pub(crate) fn finish(&mut self) {
        let Some(socket) = &mut self.socket else { return };
        if socket.fin.is_some() {
            return;
        }
        if socket.blocked > 0 {
            socket.shut_when_taken = true;
            return;
        }
        socket.fin = Some(self.written);
        socket.pushed = self.written;
        self.written += 1;
    }

    /// After something made room: takes in what was blocked, and the FIN behind it.
    pub(super) fn refill(&mut self) -> bool {
        let taken = self.take_blocked(false);
        self.written += taken;
        let Some(socket) = &mut self.socket else { return false };
        if taken > 0 && !socket.more {
            socket.pushed = self.written;
        }
        if socket.blocked == 0 && std::mem::take(&mut socket.shut_when_taken) {
            self.finish();
        }
        taken > 0
    }

    /// End of the payload that has been taken in.
    pub(crate) fn payload_end(&self) -> u64 {
        self.payload_below(self.written)
    }

    /// The position as one of payload: a FIN is none.
    #[inline]
    pub(super) fn payload_below(&self, position: u64) -> u64 {
        match &self.socket {
            None => position,
            Some(socket) => socket.fin.map_or(position, |fin| position.min(fin)),
        }
    }

    pub(crate) fn fin_acknowledged(&self) -> bool {
        self.fin().is_some_and(|fin| self.una > fin)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.fin.is_some() || socket.shut_when_taken)
    }

    fn fin(&self) -> Option<u64> {
        self.socket.as_ref().and_then(|socket| socket.fin)
    }

    /// Length of the next new segment of a socket, a FIN counted.
    pub(super) fn next_len_of_socket(&self, socket: &SendSocket) -> u64 {
        match socket.fin {
            None => self.unsent().min(self.mss),
            Some(fin) => {
                let payload = (fin - self.nxt.min(fin)).min(self.mss);
                payload + u64::from(self.nxt + payload == fin)
            }
        }
    }

    /// Whether the next new segment is the last.
    pub(super) fn ends_stream(&self, socket: &SendSocket) -> bool {
        socket.fin.is_some_and(|fin| self.nxt + self.next_len_of_socket(socket) > fin)
    }

    /// Whether Nagle's algorithm, a cork or a deferred super-frame lets the next new segment go.
    pub(super) fn held_back(&self, now: Time, socket: &SendSocket) -> SendHold {
        let len = self.next_len_of_socket(socket);
        if socket.push || self.ends_stream(socket) {
            return SendHold::Free;
        }
        if len < self.mss {
            let small_out = !self.board.is_empty() && socket.partial_end > self.una;
            let held = socket.cork || socket.more || !socket.nodelay && small_out;
            return if held { SendHold::ForMoreData } else { SendHold::Free };
        }
        if socket.burst.1 == 0 && self.defers(now, socket) { SendHold::ForMoreWindow } else { SendHold::Free }
    }

    /// `tcp_tso_should_defer`: a small part of the window waits for the next acknowledgement, if that is near.
    fn defers(&self, now: Time, socket: &SendSocket) -> bool {
        let divisor = u64::from(socket.tso.window_divisor);
        let (Some(last), Some(srtt), Some(head)) = (self.last_sent, self.rtt.srtt(), self.board.head_sent_at()) else {
            return false;
        };
        if divisor == 0 || self.phase != super::Phase::Open || now.since(last) > Span::from_ms(1) {
            return false;
        }
        let congestion = self.window().saturating_sub(self.charged_flight());
        let receiver = self.edge.saturating_sub(self.nxt);
        let room = congestion.min(receiver);
        let enough = self.window().min(socket.window) / divisor;
        let burst = self.burst_limit(socket) * self.mss;
        if room >= enough || room >= burst || now.since(head) < srtt / 2 {
            return false;
        }
        let waiting = self.unsent();
        waiting > self.mss && room <= waiting || socket.fin.is_none() && waiting > self.mss
    }

    /// Segments of one super-frame (`tcp_tso_autosize`, `tcp_cwnd_test`): a millisecond's worth at the rate of the
    /// window, and never more than half of it.
    fn burst_limit(&self, socket: &SendSocket) -> u64 {
        let window = self.window();
        let per_ms = match self.rtt.srtt() {
            Some(srtt) if srtt > Span::ZERO => {
                let gain = if window < self.threshold() / 2 { 200 } else { 120 };
                let bytes = u128::from(window) * gain / 100 * 1_000_000_000_000 / 1_024 / u128::from(srtt.as_ps());
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
            _ => MAX_BURST,
        };
        let segments = (per_ms.min(MAX_BURST) / self.mss).max(u64::from(socket.tso.min_segments));
        segments.min((MAX_BURST / self.mss).max(1)).min((self.window() / self.mss / 2).max(1))
    }

    /// A new segment of a socket leaves; `len` counts a FIN.
    pub(super) fn on_new_of_socket(&mut self, seq: u64, len: u64) {
        let limit = self.socket.as_ref().map_or(1, |socket| self.burst_limit(socket));
        let mss = self.mss;
        let Some(socket) = &mut self.socket else { return };
        let (sent, left) = socket.burst;
        socket.burst = if left == 0 { (1, limit.max(1) - 1) } else { (sent + 1, left - 1) };
        if len < mss {
            socket.partial_end = seq + len;
        }
        if seq + len >= self.written {
            socket.push = false;
        }
    }

    /// Whether the new segment that left last, and ends at `end`, carries PSH. `more` if another one follows at once.
    pub(crate) fn pushes(&mut self, seq: u64, end: u64, more: bool) -> bool {
        let written = self.written;
        let Some(socket) = &mut self.socket else { return false };
        let (sent, left) = socket.burst;
        let ends_burst = left == 0 || !more;
        if ends_burst {
            socket.burst = (0, 0);
        }
        let by_write = end >= written && socket.pushed > seq;
        if by_write {
            socket.push_ends.push_back(end);
        }
        by_write || ends_burst && sent > 1 && socket.tso.push
    }

    /// Whether a copy that ends at `end` carries PSH.
    pub(crate) fn pushes_again(&mut self, end: u64) -> bool {
        let una = self.una;
        let Some(socket) = &mut self.socket else { return false };
        while socket.push_ends.front().is_some_and(|end| *end <= una) {
            socket.push_ends.pop_front();
        }
        socket.push_ends.contains(&end)
    }

    /// Sets the clock of what the sender waits for now.
    pub(crate) fn note_wait(&mut self, now: Time) {
        let Some(socket) = &self.socket else { return };
        let blocked = socket.blocked > 0;
        let full = self.charged_flight() + self.mss > self.window();
        let wait = if self.una == self.written && !blocked {
            SendWait::Idle
        } else if self.unsent() > 0 && !self.has_room() && (!full || self.board.is_empty()) {
            SendWait::ReceiveWindow
        } else if blocked && self.unsent() == 0 && !full {
            SendWait::SendBuffer
        } else {
            SendWait::Busy
        };
        if let Some(socket) = &mut self.socket {
            socket.clocks.set(now, wait);
        }
    }
}

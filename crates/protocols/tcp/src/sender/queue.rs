//! Segments that a socket holds back, and marks: Nagle's algorithm, corks, PSH, the send buffer, FIN.
//!
//! Nagle's algorithm with Minshall's change (`tcp_nagle_check`): a partial segment waits while another partial one is not
//! acknowledged. A cork makes every partial segment wait, until the window probe's timer takes it along. `MSG_MORE` is a
//! cork until the next reason to look: an acknowledgement, another write.
//!
//! [`buffers`](super::buffers) turns writes into buffers, and places PSH.

use machine::Out;
use units::{Span, Time};

use super::super::config::LinuxVersion;
use super::super::connection::TcpConnection;
use super::super::sites::TcpSite;
use super::super::socket::TcpSocketConfig;
use super::TcpSender;
use super::buffers::SendBuffers;
use super::waits::{SendClocks, SendWait};

/// A part of the window waits for an acknowledgement that is due within this.
const DEFER_AT_MOST: Span = Span::from_ms(1);

#[derive(Debug)]
pub(super) struct SendSocket {
    pub(super) version: LinuxVersion,
    pub(super) nodelay: bool,
    cork: bool,
    /// Lets what waits now leave, whatever holds it back (`TCP_NAGLE_PUSH`).
    pub(super) push: bool,
    /// The last write said that more would follow, and there was no reason to look since.
    pub(super) more: bool,
    /// End of the last partial segment that left (`snd_sml`).
    pub(super) partial_end: u64,
    /// Position of the FIN, once nothing more is written.
    pub(super) fin: Option<u64>,
    shut_when_taken: bool,
    pub(super) buffers: SendBuffers,
    /// Position of the segment that last changed the window (`snd_wl1`), and the window that it offered.
    pub(super) window_from: u64,
    pub(super) window: u64,
    pub(super) max_window: u64,
    pub(super) user_timeout: Option<Span>,
    /// Window probes without an answer, and the doublings of their wait.
    pub(super) probes: u32,
    pub(super) backoff: u32,
    /// Departure of the first copy since the peer last answered.
    pub(super) silent_since: Option<Time>,
    pub(super) gave_up: bool,
    /// The connection is over: nothing is written any more.
    pub(super) stopped: bool,
    /// `ordered_copy`: the last segment was a copy. `same_event`: nothing happened since.
    ordered_copy: bool,
    pub(super) same_event: bool,
    /// The reordering timer lets copies go, but nothing new (`tcp_rack_reo_timeout`).
    pub(super) copies_only: bool,
    /// True if segments arrived since losses were last looked for.
    pub(super) unjudged: bool,
    /// Last reason to look at what may leave: a segment that arrived, or a write.
    pub(super) looked: Time,
    pub(super) counters: SendCounters,
    pub(super) clocks: SendClocks,
}

/// Hold on the next new segment of a socket, beside the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendHold {
    Free,
    /// Waits for more to be written, or for the last partial segment to be acknowledged.
    ForMoreData,
    /// Waits for a larger part of the window.
    ForMoreWindow,
}

/// Counters that only `TCP_INFO` reports.
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
            version: config.version,
            nodelay: config.nodelay,
            cork: false,
            push: false,
            more: false,
            partial_end: 0,
            fin: None,
            shut_when_taken: false,
            buffers: SendBuffers::new(config),
            window_from: 0,
            window: config.peer_window,
            max_window: config.peer_window,
            user_timeout: config.user_timeout,
            probes: 0,
            backoff: 0,
            silent_since: None,
            gave_up: false,
            stopped: false,
            ordered_copy: false,
            same_event: false,
            copies_only: false,
            unjudged: false,
            looked: Time::ZERO,
            counters: SendCounters::default(),
            clocks: SendClocks::default(),
        }
    }
}

impl SendSocket {
    /// True if the event that let the last segment go lets this one go, too, and both are copies or neither is.
    pub(super) fn leaves_together(&mut self, copy: bool) -> bool {
        let together = self.same_event && copy == self.ordered_copy;
        self.ordered_copy = copy;
        self.same_event = true;
        together
    }
}

impl TcpSender {
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
            socket.buffers.limit = Some(bytes);
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
        if socket.fin.is_some() || socket.stopped {
            return;
        }
        if socket.buffers.blocked > 0 {
            socket.shut_when_taken = true;
            return;
        }
        socket.fin = Some(self.written);
        socket.buffers.append_fin(self.nxt, self.written);
        self.written += 1;
    }

    /// Takes in data that was blocked, and the FIN behind it, after an event made room.
    pub(super) fn refill<O: Out<TcpConnection>>(&mut self, out: &mut O) -> bool {
        let taken = self.take_blocked(out);
        let Some(socket) = &mut self.socket else { return false };
        if socket.buffers.blocked == 0 && std::mem::take(&mut socket.shut_when_taken) {
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
        let room = self.edge.saturating_sub(self.nxt);
        let small_out = socket.partial_end > self.una && !socket.nodelay && !socket.buffers.pushes_burst();
        match socket.fin {
            // A super-frame takes the rest of the window along (`tcp_mss_split_point`).
            _ if socket.buffers.in_burst() && (1..self.mss.min(self.unsent())).contains(&room) && !small_out => room,
            None => self.unsent().min(self.mss),
            Some(fin) => {
                let payload = (fin - self.nxt.min(fin)).min(self.mss);
                payload + u64::from(self.nxt + payload == fin)
            }
        }
    }

    /// True if the next new segment is the last.
    pub(super) fn ends_stream(&self, socket: &SendSocket) -> bool {
        socket.fin.is_some_and(|fin| self.nxt + self.next_len_of_socket(socket) > fin)
    }

    /// Hold of Nagle's algorithm, a cork or a deferred super-frame on the next new segment.
    pub(super) fn held_back<O: Out<TcpConnection>>(&self, socket: &SendSocket, out: &mut O) -> SendHold {
        let len = self.next_len_of_socket(socket);
        if socket.push || self.ends_stream(socket) || socket.buffers.pushes_burst() {
            return SendHold::Free;
        }
        if len < self.mss {
            let small_out = !self.board.is_empty() && socket.partial_end > self.una;
            let held = socket.cork || socket.more || !socket.nodelay && small_out;
            return if held { SendHold::ForMoreData } else { SendHold::Free };
        }
        if !socket.buffers.in_burst() && self.defers(socket.looked, socket, out) {
            SendHold::ForMoreWindow
        } else {
            SendHold::Free
        }
    }

    /// `tcp_tso_should_defer`: a small part of the window waits for the next acknowledgement, if that is near. Decided when
    /// there is a reason to look, not whenever a timer lets other things happen.
    fn defers<O: Out<TcpConnection>>(&self, now: Time, socket: &SendSocket, out: &mut O) -> bool {
        let divisor = u64::from(socket.buffers.tso.window_divisor);
        let (Some(last), Some(srtt), Some(head)) = (self.last_sent, self.rtt.srtt(), self.board.head_sent_at()) else {
            return false;
        };
        if divisor == 0 || self.phase != super::Phase::Open {
            return false;
        }
        let congestion = self.window().saturating_sub(self.charged_flight());
        let receiver = self.edge.saturating_sub(self.nxt);
        let room = congestion.min(receiver);
        let enough = self.window().min(socket.window) / divisor;
        if room >= enough || room > self.unsent() && socket.fin.is_some() {
            return false;
        }
        // The bytes of the first buffer leave at once if they are one segment, or if they fit and others follow.
        let buffer = socket.buffers.end_of(self.nxt).map_or(0, |end| end - self.nxt);
        if buffer <= self.mss || buffer <= room && buffer < self.unsent() {
            return false;
        }
        let burst = self.burst_limit(socket.buffers.tso) * self.mss;
        let late = match socket.buffers.tso.by_next_ack {
            true => (head + srtt).since(now) > (srtt / 2).min(DEFER_AT_MOST),
            false => now.since(head) < srtt / 2,
        };
        TcpSite::Defers.ask(out, room < burst && !late && now.since(last) < Span::from_ms(1))
    }

    /// Sets the clock of what the sender waits for now.
    pub(crate) fn note_wait(&mut self, now: Time) {
        let Some(socket) = &self.socket else { return };
        let blocked = socket.buffers.blocked > 0;
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

//! The peer's window, and what happens while it is shut: RFC 9293 §3.8.6.1, as Linux has it (`tcp_send_probe0`).
//!
//! A window may shut, open and even retreat. While it is shut and nothing is in flight, a probe leaves after an RTO, the
//! next after twice that, and so on: a segment without payload from before the window, which must be answered. If there
//! is room for a part of a segment, or something else holds a segment back for that long, it leaves instead.

use machine::Out;
use units::{Span, Time};

use super::super::connection::{TcpConnection, TcpProgress};
use super::super::segment::TcpSegment;
use super::super::sites::TcpSite;
use super::super::timing::Wait;
use super::queue::SendHold;
use super::timers::LossTimerKind;
use super::{TcpSender, UrgentSend};

/// `TCP_RTO_MIN` and `TCP_RTO_MAX`.
const PROBE_MIN: Span = Span::from_ms(200);
const PROBE_MAX: Span = Span::from_ms(120_000);
/// `tcp_retries2`, and what an end that nobody owns any more may take.
const RETRIES: u32 = 15;

impl TcpSender {
    /// `tcp_ack_update_window`: by a newer segment, or a larger window of the same. Returns whether it was.
    pub(super) fn update_window<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        segment: &TcpSegment,
        out: &mut O,
    ) -> bool {
        let una = self.una;
        let Some(socket) = &mut self.socket else { return false };
        let offered = u64::from(segment.window);
        let newer = segment.ack > una || signed(segment.seq, socket.window_from) > 0;
        let same = segment.seq == socket.window_from && (offered > socket.window || offered == 0);
        let mut opened = false;
        let updates = segment.ack >= una && (newer || same);
        if updates {
            socket.window_from = segment.seq;
            opened = socket.window != offered;
            socket.window = offered;
            socket.max_window = socket.max_window.max(offered);
            self.edge = segment.ack.saturating_add(offered);
        }
        socket.probes = 0;
        socket.looked = now;
        socket.copies_only = false;
        socket.same_event = false;
        if segment.ack > una {
            socket.silent_since = None;
            socket.counters.timeouts = 0;
        }
        socket.more = false;
        // While the window is shut, every answer makes the next probe wait anew.
        self.timer.forget(LossTimerKind::Window);
        if opened && self.board.is_empty() && self.unsent() > 0 {
            self.restart_after_idle(now, out);
        }
        updates
    }

    /// Takes in blocked data after an event, and arms a window probe if only a probe can help.
    pub(crate) fn watch_window<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if self.socket.is_none() {
            return;
        }
        if self.refill(out) {
            out.complete(TcpProgress::Written(self.payload_end()));
        }
        let shut = self.board.is_empty() && self.unsent() > 0 && self.is_held_back(out);
        if shut {
            if !self.timer.waits_for(LossTimerKind::Window) {
                self.wait_for_window(now, out);
            }
        } else if self.timer.waits_for(LossTimerKind::Window) {
            self.timer.cancel(out);
            if let Some(socket) = &mut self.socket {
                socket.backoff = 0;
            }
        }
        self.note_wait(now);
    }

    fn is_held_back<O: Out<TcpConnection>>(&self, out: &mut O) -> bool {
        let Some(socket) = &self.socket else { return false };
        self.urgent.is_some() || !self.has_room() || self.held_back(socket, out) != SendHold::Free
    }

    fn wait_for_window<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        let Some(socket) = &self.socket else { return };
        let base = self.rtt.base_rto().max(PROBE_MIN);
        let mut span = (base * (1 << socket.backoff.min(16))).min(PROBE_MAX);
        if let (Some(timeout), Some(since)) = (socket.user_timeout, socket.silent_since) {
            span = span.min((since + timeout).since(now).max(self.timing.jiffy()));
        }
        self.set_timer(LossTimerKind::Window, Wait::plain(now, span), out);
    }

    /// The window was shut for long enough.
    pub(super) fn probe_window<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if self.unsent() == 0 || !self.board.is_empty() {
            return;
        }
        let Some(socket) = &mut self.socket else { return };
        let since = *socket.silent_since.get_or_insert(now);
        let waits = now.since(since);
        let over = socket.user_timeout.is_some_and(|timeout| TcpSite::UserTimeout.ask(out, waits >= timeout));
        if over || socket.probes > RETRIES {
            return self.give_up(now, out);
        }
        socket.probes += 1;
        socket.backoff = (socket.backoff + 1).min(RETRIES);
        self.urgent = Some(UrgentSend::WindowProbe);
        self.wait_for_window(now, out);
    }

    /// True if the retransmission timer went off too often, or data waits too long.
    pub(super) fn has_waited_too_long<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) -> bool {
        let Some(socket) = &mut self.socket else { return false };
        // A peer whose window has retreated drops what comes, but it answers: `tcp_retransmit_timer` does not count that.
        let answers = now.since(socket.looked) <= PROBE_MAX;
        if socket.window == 0 && TcpSite::PeerAnswers.ask(out, answers) {
            return false;
        }
        socket.counters.timeouts += 1;
        let since = *socket.silent_since.get_or_insert(now);
        let waits = now.since(since);
        let over = socket.user_timeout.is_some_and(|timeout| TcpSite::UserTimeout.ask(out, waits >= timeout));
        over || socket.counters.timeouts > RETRIES
    }

    pub(super) fn give_up<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        self.stop(now, out);
        if let Some(socket) = &mut self.socket {
            socket.gave_up = true;
        }
        out.complete(TcpProgress::TimedOut);
    }

    /// Stops the sender: nothing leaves any more.
    pub(crate) fn stop<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        self.timer.cancel(out);
        self.urgent = None;
        self.una = self.nxt;
        self.written = self.nxt;
        self.board = super::Scoreboard::default();
        if let Some(socket) = &mut self.socket {
            socket.stopped = true;
            socket.buffers.clear();
            socket.clocks.set(now, super::waits::SendWait::Idle);
        }
    }

    pub(crate) fn gave_up(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.gave_up)
    }
}

/// `a` - `b` for positions that may lie one before the stream.
fn signed(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

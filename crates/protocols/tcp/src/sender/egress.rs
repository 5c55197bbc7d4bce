//! Order of departures: what is urgent, then repairs, then new data.

use machine::Out;
use units::{Span, Time};

use super::super::cc::CongestionControl;
use super::super::connection::{TcpConnection, TcpNote, TcpRetransmitCause};
use super::super::record::{SegmentState, timestamp};
use super::super::segment::SegmentFlags;
use super::super::sites::TcpSite;
use super::queue::{SendHold, SendSocket};
use super::{EcnResponse, Phase, TailLossProbe, TcpSender, UrgentSend};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextSend {
    Nothing,
    /// A segment waits, but the window is full.
    Full,
    /// A segment waits until this time.
    Later(Time),
    Urgent(UrgentSend),
    Repair,
    New,
}

/// Payload that leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingPayload {
    pub seq: u64,
    pub len: u32,
    pub capable: bool,
    pub cwr: bool,
    /// PSH and FIN; `len` does not count a FIN.
    pub flags: SegmentFlags,
}

impl TcpSender {
    #[inline]
    pub(crate) fn next<O: Out<TcpConnection>>(&self, now: Time, out: &mut O) -> NextSend {
        if let Some(urgent) = self.urgent {
            return NextSend::Urgent(urgent);
        }
        let (next, len) = if self.board.lost() > 0 {
            if self.socket.is_some() {
                return self.next_in_doubt(now).unwrap_or_else(|| self.next_repair_of_socket(now));
            }
            (NextSend::Repair, self.board.next_repair_len())
        } else if let Some(socket) = &self.socket {
            return self.next_of_socket(now, socket, out);
        } else if self.unsent() > 0 && self.has_room() {
            (NextSend::New, self.next_len())
        } else {
            return NextSend::Nothing;
        };
        let flight = self.flight();
        if flight > 0 && flight + len > self.window() {
            NextSend::Full
        } else if self.pacer.release > now {
            NextSend::Later(self.pacer.release)
        } else {
            next
        }
    }

    /// Beyond a window that has retreated nothing leaves again but the first, which probes it; what lies partly beyond is
    /// cut (`__tcp_retransmit_skb`).
    fn next_repair_of_socket(&self, now: Time) -> NextSend {
        let Some(start) = self.board.next_repair_start() else { return NextSend::Nothing };
        let flight = self.charged_flight();
        if flight > 0 && flight + self.mss > self.window() {
            NextSend::Full
        } else if start > self.una && start >= self.edge {
            NextSend::Nothing
        } else if self.pacer.release > now {
            NextSend::Later(self.pacer.release)
        } else {
            NextSend::Repair
        }
    }

    /// Limits in the order of `tcp_write_xmit`: the congestion window, the peer's window, then the rules that hold
    /// small segments back.
    fn next_of_socket<O: Out<TcpConnection>>(&self, now: Time, socket: &SendSocket, out: &mut O) -> NextSend {
        if self.unsent() == 0 || socket.copies_only {
            return NextSend::Nothing;
        }
        let flight = self.charged_flight();
        // The last segment leaves regardless of the congestion window (`tcp_cwnd_test`).
        if flight > 0 && flight + self.mss > self.window() && !self.ends_stream(socket) {
            return NextSend::Full;
        }
        if !self.has_room() {
            return NextSend::Nothing;
        }
        match self.held_back(socket, out) {
            SendHold::Free if self.pacer.release > now => NextSend::Later(self.pacer.release),
            SendHold::Free => NextSend::New,
            SendHold::ForMoreWindow => NextSend::Full,
            SendHold::ForMoreData => NextSend::Nothing,
        }
    }

    /// Bytes in flight if each segment counts as a full one, as in a kernel.
    pub(super) fn charged_flight(&self) -> u64 {
        let counted = self.counting.as_ref().map_or(0, |count| count.arrived());
        let gone = u64::from(self.board.sacked_segments()) + self.board.lost_segments() + counted;
        self.board.segments().saturating_sub(gone) * self.mss
    }

    #[inline]
    fn next_len(&self) -> u64 {
        match &self.socket {
            None => self.unsent().min(self.mss),
            Some(socket) => self.next_len_of_socket(socket),
        }
    }

    /// True if the peer has room for the next new segment.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.nxt + self.next_len() <= self.edge
    }

    /// `None` if `next` is none that can leave.
    #[inline]
    pub(crate) fn send<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        next: NextSend,
        out: &mut O,
    ) -> Option<OutgoingPayload> {
        let mut outgoing = match next {
            NextSend::Nothing | NextSend::Full | NextSend::Later(_) => return None,
            NextSend::New => {
                let outgoing = self.send_new(now, out);
                self.on_new_sent(now, out);
                outgoing
            }
            NextSend::Urgent(UrgentSend::ProbeNew) => {
                let outgoing = self.send_new(now, out);
                self.probed = Some(TailLossProbe { end: self.nxt, again: false });
                outgoing
            }
            NextSend::Repair | NextSend::Urgent(UrgentSend::Head) => {
                let cause = if matches!(self.phase, Phase::Loss { .. }) {
                    TcpRetransmitCause::Timeout
                } else {
                    TcpRetransmitCause::Sack
                };
                let index = self.board.next_repair().expect("what is lost has a place");
                self.resend(now, index, cause, out)
            }
            NextSend::Urgent(UrgentSend::ProbeLast) => {
                let index = self.last_to_probe().expect("a probe needs a segment");
                self.probed = Some(TailLossProbe { end: self.nxt, again: true });
                self.resend(now, index, TcpRetransmitCause::Probe, out)
            }
            NextSend::Urgent(UrgentSend::WindowProbe) => self.send_window_probe(now, out),
        };
        self.urgent = None;
        self.on_left(now, next, &outgoing);
        if self.socket.is_some() {
            self.mark(now, next, &mut outgoing, out);
        }
        Some(outgoing)
    }

    /// Sends what the window has room for, or nothing from before it (`tcp_write_wakeup`).
    fn send_window_probe<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) -> OutgoingPayload {
        let room = self.edge.saturating_sub(self.nxt);
        if room == 0 {
            let seq = self.una.wrapping_sub(1);
            return OutgoingPayload { seq, len: 0, capable: false, cwr: false, flags: SegmentFlags::NONE };
        }
        let outgoing = self.send_some(now, self.next_len().min(room), out);
        self.on_new_sent(now, out);
        OutgoingPayload { flags: SegmentFlags::PSH, ..outgoing }
    }

    /// A FIN has a position, but is no payload; PSH is where a kernel would have it.
    fn mark<O: Out<TcpConnection>>(&mut self, now: Time, next: NextSend, outgoing: &mut OutgoingPayload, out: &mut O) {
        let (seq, end) = (outgoing.seq, outgoing.seq.wrapping_add(u64::from(outgoing.len)));
        let is_new = !matches!(
            next,
            NextSend::Repair | NextSend::Urgent(UrgentSend::Head) | NextSend::Urgent(UrgentSend::ProbeLast)
        );
        let push = outgoing.len > 0 && self.pushes(now, is_new, (seq, end), out);
        let payload_end = self.payload_below(end);
        let fin = outgoing.len > 0 && payload_end < end;
        outgoing.len -= u32::from(fin);
        if fin {
            outgoing.flags = outgoing.flags.with(SegmentFlags::FIN);
        }
        if push && outgoing.len > 0 {
            outgoing.flags = outgoing.flags.with(SegmentFlags::PSH);
        }
    }

    #[inline]
    fn send_new<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) -> OutgoingPayload {
        self.send_some(now, self.next_len(), out)
    }

    #[inline]
    fn send_some<O: Out<TcpConnection>>(&mut self, now: Time, len: u64, out: &mut O) -> OutgoingPayload {
        let seq = self.nxt;
        if self.socket.is_some() {
            self.note_pause(now);
        }
        let stamp = self.delivery.stamp(now, self.board.is_empty());
        let at = self.send_time(now, false, out);
        self.board.push(seq, len as u16, at, stamp);
        self.nxt += len;
        if self.socket.is_some() {
            self.on_new_of_socket(seq, len, out);
        }
        let cwr = self.ecn == EcnResponse::Classic && std::mem::take(&mut self.tell_cwr);
        let capable = self.ecn != EcnResponse::Off;
        OutgoingPayload { seq, len: len as u32, capable, cwr, flags: SegmentFlags::NONE }
    }

    /// Notes that nothing was in flight: growth goes on from where it was (`CA_EVENT_TX_START`), unless a restart has
    /// seen to that.
    fn note_pause(&mut self, now: Time) {
        let Some(last) = self.last_sent.filter(|_| self.charged_flight() == 0) else { return };
        let idle = now.since(last);
        if !self.idle_restart || idle <= self.rtt.rto() {
            self.control.on_first_sent(now, idle);
        }
    }

    /// Loss detection goes by the order of times: of two that leave at the same time, the later in the stream is the later
    /// one. With a socket none of it may be chance: the same time for all that one event lets go, but copies before new
    /// ones, and later than what the event before let go. A kernel's clock does that.
    #[inline]
    fn send_time<O: Out<TcpConnection>>(&mut self, now: Time, copy: bool, out: &mut O) -> Time {
        let together = self.socket.as_mut().is_none_or(|socket| socket.leaves_together(copy));
        if !(together && TcpSite::SameTime.ask(out, now <= self.ordered)) {
            self.ordered = now.max(self.ordered + Span::from_ps(1));
        }
        self.ordered
    }

    /// A copy that is shorter than a segment takes along what follows: the rest of its buffer, and whole buffers that fit
    /// (`tcp_fragment`, `tcp_retrans_try_collapse`).
    fn gather(&mut self, index: usize) {
        let Some(socket) = &self.socket else { return };
        let until = self.edge.max(self.una + self.mss);
        while let Some((end, rest)) = self.board.room_for_next(index, self.mss, until) {
            let same_buffer = socket.buffers.end_of(end - 1).is_some_and(|buffer| buffer > end);
            // Another buffer joins only as a whole, and if it is one segment (`tcp_can_collapse`).
            let behind: Vec<_> = self.board.records().skip(index + 1).take(2).collect();
            let next_end = behind.first().map(|next| next.end());
            // A segment that has arrived is cut off from its buffer.
            let is_cut = behind.get(1).is_some_and(|then| then.state == SegmentState::Sacked);
            if !same_buffer && !is_cut && socket.buffers.end_of(end) != next_end {
                break;
            }
            if !self.board.take_from_next(index, rest, same_buffer) {
                break;
            }
        }
    }

    /// RFC 3168 §6.1.5: a classic sender's copies may not be marked.
    pub(super) fn resend<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        index: usize,
        cause: TcpRetransmitCause,
        out: &mut O,
    ) -> OutgoingPayload {
        if let Some(socket) = &mut self.socket {
            if self.board.split(index, self.edge) {
                socket.buffers.cut(self.edge);
            }
            self.gather(index);
        }
        let stamp = self.delivery.stamp(now, false);
        let at = self.send_time(now, true, out);
        let (seq, len) = self.board.resend(index, at, stamp);
        if let Some(undo) = self.undo.as_mut().filter(|_| cause != TcpRetransmitCause::Probe) {
            undo.on_copy(timestamp(now));
        }
        self.on_resent(now, index == 0, out);
        out.note(TcpNote::Retransmitted { cause, bytes: u32::from(len) });
        if let Some(socket) = &mut self.socket {
            socket.counters.copies += 1;
        }
        let capable = self.ecn == EcnResponse::Dctcp;
        OutgoingPayload { seq, len: u32::from(len), capable, cwr: false, flags: SegmentFlags::NONE }
    }

    #[inline]
    fn on_left(&mut self, now: Time, what: NextSend, outgoing: &OutgoingPayload) {
        let len = u64::from(outgoing.len);
        if len > 0 {
            self.last_sent = Some(now);
        }
        if let Some(pace) = self.control.pacing() {
            self.pacer.on_sent(now, len, pace, self.mss);
        }
        // A kernel does not count the copy that a probe is (`tcp_send_loss_probe`).
        let is_counted = self.socket.is_none() || what != NextSend::Urgent(UrgentSend::ProbeLast);
        if is_counted && (matches!(self.phase, Phase::Recovery { .. }) || self.gliding.is_some()) {
            self.prr.on_sent(if self.socket.is_some() { self.mss } else { len });
        }
    }

    /// Notes after `sent` left if the window was the limit, which `next` shows.
    #[inline]
    pub(crate) fn note_usage(&mut self, sent: NextSend, next: NextSend) {
        if let Some(socket) = &self.socket {
            // A kernel looks when it sends what is new, or could (`tcp_write_xmit`): not at copies by themselves.
            let copy = matches!(sent, NextSend::Urgent(UrgentSend::Head | UrgentSend::ProbeLast));
            if copy || sent == NextSend::Repair && (self.unsent() == 0 || socket.copies_only) {
                return;
            }
            // A kernel counts segments that are not acknowledged, and calls a window full that has room for no more.
            let outstanding = self.board.segments() * self.mss;
            let full = next == NextSend::Full || self.charged_flight() >= self.window();
            return self.usage.on_sent(self.una, self.nxt, outstanding, full);
        }
        self.usage.on_sent(self.una, self.nxt, self.flight(), next == NextSend::Full);
    }
}

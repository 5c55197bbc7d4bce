//! What leaves next: what is urgent, then repairs, then new data.

use machine::Out;
use units::Time;

use super::super::cc::CongestionControl;
use super::super::connection::{TcpConnection, TcpNote, TcpRetransmitCause};
use super::super::record::timestamp;
use super::{EcnResponse, Phase, TailLossProbe, TcpSender, UrgentSend};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextSend {
    Nothing,
    /// There is something, but the window is full.
    Full,
    /// There is something, but not before.
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
}

impl TcpSender {
    #[inline]
    pub(crate) fn next(&self, now: Time) -> NextSend {
        if let Some(urgent) = self.urgent {
            return NextSend::Urgent(urgent);
        }
        let (next, len) = if self.board.lost() > 0 {
            (NextSend::Repair, self.board.next_repair_len())
        } else if self.unsent() > 0 && self.has_room() {
            (NextSend::New, self.next_len())
        } else {
            return NextSend::Nothing;
        };
        let flight = self.board.flight();
        if flight > 0 && flight + len > self.window() {
            NextSend::Full
        } else if self.pacer.release > now {
            NextSend::Later(self.pacer.release)
        } else {
            next
        }
    }

    #[inline]
    fn next_len(&self) -> u64 {
        self.unsent().min(self.mss)
    }

    /// Whether the peer has room for the next new segment.
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
        let outgoing = match next {
            NextSend::Nothing | NextSend::Full | NextSend::Later(_) => return None,
            NextSend::New => {
                let outgoing = self.send_new(now);
                self.on_new_sent(now, out);
                outgoing
            }
            NextSend::Urgent(UrgentSend::ProbeNew) => {
                let outgoing = self.send_new(now);
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
                let index = self.board.last_unsacked().expect("a probe needs a segment");
                self.probed = Some(TailLossProbe { end: self.nxt, again: true });
                self.resend(now, index, TcpRetransmitCause::Probe, out)
            }
        };
        self.urgent = None;
        self.on_left(now, &outgoing);
        Some(outgoing)
    }

    #[inline]
    fn send_new(&mut self, now: Time) -> OutgoingPayload {
        let (seq, len) = (self.nxt, self.next_len());
        let stamp = self.delivery.stamp(now, self.board.is_empty());
        self.board.push(seq, len as u16, now, stamp);
        self.nxt += len;
        let cwr = self.ecn == EcnResponse::Classic && std::mem::take(&mut self.tell_cwr);
        OutgoingPayload { seq, len: len as u32, capable: self.ecn != EcnResponse::Off, cwr }
    }

    /// RFC 3168 §6.1.5: a classic sender's copies may not be marked.
    fn resend<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        index: usize,
        cause: TcpRetransmitCause,
        out: &mut O,
    ) -> OutgoingPayload {
        let stamp = self.delivery.stamp(now, false);
        let (seq, len) = self.board.resend(index, now, stamp);
        if let Some(undo) = self.undo.as_mut().filter(|_| cause != TcpRetransmitCause::Probe) {
            undo.on_copy(timestamp(now));
        }
        self.on_resent(now, index == 0, out);
        out.note(TcpNote::Retransmitted { cause, bytes: u32::from(len) });
        OutgoingPayload { seq, len: u32::from(len), capable: self.ecn == EcnResponse::Dctcp, cwr: false }
    }

    #[inline]
    fn on_left(&mut self, now: Time, outgoing: &OutgoingPayload) {
        let len = u64::from(outgoing.len);
        self.last_sent = Some(now);
        if let Some(pace) = self.control.pacing() {
            self.pacer.on_sent(now, len, pace, self.mss);
        }
        if matches!(self.phase, Phase::Recovery { .. }) {
            self.prr.on_sent(len);
        }
    }

    /// Called after something left: `next` shows whether the window was the limit.
    #[inline]
    pub(crate) fn note_usage(&mut self, next: NextSend) {
        self.usage.on_sent(self.una, self.nxt, self.board.flight(), next == NextSend::Full);
    }
}

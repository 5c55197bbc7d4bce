//! A sender that follows what another one did: it is asked what it would send, and then notified of what left.
//!
//! Whatever left is taken over, whether the sender would have sent it or not: the other one decides, and this one keeps
//! its windows, estimates and timers as if it had decided the same.

use machine::Out;
use units::Time;

use super::super::connection::{TcpConnection, TcpRetransmitCause};
use super::super::sink::TcpSink;
use super::{NextSend, Phase, TailLossProbe, TcpSender, UrgentSend};

impl TcpSender {
    /// Payload left at `now`; whether this sender would have sent it then. New data must begin where the last ended.
    pub(crate) fn force<O: Out<TcpConnection>>(&mut self, now: Time, seq: u64, len: u16, out: &mut O) -> bool {
        if seq >= self.nxt { self.force_new(now, seq, len, out) } else { self.force_again(now, seq, len, out) }
    }

    fn force_new<O: Out<TcpConnection>>(&mut self, now: Time, seq: u64, len: u16, out: &mut O) -> bool {
        self.write(now, (seq + u64::from(len)).saturating_sub(self.written), false, out);
        let next = self.next(now, out);
        let is_probe = next == NextSend::Urgent(UrgentSend::ProbeNew);
        if next == NextSend::Full && self.phase == Phase::Open {
            self.control.adopt(self.board.flight() + u64::from(len));
        }
        let stamp = self.delivery.stamp(now, self.board.is_empty());
        self.board.push(seq, len, now, stamp);
        self.nxt = seq + u64::from(len);
        self.urgent = None;
        if is_probe {
            self.probed = Some(TailLossProbe { end: self.nxt, again: false });
        } else {
            self.on_new_sent(now, out);
        }
        self.after_forced(now, len);
        is_probe || next == NextSend::New
    }

    fn force_again<O: Out<TcpConnection>>(&mut self, now: Time, seq: u64, len: u16, out: &mut O) -> bool {
        let Some(index) = self.board.place_of(seq) else { return false };
        let agrees = self.would_repeat(now, seq, out);
        let cause = if self.urgent == Some(UrgentSend::ProbeLast) {
            self.probed = Some(TailLossProbe { end: self.nxt, again: true });
            TcpRetransmitCause::Probe
        } else {
            TcpRetransmitCause::Sack
        };
        self.urgent = None;
        self.resend(now, index, cause, out);
        self.after_forced(now, len);
        agrees
    }

    /// True if the segment at `seq` is the one that would be sent again now.
    fn would_repeat<O: Out<TcpConnection>>(&self, now: Time, seq: u64, out: &mut O) -> bool {
        match self.next(now, out) {
            NextSend::Repair | NextSend::Urgent(UrgentSend::Head) => self.board.next_repair_start() == Some(seq),
            NextSend::Urgent(UrgentSend::ProbeLast) => self.board.place_of(seq) == self.board.last_unsacked(),
            _ => false,
        }
    }

    /// True if it would send what is at `seq` now. For new data only the window decides.
    pub(crate) fn would_force(&self, now: Time, seq: u64) -> bool {
        seq >= self.nxt || self.would_repeat(now, seq, &mut TcpSink::default())
    }

    /// The window limits a sender that could not send another full segment.
    fn after_forced(&mut self, now: Time, len: u16) {
        self.last_sent = Some(now);
        if self.phase != Phase::Open {
            self.prr.on_sent(u64::from(len));
        }
        let is_full = self.board.flight() + self.mss > self.window();
        self.note_usage(NextSend::New, if is_full { NextSend::Full } else { NextSend::Nothing });
    }
}

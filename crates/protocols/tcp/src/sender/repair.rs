//! Losses: found, repaired, or imagined.

use machine::Out;
use units::{Span, Time};

use super::super::cc::CongestionControl;
use super::super::connection::{TcpConnection, TcpNote};
use super::super::record::DeliveredBytes;
use super::super::sites::TcpSite;
use super::super::undo::Undo;
use super::{Phase, TcpSender};

impl TcpSender {
    /// RFC 8985 §6.2, step 5.
    #[inline]
    pub(super) fn detect_losses<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if self.counting.is_some() {
            return self.detect_by_count(now, out);
        }
        let srtt = self.rtt.srtt().unwrap_or_default();
        let repairing = self.phase != Phase::Open;
        let window =
            self.rack.reordering_window(self.rtt.min().min(srtt), srtt, repairing, self.board.sacked_segments());
        let lost_copies = self.board.lost_copies();
        let wait = self.board.detect(&self.rack.judge(now, window), out);
        if wait > Span::ZERO {
            self.wait_for_order(now, wait, out);
        }
        // A socket whose copy got lost repairs gently again, even after a timeout (`FLAG_LOST_RETRANS`).
        let again = self.socket.is_some() && self.board.lost_copies() > lost_copies && self.is_timed_out();
        if self.board.lost() > 0 && self.phase == Phase::Open || again {
            self.enter_recovery(now, out);
        }
    }

    pub(super) fn is_timed_out(&self) -> bool {
        matches!(self.phase, Phase::Loss { .. })
    }

    pub(super) fn enter_recovery<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        let flight = self.pipe();
        let prior = self.control.window();
        // A reduction that a mark began continues (`tcp_in_cwnd_reduction`).
        let gliding = self.gliding.take().filter(|_| self.socket.is_some());
        let reduced = gliding.is_some();
        if !reduced {
            self.control.on_loss(now, flight);
            self.prr = self.new_prr(prior);
        }
        self.prr.on_ack(0, flight, false, self.mss);
        self.phase = Phase::Recovery { until: gliding.unwrap_or(self.nxt) };
        self.undo = Some(Undo::new(self.una).with_copies(self.board.has_copies_out() || self.board.is_head_resent()));
        self.probed = None;
        if !reduced {
            self.tell_reduced(out);
        }
    }

    pub(super) fn enter_loss<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        self.forget_counts();
        let rtt = if self.counting.is_some() { Span::ZERO } else { self.rack.rtt() };
        self.board.time_out(now, rtt, out);
        if self.socket.is_some() {
            self.end_reduction(now);
        }
        self.gliding = None;
        self.control.on_timeout(now, self.pipe());
        self.suspect_timeout();
        // Copies of a repair under way count on: what they repaired was lost.
        if self.phase == Phase::Open {
            self.undo = Some(Undo::new(self.una));
        }
        self.phase = Phase::Loss { until: self.nxt };
        self.probed = None;
        self.tell_cwr = true;
    }

    /// A reduction whose end is acknowledged is over, although nothing more than that was: what follows is news.
    fn end_reduction(&mut self, now: Time) {
        if matches!(self.phase, Phase::Recovery { until } if self.una >= until) {
            let window = self.window();
            self.control.on_recovered(now);
            self.control.on_mark_answered();
            self.control.on_reduction_stopped(window);
        }
        if self.gliding.is_some_and(|until| self.una >= until) {
            let window = self.window();
            self.control.on_mark_answered();
            self.control.on_reduction_stopped(window);
        }
    }

    /// The retransmission timer went off: what was counted until now says nothing any more.
    fn forget_counts(&mut self) {
        let counted = self.counting.as_ref().map_or(0, |counter| counter.arrived());
        if self.phase == Phase::Open {
            self.rack.degree_mut().on_timeout(u64::from(self.board.sacked_segments()) + counted);
        }
        if let Some(counter) = &mut self.counting {
            counter.reset();
        }
    }

    /// The window was reduced for a loss, if the controller reduces any.
    fn tell_reduced<O: Out<TcpConnection>>(&mut self, out: &mut O) {
        self.tell_cwr = true;
        if self.control.reacts() {
            out.note(TcpNote::Reduced { pending: self.unsent() });
        }
    }

    /// Reduces the window once because a probe repaired a loss (RFC 8985 §7.4.2).
    pub(super) fn reduce_for_probe<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if self.socket.is_some() {
            // Even while a mark is answered (`tcp_process_tlp_ack`).
            let window = self.window();
            if self.gliding.take().is_some() {
                self.control.on_mark_answered();
                self.control.on_reduction_stopped(window);
            }
        }
        self.control.on_loss(now, self.board.flight());
        self.control.on_recovered(now);
        self.tell_reduced(out);
    }

    /// Ends the repair after an acknowledgement, if it covers it. `prior` is the number acknowledged before it. True if a
    /// repair ended while segments behind it are lost: a kernel counts a segment as lost even with its copy in flight.
    pub(super) fn leave_phase<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        echo: u32,
        prior: u64,
        got: &DeliveredBytes,
        out: &mut O,
    ) -> bool {
        let advanced = self.una > prior;
        let (until, timed_out) = match self.phase {
            Phase::Open => return false,
            Phase::Recovery { until } => (until, false),
            Phase::Loss { until } => (until, true),
        };
        // Without SACK, an acknowledgement of just that may be followed by duplicates (RFC 6582 §3.2, step 1).
        let newreno = self.counting.as_ref().is_some_and(|counter| counter.is_newreno());
        let reopens = !newreno || self.board.is_empty() && self.socket.is_none();
        let over = self.una > until || self.una == until && reopens;
        let decides = advanced && (timed_out || over);
        let spurious = self.undo.is_some_and(|undo| is_spurious(&undo, echo, decides, out));
        if spurious || timed_out && self.is_timeout_spurious(until, got) {
            self.undo_reduction(now, out);
        }
        if !timed_out && advanced && self.undo_untouched(now, prior, until, out) {
            return false;
        }
        if !over && !timed_out && advanced {
            self.undo_partly(now, echo, out);
        }
        if over || self.undo.is_none() {
            self.phase = Phase::Open;
            self.undo = None;
            if timed_out && newreno {
                self.judge_counted();
            }
            if let Some(counter) = &mut self.counting {
                counter.reset();
            }
            self.control.on_recovered(now);
            if self.socket.is_some() {
                self.control.on_mark_answered();
            }
            self.rack.on_recovered();
            return over && self.socket.is_some() && self.board.has_lost();
        }
        false
    }

    /// A kernel that counts, during a repair: what arrived in order had left before any copy. It was late by as many segments
    /// as are acknowledged, and nothing was lost unless a copy is still out (`tcp_try_undo_partial`).
    fn undo_partly<O: Out<TcpConnection>>(&mut self, now: Time, echo: u32, out: &mut O) {
        let counts = self.socket.is_some() && self.counting.as_ref().is_some_and(|counter| !counter.is_newreno());
        let Some(undo) = self.undo.filter(|_| counts) else { return };
        if !TcpSite::AnsweredByOriginal.ask(out, undo.is_answered_by_original(echo)) {
            return;
        }
        let late_by = self.una.saturating_sub(undo.marker()).div_ceil(self.mss.max(1));
        self.rack.degree_mut().grow(self.board.segments_below_sacked_end() + late_by);
        if !self.board.has_copies_out() {
            self.undo_reduction(now, out);
        }
    }

    /// A socket's segments came by themselves before anything was sent again: they were late (`tcp_try_undo_partial`,
    /// `tcp_try_undo_recovery`). What duplicates have said remains true.
    fn undo_untouched<O: Out<TcpConnection>>(&mut self, now: Time, prior: u64, until: u64, out: &mut O) -> bool {
        let newreno = self.counting.as_ref().is_some_and(|counter| counter.is_newreno());
        let untouched = self.undo.is_some_and(|undo| undo.is_untouched());
        if self.socket.is_none() || !untouched || newreno && self.una >= until {
            return false;
        }
        if self.una < until {
            let highest = self.board.sacked_end().unwrap_or(self.una);
            self.rack.on_reordering(highest.saturating_sub(prior), self.mss);
        }
        let window = self.window();
        self.control.on_recovered(now);
        self.control.on_mark_answered();
        self.control.on_reduction_stopped(window);
        self.undo_reduction(now, out);
        self.phase = Phase::Open;
        true
    }

    fn undo_reduction<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        self.undo = None;
        self.board.forget_losses();
        if let Some(socket) = &mut self.socket {
            socket.unjudged = true;
        }
        let threshold = self.control.threshold();
        self.control.undo(now);
        // The peer need not hear of it (`tcp_ecn_withdraw_cwr`).
        self.tell_cwr &= self.socket.is_none() || self.control.threshold() <= threshold;
        out.note(TcpNote::Undone);
    }
}

/// DSACKs can prove all copies superfluous at any time. Timestamps prove it at once after a timeout, where only the
/// first copy is in question, and at the end of a recovery, where holes may differ. Without copies nothing is undone:
/// if missing data arrives by itself before it could be sent again, Linux 5.4 keeps the window reduced (`undo_retrans`
/// is -1 and `retrans_stamp` 0).
fn is_spurious<O: Out<TcpConnection>>(undo: &Undo, echo: u32, decides: bool, out: &mut O) -> bool {
    let by_timestamp = decides && TcpSite::AnsweredByOriginal.ask(out, undo.is_answered_by_original(echo));
    let by_dsack = undo.is_proven() && undo.has_copies();
    by_timestamp || by_dsack
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TcpSink;

    #[test]
    fn without_copies_nothing_is_undone_and_with_copies_each_must_be_proven_superfluous() {
        let mut undo = Undo::new(0);
        let is_spurious = |undo: &Undo, echo| is_spurious(undo, echo, true, &mut TcpSink::default());
        assert!(!is_spurious(&undo, 5));
        undo.on_copy(10);
        undo.on_copy(20);
        undo.on_dsack(0);
        assert!(!is_spurious(&undo, 15));
        undo.on_dsack(1_000);
        assert!(is_spurious(&undo, 15));
    }
}

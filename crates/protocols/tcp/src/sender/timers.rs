//! The one timer of the sender. RFC 8985 §8: what is waited for is the first of these.
//!
//! | waits for | set | then |
//! | --- | --- | --- |
//! | [`LossTimerKind::Reorder`] | a segment is overdue (§6.2, step 5) | it is lost |
//! | [`LossTimerKind::Probe`] | something leaves or is acknowledged, nothing is missing (§7.2) | a probe leaves (§7.3) |
//! | [`LossTimerKind::Early`] | some arrived, too few to count (RFC 5827) | the first is lost |
//! | [`LossTimerKind::Window`] | the peer's window is shut, nothing is in flight (`persist`) | a window probe leaves |
//! | [`LossTimerKind::Retransmit`] | otherwise, if anything is in flight (RFC 6298 §5) | all but the latest is lost |
//!
//! An armed timer is left alone as long as what is waited for comes later: it is looked at again when it goes off.

use machine::Out;
use units::{Span, Time};

use super::super::config::LinuxVersion;
use super::super::connection::{TcpConnection, TcpNote, TcpTimer};
use super::super::sites::TcpSite;
use super::super::timing::{TcpTiming, Wait};
use super::{Phase, TcpSender, UrgentSend};

const FIRST_PROBE: Span = Span::from_ms(1_000);
const OLD_PROBE_MIN: Span = Span::from_ms(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossTimerKind {
    Retransmit,
    Probe,
    Reorder,
    Early,
    Window,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LossTimer {
    pending: Option<LossTimerKind>,
    wait: Wait,
    armed: Time,
    /// The last acknowledgement made it wait for reordering.
    pub(super) reorder_set: bool,
}

impl Default for LossTimer {
    fn default() -> Self {
        Self { pending: None, wait: Wait::plain(Time::ZERO, Span::ZERO), armed: Time::NEVER, reorder_set: false }
    }
}

impl LossTimer {
    #[inline]
    fn set<O: Out<TcpConnection>>(&mut self, kind: LossTimerKind, wait: Wait, timing: &TcpTiming, out: &mut O) {
        self.pending = Some(kind);
        self.wait = wait;
        if wait.earliest() < self.armed {
            self.arm_before(timing.deadline(&wait), out);
        }
    }

    fn arm_before<O: Out<TcpConnection>>(&mut self, deadline: Time, out: &mut O) {
        if deadline < self.armed {
            self.armed = deadline;
            out.arm(TcpTimer::Loss, deadline);
        }
    }

    pub(super) fn waits_for(&self, kind: LossTimerKind) -> bool {
        self.pending == Some(kind)
    }

    /// Stops waiting for this; if the timer goes off anyway, nothing happens.
    pub(super) fn forget(&mut self, kind: LossTimerKind) {
        self.pending = self.pending.filter(|pending| *pending != kind);
    }

    pub(super) fn cancel<O: Out<TcpConnection>>(&mut self, out: &mut O) {
        self.pending = None;
        if self.armed != Time::NEVER {
            self.armed = Time::NEVER;
            out.disarm(TcpTimer::Loss);
        }
    }

    /// Kind of timer that is due, after the timer went off; `None` if it is due later.
    fn due<O: Out<TcpConnection>>(&mut self, now: Time, timing: &TcpTiming, out: &mut O) -> Option<LossTimerKind> {
        self.armed = Time::NEVER;
        let kind = self.pending?;
        let deadline = timing.deadline(&self.wait);
        if TcpSite::LossTimerEarly.ask(out, deadline > now) {
            self.arm_before(deadline, out);
            return None;
        }
        self.pending = None;
        Some(kind)
    }
}

impl TcpSender {
    /// Restarts the timer after an acknowledgement of new data.
    #[inline]
    pub(super) fn restart_timer<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if self.board.is_empty() {
            self.timer.cancel(out);
        } else if self.may_probe() {
            self.wait_for_probe(now, now, out);
        } else {
            self.wait_for_rto(now, out);
        }
    }

    /// New data left.
    #[inline]
    pub(super) fn on_new_sent<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if self.may_probe() {
            let head = self.head_sent().unwrap_or(now);
            self.wait_for_probe(now, head, out);
        } else if matches!(self.timer.pending, None | Some(LossTimerKind::Probe | LossTimerKind::Window)) {
            // A part of a segment that left in place of a window probe is in flight as any other.
            self.wait_for_rto(now, out);
        }
    }

    /// A segment left again.
    pub(super) fn on_resent<O: Out<TcpConnection>>(&mut self, now: Time, is_head: bool, out: &mut O) {
        if self.timer.pending.is_none() || is_head && self.timer.pending != Some(LossTimerKind::Reorder) {
            self.set_timer(LossTimerKind::Retransmit, Wait::plain(now, self.rtt.rto()), out);
        }
    }

    /// Last departure of the first segment that is not acknowledged: timers count from there. The times of a socket's
    /// segments differ by picoseconds, which are no time.
    fn head_sent(&self) -> Option<Time> {
        let sent = self.board.head_sent_at();
        if self.socket.is_none() {
            return sent;
        }
        sent.map(|sent| Time::from_ps(sent.as_ps() / 1_000 * 1_000))
    }

    /// True if a tail loss probe may be armed. §7.2 allows one only while no segment is missing; a kernel that is reducing its
    /// window after a mark does not check that.
    #[inline]
    fn may_probe(&self) -> bool {
        let missing = self.board.sacked() > 0 && (self.socket.is_none() || self.gliding.is_none());
        self.probes && self.phase == Phase::Open && !missing && !self.is_probe_needless()
    }

    /// Linux 4.4 does not probe while a mark is answered, nor while the window would let something new leave.
    fn is_probe_needless(&self) -> bool {
        let old = self.socket.as_ref().is_some_and(|socket| socket.version == LinuxVersion::V4_4);
        old && (self.gliding.is_some() || self.unsent() > 0 && self.charged_flight() < self.window())
    }

    /// Time after which a probe leaves, and the span that is added to it. Linux 4.4 counts in jiffies, ten milliseconds
    /// at least.
    fn probe_wait(&self, srtt: Span) -> (Span, Span) {
        let lone = self.board.is_lone();
        if self.socket.as_ref().is_none_or(|socket| socket.version != LinuxVersion::V4_4) {
            return (srtt * 2, if lone { self.timing.ack_delay } else { self.timing.slack });
        }
        let (jiffy, jiffies) = (self.timing.jiffy(), self.timing.jiffies(srtt));
        let delayed = if lone { jiffy * (jiffies + jiffies / 2) + self.timing.ack_delay } else { Span::ZERO };
        ((jiffy * jiffies * 2).max(delayed).max(OLD_PROBE_MIN), Span::ZERO)
    }

    /// `cap_from` is when the retransmission timer counts from: it may be due earlier.
    #[inline]
    fn wait_for_probe<O: Out<TcpConnection>>(&mut self, now: Time, cap_from: Time, out: &mut O) {
        let (span, extra) = match self.rtt.srtt() {
            None => (FIRST_PROBE, Span::ZERO),
            Some(srtt) => self.probe_wait(srtt),
        };
        let cap = self.rtt.rto();
        self.set_timer(LossTimerKind::Probe, Wait { from: now, span, extra, cap_from, cap }, out);
    }

    /// Waits for the retransmission timer, which has been running all along if another timer went off first
    /// (`tcp_rearm_rto`).
    fn wait_for_rto<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        let rto = self.rtt.rto();
        let left = match (self.timer.pending, self.head_sent()) {
            (Some(LossTimerKind::Probe | LossTimerKind::Reorder), Some(head)) => {
                (head + self.timing.round_up(rto)).since(now)
            }
            _ => rto,
        };
        self.set_timer(LossTimerKind::Retransmit, Wait::plain(now, left.max(Span::from_us(1))), out);
    }

    /// Some segments are lost unless they arrive within `span`.
    pub(super) fn wait_for_order<O: Out<TcpConnection>>(&mut self, now: Time, span: Span, out: &mut O) {
        let wait = Wait { from: now, span, extra: self.timing.slack, cap_from: now, cap: self.rtt.rto() };
        self.set_timer(LossTimerKind::Reorder, wait, out);
        self.timer.reorder_set = true;
    }

    /// Declares what is missing lost unless it arrives within `span`, which the retransmission timer does not exceed.
    pub(super) fn wait_for_early_retransmit<O: Out<TcpConnection>>(&mut self, now: Time, span: Span, out: &mut O) {
        if !self.timer.waits_for(LossTimerKind::Early) {
            let cap_from = self.head_sent().unwrap_or(now);
            let wait = Wait { from: now, span, extra: Span::ZERO, cap_from, cap: self.rtt.rto() };
            self.set_timer(LossTimerKind::Early, wait, out);
        }
    }

    #[inline]
    pub(super) fn set_timer<O: Out<TcpConnection>>(&mut self, kind: LossTimerKind, wait: Wait, out: &mut O) {
        self.timer.set(kind, wait, &self.timing, out);
    }

    pub(crate) fn on_timer<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if let Some(socket) = &mut self.socket {
            socket.same_event = false;
        }
        match self.timer.due(now, &self.timing, out) {
            None => {}
            Some(LossTimerKind::Retransmit) => self.time_out(now, out),
            Some(LossTimerKind::Probe) => self.probe(now, out),
            Some(LossTimerKind::Reorder) => self.on_overdue(now, out),
            Some(LossTimerKind::Early) => {
                self.timer.pending = Some(LossTimerKind::Reorder);
                self.wait_for_rto(now, out);
                self.on_early_retransmit(now, out);
            }
            Some(LossTimerKind::Window) => self.probe_window(now, out),
        }
    }

    fn time_out<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if self.socket.is_some() && self.has_waited_too_long(now, out) {
            return self.give_up(now, out);
        }
        out.note(TcpNote::Timeout);
        self.enter_loss(now, out);
        self.rtt.back_off();
        self.urgent = Some(UrgentSend::Head);
        self.set_timer(LossTimerKind::Retransmit, Wait::plain(now, self.rtt.rto()), out);
    }

    /// RFC 8985 §7.3: new data if there is some, or the last segment again; one at a time.
    fn probe<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        let Some(probe) = self.next_probe() else {
            self.timer.pending = Some(LossTimerKind::Probe);
            self.wait_for_rto(now, out);
            return;
        };
        self.urgent = Some(probe);
        self.set_timer(LossTimerKind::Retransmit, Wait::plain(now, self.rtt.rto()), out);
        out.note(TcpNote::Probe);
    }

    fn next_probe(&self) -> Option<UrgentSend> {
        if self.probed.is_some() {
            None
        } else if self.unsent() > 0 && self.has_room() {
            Some(UrgentSend::ProbeNew)
        } else {
            let last = self.board.records().nth(self.last_to_probe()?)?;
            // Nothing leaves beyond a window that has retreated (`__tcp_retransmit_skb`).
            let beyond = self.socket.is_some() && last.start > self.una && last.start >= self.edge;
            (!beyond).then_some(UrgentSend::ProbeLast)
        }
    }

    /// The segment that a probe repeats: the last, which a kernel does not ask whether it has arrived.
    pub(super) fn last_to_probe(&self) -> Option<usize> {
        let last = (self.board.segments() as usize).checked_sub(1);
        if self.socket.is_some() { last } else { self.board.last_unsacked() }
    }

    fn on_overdue<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        self.timer.pending = Some(LossTimerKind::Reorder);
        self.wait_for_rto(now, out);
        let (lost, repairing) = (self.board.lost(), matches!(self.phase, Phase::Recovery { .. }));
        self.detect_losses(now, out);
        if let Some(socket) = &mut self.socket {
            socket.copies_only = true;
        }
        // A kernel repairs gently from here on, and takes one segment for delivered (`tcp_rack_reo_timeout`).
        if self.socket.is_some() && self.board.lost() > lost && !repairing {
            if self.is_timed_out() {
                self.enter_recovery(now, out);
            }
            self.prr.on_ack(self.mss, self.pipe(), false, self.mss);
        }
    }
}

//! Why data was sent again: acknowledgements, a probe's timer or the retransmission timer.
//!
//! Linux sends a probe if nothing is missing as far as it knows, once until something is acknowledged: the last segment
//! again, or new data. Its retransmission timer sends the first segment that is not acknowledged.

use super::{LossPhase, TrackedSender};
use crate::losses::LossNote;
use crate::terms::{LossWitness, RepairKind, TimerReason};

/// Which timer it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    Probe,
    Retransmit,
}

/// What made the sender repeat something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyTrigger {
    pub repair: RepairKind,
    /// It waited for a timer.
    pub timer: Option<TimerKind>,
    /// Three duplicates were not enough, although they had come more than a round trip before.
    pub is_late: bool,
}

impl CopyTrigger {
    const fn repair(repair: RepairKind) -> Self {
        Self { repair, timer: None, is_late: false }
    }

    pub(crate) fn timer(timer: TimerKind) -> Self {
        let repair = match timer {
            TimerKind::Probe => RepairKind::Probe,
            TimerKind::Retransmit => RepairKind::Timeout,
        };
        Self { repair, timer: Some(timer), is_late: false }
    }
}

impl TrackedSender {
    /// How long the sender neither sent nor heard anything.
    pub(crate) fn silence(&self, at: u64) -> u64 {
        at.saturating_sub(self.last_sent.max(self.last_heard))
    }

    /// Why the segment at `start` is sent again at `at`; `near` is how soon a reaction follows what it reacts to.
    pub(crate) fn copy_trigger(&self, at: u64, start: u64, near: u64, rtt: u64) -> CopyTrigger {
        let in_loss = matches!(self.phase, LossPhase::Loss(_));
        let by_ack = if in_loss { RepairKind::Timeout } else { RepairKind::Fast };
        let silence = self.silence(at);
        let is_repairing = self.phase != LossPhase::Open;
        // One timer or one acknowledgement lets several segments go.
        if is_repairing && silence < near && (self.last_heard + near > at || self.last_trigger.is_some()) {
            return CopyTrigger::repair(by_ack);
        }
        // All that the capture shows as acknowledged before: the acknowledgements never reached the sender.
        if start < self.una && silence >= rtt.max(self.tick()) {
            return CopyTrigger::timer(if self.is_probing { TimerKind::Retransmit } else { TimerKind::Probe });
        }
        let knows_of_loss = self.sacked > 0 || self.dup_acks >= 3 || is_repairing;
        let is_patient = silence < self.rto() / 10 * 6;
        if knows_of_loss && is_patient {
            let is_late = !is_repairing && self.is_late(at, rtt);
            return CopyTrigger { is_late, ..CopyTrigger::repair(by_ack) };
        }
        let is_last = self.segments.back().is_none_or(|last| start >= last.start);
        let may_probe =
            self.sack_permitted && self.sacked == 0 && !is_repairing && !self.is_probing && !self.probes_off;
        let is_probe_due = silence >= self.probe_timeout() / 10 * 7;
        if may_probe && is_last && is_probe_due {
            CopyTrigger::timer(TimerKind::Probe)
        } else if is_patient {
            CopyTrigger::repair(by_ack)
        } else {
            CopyTrigger::timer(TimerKind::Retransmit)
        }
    }

    /// More duplicates than three, and more than a round trip and a quarter since the first.
    fn is_late(&self, at: u64, rtt: u64) -> bool {
        let patience = (rtt / 4 * 5).max(3 * self.tick()) + self.tick();
        let first = self.first_dup_at.unwrap_or(at);
        self.dup_acks > 3 && at.saturating_sub(first) > patience
    }

    /// Whether new data at `at` is a probe: it was held back, and nothing came for as long as a probe waits.
    pub(crate) fn is_new_probe(&self, at: u64, len: u32) -> bool {
        let (silence, wait) = (self.silence(at), self.probe_timeout());
        let fits = silence >= wait / 10 * 8 && silence <= wait / 2 * 3 + 3 * self.tick();
        let may_probe = self.sack_permitted && self.sacked == 0 && self.phase == LossPhase::Open && !self.is_probing;
        let held = self.held_now();
        let full = u64::from(len.min(self.mss));
        let is_held = held.flight + full > held.window || held.is_small_out && len < self.mss || held.room < full * 3;
        self.flight() > 0 && fits && may_probe && is_held
    }

    /// Why a timer was necessary, as far as it is known when it goes off.
    pub(crate) fn timer_reason(&self, start: u64) -> TimerReason {
        if start < self.una {
            return TimerReason::AcksLost;
        }
        let Some(segment) = self.segment_at(start) else { return TimerReason::Unknown };
        if segment.copies > 0 {
            return TimerReason::CopyLost;
        }
        let head_at = self.segments.front().map_or(0, |head| head.last_at);
        let out = self.flight_segments();
        if self.sacked == 0 && self.dup_acks == 0 {
            return match (self.hidden_dup_acks, out) {
                (3.., _) => TimerReason::HiddenDupacks,
                (_, 1) => TimerReason::LoneTail,
                _ if self.last_progress > head_at => TimerReason::Tail,
                _ => TimerReason::WholeWindow,
            };
        }
        if self.window() < 4 * u64::from(self.mss) { TimerReason::SmallWindow } else { TimerReason::FewDupacks }
    }

    /// Takes note of what was decided.
    pub(crate) fn on_trigger(&mut self, trigger: CopyTrigger) {
        match trigger.timer {
            Some(TimerKind::Probe) => {
                self.probes += 1;
                self.is_probing = true;
            }
            Some(TimerKind::Retransmit) => {
                self.timeouts += 1;
                // With several segments out, a sender that probes would have done so first.
                self.probes_off |=
                    self.phase == LossPhase::Open && !self.is_probing && self.segments.len() > 1 && self.sacked == 0;
                self.phase = LossPhase::Loss(self.nxt);
            }
            None if self.phase == LossPhase::Open => self.phase = LossPhase::Recovery(self.nxt),
            None => {}
        }
        self.last_trigger = Some(trigger);
    }

    /// What sent data whose earlier copies, this many, nobody saw.
    pub(crate) fn hidden_trigger(&self, copies: u16) -> CopyTrigger {
        let is_first = copies == 1 && self.sack_permitted && !self.probes_off && self.phase == LossPhase::Open;
        CopyTrigger::timer(if is_first { TimerKind::Probe } else { TimerKind::Retransmit })
    }

    pub(crate) fn hidden_reason(&self, start: u64, copies: u16) -> TimerReason {
        match (copies, start > self.nxt || self.flight() > 0) {
            (2.., _) => TimerReason::CopyLost,
            (_, true) if self.bytes == 0 => TimerReason::WholeWindow,
            (_, true) => TimerReason::Tail,
            (_, false) => TimerReason::LoneTail,
        }
    }

    /// Takes note of the timers that sent them.
    pub(crate) fn on_hidden(&mut self, copies: u16) {
        let probes = u32::from(self.sack_permitted && !self.probes_off && self.phase == LossPhase::Open);
        self.probes += probes;
        self.timeouts += u32::from(copies) - probes.min(u32::from(copies));
        self.is_probing = probes > 0;
    }

    /// A FIN left again: by a probe the first time, unless data was missing, too, and then by the retransmission timer.
    pub(crate) fn on_fin_again(&mut self, copies: u32, before: u64, at: u64, position: u64) {
        let is_probe = copies == 0 && self.sack_permitted && !self.probes_off && self.phase == LossPhase::Open;
        let trigger = CopyTrigger::timer(if is_probe { TimerKind::Probe } else { TimerKind::Retransmit });
        self.probes += u32::from(is_probe);
        self.timeouts += u32::from(!is_probe);
        let (repaired_by, seen_by) = (trigger.repair, LossWitness::Copy);
        self.losses.push(LossNote {
            at: before,
            position,
            len: 0,
            repaired_by,
            repaired_at: at,
            seen_by,
            is_spurious: false,
        });
    }

    /// Several acknowledgements in a row were for the same byte, or said more.
    pub(crate) fn duplicates(&self) -> u32 {
        self.dup_acks.max(self.sacked_segments as u32)
    }
}

//! Why data was sent again: acknowledgements, a probe's timer or the retransmission timer.
//!
//! Linux sends a probe if nothing is missing as far as it knows, once until something is acknowledged: the last segment
//! again, or new data. Its retransmission timer sends the first segment that is not acknowledged.

use super::{LossPhase, TrackedSender};
use crate::losses::LossNote;
use crate::shadow::probe_wait;
use crate::terms::{LossWitness, RepairKind, TimerReason};

/// Timer that went off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    Probe,
    Retransmit,
}

/// Times by which the wait before a copy is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyClock {
    /// Time within which a reaction follows its trigger.
    pub near: u64,
    pub rtt: u64,
    /// The sender is at the other end of the path.
    pub is_far: bool,
}

/// Data whose earlier copies nobody saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HiddenCopies {
    pub count: u16,
    /// Packets that are missing as well, with data behind it: there was no time for as many copies.
    pub others: u16,
    /// True if nothing else was missing.
    pub is_lone: bool,
    /// True if the same end had sent payload just before.
    pub goes_on: bool,
    /// Time since the sender's last packet of any kind.
    pub silence: u64,
    pub rtt: u64,
}

/// Trigger that made the sender repeat something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyTrigger {
    pub repair: RepairKind,
    /// Timer that the copy waited for.
    pub timer: Option<TimerKind>,
    /// Three duplicates were not enough, although they had come more than a round trip before.
    pub is_late: bool,
}

impl CopyTrigger {
    pub(crate) const fn repair(repair: RepairKind) -> Self {
        Self { repair, timer: None, is_late: false }
    }

    pub(crate) const fn timer(timer: TimerKind) -> Self {
        let repair = match timer {
            TimerKind::Probe => RepairKind::Probe,
            TimerKind::Retransmit => RepairKind::Timeout,
        };
        Self { repair, timer: Some(timer), is_late: false }
    }
}

impl TrackedSender {
    /// Time in which the sender neither sent nor heard anything.
    pub(crate) fn silence(&self, at: u64) -> u64 {
        at.saturating_sub(self.last_sent.max(self.last_heard))
    }

    /// Repair that is due to acknowledgements: that of the timer, in the phase that a timer made necessary.
    pub(crate) fn repair_in_phase(&self) -> RepairKind {
        if matches!(self.phase, LossPhase::Loss(_)) { RepairKind::Timeout } else { RepairKind::Fast }
    }

    /// Reason why the segment at `start` is sent again at `at`.
    pub(crate) fn copy_trigger(&self, at: u64, start: u64, clock: CopyClock) -> CopyTrigger {
        let CopyClock { near, rtt, is_far } = clock;
        let by_ack = self.repair_in_phase();
        let silence = self.silence(at);
        let is_repairing = self.phase != LossPhase::Open;
        // One timer or one acknowledgement lets several segments go.
        if is_repairing && silence < near && (self.last_heard + near > at || self.last_trigger.is_some()) {
            return CopyTrigger::repair(by_ack);
        }
        // A sender far away may not have heard what the capture saw.
        let waited = if is_far { at.saturating_sub(self.last_sent) } else { silence };
        // All that the capture shows as acknowledged before: the acknowledgements never reached the sender.
        if start < self.una && waited >= rtt.max(self.tick()) {
            return CopyTrigger::timer(if self.is_probing { TimerKind::Retransmit } else { TimerKind::Probe });
        }
        let knows_of_loss = self.sacked > 0 || self.dup_acks >= 3 || is_repairing;
        // Nothing came back for more than a round trip: no acknowledgement let this one go.
        let is_unanswered = self.last_heard <= self.last_sent && silence > rtt + self.tick();
        // RACK waits for reordering for a quarter of a round trip, and for three ticks more at most.
        let is_beyond_rack = silence > rtt / 4 * 5 + 4 * self.tick();
        let is_patient = silence < self.rto() / 10 * 6 && !is_unanswered && !is_beyond_rack;
        if knows_of_loss && is_patient {
            let is_late = !is_repairing && self.is_late(at, rtt);
            return CopyTrigger { is_late, ..CopyTrigger::repair(by_ack) };
        }
        let is_last = self.segments.back().is_none_or(|last| start >= last.start);
        let may_probe =
            self.sack_permitted && self.sacked == 0 && !is_repairing && !self.is_probing && !self.probes_off;
        // Nor does it know then that all but one have arrived.
        let wait = if is_far { probe_wait(self.srtt().unwrap_or(rtt), 2, self.tick()) } else { self.probe_timeout(0) };
        if may_probe && is_last && waited >= self.soonest_probe(wait, 7) {
            CopyTrigger::timer(TimerKind::Probe)
        } else if is_patient && silence < rtt.max(self.tick()) {
            CopyTrigger::repair(by_ack)
        } else {
            CopyTrigger::timer(TimerKind::Retransmit)
        }
    }

    /// Shortest wait after which a probe may leave whose timer is estimated: the given number of tenths of the estimate.
    /// Newer kernels add two milliseconds to two round trips where older ones add two ticks.
    fn soonest_probe(&self, wait: u64, tenths: u64) -> u64 {
        let newer = (wait + 2_000_000).saturating_sub(2 * self.tick()).max(self.tick());
        (wait / 10 * tenths).min(newer / 10 * 9)
    }

    /// True if a probe came sooner than one of a sender that knows that all but one segment have arrived.
    pub(crate) fn is_deaf_probe(&self, at: u64, clock: CopyClock) -> bool {
        let patient = probe_wait(self.srtt().unwrap_or(clock.rtt), 1, self.tick());
        clock.is_far && self.flight_segments() <= 1 && self.silence(at) < patient / 10 * 7
    }

    /// More duplicates than three, and more than a round trip and a quarter since the first.
    pub(crate) fn is_late(&self, at: u64, rtt: u64) -> bool {
        let patience = (rtt / 4 * 5).max(3 * self.tick()) + self.tick();
        let first = self.first_dup_at.unwrap_or(at);
        self.dup_acks > 3 && at.saturating_sub(first) > patience
    }

    /// True if new data at `at` is a probe: it was held back, and nothing came for as long as a probe waits. `hole` bytes
    /// before it left and never came this far.
    pub(crate) fn is_new_probe(&self, at: u64, len: u32, hole: u64) -> bool {
        let missing = hole.div_ceil(u64::from(self.mss.max(1))) as usize;
        let (silence, wait) = (self.silence(at), self.probe_timeout(missing));
        let fits = silence >= self.soonest_probe(wait, 8) && silence <= wait / 2 * 3 + 3 * self.tick();
        let may_probe = self.sack_permitted && self.sacked == 0 && self.phase == LossPhase::Open && !self.is_probing;
        let held = self.held_now();
        let (flight, room) = (held.flight + hole, held.room.saturating_sub(hole));
        let full = u64::from(len.min(self.mss));
        // If a transfer pauses for exactly the time of a probe, a probe is likelier than a pause of its application.
        let is_on_time = silence >= wait / 10 * 9 && silence <= wait / 10 * 11 + 2 * self.tick();
        let is_transfer = is_on_time && !held.is_small_out && held.segments + missing > 1;
        let is_held = flight + full > held.window || held.is_small_out && len < self.mss || room < full * 3;
        flight > 0 && fits && may_probe && (is_held || is_transfer)
    }

    /// Reason why a timer was necessary, as far as it is known when it goes off.
    pub(crate) fn timer_reason(&self, start: u64) -> TimerReason {
        if start < self.una {
            return TimerReason::AcksLost;
        }
        // All that was in flight never came this far.
        if self.segments.is_empty() && start == self.nxt {
            return TimerReason::WholeWindow;
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
                // The window was full: there was more, and nothing of it arrived.
                _ if self.flight() + u64::from(self.mss) > self.window() => TimerReason::WholeWindow,
                _ if self.last_progress > head_at => TimerReason::Tail,
                _ => TimerReason::WholeWindow,
            };
        }
        if self.window() < 4 * u64::from(self.mss) { TimerReason::SmallWindow } else { TimerReason::FewDupacks }
    }

    /// Records a decision to send a copy.
    pub(crate) fn on_trigger(&mut self, trigger: CopyTrigger) {
        if trigger.is_late {
            self.late_after = self.late_after.max(self.dup_acks);
        }
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

    /// Timer that sent it: a probe if it is the first copy and there was time for one, else the retransmission timer.
    pub(crate) fn hidden_trigger(&self, hidden: HiddenCopies) -> CopyTrigger {
        let is_first = hidden.count == 1 && self.hidden_probes(hidden) > 0;
        CopyTrigger::timer(if is_first { TimerKind::Probe } else { TimerKind::Retransmit })
    }

    /// Number of timers that fit a silence: each waits for twice as long as the one before. Any further packets had the
    /// data behind them.
    pub(crate) fn without_others(&self, hidden: HiddenCopies) -> HiddenCopies {
        let is_too_soon = |count: u16| {
            let time = match self.hidden_probes(hidden) {
                0 => timeouts_before(count + 1) * self.rto(),
                _ => self.hidden_probe_timeout(hidden) + timeouts_before(count) * self.rto(),
            };
            hidden.silence < time / 4 * 3
        };
        let count = (2..=hidden.count).rev().find(|count| !is_too_soon(*count)).unwrap_or(1);
        HiddenCopies { count, others: hidden.count - count, ..hidden }
    }

    /// Number of the timers that sent it that were a probe's: one or none. If data behind it was sent and is missing, too,
    /// a probe would have sent the last of that.
    fn hidden_probes(&self, hidden: HiddenCopies) -> u32 {
        let may_probe = hidden.others == 0 && self.sack_permitted && !self.probes_off && self.phase == LossPhase::Open;
        u32::from(may_probe && hidden.silence >= self.soonest_probe(self.hidden_probe_timeout(hidden), 7))
    }

    fn hidden_probe_timeout(&self, hidden: HiddenCopies) -> u64 {
        let segments = if hidden.is_lone { 1 } else { 2 };
        probe_wait(self.srtt().unwrap_or(hidden.rtt), segments, self.tick())
    }

    /// Time that the timers took, as far as there was time for it: the probe's, then the retransmission timer's, which
    /// doubles.
    pub(crate) fn hidden_wait(&self, hidden: HiddenCopies) -> u64 {
        // Data behind other data left without a wait.
        if self.hidden_probes(hidden) == 0 || hidden.goes_on && !hidden.is_lone {
            return hidden.silence;
        }
        (self.hidden_probe_timeout(hidden) + timeouts_before(hidden.count) * self.rto()).min(hidden.silence)
    }

    pub(crate) fn hidden_reason(hidden: HiddenCopies) -> TimerReason {
        match (hidden.count, hidden.is_lone) {
            (2.., _) => TimerReason::CopyLost,
            (_, true) if hidden.others == 0 => TimerReason::LoneTail,
            _ if hidden.goes_on => TimerReason::Tail,
            _ => TimerReason::WholeWindow,
        }
    }

    /// Takes note of the timers that sent them.
    pub(crate) fn on_hidden(&mut self, hidden: HiddenCopies) {
        let probes = self.hidden_probes(hidden);
        self.probes += probes;
        self.timeouts += u32::from(hidden.count) - probes;
        self.is_probing = probes > 0;
        if hidden.others > 0 {
            self.phase = LossPhase::Loss(self.nxt + u64::from(self.mss) * (1 + u64::from(hidden.others)));
        }
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

/// Time that timeouts take until the segment leaves for this time, in units of the first: each takes twice as long as the
/// one before.
fn timeouts_before(copy: u16) -> u64 {
    (1 << (copy - 1).min(16)) - 1
}

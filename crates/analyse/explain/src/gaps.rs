//! Causes of the time before a payload.
//!
//! A *gap* lies between two packets with payload, of either end. It belongs to the sender that ended it, and is cut at most
//! twice: where the last acknowledgement reached that sender, and one round trip after it had last sent.
//!
//! | ended by | while | cause |
//! | --- | --- | --- |
//! | new data | nothing held it back | the sender's application; sending, if the gap is short |
//! | new data | it was held back until an acknowledgement | what held it, for a round trip; then delayed ACK or network |
//! | new data after the other end's | | delivery, then the application; idle before a request |
//! | data again | a timer ended the wait | probe or timeout, from the last event on |
//! | data again | an acknowledgement ended it | recovery, or late recovery |

use crate::evidence::HandOver;
use crate::sender::{CopyTrigger, HeldState, LossPhase, TimerKind, TrackedSender};
use crate::terms::{Certainty, EndSide, TimeCause};

const MILLISECOND: u64 = 1_000_000;
/// A sender that nothing holds back sends its next segment within this.
const BACK_TO_BACK: u64 = 100_000;
/// Linux delays an acknowledgement by 40 ms at least, others by up to 200 ms.
const ACK_DELAYS: [(u64, u64); 2] = [(35 * MILLISECOND, 56 * MILLISECOND), (190 * MILLISECOND, 216 * MILLISECOND)];

/// A stretch of a gap, up to `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GapPiece {
    pub until: u64,
    pub cause: TimeCause,
    pub side: EndSide,
    pub sure: Certainty,
}

/// Pieces of one gap, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GapPieces {
    pieces: [Option<GapPiece>; 4],
    count: usize,
}

impl GapPieces {
    fn add(&mut self, until: u64, cause: TimeCause, side: EndSide, sure: Certainty) {
        if let Some(place) = self.pieces.get_mut(self.count) {
            *place = Some(GapPiece { until, cause, side, sure });
            self.count += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = GapPiece> {
        self.pieces.into_iter().flatten()
    }
}

/// A gap, with what is known of its surroundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GapContext {
    pub from: u64,
    pub at: u64,
    pub len: u32,
    /// The whole round trip, and the part of it between capture and sender.
    pub rtt: u64,
    pub way: u64,
    /// End that sent payload last.
    pub previous: Option<EndSide>,
    /// The capture is on this sender's side.
    pub is_near: bool,
    pub starts_request: bool,
    /// Time at which the application handed over the data that ends the gap, if its kernel reports it.
    pub handed: Option<HandOver>,
    /// The receiver's kernel had more for its application than that had read.
    pub is_unread: bool,
}

/// Time within which a reaction follows its trigger.
pub(crate) fn reaction_time(rtt: u64) -> u64 {
    (rtt / 4).clamp(MILLISECOND, 10 * MILLISECOND)
}

impl GapContext {
    fn heard(&self, sender: &TrackedSender) -> u64 {
        sender.last_heard.clamp(self.from, self.at)
    }

    /// Time by which the packets of a sender far away may come later than estimated.
    fn jitter(&self) -> u64 {
        if self.is_near { 0 } else { (self.rtt / 2).clamp(4 * MILLISECOND, 25 * MILLISECOND) }
    }

    fn application(&self) -> TimeCause {
        if self.is_near { TimeCause::Application } else { TimeCause::PeerApplication }
    }

    /// Facts of the sender next to the capture are seen; of the other one they are inferred.
    fn sure(&self) -> Certainty {
        if self.is_near { Certainty::Seen } else { Certainty::Inferred }
    }

    /// Pieces of a gap before data that was sent again.
    pub(crate) fn before_copy(&self, sender: &TrackedSender, trigger: CopyTrigger, start: u64) -> GapPieces {
        let (heard, side) = (self.heard(sender), sender.side);
        let mut pieces = GapPieces::default();
        if let Some(timer) = trigger.timer {
            // A sender that repeats what was acknowledged has not heard it.
            let heard = if start < sender.una { sender.last_sent.clamp(self.from, self.at) } else { heard };
            pieces.add(heard, self.while_heard(sender), side, Certainty::Inferred);
            let cause = if timer == TimerKind::Probe { TimeCause::Probe } else { TimeCause::Timeout };
            pieces.add(self.at, cause, side, self.sure());
            return pieces;
        }
        let dup = sender.first_dup_at.unwrap_or(heard).clamp(self.from, heard);
        if trigger.is_late {
            pieces.add(dup, TimeCause::Recovery, side, self.sure());
            pieces.add(heard, TimeCause::LateRecovery, side, self.sure());
        } else {
            let answer = (sender.last_sent.max(self.from) + self.rtt).clamp(self.from, heard);
            pieces.add(answer, TimeCause::Recovery, side, self.sure());
            // After a timeout one segment is out, whose acknowledgement may be delayed.
            let is_alone = matches!(sender.phase, LossPhase::Loss(_)) || sender.before.segments <= 2;
            if is_alone && is_ack_delay(heard - answer, sender.tick()) {
                pieces.add(heard, TimeCause::DelayedAck, side.other(), Certainty::Inferred);
            }
            pieces.add(heard, TimeCause::Recovery, side, self.sure());
        }
        let is_reaction = self.at - heard < reaction_time(self.rtt);
        pieces.add(self.at, if is_reaction { TimeCause::Sending } else { TimeCause::Recovery }, side, self.sure());
        pieces
    }

    /// Pieces of a gap before data whose earlier copies nobody saw; `wait` is how long timers took.
    pub(crate) fn before_hidden(&self, sender: &TrackedSender, trigger: CopyTrigger, wait: u64) -> GapPieces {
        let mut pieces = GapPieces::default();
        let heard = self.heard(sender);
        pieces.add(heard, self.while_heard(sender), sender.side, Certainty::Inferred);
        let free = if self.starts_request { TimeCause::Idle } else { self.application() };
        pieces.add(self.at.saturating_sub(wait).max(heard), free, sender.side, Certainty::Guessed);
        let cause = if trigger.timer == Some(TimerKind::Probe) { TimeCause::Probe } else { TimeCause::Timeout };
        pieces.add(self.at, cause, sender.side, self.sure());
        pieces
    }

    /// The time until the sender last heard something, in a gap that a timer ended.
    fn while_heard(&self, sender: &TrackedSender) -> TimeCause {
        if sender.phase == LossPhase::Open { TimeCause::Delivery } else { TimeCause::Recovery }
    }

    /// Pieces of a gap before data that other data overtook. Such data says nothing about what its sender does now.
    pub(crate) fn before_late(&self, sender: &TrackedSender) -> GapPieces {
        if sender.phase == LossPhase::Open {
            return self.before_new(sender, false);
        }
        let mut pieces = GapPieces::default();
        pieces.add(self.at, TimeCause::Recovery, sender.side, Certainty::Inferred);
        pieces
    }

    /// Pieces of a gap before new data.
    pub(crate) fn before_new(&self, sender: &TrackedSender, is_probe: bool) -> GapPieces {
        let side = sender.side;
        let mut pieces = GapPieces::default();
        if self.at - self.from < BACK_TO_BACK {
            pieces.add(self.at, TimeCause::Sending, side, Certainty::Seen);
        } else if is_probe {
            pieces.add(self.heard(sender), TimeCause::Delivery, side, Certainty::Inferred);
            pieces.add(self.at, TimeCause::Probe, side, self.sure());
        } else if sender.phase == LossPhase::Open && sender.is_late(self.at, self.rtt) {
            // Enough duplicates had come, and it repaired nothing.
            let first = sender.first_dup_at.unwrap_or(self.from).clamp(self.from, self.at);
            pieces.add(first, TimeCause::Recovery, side, self.sure());
            pieces.add(self.at, TimeCause::LateRecovery, side, self.sure());
        } else if let Some(handed) = self.handed {
            self.add_known(&mut pieces, sender, handed);
        } else if let Some(cause) = self.held_by(sender) {
            self.add_held(&mut pieces, sender, cause);
        } else if self.is_paced(sender) {
            pieces.add(self.at, TimeCause::CongestionWindow, side, Certainty::Inferred);
        } else if !self.is_near && self.at - self.from < (self.rtt / 8).max(MILLISECOND) {
            // The network spreads what a sender far away sent at once.
            pieces.add(self.at, TimeCause::Sending, side, Certainty::Inferred);
        } else {
            self.add_free(&mut pieces, side, self.at, Certainty::Inferred);
        }
        pieces
    }

    /// Linux spreads a window over the round trip: at twice the window in slow start, at 1.2 times of it later.
    fn is_paced(&self, sender: &TrackedSender) -> bool {
        let Some(srtt) = sender.srtt() else { return false };
        let interval = u128::from(srtt) * u128::from(self.len) / u128::from(sender.window().max(1));
        let is_busy = sender.flight() > 0 && self.previous == Some(sender.side);
        is_busy && u128::from(self.at - self.from) * 4 <= interval * 5
    }

    /// Cause that held the sender back until it heard something, just before it sent.
    fn held_by(&self, sender: &TrackedSender) -> Option<TimeCause> {
        let heard = sender.last_heard;
        if heard <= self.from && self.previous == Some(sender.side)
            || heard + reaction_time(self.rtt) + self.jitter() < self.at
        {
            return None;
        }
        let HeldState { flight, segments, room, is_small_out, window, phase } = sender.before;
        let (mss, full) = (u64::from(sender.mss), u64::from(self.len.min(sender.mss)));
        let was_small = is_small_out && self.len < sender.mss;
        if flight == 0 && room >= full {
            None
        } else if room < full || room < 2 * mss && room < window.saturating_sub(flight) && flight > 0 {
            // Linux waits for room of two segments under a small window (tcp_tso_should_defer).
            Some(TimeCause::ReceiveWindow)
        } else if self.previous == Some(sender.side.other()) {
            // This end may be answering what the other one sent.
            None
        } else if was_small && sender.flight() == 0 && self.at - heard < MILLISECOND + self.jitter() {
            Some(TimeCause::Nagle)
        } else if sender.phase != LossPhase::Open || phase != LossPhase::Open {
            // Also an acknowledgement that ends the repair was one of the repair.
            Some(TimeCause::Recovery)
        } else if flight + full > window / 8 * 7 {
            Some(TimeCause::CongestionWindow)
        } else if segments >= 16 && self.at - heard < MILLISECOND && !was_small {
            Some(TimeCause::SendBuffer)
        } else {
            None
        }
    }

    fn add_held(&self, pieces: &mut GapPieces, sender: &TrackedSender, cause: TimeCause) {
        let (heard, side) = (self.heard(sender), sender.side);
        let sure = match cause {
            TimeCause::ReceiveWindow if sender.scale.is_none() => Certainty::Guessed,
            TimeCause::ReceiveWindow if self.is_unread => Certainty::Seen,
            TimeCause::ReceiveWindow => self.sure(),
            TimeCause::CongestionWindow if sender.is_window_known() => Certainty::Seen,
            TimeCause::SendBuffer if self.handed.is_some() => Certainty::Seen,
            TimeCause::SendBuffer => Certainty::Guessed,
            _ => Certainty::Inferred,
        };
        let answer = (sender.last_sent.max(self.from) + self.rtt).clamp(self.from, heard);
        pieces.add(answer, cause, side, sure);
        let excess = heard - answer;
        let rest = match cause {
            TimeCause::ReceiveWindow | TimeCause::Recovery => cause,
            _ if is_ack_delay(excess, sender.tick()) && (sender.before.segments <= 2 || sender.keeps_its_edge()) => {
                TimeCause::DelayedAck
            }
            _ if excess < self.rtt / 8 => cause,
            _ => TimeCause::Network,
        };
        let rest_sure = if rest == TimeCause::ReceiveWindow { sure } else { sure.max(Certainty::Inferred) };
        let rest_side = if rest == TimeCause::DelayedAck { side.other() } else { side };
        pieces.add(heard, rest, rest_side, rest_sure);
        // For a distant sender the rest is the jitter of the path.
        pieces.add(self.at, if self.is_near { TimeCause::Sending } else { cause }, side, Certainty::Inferred);
    }

    /// Adds a piece in which nothing held the sender back: its application had nothing to send, or waited for the other
    /// end.
    fn add_free(&self, pieces: &mut GapPieces, side: EndSide, until: u64, sure: Certainty) {
        if self.previous == Some(side.other()) {
            let arrived = (self.from + self.way).min(until);
            pieces.add(arrived, TimeCause::Delivery, side.other(), Certainty::Inferred);
            if self.starts_request {
                pieces.add(until, TimeCause::Idle, side, self.sure());
                return;
            }
        }
        let is_prompt = until.saturating_sub(self.from + self.way) < BACK_TO_BACK;
        let cause = if is_prompt { TimeCause::Sending } else { self.application() };
        pieces.add(until, cause, side, sure);
    }

    /// Adds the pieces of a gap: the application until the data was handed over; from then on, the cause that held the data
    /// back.
    fn add_known(&self, pieces: &mut GapPieces, sender: &TrackedSender, handed: HandOver) {
        let side = sender.side;
        let free_until = match handed {
            HandOver::At(at) if at > self.from + BACK_TO_BACK => at,
            _ => self.from,
        };
        if free_until > self.from {
            self.add_free(pieces, side, free_until, Certainty::Seen);
        }
        let held = self.held_by(sender).filter(|cause| *cause != TimeCause::SendBuffer || handed == HandOver::InCall);
        match held {
            _ if self.at - free_until < BACK_TO_BACK => pieces.add(self.at, TimeCause::Sending, side, Certainty::Seen),
            Some(cause) if free_until == self.from => self.add_held(pieces, sender, cause),
            Some(cause) => pieces.add(self.at, cause, side, Certainty::Inferred),
            None if self.is_paced(sender) => {
                pieces.add(self.at, TimeCause::CongestionWindow, side, Certainty::Inferred)
            }
            // A call that has not returned waits for room: what is acknowledged makes some.
            None if handed == HandOver::InCall && sender.last_heard + reaction_time(self.rtt) >= self.at => {
                self.add_held(pieces, sender, TimeCause::SendBuffer);
            }
            None => pieces.add(self.at, TimeCause::Unknown, side, Certainty::Guessed),
        }
    }
}

fn is_ack_delay(wait: u64, tick: u64) -> bool {
    ACK_DELAYS.iter().any(|(low, high)| (low.saturating_sub(tick)..=high + tick).contains(&wait))
}

//! The shortcut: quiet stretches between losses are counted, not simulated.
//!
//! Between losses a saturated link repeats itself. Once both ends are calm and the receiver is in a state
//! that it was in some frames before, everything since then will happen again, and again; so whole
//! periods up to shortly before the next loss can be taken at once. Nothing in the machines is touched:
//! what persists across the stretch, such as a standing reorder backlog, is still there when the loss
//! comes. Loss models draw ahead, so not one draw changes either.
//!
//! The state leaves out what drifts against the frames without mattering to them: which of two events of
//! the same instant was scheduled first (they coincide at 25G with a rotating buffer of 100G), frames the
//! other way, the control words of UEC-style retry. With those, a run agrees with the long way as two
//! seeds would; without them it agrees exactly.

use std::collections::VecDeque;

use faults::RunningSchedule;
use units::{Bytes, Span, Time};
use wire::ethernet::{MIN_FRAME, on_wire};
use wire::link::DATA_HEADER;

use super::config::{FrameSizes, LinkSimConfig, LinkSimMode, OfferedLoad};

#[derive(Debug)]
pub(super) struct Shortcut {
    /// Frame time of the stretch, and the sizes that errors can hit.
    period: Span,
    data: u32,
    ack: u32,
    acks_can_be_lost: bool,
    /// Frames for each acknowledgement.
    ack_every: u64,
    /// Frames after a loss before the next stretch can begin: it must have been noticed by then.
    settle: u64,
    calm: u64,
    /// The states of the latest calm frames, and the transits that were the latest then.
    states: VecDeque<u64>,
    transits: VecDeque<Span>,
    skipped: u64,
    time: Span,
    /// Last time at which the sender put something on the wire.
    last_sent: Time,
}

/// A stretch that was skipped.
#[derive(Debug)]
pub(super) struct SkippedStretch {
    pub frames: u64,
    /// Times that everything since the same state was repeated.
    pub periods: u64,
    /// Transit times of the frames of one period.
    pub transits: Vec<Span>,
}

/// The longest period looked for, in frames.
const LONGEST_PERIOD: usize = 256;

impl Shortcut {
    /// Skipping needs traffic that repeats itself: one link, always a frame, all of one size. Frames the
    /// other way do not disturb it unless they, too, can be lost.
    pub(super) fn new(config: &LinkSimConfig) -> Option<Self> {
        let FrameSizes::Fixed(len) = config.sizes else { return None };
        let acks_can_be_lost = !config.reverse.steps().is_empty();
        let repeats = config.load == OfferedLoad::Saturated
            && config.links == 1
            && !matches!(config.mode, LinkSimMode::Both | LinkSimMode::Auto)
            && !(config.reverse_load > 0.0 && (acks_can_be_lost || config.protect_reverse))
            && !(config.mode == LinkSimMode::UecLlr && acks_can_be_lost);
        if config.exact || !repeats {
            return None;
        }
        let data = len
            + match config.mode {
                LinkSimMode::None | LinkSimMode::UecLlr => 0,
                LinkSimMode::Ordered | LinkSimMode::NonBlocking | LinkSimMode::Both | LinkSimMode::Auto => DATA_HEADER,
            };
        let period = config.rate.span_of(Bytes::new(u64::from(on_wire(data))));
        let settle = config.path().round_trip().as_ps() / period.as_ps() + 4;
        Some(Self {
            period,
            data,
            ack: MIN_FRAME,
            acks_can_be_lost,
            ack_every: u64::from(config.params().ack_every),
            settle,
            calm: 0,
            states: VecDeque::new(),
            transits: VecDeque::new(),
            skipped: 0,
            time: Span::ZERO,
            last_sent: Time::ZERO,
        })
    }

    /// Frames and time skipped so far.
    pub(super) fn skipped(&self) -> (u64, Span) {
        (self.skipped, self.time)
    }

    /// A loss happened, or a recovery is open: the state no longer repeats itself.
    pub(super) fn disturb(&mut self) {
        self.calm = 0;
        self.states.clear();
        self.transits.clear();
    }

    /// True if the sender keeps the wire busy with frames of one size. A window that is too short for the link, or a dummy
    /// in between, makes a stretch that cannot be skipped.
    pub(super) fn is_back_to_back(&mut self, now: Time) -> bool {
        let since = now.since(self.last_sent);
        self.last_sent = now;
        since == self.period
    }

    /// Counts a calm frame. True once the last loss is noticed and all slower frames from before the calm have left.
    pub(super) fn is_settled(&mut self, held: Bytes) -> bool {
        self.calm += 1;
        self.calm >= self.settle + 2 * held.get() / u64::from(self.data)
    }

    /// Records the state at a settled frame. Returns the number of frames after which everything repeats, if it does.
    pub(super) fn period(&mut self, state: u64, transit: Span) -> Option<usize> {
        let state = state ^ transit.as_ps().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let period = self.states.iter().rposition(|seen| *seen == state).map(|at| self.states.len() - at);
        self.states.push_back(state);
        self.transits.push_back(transit);
        if self.states.len() > LONGEST_PERIOD {
            self.states.pop_front();
            self.transits.pop_front();
        }
        period
    }

    /// Lets whole periods of frames pass that will certainly arrive, of at most `left`, up to shortly
    /// before the next loss.
    pub(super) fn skip(
        &mut self,
        now: Time,
        period: usize,
        left: u64,
        forward: &mut RunningSchedule,
        reverse: &mut RunningSchedule,
    ) -> Option<SkippedStretch> {
        let now = now + self.time;
        let until = |change: Time| change.since(now).as_ps() / self.period.as_ps();
        let mut frames = left.min(forward.at(now).clear(self.data));
        if self.acks_can_be_lost {
            frames = frames.min(reverse.at(now).clear(self.ack).saturating_mul(self.ack_every));
        }
        frames = frames.min(until(forward.next_change())).min(until(reverse.next_change()));
        let periods = frames.saturating_sub(self.ack_every + 1) / period as u64;
        if periods == 0 {
            return None;
        }
        let frames = periods * period as u64;
        forward.at(now).pass(frames, self.data);
        if self.acks_can_be_lost {
            reverse.at(now).pass(frames / self.ack_every, self.ack);
        }
        self.skipped += frames;
        self.time += self.period * frames;
        let transits = self.transits.iter().rev().take(period).copied().collect();
        self.disturb();
        Some(SkippedStretch { frames, periods, transits })
    }
}

//! Keeping order: which frame is next, which wait behind it, which will never come.
//!
//! LinkGuardian (SIGCOMM'23) §3.3. `next` is the paper's ackNo. A frame that is not next waits in the
//! reorder buffer; one that was given up is stepped over when its turn comes; backpressure follows the
//! level of the buffer.
//!
//! Invariants: frames leave in sequence order, each once; the buffer stays within its limit.

use std::collections::VecDeque;

use machine::FrameBody;
use units::{Bytes, Time};
use wire::Seq;
use wire::link::FlowControl;

use crate::backpressure::Backpressure;
use crate::params::Params;
use crate::pool::PoolShare;
use crate::reorder::ReorderBuffer;

#[derive(Debug)]
pub(crate) struct DeliveryOrder<B> {
    next: Seq,
    buffer: ReorderBuffer<B>,
    limit: Bytes,
    configured_limit: Bytes,
    peak: Bytes,
    backpressure: Option<Backpressure>,
    /// Given up, and still ahead of `next`: first and number of frames, in sequence order.
    stepped_over: VecDeque<(Seq, u32)>,
}

/// Placement of a frame that arrived.
#[derive(Debug)]
pub(crate) enum OrderPlacement<B> {
    /// The frame is the next one.
    Next(B),
    Held,
    /// The buffer has no room for the frame.
    Full(B),
}

impl<B: FrameBody> DeliveryOrder<B> {
    pub(crate) fn new(params: &Params) -> Self {
        Self {
            next: params.first_seq,
            buffer: ReorderBuffer::new(params.ordering.build, params.first_seq),
            limit: params.ordering.limit,
            configured_limit: params.ordering.limit,
            peak: Bytes::ZERO,
            backpressure: params.ordering.backpressure.map(Backpressure::new),
            stepped_over: VecDeque::new(),
        }
    }

    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    pub(crate) fn level(&self) -> Bytes {
        self.buffer.level()
    }

    pub(crate) fn peak(&self) -> Bytes {
        self.peak
    }

    /// Passes the frame if it is the next one and no other frame waits; returns false otherwise.
    #[inline(always)]
    pub(crate) fn pass(&mut self, seq: Seq) -> bool {
        let passes = seq == self.next && self.buffer.is_empty() && self.stepped_over.is_empty();
        if passes {
            self.next = seq.next();
        }
        passes
    }

    /// Finds a frame its place.
    pub(crate) fn place(&mut self, now: Time, seq: Seq, body: B) -> OrderPlacement<B> {
        if seq == self.next {
            self.next = seq.next();
            return OrderPlacement::Next(body);
        }
        let level = self.buffer.level() + Bytes::new(u64::from(body.len()));
        if level > self.limit {
            return OrderPlacement::Full(body);
        }
        self.buffer.hold(now, self.next, seq, body);
        self.peak = self.peak.max(level);
        OrderPlacement::Held
    }

    /// The next frame, if it is held where it can be found.
    pub(crate) fn pop(&mut self) -> Option<B> {
        self.pass_given_up();
        let body = self.buffer.take(self.next)?;
        self.next = self.next.next();
        Some(body)
    }

    /// A frame of a rotating buffer has come round: it leaves if it is next (Alg. 1).
    pub(crate) fn on_turn(&mut self, now: Time) -> Option<B> {
        let body = self.buffer.examine(now, self.next)?;
        self.next = self.next.next();
        Some(body)
    }

    pub(crate) fn next_turn(&self) -> Option<Time> {
        self.buffer.next_turn()
    }

    /// These frames will not come.
    pub(crate) fn step_over(&mut self, first: Seq, frames: u32) {
        let at = self.stepped_over.iter().rposition(|(other, _)| other.offset_from(first) < 0).map_or(0, |at| at + 1);
        self.stepped_over.insert(at, (first, frames));
    }

    fn pass_given_up(&mut self) {
        while self.stepped_over.front().is_some_and(|(first, _)| *first == self.next) {
            if let Some((_, frames)) = self.stepped_over.pop_front() {
                self.next = self.next.plus(frames);
            }
        }
    }

    /// Lets backpressure follow the level: the new wish, if it changed.
    pub(crate) fn press_back(&mut self) -> Option<FlowControl> {
        let backpressure = self.backpressure.as_mut()?;
        backpressure.on_level(self.buffer.level()).then(|| backpressure.wish())
    }

    pub(crate) fn wish(&self) -> FlowControl {
        self.backpressure.as_ref().map_or(FlowControl::Flow, Backpressure::wish)
    }

    /// The switch has this much room for us.
    pub(crate) fn share(&mut self, share: PoolShare) {
        self.limit = self.configured_limit.min(share.hard);
        if let Some(backpressure) = &mut self.backpressure {
            backpressure.limit(share.fair);
        }
    }

    /// Takes out all held frames, in order; the next one after them is `next`.
    pub(crate) fn drain(&mut self, next: Seq) -> Vec<(Seq, B)> {
        let held = self.buffer.drain(self.next);
        self.next = next;
        self.stepped_over.clear();
        held
    }

    /// See [`ReorderBuffer::fingerprint`].
    pub(crate) fn fingerprint(&self, now: Time, mix: impl FnMut(u64)) {
        self.buffer.fingerprint(now, self.next, mix);
    }
    /// Frames between `next` and what is expected that are held or were given up.
    pub(crate) fn accounted(&self) -> u32 {
        self.buffer.frames() as u32 + self.stepped_over.iter().map(|(_, frames)| frames).sum::<u32>()
    }

    /// Panics if the buffer is over its limit, what was given up is out of order or due, or backpressure is behind the level.
    pub(crate) fn check_invariants(&self) {
        self.buffer.check_invariants();
        let level = self.buffer.level();
        assert!(level <= self.peak && self.peak <= self.configured_limit, "the reorder buffer holds {level:?}");
        assert!(self.backpressure.as_ref().is_none_or(|it| it.is_settled(level)), "the wish does not fit {level:?}");
        let mut next = self.next;
        for (at, (first, frames)) in self.stepped_over.iter().enumerate() {
            let ahead = first.offset_from(next);
            assert!(
                *frames > 0 && (ahead > 0 || at > 0 && ahead == 0),
                "given up out of order: {:?}",
                self.stepped_over
            );
            next = first.plus(*frames);
        }
    }
}

//! Packets that follow the last one of a queue that has drained, so that its loss is noticed.
//!
//! "Packet corruption in RDMA" §4.3 and §5.2. Nothing comes behind a tail that would show the responder its loss, so the
//! requester must wait for its timeout. *Dummies* are empty messages with PSNs of their own: short, therefore seldom
//! corrupted, and the first to arrive brings a NAK, or an acknowledgement if it was that which was lost. *Tail copies* are
//! the tail packet itself, sent again; the paper compares dummies with them.
//!
//! Dummies wait until nothing has been posted for `dummies_after` (the paper's T): if something is, it does their work.
//! The paper words the rule by the time since the last post *before* a request; then the last of several requests in a row
//! would go without, and the T + RTT that it gives for a lost tail would not hold.

use units::{Span, Time};

use super::config::RoceConfig;

/// Action when the last packet of the queue has been sent for the first time, or some time later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DummyAction {
    None,
    Now(u32),
    At(Time),
}

#[derive(Debug)]
pub(super) struct TailState {
    dummies: u32,
    after: Span,
    copies: u32,
    last_post: Time,
    /// Place of the tail whose copies are to be sent, and how many.
    repeated: u64,
    left: u32,
}

impl TailState {
    pub(super) fn new(config: &RoceConfig) -> Self {
        Self {
            dummies: config.dummies,
            after: config.dummies_after,
            copies: config.tail_copies,
            last_post: Time::ZERO,
            repeated: 0,
            left: 0,
        }
    }

    pub(super) fn on_post(&mut self, now: Time) {
        self.last_post = now;
    }

    /// The queue is empty: its last packet, at this place, has been sent for the first time.
    pub(super) fn on_drained(&mut self, place: u64, may_repeat: bool) {
        self.repeated = place;
        self.left = if may_repeat { self.copies } else { 0 };
    }

    /// Time at which dummies are to follow, if the queue stays as it is.
    pub(super) fn dummies(&self, now: Time) -> DummyAction {
        let at = self.last_post + self.after;
        match (self.dummies, at <= now) {
            (0, _) => DummyAction::None,
            (dummies, true) => DummyAction::Now(dummies),
            (_, false) => DummyAction::At(at),
        }
    }

    /// True if a copy of the tail is to be sent: not once it has been acknowledged.
    #[inline]
    pub(super) fn has_copy(&self, una: u64) -> bool {
        self.left > 0 && una <= self.repeated
    }

    /// The place whose packet to send again.
    pub(super) fn take_copy(&mut self) -> u64 {
        self.left -= 1;
        self.repeated
    }

    /// Forgets copies, because everything is sent again anyway.
    pub(super) fn forget_copies(&mut self) {
        self.left = 0;
    }
}

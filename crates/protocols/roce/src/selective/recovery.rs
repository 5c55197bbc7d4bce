//! Decisions that differ between ways of selective retransmission, apart from what all of them share.
//!
//! Places are PSNs counted from 0 without wrapping.

use std::fmt::Debug;

use super::packet::Gaps;

/// Result of the arrival of a packet that is the expected one or lies beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketArrival {
    /// It was the expected one: this one and what had come before it, `passed` in all, are now in order.
    Next {
        /// At least 1.
        passed: u64,
        /// Something behind it was kept, or others are still missing before that.
        filled: bool,
    },
    /// Placed before one that was sent earlier.
    Ahead,
    /// Placed before.
    Held,
    /// There is no room to remember it, or no way to.
    Dropped,
}

/// Progress of a sender.
#[derive(Clone, Copy, Debug)]
pub struct SendWindow {
    /// The first place that is not acknowledged.
    pub una: u64,
    /// The next place to be sent in order; everything from here on will be.
    pub cursor: u64,
    /// The first place that was never sent.
    pub sent: u64,
}

/// News that a NACK brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackInfo {
    /// All of it was known.
    Nothing,
    /// There is more to send again.
    News,
    /// It cannot be remembered, or says no more than that: send everything from this place on.
    GoBack(u64),
    /// No receiver in its right mind sends this.
    Invalid,
}

/// State that could not be kept while a connection was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ForgottenState {
    /// Everything that had arrived out of order.
    pub arrivals: bool,
    /// Packets that were to be sent again, from this place on.
    pub resend_from: Option<u64>,
}

/// State of both halves of a connection about losses, with no timer and no wire of their own.
pub trait LossRecovery: Debug {
    /// A packet arrived at `place`, which is the expected one or lies less than a window behind it.
    fn arrive(&mut self, place: u64) -> PacketArrival;
    /// True if [`LossRecovery::next_nack`] has something to send.
    fn owes_nack(&self) -> bool;
    /// The NACK that is due.
    fn next_nack(&mut self) -> Option<Gaps>;

    /// A NACK arrived, whose ePSN is at `expected`.
    fn learn(&mut self, gaps: Gaps, expected: u64, window: SendWindow) -> NackInfo;
    /// The next place to send again because of a NACK; none lies before `una`.
    fn again(&self, una: u64) -> Option<u64>;
    /// [`LossRecovery::again`] has been sent.
    fn sent_again(&mut self);
    /// True if the receiver is known to keep the packet at this place, though it is not acknowledged.
    fn has_arrived(&self, place: u64) -> bool;
    /// Everything before `una` has arrived.
    fn acknowledged(&mut self, una: u64);
    /// Everything from `una` on will be sent again, regardless of what NACKs said.
    fn restart(&mut self, una: u64);

    /// Anything is about to happen to this connection: brings its state back if that was put away.
    fn bring_in(&mut self, una: u64) -> Option<ForgottenState>;
    /// Gives back what is shared with others; nothing happens after that.
    fn close(&mut self);
    /// Panics if its state is one that cannot be.
    fn check_invariants(&self) {}
}

//! Decisions that differ between ways of selective retransmission, apart from what all of them share.
//!
//! Places are PSNs counted from 0 without wrapping.

use std::fmt::Debug;

use super::packet::Gaps;

/// Result of the arrival of a packet that is the expected one or lies beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketArrival {
    /// The packet was the expected one: `passed` packets, this one and those that had come before it, are now in order.
    Next {
        /// Packets in order now, at least 1.
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
    /// The NACK cannot be remembered, or names no gap: send everything from this place on.
    GoBack(u64),
    /// The NACK contradicts the protocol.
    Invalid,
}

/// State that could not be kept while a connection was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ForgottenState {
    /// Packets that had arrived out of order were forgotten.
    pub arrivals: bool,
    /// Packets that were to be sent again, from this place on.
    pub resend_from: Option<u64>,
}

/// State of both halves of a connection about losses, with no timer and no wire of their own.
pub trait LossRecovery: Debug {
    /// Records a packet at `place`, which is the expected one or lies less than a window behind it.
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
    /// Acknowledges everything before `una`.
    fn acknowledged(&mut self, una: u64);
    /// Sends everything from `una` on again, regardless of earlier NACKs.
    fn restart(&mut self, una: u64);

    /// Brings the connection's state back before an event, if it was swapped out.
    fn bring_in(&mut self, una: u64) -> Option<ForgottenState>;
    /// Gives back what is shared with others; nothing happens after that.
    fn close(&mut self);
    /// Panics if its state is one that cannot be.
    fn check_invariants(&self) {}
}

//! Inputs, actions and notes of a node.

use wire::sync::SyncMessage;

use crate::bound::ClockInterval;

/// The states of a node; the diagram is in [`super`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// The node's clock is the time.
    Root,
    /// The node listens to its parent.
    Following,
    /// The node listens to its backup parent.
    Turned,
    /// The node has found its own clock broken.
    Evicted,
}

/// A message, and what its sender's clock shows at the moment of its arrival: timestamp, correction and way, as exactly as
/// they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncArrival {
    /// The message.
    pub message: SyncMessage,
    /// Reading of the sender's clock now. Where the length of the way is known, this is one reading, and
    /// [`super::NodeParams::per_hop`] has its error; where it is measured ([`super::DepthRule::Measured`]), it is a hard
    /// interval.
    pub sender: ClockInterval,
}

/// Reason why a message was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncRejection {
    /// The node does not listen to its sender.
    NotParent,
    /// A root that has been replaced.
    EarlierTerm,
    /// This wave, or a later one, was heard before.
    Replay,
    /// The number of waves grew by more than the time since the last one allows.
    Future,
    /// The time in it and the node's own cannot both be right.
    Invalid,
    /// A later root's, whose time does not fit the node's own: it is believed if more of them come.
    Unconfirmed,
}

/// Facts for counters and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeNote {
    /// A message was applied.
    Synchronised,
    /// A message was not applied.
    Rejected(SyncRejection),
    /// The node listens to its backup parent from now on.
    Turned,
    /// The backup root is the root from now on.
    Elected,
    /// The planned root, which was none, is the root from now on.
    Reigns,
    /// The node is not the root any more: it follows a later one.
    Replaced,
    /// The node says no time any more.
    Evicted,
    /// The oscillator went back, or the driver says that it jumped: the node waits for a message.
    ClockStep,
}

/// Actions that a node can take.
pub trait NodeOut {
    /// Sends to all children and backup children, at once. What passes until then belongs into the correction.
    fn send(&mut self, message: SyncMessage);
    /// Records a fact.
    fn note(&mut self, note: NodeNote);
}

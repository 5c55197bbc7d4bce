//! Counters and events of the clock, and actions that its state machine wants.

use clock::node::{NodeNote, NodeOut};
use units::counters;
use wire::sync::SyncMessage;

use crate::seal::FrameRefusal;

counters! {
    /// Counters of a clock.
    ClockCounters:
    /// Messages that were believed.
    synchronized,
    /// Waves sent, to all who listen at once.
    waves,
    /// Times that the node turned to its backup parent.
    turned,
    /// Times that it went back to its parent, which sent, because its backup parent was silent or a plan had just been given.
    returned,
    /// Times that it made itself the root.
    elected,
    /// Times that it found its own clock broken.
    evicted,
    /// Times that it was a root and gave way to a later one.
    replaced,
    /// Times that it became the root because the plan says so.
    reigns,
    /// Times that its oscillator jumped, or the machine was suspended.
    clock_steps,
    /// Messages of nodes that it does not listen to.
    rejected_not_parent,
    /// Messages of roots that have been replaced.
    rejected_epoch,
    /// Messages that came twice, or later than others.
    rejected_replay,
    /// Messages of waves that cannot have been yet.
    rejected_future,
    /// Messages whose time cannot be true.
    rejected_invalid,
    /// Messages of a later root whose time did not fit, before there were enough of them.
    rejected_unconfirmed,
    /// Messages of neighbours of whose time too little is known yet.
    unbounded,
    /// Neighbours that contradicted themselves.
    contradictions,
    /// Frames that could not be read.
    malformed,
    /// Frames of other nodes than the one that the link leads to.
    foreign,
    /// Frames of neighbours that have another plan.
    other_plan,
    /// Frames whose seal does not open: of another key, or forged.
    forged,
    /// Frames whose seal has been opened before.
    replayed,
    /// Frames without a seal, though there is a key.
    unsealed,
    /// Frames with a seal, though there is no key.
    sealed,
    /// Frames with a seal before the two ends agreed on a session.
    early,
}

impl ClockCounters {
    /// Counter of frames that are not believed for this reason.
    pub(crate) fn of_refusal(&mut self, refusal: FrameRefusal) -> &mut u64 {
        match refusal {
            FrameRefusal::Malformed => &mut self.malformed,
            FrameRefusal::Foreign => &mut self.foreign,
            FrameRefusal::Forged => &mut self.forged,
            FrameRefusal::Replayed => &mut self.replayed,
            FrameRefusal::Early => &mut self.early,
            FrameRefusal::Unsealed => &mut self.unsealed,
            FrameRefusal::Sealed => &mut self.sealed,
        }
    }
}

/// Event that is worth a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CoreEvent {
    /// The node knows the time for the first time, or again.
    Synchronized,
    Turned,
    Returned,
    Elected,
    Evicted,
    /// The node was the root and follows another one, through this neighbour.
    Replaced(String),
    /// The node has become the root, as planned.
    Reigns,
    ClockStep,
    /// Frames of another node come from where this neighbour should be.
    WrongNeighbour(String),
    /// This neighbour has another plan.
    OtherPlan(String, u32),
}

/// Actions that the state machine wants.
#[derive(Debug, Default)]
pub(super) struct CoreOut {
    pub(super) wave: Option<SyncMessage>,
    pub(super) notes: Vec<NodeNote>,
}

impl NodeOut for CoreOut {
    fn send(&mut self, message: SyncMessage) {
        self.wave = Some(message);
    }

    fn note(&mut self, note: NodeNote) {
        self.notes.push(note);
    }
}

/// A frame that is to be sent as soon as possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutboundFrame {
    pub(super) port: usize,
    pub(super) wave: Option<SyncMessage>,
}

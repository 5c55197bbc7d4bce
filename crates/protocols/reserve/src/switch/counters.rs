//! Counters of the switch.

use wire::reserve::Refusal;

units::counters! {
    /// Messages, frames and offences since the start.
    SwitchCounters:
    /// RSVs that came.
    rsvs,
    /// GRTs sent for the first time.
    grants,
    /// RSVs kept for a later answer.
    kept,
    /// RSVs answered with the slot that their burst had already.
    repeated,
    /// RSVs of bursts that were sent before.
    stale,
    /// Reservations given back by their senders.
    released,
    /// Reservations that were never used and taken back, or lost with their port.
    unused,
    /// Resets by receivers.
    resets,
    /// RSVs refused: demand above the limit.
    above_limit,
    /// RSVs refused: no such port.
    unknown_port,
    /// RSVs refused: for the asker's own port.
    own_port,
    /// RSVs refused: more than the contexts of a port may reserve.
    too_many,
    /// RSVs refused: of another run of the switch.
    old_epoch,
    /// RSVs refused: the source address is another port's.
    foreign_source,
    /// RSVs refused: more contexts than there is room for.
    unknown_context,
    /// Messages that only switches send.
    nonsense,
    /// Data frames that passed as reserved.
    reserved,
    /// Marked frames without a reservation that passed.
    unsolicited,
    /// Marked frames without a reservation that were cut and sent back.
    cut,
    /// Frames that `paper` dropped because too much was reserved.
    dropped,
    /// Reserved frames that came too early and were treated as unsolicited.
    early,
    /// Frames marked as reserved that no reservation covered.
    uncovered,
    /// Frames without a mark that passed.
    unreserved,
    /// Frames without a mark that exceeded their share and were dropped.
    policed,
}

impl SwitchCounters {
    pub(super) fn count_refusal(&mut self, reason: Refusal) {
        *match reason {
            Refusal::AboveLimit => &mut self.above_limit,
            Refusal::UnknownPort => &mut self.unknown_port,
            Refusal::OwnPort => &mut self.own_port,
            Refusal::TooMany => &mut self.too_many,
            Refusal::OldEpoch => &mut self.old_epoch,
            Refusal::ForeignSource => &mut self.foreign_source,
            Refusal::UnknownContext => &mut self.unknown_context,
        } += 1;
    }
}

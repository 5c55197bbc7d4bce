//! Losses of one sender's packets as they show, and later proofs that a packet was not lost.

use crate::terms::{LossWitness, RepairKind};

/// A packet that was lost, or looks like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossNote {
    pub at: u64,
    pub position: u64,
    pub len: u32,
    pub repaired_by: RepairKind,
    pub repaired_at: u64,
    pub seen_by: LossWitness,
    /// True if the original had arrived, so that the retransmission was unnecessary.
    pub is_spurious: bool,
}

/// Number of latest losses among which a late proof is searched for.
const MEMORY: usize = 256;

#[derive(Clone, Debug, Default)]
pub(crate) struct LossNotes {
    notes: Vec<LossNote>,
    spurious: u32,
}

impl LossNotes {
    pub(crate) fn push(&mut self, note: LossNote) {
        self.notes.push(note);
    }

    /// A copy of what was acknowledged long ago: nothing was lost.
    pub(crate) fn count_spurious(&mut self) {
        self.spurious += 1;
    }

    /// The receiver got these bytes twice: one copy was for nothing.
    pub(crate) fn on_dsack(&mut self, from: u64, to: u64) {
        self.disprove(|note| note.position >= from && note.position < to);
    }

    /// The acknowledgement answers the original of this segment, not its copy.
    pub(crate) fn on_original_arrived(&mut self, position: u64) {
        self.disprove(|note| note.position == position);
    }

    /// Marks losses as spurious; if a segment has several copies, one report disproves the latest.
    fn disprove(&mut self, is_meant: impl Fn(&LossNote) -> bool) {
        let mut done: Vec<u64> = Vec::new();
        let recent = self.notes.iter_mut().rev().take(MEMORY);
        for note in recent.filter(|note| note.len > 0 && !note.is_spurious && is_meant(note)) {
            if !done.contains(&note.position) {
                done.push(note.position);
                note.is_spurious = true;
                self.spurious += 1;
            }
        }
    }

    /// True if the data at this position had arrived: its copy was spurious, or it was never sent again.
    pub(crate) fn is_arrived(&self, position: u64) -> bool {
        let mut copies = self.notes.iter().filter(|note| note.position == position && note.len > 0).peekable();
        copies.peek().is_none() || copies.any(|note| note.is_spurious)
    }

    /// Real ones.
    pub(crate) fn real(&self) -> impl Iterator<Item = &LossNote> {
        self.notes.iter().filter(|note| !note.is_spurious)
    }

    #[inline]
    pub(crate) fn bytes_held(&self) -> usize {
        self.notes.capacity() * size_of::<LossNote>()
    }

    pub(crate) fn spurious(&self) -> u32 {
        self.spurious
    }
}

//! Captures that do not begin and end together: what of UP lies outside of DOWN.

use super::details::LossDetails;
use super::merge::MergeResult;
use super::{LONG_RUN, MissingPacket, OutsideCounts};
use crate::signature::Signature;

/// Nearer than this to the other capture's first or last frame, packets are compared before they are judged.
pub(crate) const SLACK: i64 = 1_000_000_000;

/// Packets beyond an end of the other capture, until there are enough to conclude that it was not capturing then.
#[derive(Default)]
pub(crate) struct EdgePackets {
    signatures: Vec<Signature>,
    first: Option<i64>,
    skipped: u64,
    is_long: bool,
}

impl EdgePackets {
    /// However few they are.
    pub(crate) fn long() -> Self {
        Self { is_long: true, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.signatures.is_empty() && self.skipped == 0
    }

    pub(crate) fn push(&mut self, at: i64, signature: &Signature) {
        let first = *self.first.get_or_insert(at);
        if self.is_long {
            self.skipped += 1;
            return;
        }
        self.signatures.push(*signature);
        if is_long(self.signatures.len() as u64, first, at) {
            self.is_long = true;
            self.skipped = self.signatures.len() as u64;
            self.signatures = Vec::new();
        }
    }

    /// Gives back those that were too few; how many were not.
    pub(crate) fn settle<E>(self, put: impl FnMut(&Signature) -> Result<(), E>) -> Result<u64, E> {
        self.signatures.iter().try_for_each(put)?;
        Ok(self.skipped)
    }
}

fn is_long(packets: u64, first: i64, last: i64) -> bool {
    packets >= LONG_RUN.packets && last.abs_diff(first) >= LONG_RUN.nanoseconds
}

/// Packets outside of the time that DOWN's capture covers.
#[derive(Debug, Default)]
pub(crate) struct CaptureEdges {
    pub packets: OutsideCounts,
    /// Too few to be outside.
    pub at_edges: OutsideCounts,
    /// Number of lost packets, counted from the first one and from the last one, that are not losses.
    pub named_before: usize,
    pub named_after: usize,
}

impl CaptureEdges {
    /// Lost packets apart from those at the ends of UP, unless there are no others.
    pub(crate) fn clear_of_edges<'l>(&self, lost: &'l [MissingPacket], scale: u64) -> &'l [MissingPacket] {
        let [before, after] = [self.at_edges.before, self.at_edges.after].map(|packets| (packets / scale) as usize);
        lost.get(before..lost.len().saturating_sub(after)).filter(|lost| !lost.is_empty()).unwrap_or(lost)
    }
}

pub(crate) fn outside(merged: &MergeResult, details: &LossDetails, whole: bool) -> CaptureEdges {
    let mut edges = CaptureEdges { packets: merged.up_skipped, ..CaptureEdges::default() };
    if whole {
        return edges;
    }
    let scale = merged.missing.scale();
    let lost = &details.lost;
    let at = |lost: &MissingPacket| i64::try_from(lost.loss.at.0).unwrap_or(i64::MAX);
    let ends = |run: &[MissingPacket]| run.first().zip(run.last()).map(|(first, last)| (at(first), at(last)));
    let long =
        |run: &[MissingPacket]| ends(run).is_some_and(|(first, last)| is_long(run.len() as u64 * scale, first, last));

    // Everything from UP's first packet on, until DOWN has its first frame.
    let first = merged.down.first().saturating_sub(merged.clock.at_beginning());
    let run = lost.iter().zip(&details.positions).zip(0..);
    let run = run.take_while(|((lost, position), number)| *position == number && at(lost) < first).count();
    if merged.up_skipped.before > 0 || long(&lost[..run]) {
        edges.named_before = run;
        edges.packets.before += run as u64 * scale;
    } else {
        edges.at_edges.before = run as u64 * scale;
    }

    // The same from its last one backwards.
    let rest = &lost[run..];
    let last = merged.down.last().saturating_sub(merged.clock.at_end());
    let run = rest.iter().zip(&details.positions[run..]).rev().zip(1..);
    let in_a_row = |number: u64, position: u64| position + number == details.compared;
    let run = run
        .take_while(|((lost, position), number)| {
            in_a_row(*number, **position) && (merged.down.truncated || at(lost) > last)
        })
        .count();
    if merged.down.truncated || merged.up_skipped.after > 0 || long(&rest[rest.len() - run..]) {
        edges.named_after = run;
        edges.packets.after += run as u64 * scale;
    } else {
        edges.at_edges.after = run as u64 * scale;
    }
    edges
}

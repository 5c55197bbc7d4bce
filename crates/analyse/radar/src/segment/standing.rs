//! Standing of a finding: by batches in which a meter missed packets, by those that others judge, and by the link's numbers.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Standing of a packet that was found missing in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingStanding {
    Sure,
    /// A meter missed packets, or the packet may have been sent in a batch that another collector judges.
    Unsure,
    /// Another collector judges that batch.
    Elsewhere,
}

/// Adds a batch to some in order, and forgets those that lie further back.
pub(super) fn remember(batches: &mut VecDeque<u64>, batch: u64, back: u64) {
    if batches.back() != Some(&batch) {
        batches.push_back(batch);
    }
    while batches.front().is_some_and(|old| *old + back < batch) {
        batches.pop_front();
    }
}

pub(super) fn has_any(batches: &VecDeque<u64>, range: RangeInclusive<u64>) -> bool {
    let at = batches.partition_point(|batch| batch < range.start());
    batches.get(at).is_some_and(|batch| batch <= range.end())
}

/// True if the far end has seen a number at least as late as the one that was sent; numbers wrap after 2^17.
pub(super) fn has_passed(sent: Option<u32>, seen: Option<u32>) -> bool {
    const ROUND: u32 = 1 << 17;
    match (sent, seen) {
        (Some(sent), Some(seen)) => (seen.wrapping_sub(sent) & (ROUND - 1)) < ROUND / 2,
        _ => false,
    }
}

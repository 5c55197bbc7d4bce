//! Transfers of a collective of a trace: those of our patterns.

use collective::{CollectiveAlgorithm, CollectivePattern, CollectiveShape, GraphTransfer, TransferPlan};

/// Collectives of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveKind {
    AllReduce,
    Reduce,
    AllGather,
    Broadcast,
    AllToAll,
    ReduceScatter,
    Barrier,
}

/// A transfer between members of a group.
pub(crate) struct CollectivePiece {
    pub transfer: GraphTransfer,
    /// The receiver has everything when it and its like have arrived.
    pub is_last: bool,
}

/// The transfers among `members`. `bytes` is what a rank has before, which for an all-gather is its own part.
pub(crate) fn pieces(kind: CollectiveKind, members: u32, bytes: u64) -> Vec<CollectivePiece> {
    let ranks = u64::from(members);
    let (pattern, size) = match kind {
        CollectiveKind::AllReduce => (CollectivePattern::AllReduce, bytes.max(ranks)),
        CollectiveKind::ReduceScatter => (CollectivePattern::ReduceScatter, bytes.max(ranks)),
        CollectiveKind::AllGather => (CollectivePattern::AllGather, bytes.saturating_mul(ranks)),
        CollectiveKind::AllToAll => (CollectivePattern::AllToAll, bytes.max(ranks)),
        CollectiveKind::Broadcast | CollectiveKind::Reduce => (CollectivePattern::Broadcast, bytes),
        CollectiveKind::Barrier => return Vec::new(),
    };
    let algorithm = pattern.usual_algorithm();
    let plan = TransferPlan::of(&CollectiveShape { pattern, algorithm, ranks: members, size, channels: 1, pieces: 1 });
    // Round a ring, a rank has everything with its last piece; elsewhere all that it receives counts.
    let is_ring = algorithm == CollectiveAlgorithm::Ring && pattern != CollectivePattern::Broadcast;
    let last = (0..plan.transfers()).map(|id| plan.transfer(id).step).max().unwrap_or_default();
    let piece = |(id, transfer): (u32, GraphTransfer)| CollectivePiece {
        is_last: !is_ring || plan.transfer(id).step == last,
        transfer: if kind == CollectiveKind::Reduce { mirrored(transfer, members) } else { transfer },
    };
    (0..).zip(plan.to_list()).map(piece).collect()
}

/// A broadcast in the mirror is a reduction to the first rank: a chain from the last.
fn mirrored(transfer: GraphTransfer, members: u32) -> GraphTransfer {
    let [src, dst] = [transfer.src, transfer.dst].map(|rank| members - 1 - rank);
    GraphTransfer { src, dst, ..transfer }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reduction_ends_at_the_first_rank() {
        let pieces = pieces(CollectiveKind::Reduce, 4, 9);
        let pairs: Vec<_> = pieces.iter().map(|piece| (piece.transfer.src, piece.transfer.dst)).collect();
        assert_eq!(pairs, [(3, 2), (2, 1), (1, 0)]);
    }

    proptest! {
        #[test]
        fn every_byte_is_sent_as_often_as_the_pattern_needs(members in 2_u32..40, bytes in 40_u64..1 << 40) {
            let n = u64::from(members);
            let bytes = bytes * n;
            for (kind, sent, last) in [
                (CollectiveKind::AllReduce, 2 * (n - 1) * bytes, n),
                (CollectiveKind::ReduceScatter, (n - 1) * bytes, n),
                (CollectiveKind::AllGather, n * (n - 1) * bytes, n),
                (CollectiveKind::AllToAll, (n - 1) * bytes, n * (n - 1)),
                (CollectiveKind::Broadcast, (n - 1) * bytes, n - 1),
                (CollectiveKind::Reduce, (n - 1) * bytes, n - 1),
            ] {
                let pieces = pieces(kind, members, bytes);
                prop_assert_eq!(pieces.iter().map(|piece| piece.transfer.bytes).sum::<u64>(), sent, "{:?}", kind);
                prop_assert_eq!(pieces.iter().filter(|piece| piece.is_last).count() as u64, last, "{:?}", kind);
            }
        }
    }
}

//! Transfers and what follows them, of a computed pattern or of a list.

use units::Span;

use crate::graph::{GraphInput, GraphTransfer, TransferGraph};
use crate::patterns::ComputedPattern;
use crate::shape::CollectiveShape;

/// Bytes from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub src: u32,
    pub dst: u32,
    pub bytes: u64,
    /// Transfers of a lane between two ranks go one behind the other, over one queue pair.
    pub lane: u16,
    /// Step of the algorithm, or transfers of a graph that must come before.
    pub step: u32,
}

/// Progress of a transfer that others may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputEvent {
    /// All of it is at its receiver.
    Arrived,
    /// Its sender knows that.
    Acknowledged,
}

/// A transfer that waits for another, and the time from that one's event on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowingTransfer {
    pub transfer: u32,
    pub delay: Span,
}

/// All transfers of an iteration, by number.
#[derive(Clone, Debug)]
pub struct TransferPlan {
    ranks: u32,
    kind: PlanKind,
}

#[derive(Clone, Debug)]
enum PlanKind {
    Computed(ComputedPattern),
    Listed(TransferGraph),
}

impl TransferPlan {
    /// The plan of a shape that was checked.
    pub fn of(shape: &CollectiveShape) -> Self {
        Self { ranks: shape.ranks, kind: PlanKind::Computed(ComputedPattern::new(shape)) }
    }

    pub fn graph(graph: TransferGraph) -> Self {
        Self { ranks: graph.ranks(), kind: PlanKind::Listed(graph) }
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Number of transfers.
    pub fn transfers(&self) -> u32 {
        match &self.kind {
            PlanKind::Computed(pattern) => pattern.transfers(),
            PlanKind::Listed(graph) => graph.transfers(),
        }
    }

    #[inline]
    pub fn transfer(&self, id: u32) -> Transfer {
        match &self.kind {
            PlanKind::Computed(pattern) => pattern.transfer(id),
            PlanKind::Listed(graph) => graph.transfer(id),
        }
    }

    /// Number of events that it waits for.
    #[inline]
    pub fn inputs(&self, id: u32) -> u32 {
        match &self.kind {
            PlanKind::Computed(pattern) => pattern.inputs(id),
            PlanKind::Listed(graph) => graph.inputs(id),
        }
    }

    /// Earliest start, from the beginning of its iteration.
    #[inline]
    pub fn not_before(&self, id: u32) -> Span {
        match &self.kind {
            PlanKind::Computed(_) => Span::ZERO,
            PlanKind::Listed(graph) => graph.not_before(id),
        }
    }

    /// Calls `found` with each transfer that waits for this event of a transfer.
    #[inline]
    pub fn followers(&self, id: u32, event: InputEvent, mut found: impl FnMut(FollowingTransfer)) {
        match &self.kind {
            PlanKind::Computed(_) if event == InputEvent::Acknowledged => {}
            PlanKind::Computed(pattern) => {
                pattern.followers(id, |transfer| found(FollowingTransfer { transfer, delay: Span::ZERO }));
            }
            PlanKind::Listed(graph) => graph.followers(id, event).for_each(found),
        }
    }

    /// True if any transfer waits for an acknowledgement.
    pub fn waits_for_acknowledgements(&self) -> bool {
        matches!(&self.kind, PlanKind::Listed(graph) if graph.waits_for_acknowledgements())
    }

    /// Name of a transfer in a list, if it has one.
    pub fn name(&self, id: u32) -> Option<&str> {
        match &self.kind {
            PlanKind::Computed(_) => None,
            PlanKind::Listed(graph) => graph.name(id),
        }
    }

    /// Numbers of all transfers, each behind its inputs.
    pub fn in_order(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match &self.kind {
            PlanKind::Computed(pattern) => Box::new(0..pattern.transfers()),
            PlanKind::Listed(graph) => Box::new(graph.in_order()),
        }
    }

    /// Lists all transfers; their names are the numbers.
    pub fn to_list(&self) -> Vec<GraphTransfer> {
        let listed = |id| {
            let Transfer { src, dst, bytes, lane, .. } = self.transfer(id);
            let name = self.name(id).map_or_else(|| id.to_string(), str::to_owned);
            GraphTransfer { name, src, dst, bytes, lane, not_before: self.not_before(id), after: Vec::new() }
        };
        let mut list: Vec<GraphTransfer> = (0..self.transfers()).map(listed).collect();
        for transfer in 0..self.transfers() {
            for event in [InputEvent::Arrived, InputEvent::Acknowledged] {
                self.followers(transfer, event, |follower| {
                    let input = GraphInput { transfer, event, delay: follower.delay };
                    list[follower.transfer as usize].after.push(input);
                });
            }
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{CollectiveAlgorithm, CollectivePattern};

    fn shapes() -> impl Strategy<Value = CollectiveShape> {
        let pattern = proptest::sample::select(CollectivePattern::ALL.to_vec());
        let algorithm = proptest::sample::select(CollectiveAlgorithm::ALL.to_vec());
        (pattern, algorithm, 2u32..18, 1u64..500_000, 1u16..4, 1u32..5).prop_filter_map(
            "not a shape",
            |(pattern, algorithm, ranks, size, channels, pieces)| {
                let shape = CollectiveShape { pattern, algorithm, ranks, size, channels, pieces };
                shape.check(256).is_ok().then_some(shape)
            },
        )
    }

    proptest! {
        #[test]
        fn every_pattern_is_a_graph_and_says_the_same_as_one(shape in shapes()) {
            let plan = TransferPlan::of(&shape);
            let graph = TransferPlan::graph(TransferGraph::new(shape.ranks, plan.to_list()).unwrap());
            prop_assert_eq!(graph.transfers(), plan.transfers());
            for id in 0..plan.transfers() {
                let (one, other) = (plan.transfer(id), graph.transfer(id));
                prop_assert_eq!((one.src, one.dst, one.bytes, one.lane), (other.src, other.dst, other.bytes, other.lane));
                prop_assert_eq!(plan.inputs(id), graph.inputs(id), "{:?} {}", shape, id);
                plan.followers(id, InputEvent::Arrived, |follower| {
                    assert!(follower.transfer > id, "{shape:?}: {id} before {follower:?}");
                    assert_eq!(one.dst, plan.transfer(follower.transfer).src, "{shape:?}: {id}, {follower:?}");
                });
            }
        }

        #[test]
        fn every_rank_gets_what_its_pattern_gives_it(shape in shapes()) {
            let plan = TransferPlan::of(&shape);
            let mut received = vec![0; shape.ranks as usize];
            for id in 0..plan.transfers() {
                let transfer = plan.transfer(id);
                received[transfer.dst as usize] += transfer.bytes;
            }
            let (size, ranks) = (shape.size, u64::from(shape.ranks));
            let all: u64 = received.iter().sum();
            let expected = match shape.pattern {
                CollectivePattern::AllReduce => 2 * size * (ranks - 1),
                CollectivePattern::Pipeline => 2 * size * (ranks - 1),
                CollectivePattern::AllToAll if size % (ranks * u64::from(shape.channels)) != 0 => all,
                _ => size * (ranks - 1),
            };
            let whole = size % (ranks * u64::from(shape.channels)) == 0 || !shape.algorithm.is_halving();
            prop_assert!(!whole || all == expected, "{:?}: {} instead of {}", shape, all, expected);
        }
    }
}

//! Traffic that crosses a host's cable in an iteration.

use std::collections::BTreeSet;

use super::ModelNetwork;
use crate::plan::TransferPlan;
use crate::shape::{CollectiveAlgorithm, CollectivePattern, CollectiveShape};

/// Messages of one rank in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CableLoad {
    pub bytes: u64,
    /// M.
    pub packets: u64,
    pub messages: u64,
    /// Messages whose last packet nothing follows on its queue pair before its arrival is waited for.
    pub open_tails: u64,
}

impl CableLoad {
    pub(super) fn of(
        shape: &CollectiveShape,
        network: &ModelNetwork,
        rank: u32,
        sends: bool,
        per_transfer: bool,
        barrier: bool,
    ) -> Self {
        let mut load = match shape.algorithm {
            // A ring has many alike.
            CollectiveAlgorithm::Ring
                if !matches!(shape.pattern, CollectivePattern::Broadcast | CollectivePattern::Pipeline) =>
            {
                Self::of_ring(shape, network)
            }
            _ => Self::counted(shape, network, rank, sends),
        };
        if per_transfer {
            load.open_tails = load.messages;
        } else if shape.algorithm.is_halving() && shape.pattern == CollectivePattern::AllReduce {
            // Each partner is met twice, the second time after its own answer; only the two steps in the middle follow directly.
            load.open_tails = load.messages - u64::from(shape.channels);
        }
        if !barrier && !per_transfer {
            // The next iteration reveals the last packet of this one.
            let revealed = if shape.algorithm.is_halving() { u64::from(shape.channels) } else { load.open_tails };
            load.open_tails = load.open_tails.saturating_sub(revealed);
        }
        load
    }

    /// Every rank sends and receives as much.
    fn of_ring(shape: &CollectiveShape, network: &ModelNetwork) -> Self {
        let steps = u64::from(super::times::ring_steps(shape));
        let lanes = u64::from(shape.channels);
        let messages = steps * lanes * u64::from(shape.pieces);
        let of_step = shape.size / u64::from(shape.ranks);
        let of_message = (of_step / (lanes * u64::from(shape.pieces))).max(1);
        Self { bytes: steps * of_step, packets: messages * network.packets(of_message), messages, open_tails: lanes }
    }

    fn counted(shape: &CollectiveShape, network: &ModelNetwork, rank: u32, sends: bool) -> Self {
        let plan = TransferPlan::of(shape);
        let mut load = Self::default();
        let mut pairs = BTreeSet::new();
        for id in 0..plan.transfers() {
            let transfer = plan.transfer(id);
            let (own, peer) = if sends { (transfer.src, transfer.dst) } else { (transfer.dst, transfer.src) };
            if own != rank {
                continue;
            }
            load.bytes += transfer.bytes;
            load.packets += network.packets(transfer.bytes);
            load.messages += 1;
            pairs.insert((peer, transfer.lane));
        }
        Self { open_tails: pairs.len() as u64, ..load }
    }
}

//! Halving and doubling: in step i of a reduce-scatter each rank sends half of what it still holds to a partner; an all-gather
//! does the same backwards; an all-reduce is both (Rabenseifner).
//!
//! A step waits for everything that its rank has received in the steps before: a message of a later step may overtake one that
//! lost a packet.

use super::{digits, share};
use crate::plan::Transfer;
use crate::shape::{CollectiveAlgorithm, CollectivePattern, CollectiveShape};

#[derive(Clone, Debug)]
pub(crate) struct HalvingDoubling {
    ranks: u32,
    channels: u32,
    /// Steps that halve, and steps that double.
    halving: u32,
    doubling: u32,
    nearest: bool,
    size: u64,
}

impl HalvingDoubling {
    pub(super) fn new(shape: &CollectiveShape) -> Self {
        let steps = shape.ranks.ilog2();
        let [halving, doubling] = match shape.pattern {
            CollectivePattern::ReduceScatter => [steps, 0],
            CollectivePattern::AllGather => [0, steps],
            _ => [steps, steps],
        };
        Self {
            ranks: shape.ranks,
            channels: shape.channels.into(),
            halving,
            doubling,
            nearest: shape.algorithm == CollectiveAlgorithm::HalvingNearest,
            size: shape.size,
        }
    }

    fn steps(&self) -> u32 {
        self.halving + self.doubling
    }

    pub(super) fn transfers(&self) -> u32 {
        self.steps() * self.channels * self.ranks
    }

    /// The bit by which partners of a step differ, and the bits of the steps that halve before it.
    fn bits(&self, step: u32) -> (u32, u32) {
        let halvings = self.ranks.ilog2();
        let level = if step < self.halving { step } else { halvings - 1 - (step - self.halving) };
        if self.nearest {
            (1 << level, (1 << level) - 1)
        } else {
            let bit = self.ranks >> (level + 1);
            (bit, (self.ranks - 1) & !(2 * bit - 1))
        }
    }

    pub(super) fn transfer(&self, id: u32) -> Transfer {
        let [src, channel, step] = digits(id, [self.ranks, self.channels, self.steps()]);
        let (bit, before) = self.bits(step);
        let dst = src ^ bit;
        // Halving, the blocks that the partner keeps; doubling, those that this rank has.
        let like = if step < self.halving { dst } else { src };
        let mask = before | bit;
        let of_channel = share(self.size, self.channels.into(), channel.into());
        Transfer { src, dst, bytes: self.bytes(of_channel, like & mask, mask), lane: channel as u16, step }
    }

    /// Bytes of all blocks whose numbers have these bits.
    fn bytes(&self, of_channel: u64, value: u32, mask: u32) -> u64 {
        let ranks = u64::from(self.ranks);
        let (each, more) = (of_channel / ranks, of_channel % ranks);
        let blocks = ranks >> mask.count_ones();
        let larger = (0..more as u32).filter(|block| block & mask == value).count() as u64;
        blocks * each + larger
    }

    pub(super) fn inputs(&self, id: u32) -> u32 {
        id / (self.ranks * self.channels)
    }

    pub(super) fn followers(&self, id: u32, mut found: impl FnMut(u32)) {
        let [src, channel, step] = digits(id, [self.ranks, self.channels, self.steps()]);
        let dst = src ^ self.bits(step).0;
        (step + 1..self.steps()).for_each(|later| found((later * self.channels + channel) * self.ranks + dst));
    }
}

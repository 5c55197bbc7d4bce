//! RingPattern: in every step each rank sends a chunk to the next one, which it had from the one before.
//!
//! All-reduce goes around twice (2(n−1) steps), all-gather and reduce-scatter once. A piece of a step follows the same piece of
//! the step before.

use super::{digits, share};
use crate::plan::Transfer;
use crate::shape::{CollectivePattern, CollectiveShape};

#[derive(Clone, Debug)]
pub(crate) struct RingPattern {
    ranks: u32,
    steps: u32,
    pieces: u32,
    channels: u32,
    size: u64,
}

impl RingPattern {
    pub(super) fn new(shape: &CollectiveShape) -> Self {
        let rounds = if shape.pattern == CollectivePattern::AllReduce { 2 } else { 1 };
        Self {
            ranks: shape.ranks,
            steps: rounds * (shape.ranks - 1),
            pieces: shape.pieces,
            channels: shape.channels.into(),
            size: shape.size,
        }
    }

    pub(super) fn transfers(&self) -> u32 {
        self.steps * self.of_step()
    }

    fn of_step(&self) -> u32 {
        self.pieces * self.channels * self.ranks
    }

    pub(super) fn transfer(&self, id: u32) -> Transfer {
        let [src, channel, piece, step] = digits(id, [self.ranks, self.channels, self.pieces, self.steps]);
        let chunk = (src + 2 * self.ranks - step) % self.ranks;
        let of_channel = share(self.size, self.channels.into(), channel.into());
        let of_step = share(of_channel, self.ranks.into(), chunk.into());
        Transfer {
            src,
            dst: (src + 1) % self.ranks,
            bytes: share(of_step, self.pieces.into(), piece.into()),
            lane: channel as u16,
            step,
        }
    }

    pub(super) fn inputs(&self, id: u32) -> u32 {
        u32::from(id >= self.of_step())
    }

    pub(super) fn followers(&self, id: u32, mut found: impl FnMut(u32)) {
        let next = id + self.of_step();
        if next < self.transfers() {
            let is_last = id % self.ranks + 1 == self.ranks;
            found(if is_last { next + 1 - self.ranks } else { next + 1 });
        }
    }
}

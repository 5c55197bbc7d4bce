//! All-to-all: each rank sends a share to each other, all at once; rank r begins with r+1.

use super::{digits, share};
use crate::plan::Transfer;
use crate::shape::CollectiveShape;

#[derive(Clone, Debug)]
pub(crate) struct DirectExchange {
    ranks: u32,
    channels: u32,
    size: u64,
}

impl DirectExchange {
    pub(super) fn new(shape: &CollectiveShape) -> Self {
        Self { ranks: shape.ranks, channels: shape.channels.into(), size: shape.size }
    }

    pub(super) fn transfers(&self) -> u32 {
        self.ranks * self.channels * (self.ranks - 1)
    }

    pub(super) fn transfer(&self, id: u32) -> Transfer {
        let [src, channel, distance] = digits(id, [self.ranks, self.channels, self.ranks - 1]);
        let dst = (src + distance + 1) % self.ranks;
        let of_pair = share(self.size, self.ranks.into(), dst.into());
        Transfer {
            src,
            dst,
            bytes: share(of_pair, self.channels.into(), channel.into()),
            lane: channel as u16,
            step: distance,
        }
    }

    pub(super) fn inputs(&self, _id: u32) -> u32 {
        0
    }

    pub(super) fn followers(&self, _id: u32, _found: impl FnMut(u32)) {}
}

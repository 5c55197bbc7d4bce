//! Chain: pieces go from rank to rank. A broadcast ends at the last rank; in a pipeline each piece turns round there and comes
//! back to the first, as the two passes of training do.

use super::{digits, share};
use crate::plan::Transfer;
use crate::shape::{CollectivePattern, CollectiveShape};

#[derive(Clone, Debug)]
pub(crate) struct Chain {
    ranks: u32,
    hops: u32,
    pieces: u32,
    channels: u32,
    size: u64,
}

impl Chain {
    pub(super) fn new(shape: &CollectiveShape) -> Self {
        let passes = if shape.pattern == CollectivePattern::Pipeline { 2 } else { 1 };
        Self {
            ranks: shape.ranks,
            hops: passes * (shape.ranks - 1),
            pieces: shape.pieces,
            channels: shape.channels.into(),
            size: shape.size,
        }
    }

    pub(super) fn transfers(&self) -> u32 {
        self.hops * self.of_hop()
    }

    fn of_hop(&self) -> u32 {
        self.pieces * self.channels
    }

    pub(super) fn transfer(&self, id: u32) -> Transfer {
        let [channel, piece, hop] = digits(id, [self.channels, self.pieces, self.hops]);
        let last = self.ranks - 1;
        let (src, dst) = if hop < last { (hop, hop + 1) } else { (2 * last - hop, 2 * last - hop - 1) };
        let of_channel = share(self.size, self.channels.into(), channel.into());
        Transfer {
            src,
            dst,
            bytes: share(of_channel, self.pieces.into(), piece.into()),
            lane: channel as u16,
            step: hop,
        }
    }

    pub(super) fn inputs(&self, id: u32) -> u32 {
        u32::from(id >= self.of_hop())
    }

    pub(super) fn followers(&self, id: u32, mut found: impl FnMut(u32)) {
        let next = id + self.of_hop();
        if next < self.transfers() {
            found(next);
        }
    }
}

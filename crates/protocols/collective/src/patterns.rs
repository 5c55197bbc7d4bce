//! Patterns, one file each: every transfer follows from its number, so that no list of them is kept.
//!
//! Numbers ascend in the order in which transfers may start at the same time, and every transfer has a larger number than its
//! inputs. Bytes that cannot be shared evenly go to the first shares.

mod chain;
mod direct;
mod halving;
mod ring;
mod tree;

use crate::plan::Transfer;
use crate::shape::{CollectiveAlgorithm, CollectivePattern, CollectiveShape};

pub(crate) use chain::Chain;
pub(crate) use direct::DirectExchange;
pub(crate) use halving::HalvingDoubling;
pub(crate) use ring::RingPattern;
pub(crate) use tree::TwoTrees;

/// A pattern whose transfers are computed.
#[derive(Clone, Debug)]
pub(crate) enum ComputedPattern {
    Ring(RingPattern),
    Halving(HalvingDoubling),
    Trees(TwoTrees),
    Direct(DirectExchange),
    Chain(Chain),
}

macro_rules! each {
    ($pattern:expr, $one:ident => $what:expr) => {
        match $pattern {
            Self::Ring($one) => $what,
            Self::Halving($one) => $what,
            Self::Trees($one) => $what,
            Self::Direct($one) => $what,
            Self::Chain($one) => $what,
        }
    };
}

impl ComputedPattern {
    /// The pattern of a shape that was checked.
    pub(crate) fn new(shape: &CollectiveShape) -> Self {
        use CollectivePattern::{AllToAll, Broadcast, Pipeline};
        match (shape.algorithm, shape.pattern) {
            (CollectiveAlgorithm::Tree, _) => Self::Trees(TwoTrees::new(shape)),
            (CollectiveAlgorithm::HalvingNearest | CollectiveAlgorithm::HalvingFarthest, _) => {
                Self::Halving(HalvingDoubling::new(shape))
            }
            (CollectiveAlgorithm::Direct, _) | (_, AllToAll) => Self::Direct(DirectExchange::new(shape)),
            (CollectiveAlgorithm::Ring, Broadcast | Pipeline) => Self::Chain(Chain::new(shape)),
            (CollectiveAlgorithm::Ring, _) => Self::Ring(RingPattern::new(shape)),
        }
    }

    pub(crate) fn transfers(&self) -> u32 {
        each!(self, pattern => pattern.transfers())
    }

    pub(crate) fn transfer(&self, id: u32) -> Transfer {
        each!(self, pattern => pattern.transfer(id))
    }

    /// Transfers whose arrival it waits for.
    pub(crate) fn inputs(&self, id: u32) -> u32 {
        each!(self, pattern => pattern.inputs(id))
    }

    /// Calls `found` with each transfer that waits for the arrival of this one, in ascending order.
    pub(crate) fn followers(&self, id: u32, found: impl FnMut(u32)) {
        each!(self, pattern => pattern.followers(id, found));
    }
}

/// Bytes of one of several shares.
pub(crate) fn share(bytes: u64, shares: u64, index: u64) -> u64 {
    bytes / shares + u64::from(index < bytes % shares)
}

/// Splits a number whose digits have these bases, the last one first.
pub(crate) fn digits<const N: usize>(mut number: u32, bases: [u32; N]) -> [u32; N] {
    bases.map(|base| {
        let digit = number % base;
        number /= base;
        digit
    })
}

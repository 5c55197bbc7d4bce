//! The bits that all connections of a NIC share, in one direction.
//!
//! MELO §3.2.3, Fig. 3(a, b). Bits come in blocks of equal size, each with a pointer to the next one of the same bitmap
//! beside it. Which blocks are free stands in an array that works as a stack: entries from `avail` on are free, a block is
//! taken from there and given back there.
//!
//! ```text
//!   blocks   bits next                      free   [ · │ · ┃ 0 │ 2 │ 4 ]
//!     0     00000000  ·                              taken ┃ free
//!     1     00100000  ·     ◀─┐                          avail
//!     3     01111111  1     ──┘
//! ```
//!
//! Invariant: the free part of `free` names every block that is in no bitmap, once; what stands before it means nothing.
//! Taking and giving back is O(1).

use std::fmt;

use crate::psn::Psn;

/// Bits of a PSN.
pub(super) const PSN_BITS: u32 = 24;

/// A pointer to a block, as wide as the chip has it.
pub trait BlockPointer: Copy + Default + fmt::Debug + PartialEq {
    /// Width of the pointer; it can name 2 to the power of this many blocks.
    const BITS: u32;
    /// A PSN and a pointer in one word. Where each has a place of its own, the processor waits for the bytes of one to be
    /// stored before it loads them with those of the other, and that takes longer than all the rest.
    type Edge: Copy + fmt::Debug + PartialEq;

    /// A pointer to this block; the lowest [`BlockPointer::BITS`] bits of `index` count.
    fn new(index: usize) -> Self;
    /// Index of the block that it names, from 0.
    fn index(self) -> usize;
    /// Packs the two into one word.
    fn edge(psn: Psn, slot: Self) -> Self::Edge;
    /// The PSN of an edge.
    fn psn(edge: Self::Edge) -> Psn;
    /// The pointer of an edge.
    fn slot(edge: Self::Edge) -> Self;
}

/// Implements a pointer. In an edge it stands at this bit, above the PSN.
macro_rules! block_pointer {
    ($(#[$about:meta])* $pointer:ty, $edge:ty, $above:expr) => {
        $(#[$about])*
        impl BlockPointer for $pointer {
            const BITS: u32 = <$pointer>::BITS;
            type Edge = $edge;

            #[inline]
            fn new(index: usize) -> Self {
                index as Self
            }

            #[inline]
            fn index(self) -> usize {
                usize::from(self)
            }

            #[inline]
            fn edge(psn: Psn, slot: Self) -> $edge {
                <$edge>::from(psn.number()) | <$edge>::from(slot) << $above
            }

            #[inline]
            fn psn(edge: $edge) -> Psn {
                Psn::new(edge as u32)
            }

            #[inline]
            fn slot(edge: $edge) -> Self {
                (edge >> $above) as Self
            }
        }
    };
}

block_pointer! {
    /// Names at most 256 blocks, as in the paper.
    u8, u32, PSN_BITS
}

block_pointer! {
    /// Names at most 65,536 blocks. A chip needs five bytes for an edge, this program takes eight.
    u16, u64, u32::BITS
}

/// Size of a pool; [`PoolConfig::blocks`] checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Bits of all blocks together: a multiple of `block`, at least one block.
    pub bits: u32,
    /// Bits of a block: a power of two from 1 to 64. Larger ones waste more at both ends of a bitmap, smaller ones need
    /// more pointers.
    pub block: u32,
}

impl PoolConfig {
    pub(crate) const LARGEST_BLOCK: u32 = u64::BITS;

    /// Number of blocks of this configuration, if it is valid and slots of type `S` can name them all.
    pub fn blocks<S: BlockPointer>(&self) -> Result<u32, PoolError> {
        let Self { bits, block } = *self;
        if !block.is_power_of_two() || block > Self::LARGEST_BLOCK {
            return Err(PoolError::Block(block));
        }
        if bits < block {
            return Err(PoolError::TooSmall { bits, block });
        }
        if !bits.is_multiple_of(block) {
            return Err(PoolError::Rest { bits, block });
        }
        let blocks = bits / block;
        let most = 1 << S::BITS;
        if blocks > most { Err(PoolError::TooMany { blocks, most }) } else { Ok(blocks) }
    }
}

impl Default for PoolConfig {
    /// The paper's: 1,024 bits in blocks of a byte.
    fn default() -> Self {
        Self { bits: 1_024, block: 8 }
    }
}

/// Error in a pool's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// Bits of a block that are no power of two from 1 to 64.
    Block(u32),
    /// The pool is smaller than one block.
    TooSmall {
        /// Bits of the pool.
        bits: u32,
        /// Bits of a block.
        block: u32,
    },
    /// The pool is no whole number of blocks.
    Rest {
        /// Bits of the pool.
        bits: u32,
        /// Bits of a block.
        block: u32,
    },
    /// Pointers are too narrow to name every block.
    TooMany {
        /// Blocks of the pool.
        blocks: u32,
        /// 256 with pointers of 8 bits, 65,536 with 16.
        most: u32,
    },
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(block) => {
                write!(f, "a block of {block} bits: expected a power of two from 1 to {}", PoolConfig::LARGEST_BLOCK)
            }
            Self::TooSmall { bits, block } => {
                write!(f, "a pool of {bits} bits is too small for its block of {block}: expected at least one block")
            }
            Self::Rest { bits, block } => {
                write!(f, "a pool of {bits} bits: expected a whole number of blocks of {block}")
            }
            Self::TooMany { blocks, most } => {
                write!(f, "a pool of {blocks} blocks: expected at most {most}, which is what its pointers can name")
            }
        }
    }
}

impl std::error::Error for PoolError {}

#[derive(Clone, Copy, Debug, Default)]
struct PoolBlock<S> {
    bits: u64,
    next: S,
}

/// Occupancy of a pool, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    /// Free and taken.
    pub blocks: u32,
    /// Blocks that bitmaps use now.
    pub used: u32,
    /// The most that were used at a time.
    pub peak: u32,
    /// Number of times a bitmap could not grow.
    pub refusals: u64,
}

/// Blocks of bits, and which of them are free.
#[derive(Debug)]
pub struct BlockPool<S = u8> {
    blocks: Vec<PoolBlock<S>>,
    free: Vec<S>,
    /// Start of the free part of `free`, which is also the number of blocks taken.
    avail: usize,
    peak: usize,
    refusals: u64,
    /// Bits of a block, less one: a PSN's lowest bits say which of them is its own.
    mask: u32,
}

impl<S: BlockPointer> BlockPool<S> {
    /// All blocks are free.
    pub fn new(config: PoolConfig) -> Result<Self, PoolError> {
        let blocks = config.blocks::<S>()? as usize;
        Ok(Self {
            blocks: vec![PoolBlock::default(); blocks],
            free: (0..blocks).map(S::new).collect(),
            avail: 0,
            peak: 0,
            refusals: 0,
            mask: config.block - 1,
        })
    }

    /// Occupancy now; peak and refusals count since the pool was made.
    pub fn usage(&self) -> PoolUsage {
        PoolUsage {
            blocks: self.blocks.len() as u32,
            used: self.avail as u32,
            peak: self.peak as u32,
            refusals: self.refusals,
        }
    }

    /// Free blocks.
    pub fn free_slots(&self) -> &[S] {
        &self.free[self.avail..]
    }

    /// Bits of a block, 1 to 64.
    #[inline]
    pub fn block(&self) -> u32 {
        self.mask + 1
    }

    /// Index of a PSN's bit in its block.
    #[inline]
    pub(super) fn bit(&self, psn: u32) -> u32 {
        psn & self.mask
    }

    /// True if this many blocks can be taken; a refusal is counted.
    #[inline]
    pub(super) fn has(&mut self, blocks: u32) -> bool {
        let enough = self.avail + blocks as usize <= self.blocks.len();
        self.refusals += u64::from(!enough);
        enough
    }

    /// # Panics
    /// If none is free.
    #[inline]
    pub(super) fn take(&mut self) -> S {
        let slot = self.free[self.avail];
        self.avail += 1;
        self.peak = self.peak.max(self.avail);
        self.blocks[slot.index()].bits = 0;
        slot
    }

    /// # Panics
    /// If none is taken.
    #[inline]
    pub(super) fn give_back(&mut self, slot: S) {
        self.avail -= 1;
        self.free[self.avail] = slot;
    }

    #[inline]
    pub(super) fn bits(&self, slot: S) -> u64 {
        self.blocks[slot.index()].bits
    }

    #[inline]
    pub(super) fn set(&mut self, slot: S, bits: u64) {
        self.blocks[slot.index()].bits |= bits;
    }

    #[inline]
    pub(super) fn next(&self, slot: S) -> S {
        self.blocks[slot.index()].next
    }

    #[inline]
    pub(super) fn link(&mut self, slot: S, next: S) {
        self.blocks[slot.index()].next = next;
    }

    /// Panics if a block is named twice among the free ones and `taken`, the blocks of one bitmap or several.
    pub fn check_invariants(&self, taken: impl Iterator<Item = S>) {
        assert!(self.avail <= self.peak && self.peak <= self.blocks.len(), "{:?}", self.usage());
        let mut named = vec![false; self.blocks.len()];
        for slot in self.free_slots().iter().copied().chain(taken) {
            let before = std::mem::replace(&mut named[slot.index()], true);
            assert!(!before, "block {slot:?} is free twice, shared, or both");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<S: BlockPointer>(bits: u32, block: u32) -> String {
        BlockPool::<S>::new(PoolConfig { bits, block }).unwrap_err().to_string()
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        assert_eq!(error::<u8>(4, 8), "a pool of 4 bits is too small for its block of 8: expected at least one block");
        assert_eq!(error::<u8>(0, 0), "a block of 0 bits: expected a power of two from 1 to 64");
        assert_eq!(error::<u8>(1_024, 128), "a block of 128 bits: expected a power of two from 1 to 64");
        assert_eq!(error::<u8>(1_020, 8), "a pool of 1020 bits: expected a whole number of blocks of 8");
        assert_eq!(
            error::<u8>(2_056, 8),
            "a pool of 257 blocks: expected at most 256, which is what its pointers can name"
        );
        assert!(BlockPool::<u16>::new(PoolConfig { bits: 2_056, block: 8 }).is_ok());
        assert!(BlockPool::<u8>::new(PoolConfig { bits: 2_048, block: 8 }).is_ok());
        assert!(error::<u16>(u32::MAX, 1).contains("at most 65536"));
    }

    #[test]
    fn blocks_are_taken_and_given_back_at_the_top_of_the_stack() {
        let mut pool = BlockPool::<u8>::new(PoolConfig { bits: 32, block: 8 }).unwrap();
        let (first, second) = (pool.take(), pool.take());
        pool.give_back(first);
        assert_eq!(pool.take(), first);
        pool.give_back(second);
        assert_eq!(pool.usage(), PoolUsage { blocks: 4, used: 1, peak: 2, refusals: 0 });
        assert!(pool.has(3) && !pool.has(4));
        assert_eq!(pool.usage().refusals, 1);
        assert_eq!(pool.free_slots(), [second, 2, 3]);
    }

    #[test]
    fn a_block_is_clean_when_it_is_taken_again() {
        let mut pool = BlockPool::<u8>::new(PoolConfig { bits: 8, block: 8 }).unwrap();
        let slot = pool.take();
        pool.set(slot, 0xFF);
        pool.give_back(slot);
        let slot = pool.take();
        assert_eq!(pool.bits(slot), 0);
    }
}

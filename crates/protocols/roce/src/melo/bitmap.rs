//! A connection's bitmap: a list of blocks of the pool, accessed only at its two ends.
//!
//! MELO §3.2.3, Fig. 3(c). A bit says whether a packet arrived. The bitmap reaches from the first missing packet to the last
//! known one. The lowest bits of a PSN select the bit in its block, so blocks need no address:
//!
//! ```text
//!        start                        end
//!   ┌────────────┐  next ┌────────────┐
//!   │ · · · 0 1 1│ ────▶ │1 0 1 · · · │
//!   └────────────┘       └────────────┘
//!           ▲                  ▲
//!         front               high
//! ```
//!
//! Invariants: the front bit is 0; there are exactly the blocks that `front..high` lies in, none when it is empty.

use super::pool::{BlockPointer, BlockPool, PSN_BITS};
use crate::psn::Psn;

/// Not `Clone`: two would give the same blocks back.
#[derive(Debug)]
pub(super) struct Bitmap<S: BlockPointer> {
    /// PSN of the front, and the block that it is in.
    front: S::Edge,
    /// PSN behind the last one in the bitmap, and the block of that last one.
    high: S::Edge,
}

impl<S: BlockPointer> Bitmap<S> {
    /// Bytes that a chip needs for the two PSNs, and for the two pointers.
    pub(super) const NUMBERS: u32 = 2 * PSN_BITS / 8;
    pub(super) const POINTERS: u32 = 2 * S::BITS / 8;

    pub(super) fn empty_at(psn: Psn) -> Self {
        let edge = S::edge(psn, S::default());
        Self { front: edge, high: edge }
    }

    #[inline]
    pub(super) fn front(&self) -> Psn {
        S::psn(self.front)
    }

    #[inline]
    pub(super) fn high(&self) -> Psn {
        S::psn(self.high)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.front() == self.high()
    }

    #[inline]
    fn len(&self) -> u32 {
        self.high().offset_from(self.front()) as u32
    }

    /// Begins anew, with nothing in it.
    ///
    /// # Panics
    /// If there is anything in it, in tests.
    #[inline]
    pub(super) fn start_at(&mut self, psn: Psn) {
        debug_assert!(self.is_empty(), "blocks would leak");
        *self = Self::empty_at(psn);
    }

    /// True if there are blocks enough for this many more bits.
    #[inline]
    pub(super) fn has_room(&self, pool: &mut BlockPool<S>, bits: u32) -> bool {
        let used = pool.bit(self.high().number());
        let block = pool.block();
        let here = if self.is_empty() || used == 0 { 0 } else { block - used };
        if bits <= here {
            return true;
        }
        let before = if self.is_empty() { used } else { 0 };
        pool.has((before + bits - here).div_ceil(block))
    }

    /// Appends this many bits, all alike.
    ///
    /// # Panics
    /// Unless [`Bitmap::has_room`].
    #[inline]
    pub(super) fn push(&mut self, pool: &mut BlockPool<S>, mut bits: u32, arrived: bool) {
        while bits > 0 {
            let used = pool.bit(self.high().number());
            let end = if self.is_empty() || used == 0 { self.append_block(pool) } else { S::slot(self.high) };
            let here = bits.min(pool.block() - used);
            if arrived {
                pool.set(end, (u64::MAX >> (u64::BITS - here)) << used);
            }
            self.high = S::edge(self.high().plus(u64::from(here)), end);
            bits -= here;
        }
    }

    /// Appends one that arrived, if the last block has room for it: the short way for most packets behind a gap.
    #[inline]
    pub(super) fn push_within_block(&mut self, pool: &mut BlockPool<S>) -> bool {
        let used = pool.bit(self.high().number());
        let has_room = used != 0 && !self.is_empty();
        if has_room {
            let end = S::slot(self.high);
            pool.set(end, 1 << used);
            self.high = S::edge(self.high().plus(1), end);
        }
        has_room
    }

    #[inline]
    fn append_block(&mut self, pool: &mut BlockPool<S>) -> S {
        let slot = pool.take();
        if self.is_empty() {
            self.front = S::edge(self.front(), slot);
        } else {
            pool.link(S::slot(self.high), slot);
        }
        slot
    }

    /// Drops this many bits from the front, and all behind them that have arrived. Returns how many in all.
    ///
    /// # Panics
    /// In tests, if there are fewer bits than that.
    #[inline]
    pub(super) fn pass(&mut self, pool: &mut BlockPool<S>, bits: u32) -> u32 {
        let len = self.len();
        debug_assert!((1..=len).contains(&bits), "{bits} of {len}");
        let mut start = S::slot(self.front);
        let (mut first, mut passed) = (pool.bit(self.front().number()), 0);
        loop {
            let here = (pool.block() - first).min(len - passed);
            let wanted = bits.saturating_sub(passed).min(here);
            let arrived = pool.bits(start).checked_shr(first + wanted).unwrap_or(0).trailing_ones();
            let over = (wanted + arrived).min(here);
            passed += over;
            if over < here {
                break;
            }
            let next = pool.next(start);
            pool.give_back(start);
            if passed == len {
                break;
            }
            (start, first) = (next, 0);
        }
        self.front = S::edge(self.front().plus(u64::from(passed)), start);
        passed
    }

    /// Gives everything back.
    pub(super) fn clear(&mut self, pool: &mut BlockPool<S>) {
        if !self.is_empty() {
            self.pass(pool, self.len());
        }
    }

    /// Blocks of the bitmap, from front to end.
    pub(super) fn blocks<'a>(&self, pool: &'a BlockPool<S>) -> impl Iterator<Item = S> + 'a {
        let end = S::slot(self.high);
        let first = (!self.is_empty()).then_some(S::slot(self.front));
        std::iter::successors(first, move |slot| (*slot != end).then(|| pool.next(*slot)))
    }

    /// Gives the blocks back; what was in them is returned, and `high` forgotten.
    pub(super) fn swap_out(&mut self, pool: &mut BlockPool<S>) -> Vec<bool> {
        let len = self.len() as usize;
        let first = pool.bit(self.front().number());
        let bits = self.blocks(pool).flat_map(|slot| {
            let bits = pool.bits(slot);
            (0..pool.block()).map(move |bit| bits >> bit & 1 == 1)
        });
        let bits = bits.skip(first as usize).take(len).collect();
        let front = self.front();
        self.clear(pool);
        self.start_at(front);
        bits
    }

    /// Puts back what [`Bitmap::swap_out`] took. False if there are not enough blocks, and then nothing has changed.
    pub(super) fn swap_in(&mut self, pool: &mut BlockPool<S>, bits: &[bool]) -> bool {
        if !self.has_room(pool, bits.len() as u32) {
            return false;
        }
        bits.chunk_by(|one, other| one == other).for_each(|run| self.push(pool, run.len() as u32, run[0]));
        true
    }
}

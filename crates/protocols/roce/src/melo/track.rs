//! Record of the packets that a receiver got out of order.
//!
//! MELO §3.2.3 and §3.2.4. `RCV.NXT` and `RCV.HIGH` are the two ends of the bitmap (`high` is one behind the paper's, so
//! that it equals `RCV.NXT` when nothing is tracked).
//!
//! ```text
//!   PSN < NXT            behind: it arrived before
//!   PSN = NXT            next: on to the first that is missing, blocks on the way are given back
//!   NXT < PSN < high     middle: dropped, a list cannot be reached there
//!   PSN >= high          ahead: bits up to it; if it leaves a gap, that is the latest hole
//! ```
//!
//! A packet is in the middle only after one sent again was lost; the timeout that follows sends all of them again, in
//! order, and then each is the next.
//!
//! Invariants: [`size_of::<Track<u8>>()`](Track) is 20; the holes are the latest of all gaps between `RCV.NXT` and `high`.

use super::bitmap::Bitmap;
use super::pool::{BlockPointer, BlockPool};
use crate::psn::Psn;
use crate::selective::{Hole, Holes, MAX_OUTSTANDING};

const _: () = assert!(size_of::<ReceiveTrack<u8>>() == 20, "12 for holes, 6 for PSNs, 2 for pointers");

/// Position of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalPosition {
    /// The one that was expected.
    Next {
        /// Packets in order now, at least 1: this packet and those behind it that had arrived before.
        passed: u32,
        /// True if anything behind it was tracked.
        filled: bool,
    },
    /// Beyond everything that came before.
    Ahead {
        /// True if packets between it and the last are missing.
        hole: bool,
    },
    /// Between RCV.NXT and the last that arrived: dropped, whether it is missing or a duplicate.
    Middle,
    /// Before RCV.NXT: a duplicate.
    Behind,
    /// Ahead, but the pool is too full, or it is further ahead than a hole can express.
    NoBits,
}

/// The receiving half of a connection: one bit for each packet from RCV.NXT to the last that arrived.
#[derive(Debug)]
pub struct ReceiveTrack<S: BlockPointer = u8> {
    bitmap: Bitmap<S>,
    holes: Holes,
}

/// Off-chip copy of the state of a connection that is swapped out.
#[derive(Debug, PartialEq, Eq)]
pub struct OffChip {
    bits: Vec<bool>,
    holes: Holes,
}

impl<S: BlockPointer> ReceiveTrack<S> {
    /// Bytes on the chip for each connection: holes, PSNs, pointers.
    pub(crate) const BYTES: [u32; 3] = [size_of::<Holes>() as u32, Bitmap::<S>::NUMBERS, Bitmap::<S>::POINTERS];

    /// State before anything has arrived; `first` is expected.
    pub fn new(first: Psn) -> Self {
        Self { bitmap: Bitmap::empty_at(first), holes: Holes::none() }
    }

    /// RCV.NXT.
    #[inline]
    pub fn next(&self) -> Psn {
        self.bitmap.front()
    }

    /// One behind the last that arrived: one more than RCV.HIGH.
    #[inline]
    pub fn high(&self) -> Psn {
        self.bitmap.high()
    }

    /// True if nothing is out of order.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bitmap.is_empty()
    }

    /// The at most three latest.
    pub fn holes(&self) -> Holes {
        self.holes
    }

    /// Blocks of the bitmap, from front to end.
    pub fn blocks<'a>(&self, pool: &'a BlockPool<S>) -> impl Iterator<Item = S> + 'a {
        self.bitmap.blocks(pool)
    }

    /// Takes in a packet; blocks are taken from the pool and given back to it as needed.
    #[inline]
    pub fn arrive(&mut self, pool: &mut BlockPool<S>, psn: Psn) -> ArrivalPosition {
        let offset = psn.offset_from(self.next());
        if offset == 0 {
            return self.on_next(pool);
        }
        if offset < 0 {
            return ArrivalPosition::Behind;
        }
        let gap = psn.offset_from(self.high());
        if gap < 0 {
            ArrivalPosition::Middle
        } else if offset >= MAX_OUTSTANDING as i32 {
            ArrivalPosition::NoBits
        } else if gap == 0 && self.bitmap.push_within_block(pool) {
            ArrivalPosition::Ahead { hole: false }
        } else {
            self.on_ahead(pool, gap as u32)
        }
    }

    #[inline]
    fn on_next(&mut self, pool: &mut BlockPool<S>) -> ArrivalPosition {
        if self.is_empty() {
            self.bitmap.start_at(self.next().plus(1));
            return ArrivalPosition::Next { passed: 1, filled: false };
        }
        let passed = self.bitmap.pass(pool, 1);
        if self.is_empty() {
            self.holes = Holes::none();
        } else {
            self.holes.fill_before(self.next().number() as u16);
        }
        ArrivalPosition::Next { passed, filled: true }
    }

    #[inline]
    fn on_ahead(&mut self, pool: &mut BlockPool<S>, gap: u32) -> ArrivalPosition {
        if !self.bitmap.has_room(pool, gap + 1) {
            return ArrivalPosition::NoBits;
        }
        if gap > 0 {
            self.holes.push(Hole { start: self.high().number() as u16, len: gap as u16 });
        }
        self.bitmap.push(pool, gap, false);
        self.bitmap.push(pool, 1, true);
        ArrivalPosition::Ahead { hole: gap > 0 }
    }

    /// Forgets what is out of order.
    pub fn clear(&mut self, pool: &mut BlockPool<S>) {
        drop(self.swap_out(pool));
    }

    /// Gives the blocks back; nothing may arrive until [`ReceiveTrack::swap_in`].
    pub fn swap_out(&mut self, pool: &mut BlockPool<S>) -> OffChip {
        OffChip { bits: self.bitmap.swap_out(pool), holes: std::mem::take(&mut self.holes) }
    }

    /// Takes blocks again. If there are not enough, everything behind RCV.NXT is forgotten.
    #[must_use]
    pub fn swap_in(&mut self, pool: &mut BlockPool<S>, off: OffChip) -> bool {
        let kept = self.bitmap.swap_in(pool, &off.bits);
        if kept {
            self.holes = off.holes;
        }
        kept
    }
}

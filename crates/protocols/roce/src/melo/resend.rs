//! Packets that a sender is to send again.
//!
//! MELO §3.2.4: the receiver's bitmap, restored from the holes that NACKs name. It reaches from the next packet to send
//! again to the end of the latest hole; as the front is sent, blocks behind it are given back; newer holes are appended.
//! Its `high` outlives the bits: a hole that begins before it is known, and is not sent again because of another NACK.
//! A hole that there were no bits for does not become known: for each later NACK that names it, the sender goes back again.
//!
//! The paper does not count what this takes for each connection: [`size_of::<Resend<u8>>()`](Resend) is 8.

use super::bitmap::Bitmap;
use super::pool::{BlockPointer, BlockPool};
use crate::psn::Psn;

const _: () = assert!(size_of::<Resend<u8>>() == 8, "6 for PSNs, 2 for pointers");

/// The sending half of a connection: one bit for each packet from the next to send again to the last known hole.
#[derive(Debug)]
pub struct Resend<S: BlockPointer = u8> {
    bitmap: Bitmap<S>,
}

impl<S: BlockPointer> Resend<S> {
    /// Bytes of PSNs and of pointers that each connection takes on the chip.
    pub(crate) const BYTES: [u32; 2] = [Bitmap::<S>::NUMBERS, Bitmap::<S>::POINTERS];

    /// State with nothing to send again; the first packet will have the PSN `first`.
    pub fn new(first: Psn) -> Self {
        Self { bitmap: Bitmap::empty_at(first) }
    }

    /// The next to send again.
    #[inline]
    pub fn front(&self) -> Option<Psn> {
        (!self.bitmap.is_empty()).then(|| self.bitmap.front())
    }

    /// All holes before this PSN are known.
    #[inline]
    pub fn known_before(&self) -> Psn {
        self.bitmap.high()
    }

    /// Blocks of the bitmap, from front to end.
    pub fn blocks<'a>(&self, pool: &'a BlockPool<S>) -> impl Iterator<Item = S> + 'a {
        self.bitmap.blocks(pool)
    }

    /// A hole that begins at or behind [`Resend::known_before`]. False if there are not enough bits for it.
    #[must_use]
    pub fn learn(&mut self, pool: &mut BlockPool<S>, start: Psn, len: u32) -> bool {
        if self.bitmap.is_empty() {
            // The packets between this hole and the one before need no bits: none of them is to be sent again.
            self.bitmap.start_at(start);
        }
        let between = start.offset_from(self.bitmap.high()) as u32;
        if !self.bitmap.has_room(pool, between + len) {
            return false;
        }
        self.bitmap.push(pool, between, true);
        self.bitmap.push(pool, len, false);
        true
    }

    /// The front has been sent.
    #[inline]
    pub fn pass_front(&mut self, pool: &mut BlockPool<S>) {
        self.bitmap.pass(pool, 1);
    }

    /// Acknowledges everything before `una`.
    #[inline]
    pub fn acknowledged(&mut self, pool: &mut BlockPool<S>, una: Psn) {
        if una.offset_from(self.bitmap.high()) >= 0 {
            return self.clear(pool, una);
        }
        let behind = una.offset_from(self.bitmap.front());
        if behind > 0 && !self.bitmap.is_empty() {
            self.bitmap.pass(pool, behind as u32);
        }
    }

    /// Forgets all holes from `una` on, so that nothing is sent again.
    #[inline]
    pub fn clear(&mut self, pool: &mut BlockPool<S>, una: Psn) {
        self.bitmap.clear(pool);
        self.bitmap.start_at(una);
    }

    /// Gives the blocks back and returns their bits, for [`Resend::swap_in`].
    pub fn swap_out(&mut self, pool: &mut BlockPool<S>) -> Vec<bool> {
        self.bitmap.swap_out(pool)
    }

    /// False if there are not enough blocks: then nothing from [`Resend::known_before`] on is known.
    #[must_use]
    pub fn swap_in(&mut self, pool: &mut BlockPool<S>, bits: &[bool]) -> bool {
        self.bitmap.swap_in(pool, bits)
    }
}

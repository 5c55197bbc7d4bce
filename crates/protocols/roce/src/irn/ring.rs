//! A bitmap over a window that moves: a place has its bit where it falls in a ring.

#[derive(Debug)]
pub(super) struct BitRing {
    words: Vec<u64>,
    /// Bits, less one.
    mask: u64,
}

impl BitRing {
    /// Makes a ring for windows of up to `window` places.
    pub(super) fn new(window: u32) -> Self {
        let bits = u64::from(window).next_power_of_two().max(u64::from(u64::BITS));
        Self { words: vec![0; (bits / 64) as usize], mask: bits - 1 }
    }

    pub(super) fn bits(&self) -> u64 {
        self.mask + 1
    }

    fn at(&self, place: u64) -> (usize, u64) {
        let bit = place & self.mask;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    #[inline]
    pub(super) fn get(&self, place: u64) -> bool {
        let (word, bit) = self.at(place);
        self.words[word] & bit != 0
    }

    #[inline]
    pub(super) fn set(&mut self, place: u64) {
        let (word, bit) = self.at(place);
        self.words[word] |= bit;
    }

    /// Clears the bit. Returns `true` if it was set.
    #[inline]
    pub(super) fn take(&mut self, place: u64) -> bool {
        let (word, bit) = self.at(place);
        let was = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_cleared_when_it_is_taken_and_serves_the_next_turn() {
        let mut ring = BitRing::new(100);
        assert_eq!(ring.bits(), 128);
        ring.set(127);
        assert!(ring.get(127) && !ring.get(126));
        assert!(ring.take(127) && !ring.take(127));
        assert!(!ring.get(127 + 128));
    }
}

//! Sequence numbers: 16 bits and an era.
//!
//! LinkGuardian (SIGCOMM'23) §3.5, "Handling seqNo Wrap-around". The number wraps every 65,536 frames
//! and the era bit toggles when it does. Two numbers of one era compare as they are; two of different
//! eras are both moved back by half the range first, after which they compare as they are. That is
//! right as long as the two are less than half the range apart, which the window of a sender must
//! therefore stay below: [`Seq::MAX_WINDOW`].
//!
//! Deliberately without `Ord`: there is no order on a circle. Ask [`Seq::offset_from`].

use std::fmt;

/// A frame's place in its class's sequence. Bits 0–15 are the number, bit 16 the era.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Seq(u32);

const NUMBERS: u32 = 1 << 16;
const HALF: i32 = 1 << 15;
const CIRCLE: u32 = NUMBERS * 2;

impl Seq {
    /// The most frames that may be outstanding at once.
    pub const MAX_WINDOW: u32 = HALF as u32 - 1;

    pub const fn new(number: u16, era: bool) -> Self {
        Self(number as u32 | (era as u32) << 16)
    }

    pub const fn number(self) -> u16 {
        self.0 as u16
    }

    pub const fn era(self) -> bool {
        self.0 >= NUMBERS
    }

    pub const fn next(self) -> Self {
        self.plus(1)
    }

    pub const fn previous(self) -> Self {
        self.plus(CIRCLE - 1)
    }

    pub const fn plus(self, frames: u32) -> Self {
        Self((self.0 + frames % CIRCLE) % CIRCLE)
    }

    /// How many frames `self` lies after `base`; negative if before. Exact while the two are less
    /// than half the range apart; of two that are not, the sign says nothing.
    #[inline]
    pub const fn offset_from(self, base: Self) -> i32 {
        let (mine, theirs) = (self.number() as i32, base.number() as i32);
        if self.era() == base.era() {
            mine - theirs
        } else {
            correct_era(mine) - correct_era(theirs)
        }
    }
}

/// The paper's era correction: subtract half the range, wrapping.
const fn correct_era(number: i32) -> i32 {
    (number - HALF) & 0xffff
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number(), if self.era() { "'" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_era_toggles_when_the_number_wraps() {
        let last = Seq::new(65_535, false);
        assert_eq!(last.next(), Seq::new(0, true));
        assert_eq!(Seq::new(65_535, true).next(), Seq::new(0, false));
        assert_eq!(Seq::new(0, false).previous(), Seq::new(65_535, true));
    }

    #[test]
    fn offsets_are_exact_below_half_the_range_wherever_they_start() {
        let window = Seq::MAX_WINDOW;
        for start in (0..CIRCLE).step_by(257).chain([65_535, 65_536, 131_071]) {
            let base = Seq::default().plus(start);
            for distance in [0, 1, 2, 100, 16_384, window - 1, window] {
                let later = base.plus(distance);
                assert_eq!(later.offset_from(base), distance as i32, "{base:?} + {distance}");
                assert_eq!(base.offset_from(later), -(distance as i32), "{base:?} + {distance}");
            }
        }
    }
}

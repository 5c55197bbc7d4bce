//! Sequence numbers: 16 bits and an era.
//!
//! LinkGuardian (SIGCOMM'23) §3.5, "Handling seqNo Wrap-around". The number wraps every 65,536 frames
//! and the era bit toggles when it does. The paper compares two numbers of one era as they are, and moves
//! two of different eras back by half the range first (its "era correction"), which is right as long as
//! they are less than half the range apart; a sender's window must stay below that:
//! [`Seq::MAX_WINDOW`]. Number and era together are 17 bits that count on a circle, and the signed
//! distance on it is the same in one subtraction; a test holds the two against each other.
//!
//! Deliberately without `Ord`: there is no order on a circle. Ask [`Seq::offset_from`].

use std::fmt;

/// A frame's place in its class's sequence. Bits 0–15 are the number, bit 16 the era.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Seq(u32);

const NUMBERS: u32 = 1 << 16;
const HALF: u32 = 1 << 15;
const CIRCLE: u32 = NUMBERS * 2;

impl Seq {
    /// The most frames that may be outstanding at once.
    pub const MAX_WINDOW: u32 = HALF - 1;

    /// The era flips each time that numbers wrap around.
    pub const fn new(number: u16, era: bool) -> Self {
        Self(number as u32 | (era as u32) << 16)
    }

    /// Number and era as one value of 17 bits; [`Seq::from_bits`] takes it back.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits % CIRCLE)
    }

    /// The 16 bits that headers carry.
    pub const fn number(self) -> u16 {
        self.0 as u16
    }

    /// The era's bit.
    pub const fn era(self) -> bool {
        self.0 >= NUMBERS
    }

    /// The number after this one.
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number before this one.
    pub const fn previous(self) -> Self {
        self.plus(CIRCLE - 1)
    }

    /// The number `frames` later.
    pub const fn plus(self, frames: u32) -> Self {
        Self((self.0 + frames % CIRCLE) % CIRCLE)
    }

    /// Number of frames by which `self` lies after `base`; negative if before. The paper's comparison agrees while the two
    /// are less than half the range apart; if they are further apart, the sign has no meaning.
    #[inline]
    pub const fn offset_from(self, base: Self) -> i32 {
        const UNUSED: u32 = u32::BITS - 17;
        (self.0.wrapping_sub(base.0) << UNUSED) as i32 >> UNUSED
    }
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

    /// The comparison as the paper has it.
    fn with_era_correction(a: Seq, b: Seq) -> i32 {
        let correct = |seq: Seq| i32::from(seq.number().wrapping_sub(HALF as u16));
        if a.era() == b.era() { i32::from(a.number()) - i32::from(b.number()) } else { correct(a) - correct(b) }
    }

    #[test]
    fn the_papers_era_correction_gives_the_same() {
        for start in (0..CIRCLE).step_by(101) {
            let base = Seq::default().plus(start);
            for distance in (0..=Seq::MAX_WINDOW).step_by(53).chain([1, 2, Seq::MAX_WINDOW]) {
                let later = base.plus(distance);
                assert_eq!(later.offset_from(base), with_era_correction(later, base), "{base:?} + {distance}");
                assert_eq!(base.offset_from(later), with_era_correction(base, later), "{base:?} + {distance}");
            }
        }
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

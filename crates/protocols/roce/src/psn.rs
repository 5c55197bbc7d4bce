//! Packet sequence numbers: 24 bits on a circle (InfiniBand specification, vol. 1, §9.7.1).
//!
//! Deliberately without `Ord`: there is no order on a circle. Ask [`Psn::offset_from`].

use std::fmt;

/// A packet's number within its direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Psn(u32);

const CIRCLE: u32 = 1 << 24;

impl Psn {
    /// The lowest 24 bits of `number`.
    pub const fn new(number: u32) -> Self {
        Self(number % CIRCLE)
    }

    /// 0 to 2²⁴ − 1.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The PSN this many packets later; wraps after 2²⁴ − 1.
    pub const fn plus(self, packets: u64) -> Self {
        Self((self.0 + (packets % CIRCLE as u64) as u32) % CIRCLE)
    }

    /// Number of packets by which `self` lies after `base`; negative if before. For two that are half the circle apart or
    /// more, the sign says nothing.
    #[inline]
    pub const fn offset_from(self, base: Self) -> i32 {
        const UNUSED: u32 = u32::BITS - 24;
        (self.0.wrapping_sub(base.0) << UNUSED) as i32 >> UNUSED
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "psn {}", self.0)
    }
}

/// Turns PSNs into *places*: packets counted from 0 without wrapping, which do have an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    first: Psn,
}

impl Numbering {
    pub(super) fn starting_at(first: Psn) -> Self {
        Self { first }
    }

    #[inline]
    pub(super) fn psn(self, place: u64) -> Psn {
        self.first.plus(place)
    }

    /// The place closest to `near` that has this number; `None` if that lies before the first.
    #[inline]
    pub(super) fn place(self, psn: Psn, near: u64) -> Option<u64> {
        near.checked_add_signed(i64::from(psn.offset_from(self.psn(near))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_after_16_777_215() {
        assert_eq!(Psn::new(CIRCLE - 1).plus(1), Psn::new(0));
        assert_eq!(Psn::new(CIRCLE + 7), Psn::new(7));
        assert_eq!(Psn::new(3).offset_from(Psn::new(CIRCLE - 2)), 5);
        assert_eq!(Psn::new(CIRCLE - 2).offset_from(Psn::new(3)), -5);
    }

    #[test]
    fn offsets_are_exact_below_half_the_circle_wherever_they_start() {
        for start in (0..CIRCLE).step_by(65_537).chain([CIRCLE - 1]) {
            let base = Psn::new(start);
            for distance in [0, 1, 100, CIRCLE / 4, CIRCLE / 2 - 1] {
                let later = base.plus(u64::from(distance));
                assert_eq!(later.offset_from(base), distance as i32, "{base:?} + {distance}");
                assert_eq!(base.offset_from(later), -(distance as i32), "{base:?} + {distance}");
            }
        }
    }

    #[test]
    fn a_place_survives_any_number_of_turns() {
        let numbering = Numbering::starting_at(Psn::new(CIRCLE - 10));
        for place in [0, 9, 10, u64::from(CIRCLE) - 1, 5 * u64::from(CIRCLE) + 3] {
            let psn = numbering.psn(place);
            assert_eq!(numbering.place(psn, place + 1_000), Some(place));
            assert_eq!(numbering.place(psn, place.saturating_sub(1_000)), Some(place));
        }
        assert_eq!(numbering.place(Psn::new(CIRCLE - 11), 0), None);
    }
}

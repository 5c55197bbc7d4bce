//! Digests that can be made smaller after they were filled, so that a meter sends few cells as long as few suffice.
//!
//! The three cells of a packet are drawn in the smallest size, none of them twice. Each doubling adds a bit of the hash to
//! each place. To halve a digest, the upper half of its cells is added to the lower:
//!
//! ```text
//!   four times the base   b  b+m  b+2m  b+3m   ──fold──▶   b  b+m   ──fold──▶   b        place mod m never changes
//! ```
//!
//! So a folded digest is the one that a meter with fewer cells would have filled, and it names what that one names. What
//! was folded cannot be unfolded. (Rows of a power of two would fold as well, but two packets share their cells 4.5 times as
//! often there: see `sizing`.)

use units::Prob;

use super::{Digest, DigestShape, PLACES, PackedDigest};

/// Cells of the smallest form, or up to twice as many: 24 name four differences of a batch in 99 of 100 cases.
const LEAST: usize = 24;
/// The most often that a digest can be folded: its form has three bits for that.
const MOST_FOLDS: u8 = 7;

impl DigestShape {
    /// Adds some cells, so that it can be folded.
    #[must_use]
    pub fn foldable(self) -> Self {
        let cells = self.cells();
        let folds = (cells / LEAST).checked_ilog2().unwrap_or(0).min(u32::from(MOST_FOLDS)) as u8;
        let base = cells.div_ceil(1 << folds).min(Self::MOST_CELLS >> folds);
        Self { cells: (base << folds) as u32, folds, ..self }
    }

    /// The smallest shape to which it can be folded; two digests can be compared if they share it.
    #[must_use]
    pub fn base(self) -> Self {
        Self { cells: self.cells >> self.folds, folds: 0, ..self }
    }

    /// Folded until less would not be `cells` cells any more, or not at all.
    #[must_use]
    pub fn folded_for(mut self, cells: usize) -> Self {
        while self.folds > 0 && self.cells() / 2 >= cells {
            self = Self { cells: self.cells / 2, folds: self.folds - 1, ..self };
        }
        self
    }

    /// Cells in which a difference that does not decode in so many would probably do so, by its
    /// [estimate](Digest::estimate); those of the largest digest if no cell was empty.
    pub(crate) fn cells_to_decode(self, estimate: f64) -> usize {
        let cells = self.cells() as f64;
        let is_full = estimate >= cells / PLACES as f64 * (1.9 * cells).ln();
        if is_full {
            return Self::MOST_CELLS;
        }
        Self::for_losses((1.3 * estimate).ceil() as usize, Prob::literal(0.99)).cells().max(2 * self.cells())
    }

    /// The smaller of two shapes with the same base.
    #[must_use]
    pub fn smaller(self, other: Self) -> Self {
        if other.folds < self.folds { other } else { self }
    }

    /// True if digests of this shape can be folded to the other, or have it already.
    pub(super) fn folds_to(self, other: Self) -> bool {
        self.base() == other.base() && self.folds >= other.folds
    }
}

impl Digest {
    /// Puts the packets into fewer cells; leaves them unchanged if it cannot be folded to that shape.
    pub fn fold_to(&mut self, shape: DigestShape) {
        if self.shape == shape || !self.shape.folds_to(shape) {
            return;
        }
        let (kept, rest) = self.cells.split_at_mut(shape.cells());
        for part in rest.chunks(shape.cells()) {
            kept.iter_mut().zip(part).for_each(|(cell, other)| cell.combine(other, 1));
        }
        self.cells.truncate(shape.cells());
        self.shape = shape;
    }

    /// The form in which it is sent, of as many cells as that shape has.
    #[must_use]
    pub fn folded(&self, shape: DigestShape) -> Self {
        let mut folded = self.clone();
        folded.fold_to(shape);
        folded
    }
}

impl PackedDigest {
    /// The digest that was packed, folded to a smaller shape.
    #[must_use]
    pub fn folded(&self, shape: DigestShape) -> Digest {
        let shape = if self.shape().folds_to(shape) { shape } else { self.shape() };
        let mut digest = Digest::new(shape);
        // Shapes were made to fit.
        let _ = digest.merge_packed(self);
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::packet;
    use super::*;
    use crate::signature::{Fields, Signature};

    fn shape(cells: usize) -> DigestShape {
        DigestShape::new(cells, 9, Fields::ALL).foldable()
    }

    fn filled(shape: DigestShape, packets: u32) -> Digest {
        let mut digest = Digest::new(shape);
        (0..packets).for_each(|nth| digest.insert(&Signature::new(&packet(nth), Fields::ALL)));
        digest
    }

    #[test]
    fn a_folded_digest_is_that_of_a_meter_with_fewer_cells() {
        let full = shape(384);
        assert_eq!((full.cells(), full.folds, full.base().cells()), (384, 4, 24));
        for cells in [24, 48, 96, 192, 384] {
            let smaller = full.folded_for(cells);
            assert_eq!(smaller.cells(), cells);
            let folded = filled(full, 200).folded(smaller);
            assert_eq!(folded, filled(smaller, 200));
            assert_eq!(PackedDigest::from(&filled(full, 200)).folded(smaller), folded);
            assert_eq!(Digest::from_bytes(&folded.to_bytes()), Ok(folded));
        }
    }

    #[test]
    fn any_number_of_cells_can_be_folded_and_none_becomes_much_larger() {
        for cells in [3, 12, 24, 47, 48, 90, 300, 1_500, 3_073, 8_192, DigestShape::MOST_CELLS] {
            let made = shape(cells);
            assert!((cells..cells + (1 << MOST_FOLDS)).contains(&made.cells()), "{cells}: {}", made.cells());
            assert!(cells > 6_000 || made.base().cells() < 2 * LEAST, "{cells}: {}", made.base().cells());
            assert_eq!((made.folded_for(usize::MAX), made.folded_for(0)), (made, made.base()));
        }
    }

    #[test]
    fn what_cannot_be_folded_is_left_as_it_is() {
        let (mut digest, other) = (filled(shape(96), 5), shape(90));
        digest.fold_to(other);
        assert_eq!(digest, filled(shape(96), 5));
        assert!(Digest::new(shape(48)).subtract_packed(&PackedDigest::from(&Digest::new(other))).is_err());
        assert!(Digest::new(shape(96)).merge_packed(&PackedDigest::from(&Digest::new(shape(48)))).is_err());
    }

    /// The table of the docs: differences that some sizes name to the last, of a thousand digests.
    #[test]
    fn small_digests_name_as_much_as_is_said_of_them() {
        let named = |cells: usize, packets: u32| {
            let is_named = |trial: &u64| {
                let shape = DigestShape { seed: *trial, ..shape(384) }.folded_for(cells);
                filled(shape, packets).decode().left.is_none()
            };
            (0..1_000).filter(is_named).count()
        };
        for (cells, packets, least) in [(24, 4, 980), (24, 8, 900), (48, 12, 970), (96, 40, 970)] {
            assert!(named(cells, packets) >= least, "{cells} cells, {packets}: {}", named(cells, packets));
        }
        assert!(named(24, 30) < 100, "24 cells cannot name 30");
    }
}

//! Losses added up exactly.
//!
//! CorrOpt's *penalty* of a network is the sum of the losses of its links. They range from 1e-2 down to 1e-18 and come
//! and go a hundred thousand times a year. A floating-point sum would keep a rounding error of every large loss, and these
//! errors exceed all small losses together. So losses are whole multiples of 1e-30.

use std::iter::Sum;
use std::ops::{Add, Sub};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Penalty(u128);

const UNIT: f64 = 1e30;

impl Penalty {
    pub const ZERO: Self = Self(0);

    /// Penalty of one link. A loss that is not between 0 and 1 is taken for the nearer of them, and one that is too small
    /// to count for the least that can be counted.
    pub fn of_loss(loss: f64) -> Self {
        Self(((loss.clamp(0.0, 1.0) * UNIT) as u128).max(u128::from(loss > 0.0)))
    }

    pub fn as_f64(self) -> f64 {
        self.0 as f64 / UNIT
    }

    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Penalty {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// Panics if the result would be negative: something was taken away that had never been added.
impl Sub for Penalty {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("more taken away than there was"))
    }
}

impl Sum for Penalty {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_losses_survive_the_coming_and_going_of_large_ones() {
        let (small, large) = (Penalty::of_loss(1e-18), Penalty::of_loss(9.87e-3));
        let mut sum = small;
        for _ in 0..100_000 {
            sum = sum + large;
        }
        for _ in 0..100_000 {
            sum = sum - large;
        }
        assert_eq!(sum, small);
        assert_eq!(small.as_f64(), 1e-18);
    }
}

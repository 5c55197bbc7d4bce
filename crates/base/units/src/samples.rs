//! Medians and quantiles of a sample, each definition under its own name.
//!
//! | name | value at position, from zero | of 1, 2, 3, 4 |
//! | --- | --- | --- |
//! | [`median`] | mean of the one or two values in the middle | 2.5 |
//! | [`upper_median`] | ⌊n / 2⌋ | 3 |
//! | [`nearest_rank`] | ⌈share · n⌉ − 1: the least value that this share of the sample does not exceed | 2 for a share of 0.5 |
//! | [`quantile_above`] | ⌊share · n⌋: the value that this share of the sample precedes | 3 for a share of 0.5 |

use std::cmp::Ordering;

use crate::{Bytes, Span};

/// A value with a total order, so that a sample of it can be sorted.
pub trait SampleValue: Copy {
    /// Compares two values; for floating point by `total_cmp`.
    fn order(&self, other: &Self) -> Ordering;
}

impl SampleValue for f64 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

macro_rules! ordered {
    ($($value:ty),*) => {
        $(impl SampleValue for $value {
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        })*
    };
}

ordered!(u32, u64, i64, usize, Span, Bytes);

/// The value in the middle, the upper one of two; `None` of an empty sample. Reorders the sample.
pub fn upper_median<T: SampleValue>(sample: &mut [T]) -> Option<T> {
    let middle = sample.len() / 2;
    (!sample.is_empty()).then(|| *sample.select_nth_unstable_by(middle, T::order).1)
}

/// The value in the middle, or the mean of the two in the middle; `None` of an empty sample. Reorders the sample.
pub fn median(sample: &mut [f64]) -> Option<f64> {
    let count = sample.len();
    let upper = upper_median(sample)?;
    if count % 2 == 1 {
        return Some(upper);
    }
    let lower = sample[..count / 2].iter().copied().max_by(f64::total_cmp)?;
    Some((lower + upper) / 2.0)
}

/// Quantile by nearest rank: the least value that at least `share` of the sorted sample does not exceed; `None` of an empty
/// sample.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Quantile from above: the value that ⌊share · n⌋ values of the sorted sample precede; `None` if the sample has no more.
pub fn quantile_above<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    sorted.get((sorted.len() as f64 * share) as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_differ_only_in_samples_of_an_even_size() {
        let of = |values: &[f64]| (median(&mut values.to_vec()), upper_median(&mut values.to_vec()));
        assert_eq!(of(&[3.0, 1.0, 2.0]), (Some(2.0), Some(2.0)));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), (Some(2.5), Some(3.0)));
        assert_eq!(of(&[7.0]), (Some(7.0), Some(7.0)));
        assert_eq!(of(&[]), (None, None));
    }

    #[test]
    fn whole_numbers_and_spans_have_medians_too() {
        assert_eq!(upper_median(&mut [5_u64, 1, 9, 7]), Some(7));
        assert_eq!(upper_median(&mut [-5_i64, -1, -9]), Some(-5));
        assert_eq!(upper_median(&mut [Span::from_us(3), Span::from_us(1)]), Some(Span::from_us(3)));
    }

    #[test]
    fn quantiles_differ_where_a_rank_is_whole() {
        let sorted: Vec<u32> = (1..=100).collect();
        let of = |share| (nearest_rank(&sorted, share), quantile_above(&sorted, share));
        assert_eq!(of(0.0), (Some(1), Some(1)));
        assert_eq!(of(0.5), (Some(50), Some(51)));
        assert_eq!(of(0.505), (Some(51), Some(51)));
        assert_eq!(of(1.0), (Some(100), None));
        assert_eq!((nearest_rank::<u32>(&[], 0.5), quantile_above::<u32>(&[], 0.5)), (None, None));
    }
}

//! Buckets of histograms whose width grows with the value: exact below a power of two, and as many buckets to each doubling
//! above it.

/// Log-linear buckets: 2ᵇ of them to each doubling, so that a value is known to one part in 2ᵇ. Values below 2ᵇ⁺¹ have a
/// bucket each.
///
/// ```
/// use units::LogBuckets;
///
/// let buckets = LogBuckets::new(6);
/// assert_eq!(buckets.bounds(buckets.bucket(100)), (100, 100));
/// assert_eq!(buckets.bounds(buckets.bucket(1_000)), (1_000, 1_007));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBuckets {
    bits: u32,
}

impl LogBuckets {
    /// 2 to the power of `bits` buckets to each doubling, at most 2³¹.
    pub const fn new(bits: u32) -> Self {
        assert!(bits < u32::BITS, "the width of a bucket is a small power of two");
        Self { bits }
    }

    /// The number of a value's bucket; numbers ascend with values.
    #[inline]
    pub const fn bucket(self, value: u64) -> usize {
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(self.bits + 1);
        ((shift as usize) << self.bits) + (value >> shift) as usize
    }

    /// The least and the greatest value of a bucket.
    pub const fn bounds(self, bucket: usize) -> (u64, u64) {
        let shift = (bucket >> self.bits).saturating_sub(1);
        let low = ((bucket - (shift << self.bits)) as u64) << shift;
        (low, low + ((1 << shift) - 1))
    }

    /// The value in the middle of a bucket, the lower one of two.
    pub const fn middle(self, bucket: usize) -> u64 {
        let (low, high) = self.bounds(bucket);
        low + (high - low) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_their_values() {
        for bits in [0, 3, 6, 10] {
            let buckets = LogBuckets::new(bits);
            let mut last = 0;
            for value in 0..200_000 {
                let bucket = buckets.bucket(value);
                assert!(bucket == last || bucket == last + 1, "{bits} {value}");
                let (low, high) = buckets.bounds(bucket);
                assert!(
                    low <= value && value <= high && (high - low) << bits <= low,
                    "{bits} {value}: {low} to {high}"
                );
                assert!((low..=high).contains(&buckets.middle(bucket)));
                last = bucket;
            }
        }
    }

    #[test]
    fn both_ends_of_a_bucket_are_in_it() {
        for bits in [5, 6, 10] {
            let buckets = LogBuckets::new(bits);
            let values = (0..63).flat_map(|power| [(1_u64 << power) - 1, 1 << power, (1 << power) + (1 << power) / 3]);
            for value in values {
                let (low, high) = buckets.bounds(buckets.bucket(value));
                assert!(low <= value && value <= high && high - low <= low >> bits, "{low} {value} {high}");
                assert_eq!([low, high].map(|edge| buckets.bucket(edge)), [buckets.bucket(value); 2]);
            }
        }
    }

    #[test]
    fn the_largest_value_has_a_bucket() {
        let buckets = LogBuckets::new(6);
        assert_eq!(buckets.bounds(buckets.bucket(u64::MAX)).1, u64::MAX);
        assert!(buckets.bucket(1_000_000_000) < 1_600);
    }

    #[test]
    fn small_values_have_a_bucket_each() {
        let buckets = LogBuckets::new(6);
        assert!(
            (0..128).all(|value| buckets.bucket(value) == value as usize && buckets.middle(value as usize) == value)
        );
    }
}

//! A histogram of times with buckets that grow with them: 64 to each doubling, so that a quantile is right to 1.6 %.

use units::Span;

/// Buckets to each doubling.
const STEPS: u64 = 64;

/// Times, counted by size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanHistogram {
    counts: Vec<u64>,
    total: u64,
    max: Span,
}

impl SpanHistogram {
    #[inline]
    pub(crate) fn record(&mut self, span: Span) {
        let at = bucket(span.as_ps());
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.total += 1;
        self.max = self.max.max(span);
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, more)| *sum += more);
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// Number of times that were counted.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// True if none was counted.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The longest.
    pub fn max(&self) -> Span {
        self.max
    }

    /// The time that this share of all do not exceed; none if nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<Span> {
        let rank = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Span::from_ps(upper_end(at)).min(self.max))
    }
}

/// The bucket of a number: the number itself below 128, then 64 to each doubling.
#[inline]
fn bucket(value: u64) -> usize {
    if value < 2 * STEPS {
        return value as usize;
    }
    let shift = u64::from(63 - value.leading_zeros()) - 6;
    (shift * STEPS + (value >> shift)) as usize
}

/// The largest number of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let step = bucket - shift * STEPS;
    ((step + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_bucket_and_buckets_are_narrow() {
        let mut last = 0;
        for value in (0..5_000).chain((0..40).map(|shift| 5_000 << shift)) {
            let at = bucket(value);
            assert!(at >= last, "{value}");
            let end = upper_end(at);
            assert!(end >= value && (end - value) as f64 <= value as f64 / 64.0, "{value} {end}");
            last = at;
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_counted() {
        let mut times = SpanHistogram::default();
        (1..=100).for_each(|us| times.record(Span::from_us(us)));
        let near = |share, us: f64| (times.quantile(share).unwrap().as_us() / us - 1.0).abs() < 0.016;
        assert!(near(0.5, 50.0) && near(0.99, 99.0) && near(1.0, 100.0) && near(0.0, 1.0));
        assert_eq!((times.max(), times.len()), (Span::from_us(100), 100));
        assert_eq!(SpanHistogram::default().quantile(0.5), None);
    }
}

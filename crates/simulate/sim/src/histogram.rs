//! A histogram of times with buckets that grow with them: 64 to each doubling, so that a quantile is right to 1.6 %.

use units::{LogBuckets, Span};

const BUCKETS: LogBuckets = LogBuckets::new(6);

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
        let at = BUCKETS.bucket(span.as_ps());
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
        Some(Span::from_ps(BUCKETS.bounds(at).1).min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! Division by a table of reciprocals, as in a NIC without a divider (§2.5.3).
//!
//! The table keeps n whenever 1/n has changed by a share ε since the last that it keeps. (The condition printed in the thesis has
//! its sign the wrong way round.) A quotient by the largest kept n that is not above the divisor is too large by at most that share.

use std::sync::OnceLock;

/// Reciprocals of whole numbers up to [`ReciprocalTable::LARGEST`].
#[derive(Clone, Debug)]
pub struct ReciprocalTable {
    kept: Vec<u32>,
}

impl ReciprocalTable {
    /// The largest divisor.
    pub const LARGEST: u32 = 1 << 22;
    /// The share that gives the thesis's 10 KB.
    const EPSILON: f64 = 0.004;
    /// Bytes of an entry.
    const ENTRY_BYTES: usize = 4;
    /// A load of 1 as a divisor: loads up to 256 fit.
    const ONE: f64 = 16_384.0;

    /// A table whose quotients are too large by at most `epsilon`, between 0 and 1.
    pub fn new(epsilon: f64) -> Self {
        let next = |last: u32| (f64::from(last) / (1.0 - epsilon)).ceil().max(f64::from(last) + 1.0);
        let kept = std::iter::successors(Some(1_u32), |last| {
            let next = next(*last);
            (next <= f64::from(Self::LARGEST)).then_some(next as u32)
        });
        Self { kept: kept.collect() }
    }

    /// The one that controllers share.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<ReciprocalTable> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(Self::EPSILON))
    }

    /// Number of reciprocals.
    pub fn entries(&self) -> usize {
        self.kept.len()
    }

    /// Bytes that it takes in a NIC's memory.
    pub fn bytes(&self) -> usize {
        self.entries() * Self::ENTRY_BYTES
    }

    /// Approximation of 1/n; n is clamped to the range of the table.
    pub fn reciprocal(&self, n: u32) -> f64 {
        let above = self.kept.partition_point(|kept| *kept <= n);
        1.0 / f64::from(self.kept[above.saturating_sub(1)])
    }

    /// `dividend` / `load` for a load in fixed point.
    pub(super) fn divide(&self, dividend: f64, load: f64) -> f64 {
        let n = (load * Self::ONE).clamp(1.0, f64::from(Self::LARGEST)) as u32;
        dividend * self.reciprocal(n) * Self::ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_kilobytes_give_four_per_mille() {
        let table = ReciprocalTable::shared();
        assert!((2_560..2_590).contains(&table.entries()), "{}", table.entries());
        assert!((10_000..10_400).contains(&table.bytes()));
        let worst = (1..=ReciprocalTable::LARGEST)
            .map(|n| table.reciprocal(n) * f64::from(n) - 1.0)
            .fold((0.0, 0.0), |(least, most): (f64, f64), error| (least.min(error), most.max(error)));
        assert!(worst.0 > -1e-12 && worst.1 <= 0.004 / (1.0 - 0.004), "{worst:?}");
    }

    #[test]
    fn loads_are_divided_by_to_four_per_mille() {
        let table = ReciprocalTable::shared();
        for load in (1..4_000).map(|step| f64::from(step) * 0.01) {
            let quotient = table.divide(162_500.0, load);
            assert!((quotient * load / 162_500.0 - 1.0).abs() < 0.011, "{load}: {quotient}");
        }
        assert_eq!(table.divide(1.0, 0.0), 16_384.0);
        assert_eq!(table.reciprocal(0), 1.0);
        assert!(table.divide(1.0, f64::INFINITY) > 0.0);
    }
}

//! hpcc.division: a table instead of a divider (§2.5.3), over every divisor.

use congestion::hpcc::ReciprocalTable;
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};

pub(super) fn compute(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let table = ReciprocalTable::shared();
    // ε is meant as a share of the reciprocal that is stored.
    let errors = (1..=ReciprocalTable::LARGEST).map(|n| (1.0 - 1.0 / (table.reciprocal(n) * f64::from(n))).abs());
    let (worst, sum) = errors.fold((0.0_f64, 0.0), |(worst, sum), error| (worst.max(error), sum + error));
    let divisors = u64::from(ReciprocalTable::LARGEST);
    let mut computed = ComputedValues::default();
    computed.value("bytes", MeasuredValue::exact(table.bytes() as f64, divisors));
    computed.value("entries", MeasuredValue::exact(table.entries() as f64, divisors));
    computed.value("worst-error", MeasuredValue::exact(worst, divisors));
    computed.value("mean-error", MeasuredValue::exact(sum / divisors as f64, divisors));
    Ok(Some(computed))
}

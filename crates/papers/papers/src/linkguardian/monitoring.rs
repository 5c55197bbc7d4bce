//! lg.monitor: what a window of 100 M frames and polls of 1 s can find (App. C), computed.

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use wire::ethernet::on_wire;

const WINDOW: f64 = 100e6;
const FRAME: u32 = 1_518;
/// The loss from which on a link is protected.
const THRESHOLD: f64 = 1e-8;
const RATES: [(&str, f64); 2] = [("25G", 25e9), ("100G", 100e9)];

pub(super) fn compute(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let mut exact = |name: String, value: f64| computed.value(name, MeasuredValue::exact(value, 1));
    exact("least-loss".into(), 1.0 / WINDOW);
    exact("unseen-at-threshold".into(), (-WINDOW * THRESHOLD).exp());
    for (name, rate) in RATES {
        exact(format!("window-seconds.{name}"), WINDOW * f64::from(on_wire(FRAME)) * 8.0 / rate);
    }
    Ok(Some(computed))
}

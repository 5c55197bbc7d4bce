//! hpcc.int.packed: telemetry as Fig. 2.7 packs it, against exact numbers.

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};

use super::runs::{HpccTask, SeedValues, run_all};

const FORMS: [&str; 2] = ["exact", "packed"];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let task = |form| {
        let task = HpccTask::new("one-switch.toml", &["run.until=5ms", "measure.sample=100us"]);
        task.with(format!("traffic.hpcc.int={form}"))
    };
    let Some(runs) = run_all(effort, &FORMS.map(task))? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    let queues = [0, 1].map(|form| SeedValues::from(&runs[form], |run| run.queue_packets(0.95)).mean());
    let goodput =
        |form: usize| SeedValues::from(&runs[form], |run| Some(run.means(1_000.0, 5_000.0).iter().sum())).mean();
    for (name, measured) in [("p95", queues), ("goodput", [0, 1].map(goodput))] {
        let ratio = match &measured {
            [Some(exact), Some(packed)] => Some(MeasuredValue::exact(packed.value / exact.value, exact.n)),
            _ => None,
        };
        computed.values.push((format!("{name}.ratio"), ratio));
        let forms = FORMS.into_iter().zip(measured);
        computed.values.extend(forms.map(|(form, measured)| (format!("{name}.{form}"), measured)));
    }
    Ok(Some(computed))
}

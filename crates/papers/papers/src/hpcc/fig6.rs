//! hpcc.fig6: txRate or rxRate (§2.3.4).

use report::claim::ClaimError;
use report::runner::{ComputedValues, Effort};

use super::runs::{HpccRun, HpccTask, SeedValues, run_all};

const SIGNALS: [&str; 2] = ["tx", "rx"];
/// Thresholds in bytes: an excursion begins above the first and ends below the second.
const HIGH: f64 = 10_000.0;
const LOW: f64 = 5_000.0;
/// A queue of no more than the packet that is being sent.
const EMPTY: f64 = 1_200.0;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let task = |signal| {
        let task = HpccTask::new("one-switch.toml", &["traffic.from=[\"h0\", \"h1\"]", "measure.sample=100ns"]);
        task.with(format!("traffic.hpcc.signal={signal}"))
    };
    let Some(runs) = run_all(effort, &SIGNALS.map(task))? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for (signal, runs) in SIGNALS.into_iter().zip(&runs) {
        let counted = SeedValues::from(runs, |run| Some(excursions(run).0));
        let counted = if signal == "rx" { counted.least() } else { counted.most() };
        computed.values.push((format!("{signal}.excursions"), counted));
        computed
            .values
            .push((format!("{signal}.highest"), SeedValues::from(runs, |run| Some(excursions(run).1)).mean()));
    }
    Ok(Some(computed))
}

/// Number of times that the queue grew again after it was first empty, and the KB that it reached.
fn excursions(run: &HpccRun) -> (f64, f64) {
    let peak = run.peak();
    let later = run.queue().skip_while(|(_, bytes)| *bytes < peak).skip_while(|(_, bytes)| *bytes > EMPTY);
    let (mut count, mut highest, mut above) = (0.0, 0.0_f64, false);
    for (_, bytes) in later {
        if bytes > HIGH && !above {
            count += 1.0;
        }
        above = bytes > if above { LOW } else { HIGH };
        highest = highest.max(bytes / 1e3);
    }
    (count, highest)
}

//! hpcc.fig14: fairness and queues with more or less additive increase (§2.6.4).

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};

use super::runs::{HpccRun, HpccTask, SeedValues, jain, run_all};

const W_AI: [u32; 6] = [25, 50, 100, 150, 200, 300];
/// Number of these that fit 16 flows by the rule of §2.3.3.
const FITTING: usize = 4;
const ETA: f64 = 0.95;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let task = |w_ai| {
        let task = HpccTask::new("one-switch.toml", &["run.until=10ms", "measure.sample=100us"]);
        task.with(format!("traffic.hpcc.w_ai={w_ai}"))
    };
    let Some(runs) = run_all(effort, &W_AI.map(task))? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    let mut fairness = Vec::new();
    for (w_ai, runs) in W_AI.into_iter().zip(&runs) {
        let jain = SeedValues::from(runs, |run| Some(jain(&run.means(1_000.0, 5_000.0)))).mean();
        fairness.extend(jain.as_ref().map(|jain| jain.value));
        let mut value = |name, measured| computed.values.push((format!("{name}.{w_ai}"), measured));
        value("p95", SeedValues::from(runs, |run| run.queue_packets(0.95)).mean());
        value("p95.kb", SeedValues::from(runs, |run| run.queue_kb(0.95)).mean());
        value("goodput", SeedValues::from(runs, goodput).least());
        value("jain", jain);
    }
    let fitting = &fairness[..FITTING.min(fairness.len())];
    let rises = fitting.windows(2).filter(|pair| pair[1] > pair[0]).count();
    computed.value("jain.rises", MeasuredValue::exact(rises as f64, fitting.len() as u64));
    computed.charts.push(chart(&runs));
    Ok(Some(computed))
}

/// Goodput from 1 ms on, as a share of η and of the payload share of a packet.
fn goodput(run: &HpccRun) -> Option<f64> {
    Some(run.means(1_000.0, 10_000.0).iter().sum::<f64>() / run.ceiling(ETA))
}

fn chart(runs: &[Vec<HpccRun>]) -> Chart {
    let line = |(w_ai, runs): (u32, &Vec<HpccRun>)| {
        let lengths = runs.first().map(|run| run.outcome.queue_lengths(&[run.port])).unwrap_or_default();
        let percents = (50..100).map(|percent| f64::from(percent) / 100.0);
        let points = percents.filter_map(|share| Some((lengths.quantile(share)? as f64 / 1e3, share))).collect();
        Line::new(format!("{w_ai} B"), points)
    };
    Chart::Lines(LinesChart {
        title: "Queue by W_AI".into(),
        caption: "The share of the first 10 ms in which the queue was no longer. The first seed.".into(),
        x: Axis::linear("queue, KB"),
        y: Axis::linear("share of time").within(0.5, 1.0),
        lines: W_AI.into_iter().zip(runs).map(line).collect(),
    })
}

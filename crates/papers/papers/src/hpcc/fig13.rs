//! hpcc.fig13: three ways to react in a 16-to-1 incast (§2.6.4).

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::ClaimError;
use report::runner::{ComputedValues, Effort};

use super::runs::{HpccRun, HpccTask, SeedValues, run_all};

const REACTIONS: [&str; 3] = ["combined", "per-ack", "per-rtt"];
/// A queue is drained below this share of its peak.
const DRAINED: f64 = 0.06;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let task = |reaction| HpccTask::new("one-switch.toml", &[]).with(format!("traffic.hpcc.reaction={reaction}"));
    let Some(runs) = run_all(effort, &REACTIONS.map(task))? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for (reaction, runs) in REACTIONS.into_iter().zip(&runs) {
        let mut value = |name, measured| computed.values.push((format!("{reaction}.{name}"), measured));
        value("peak", SeedValues::from(runs, |run| Some(run.peak() / 1e3)).mean());
        value("drained", SeedValues::from(runs, drained).most());
        value("at-70", SeedValues::from(runs, |run| at(run, 70.0)).least());
        value("again", SeedValues::from(runs, again).mean());
        value("least-goodput", SeedValues::from(runs, least_goodput).least());
    }
    computed.charts.push(chart("Queue, KB", &runs, |run| run.queue().map(|(at, bytes)| (at, bytes / 1e3)).collect()));
    computed.charts.push(chart("Goodput, Gb/s", &runs, |run| run.goodput(None).collect()));
    Ok(Some(computed))
}

/// The queue from when it is first below its share of the peak.
fn after_drained(run: &HpccRun) -> impl Iterator<Item = (f64, f64)> + '_ {
    let peak = run.peak();
    let from_peak = run.queue().skip_while(move |(_, bytes)| *bytes < peak);
    from_peak.skip_while(move |(_, bytes)| *bytes >= DRAINED * peak)
}

/// µs until then.
fn drained(run: &HpccRun) -> Option<f64> {
    after_drained(run).next().map(|(at, _)| at)
}

/// Highest queue after it was drained, as a share of its peak.
fn again(run: &HpccRun) -> Option<f64> {
    after_drained(run).map(|(_, bytes)| bytes / run.peak()).reduce(f64::max)
}

/// The queue as a share of its peak.
fn at(run: &HpccRun, us: f64) -> Option<f64> {
    run.queue().find(|(at, _)| *at >= us).map(|(_, bytes)| bytes / run.peak())
}

/// Least goodput in any 5 µs from 20 to 200 µs.
fn least_goodput(run: &HpccRun) -> Option<f64> {
    run.goodput(None).filter(|(at, _)| *at > 20.0 && *at <= 200.0).map(|(_, gbps)| gbps).reduce(f64::min)
}

/// The first 400 µs of the first seed.
fn chart(label: &str, runs: &[Vec<HpccRun>], points: impl Fn(&HpccRun) -> Vec<(f64, f64)>) -> Chart {
    let line = |(reaction, runs): (&str, &Vec<HpccRun>)| {
        let points = runs.first().map(&points).unwrap_or_default();
        Line::new(reaction, points.into_iter().take_while(|(at, _)| *at <= 400.0).collect())
    };
    Chart::Lines(LinesChart {
        title: format!("{label}, of 16 flows into one port"),
        caption: "The first seed. Every 5 µs.".into(),
        x: Axis::linear("µs"),
        y: Axis::linear(label),
        lines: REACTIONS.into_iter().zip(runs).map(line).collect(),
    })
}

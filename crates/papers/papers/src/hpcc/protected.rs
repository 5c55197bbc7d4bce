//! hpcc.protected: HPCC over a link that LinkGuardian protects in order. Beyond the thesis.

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use units::samples::quantile_above;

use super::runs::{HpccRun, HpccTask, SeedValues, run_all};

/// A link without losses.
const BARE: [&str; 2] = ["link.protect=none", "link.loss=0"];
/// Senders that fill it.
const SATURATED: [&str; 3] = ["traffic.congestion=none", "traffic.hpcc={}", "traffic.outstanding=50"];

/// Names, and what is set.
const CASES: [(&str, &[&[&str]]); 13] = [
    ("clean", &[&BARE]),
    ("slower", &[&BARE, &["link.rate=92G", "link.int_rate=100G"]]),
    ("slower.int-rate", &[&BARE, &["link.rate=92G"]]),
    ("ordered", &[]),
    ("ordered.int-rate", &[&["link.int_rate=92G"]]),
    ("ordered.int-rate-60", &[&["link.int_rate=60G"]]),
    ("ordered.stage-5", &[&["traffic.hpcc.max_stage=5"]]),
    ("ordered.stage-5.int-rate", &[&["traffic.hpcc.max_stage=5", "link.int_rate=92G"]]),
    ("ordered.saturated", &[&SATURATED]),
    ("sorted", &[&["link.profile=ideal"]]),
    ("sorted.int-rate", &[&["link.profile=ideal", "link.int_rate=92G"]]),
    ("sorted.saturated", &[&["link.profile=ideal"], &SATURATED]),
    ("nonblocking", &[&["link.protect=nonblocking"]]),
];
/// Time in µs at which flows have settled.
const SETTLED: f64 = 1_000.0;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let tasks = CASES.map(|(_, sets)| HpccTask::new("protected-link.toml", &sets.concat()));
    let Some(runs) = run_all(effort, &tasks)? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for ((case, _), runs) in CASES.iter().zip(&runs) {
        let mut value = |name, measured| computed.values.push((format!("{name}.{case}"), measured));
        value("p50", SeedValues::from(runs, |run| queue(run, 0.5)).mean());
        value("p95", SeedValues::from(runs, |run| queue(run, 0.95)).mean());
        value("carried", SeedValues::from(runs, |run| Some(carried(run))).mean());
    }
    for link in ["slower", "ordered", "sorted"] {
        let p95 = |case: &str| {
            let name = format!("p95.{case}");
            computed.values.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.clone())
        };
        let shorter = p95(link)
            .zip(p95(&format!("{link}.int-rate")))
            .map(|(without, with)| MeasuredValue::exact(without.value / with.value.max(f64::MIN_POSITIVE), with.n));
        computed.values.push((format!("shorter.{link}"), shorter));
    }
    Ok(Some(computed))
}

/// Goodput as a share of the payload that 100G carry.
fn carried(run: &HpccRun) -> f64 {
    run.means(SETTLED, f64::INFINITY).iter().sum::<f64>() / (100.0 * run.payload_share)
}

/// A quantile of the samples, in KB.
fn queue(run: &HpccRun, share: f64) -> Option<f64> {
    let mut queue: Vec<f64> = run.queue().filter(|(at, _)| *at >= SETTLED).map(|(_, bytes)| bytes / 1e3).collect();
    queue.sort_by(f64::total_cmp);
    quantile_above(&queue, share)
}

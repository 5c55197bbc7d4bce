//! det.testbed: contents of a congested queue, in the run and in its replay (§6.5.4.1).

use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use sim::net::queue_replay::{QueueDifference, ReplayTags, compare};
use units::{Span, Time};

use super::runs;

/// Precision of the hosts' clocks, which PTP synchronizes: hundreds of nanoseconds.
const CLOCKS_APART: Span = Span::from_ns(300);

/// A value of a comparison of queues.
type TakeDifference = fn(&QueueDifference) -> f64;

/// A testbed, and how its send times are sampled.
struct TestbedSetting {
    /// Beginning of its values' names.
    name: &'static str,
    threshold: Span,
    sets: &'static [&'static str],
}

/// The thesis's, and what it leaves open.
const SETTINGS: [TestbedSetting; 3] = [
    TestbedSetting { name: "", threshold: Span::from_us(5), sets: &[] },
    TestbedSetting { name: "2us.", threshold: Span::from_us(2), sets: &[] },
    TestbedSetting { name: "1G.", threshold: Span::from_us(5), sets: &["topology.rate=1G", "run.until=600ms"] },
];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let seeds = if effort.scale == RunScale::Full { 20 } else { 4 };
    let runs: Vec<(&TestbedSetting, u64)> =
        SETTINGS.iter().flat_map(|setting| (0..seeds).map(move |seed| (setting, seed))).collect();
    effort.progress.expect_parts(runs.len());
    let compared = parallel::map(&runs, effort.jobs, |(setting, run)| {
        let compared = difference(setting, effort.seed.wrapping_mul(1_000) + run, effort);
        effort.progress.part_done();
        compared
    });
    let Some(compared) = compared.into_iter().collect::<Result<Option<Vec<QueueDifference>>, _>>()? else {
        return Ok(None);
    };
    let mut computed = ComputedValues::default();
    let takes: [(&str, TakeDifference); 3] =
        [("mean", |found| found.mean), ("p99", |found| found.p99), ("length", |found| found.mean_length)];
    for (setting, compared) in SETTINGS.iter().zip(compared.chunks(seeds as usize)) {
        for (name, take) in takes {
            let samples: Vec<f64> = compared.iter().map(take).collect();
            computed.values.push((format!("{}{name}", setting.name), MeasuredValue::mean(&samples)));
        }
    }
    Ok(Some(computed))
}

/// `None` if it was stopped early.
fn difference(setting: &TestbedSetting, seed: u64, effort: &Effort<'_>) -> Result<Option<QueueDifference>, ClaimError> {
    let sets: Vec<String> = setting.sets.iter().map(|set| (*set).to_owned()).collect();
    let setup = runs::setup("testbed-network.toml", &sets, seed)?;
    let Some(recording) = runs::record(&setup, 1, effort)? else { return Ok(None) };
    let (connections, _) = runs::sampled(&setup, &recording, setting.threshold, CLOCKS_APART)?;
    let replay = runs::replay(&setup, &connections, ReplayTags::Used, 1, effort)?;
    Ok(replay.map(|replay| compare(&recording, &replay, Time::ZERO).queues))
}

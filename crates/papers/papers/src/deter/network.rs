//! det.queue and det.drop, from the same runs (§6.5.4.2).

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use results::replay::SampleCost;
use sim::net::NetworkSetup;
use sim::net::queue_replay::{QueueComparison, QueueRecording, ReplayTags, compare};
use units::{Span, Time};

use super::costs;
use super::runs::{self, CLOCKS_APART};
use super::sampling::THRESHOLDS;

/// Loads in percent; the one that takes longest is run first.
const LOADS: [u32; 4] = [80, 50, 30, 10];
/// One in this many packets is asked for its view of the queue.
pub(super) const ONE_IN: u32 = 64;
/// The network.
pub(super) const LOAD_FILE: &str = "fat-tree.toml";
/// The threshold of the thesis, in µs.
const USUAL: u64 = 5;

/// A value of a comparison.
type TakeMeasure = fn(&QueueComparison) -> f64;

/// A run at one load.
struct LoadRun {
    load: u32,
    setup: NetworkSetup,
    recording: QueueRecording,
}

/// A replay of one of the runs.
#[derive(Clone, Copy, Debug)]
struct ReplayTask {
    run: usize,
    us: u64,
    tags: ReplayTags,
}

/// Result of one replay.
struct LoadReplay {
    load: u32,
    us: u64,
    tags: ReplayTags,
    comparison: QueueComparison,
    overflows: f64,
    cost: SampleCost,
}

pub(super) fn compute(effort: &Effort<'_>, wanted: &[&str]) -> Result<Option<Vec<ComputedValues>>, ClaimError> {
    let tasks = tasks(wanted);
    effort.progress.expect_parts(LOADS.len() + tasks.len());
    let Some(runs) = collect(parallel::map(&LOADS, effort.jobs, |load| simulate(*load, effort)))? else {
        return Ok(None);
    };
    let Some(replays) = collect(parallel::map(&tasks, effort.jobs, |task| replay(*task, &runs, effort)))? else {
        return Ok(None);
    };
    drop(runs);
    let mut all = Vec::new();
    for id in wanted {
        if *id == "det.drop" {
            all.push(drops(&replays));
            continue;
        }
        let Some(costs) = costs::compute(effort)? else { return Ok(None) };
        let mut computed = queues(&replays);
        computed.values.extend(costs);
        all.push(computed);
    }
    Ok(Some(all))
}

fn collect<T>(results: Vec<Result<Option<T>, ClaimError>>) -> Result<Option<Vec<T>>, ClaimError> {
    results.into_iter().collect()
}

fn tasks(wanted: &[&str]) -> Vec<ReplayTask> {
    let drops = wanted.contains(&"det.drop");
    let thresholds: &[u64] = if wanted.contains(&"det.queue") { &THRESHOLDS } else { &[USUAL] };
    let of_run = |run| {
        let tagged = thresholds.iter().map(move |us| ReplayTask { run, us: *us, tags: ReplayTags::Used });
        tagged.chain(drops.then_some(ReplayTask { run, us: USUAL, tags: ReplayTags::Ignored }))
    };
    (0..LOADS.len()).flat_map(of_run).collect()
}

/// A load in percent, and for how long.
pub(super) fn load_sets(load: u32, full: bool) -> [String; 2] {
    let ms = if full { 20 } else { 6 };
    [format!("traffic.0.load={}", f64::from(load) / 100.0), format!("run.until={ms}ms")]
}

fn simulate(load: u32, effort: &Effort<'_>) -> Result<Option<LoadRun>, ClaimError> {
    let setup = runs::setup(LOAD_FILE, &load_sets(load, effort.scale == RunScale::Full), effort.seed)?;
    let recording = runs::record(&setup, ONE_IN, effort)?;
    effort.progress.part_done();
    Ok(recording.map(|recording| LoadRun { load, setup, recording }))
}

fn replay(task: ReplayTask, runs: &[LoadRun], effort: &Effort<'_>) -> Result<Option<LoadReplay>, ClaimError> {
    let LoadRun { load, setup, recording } = &runs[task.run];
    let (connections, cost) = runs::sampled(setup, recording, Span::from_us(task.us), CLOCKS_APART)?;
    let replay = runs::replay(setup, &connections, task.tags, ONE_IN, effort)?;
    effort.progress.part_done();
    Ok(replay.map(|replay| {
        let half = Span::from_ps(setup.until.as_ps() / 2);
        let comparison = compare(recording, &replay, Time::ZERO + half);
        let overflows = replay.overflows as f64 / cost.packets.max(1) as f64;
        LoadReplay { load: *load, us: task.us, tags: task.tags, comparison, overflows, cost }
    }))
}

fn find(replays: &[LoadReplay], load: u32, us: u64, tags: ReplayTags) -> Option<&LoadReplay> {
    replays.iter().find(|replay| (replay.load, replay.us, replay.tags) == (load, us, tags))
}

fn queues(replays: &[LoadReplay]) -> ComputedValues {
    let mut computed = ComputedValues::default();
    let of = |load, us| find(replays, load, us, ReplayTags::Used);
    let mut value = |name: String, value: Option<f64>, views: u64| {
        computed.values.push((name, value.map(|value| MeasuredValue::exact(value, views))));
    };
    for replay in replays.iter().filter(|replay| replay.tags == ReplayTags::Used) {
        let LoadReplay { load, us, comparison, cost, .. } = replay;
        let queues = comparison.queues;
        value(format!("{load}.{us}us.mean"), Some(queues.mean), queues.views);
        value(format!("{load}.{us}us.p99"), Some(queues.p99), queues.views);
        value(format!("{load}.{us}us.lengths.mean"), Some(queues.mean_of_lengths), queues.views);
        value(format!("{load}.{us}us.lengths.p99"), Some(queues.p99_of_lengths), queues.views);
        value(format!("{load}.{us}us.per-sample"), Some(cost.packets_per_sample()), cost.samples);
        value(format!("{load}.{us}us.bytes"), Some(cost.bytes_per_packet()), cost.packets);
        if *us == USUAL {
            value(format!("{load}.length"), Some(queues.mean_length), queues.views);
        }
    }
    let measures: [(&str, TakeMeasure); 2] =
        [("mean", |comparison| comparison.queues.mean), ("p99", |comparison| comparison.queues.p99)];
    let lengths = |us| of(30, us).map(|replay| replay.comparison.queues.p99_of_lengths);
    value("30.cost.lengths.p99".into(), lengths(USUAL).zip(lengths(2)).map(|(usual, less)| usual - less), 2);
    for (name, measure) in measures {
        let at = |load, us| of(load, us).map(|replay| measure(&replay.comparison));
        let ratio = |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one / other);
        for load in LOADS {
            let cost = at(load, USUAL).zip(at(load, 2)).map(|(usual, less)| usual - less);
            value(format!("{load}.cost.{name}"), cost, 2);
        }
        value(format!("load.{name}"), ratio(at(80, USUAL), at(10, USUAL)), 2);
        value(format!("threshold.{name}"), ratio(at(30, 10), at(30, 2)), 2);
    }
    for (name, measure) in measures {
        computed.charts.push(chart(replays, name, measure));
    }
    computed
}

/// Fig. 6.8.
fn chart(replays: &[LoadReplay], name: &str, measure: TakeMeasure) -> Chart {
    let line = |us: u64| {
        let mut loads = LOADS;
        loads.sort_unstable();
        let point = |load| {
            let replay = find(replays, load, us, ReplayTags::Used)?;
            Some((f64::from(load), measure(&replay.comparison)))
        };
        let paper = match (us, name) {
            (USUAL, "mean") => vec![(30.0, 0.78), (80.0, 1.7)],
            (USUAL, _) => vec![(30.0, 5.7), (80.0, 9.7)],
            _ => Vec::new(),
        };
        Line::new(format!("{us} µs"), loads.into_iter().filter_map(point).collect()).with_paper(paper)
    };
    Chart::Lines(LinesChart {
        title: format!("Queue content difference, {name}"),
        caption: "Of all queues of the fat-tree, by load and by the threshold of sampling.".into(),
        x: Axis::linear("load, %"),
        y: Axis::linear("MTU"),
        lines: THRESHOLDS.into_iter().map(line).collect(),
    })
}

fn drops(replays: &[LoadReplay]) -> ComputedValues {
    let mut computed = ComputedValues::default();
    for load in LOADS {
        let of = |tags| find(replays, load, USUAL, tags).map(|replay| (replay.comparison.drops, replay.overflows));
        let (Some((with, overflows)), Some((without, _))) = (of(ReplayTags::Used), of(ReplayTags::Ignored)) else {
            continue;
        };
        let mut value = |name: &str, value: Option<f64>, of: u64| {
            computed.values.push((format!("{load}.{name}"), value.map(|value| MeasuredValue::exact(value, of))));
        };
        value("tags", with.error(), with.in_either);
        value("no-tags", without.error(), without.in_either);
        let gain =
            with.error().zip(without.error()).filter(|(with, _)| *with > 0.0).map(|(with, without)| without / with);
        value("gain", gain, with.in_either);
        value("false-drops", Some(with.false_drops as f64), with.in_either);
        value("wrong-place", Some(with.wrong_place as f64 / with.in_either.max(1) as f64), with.in_either);
        value("drops", Some(with.in_run as f64), with.in_run);
        value("overflows", Some(overflows), with.in_run);
    }
    computed
}

//! Jobs of a point: times, lateness, causes and culprits of all seeds together, and their rows.

use collective::{
    Accusation, BlameCount, DelayCause, IterationRow, JobFailure, JobOutcome, PathParts, RunLengths, TransferPlan,
    TransferRow,
};
use scenario::{JobDescription, SweepPoint};
use serde::Serialize;
use sim::net::JobResult;
use sim::topology::{NodeId, TopologyLinkId};
use tables::Column;
use units::{Span, Time};

use super::digest::FlowCounts;

/// One job in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct CollectiveSummary {
    pub name: String,
    /// `file` for a graph from a file.
    pub pattern: String,
    pub algorithm: Option<String>,
    pub ranks: u32,
    pub channels: u16,
    pub pieces: u32,
    /// Bytes of the collective, or of all transfers of a graph.
    pub size: u64,
    /// Iterations of all seeds: asked for, simulated one by one, complete.
    pub iterations: u64,
    pub simulated_iterations: u64,
    pub complete: u64,
    /// The first failure of any seed.
    pub failed: Option<FailureSummary>,
    pub time_us: IterationTimes,
    /// The least that an iteration can take.
    pub bound_us: f64,
    /// Mean of the same iterations in a run without losses.
    pub without_loss_us: Option<f64>,
    pub lateness_us: LatenessTimes,
    pub late: u64,
    pub late_share: Option<f64>,
    /// Size over mean time, and the same as a load of links, as nccl-tests define them.
    pub algbw_gbytes: Option<f64>,
    pub busbw_gbytes: Option<f64>,
    pub losses: u64,
    pub timeouts: u64,
    /// Mean parts of the critical path of an iteration.
    pub parts_us: PartsSummary,
    /// The link of most late iterations first.
    pub blamed: Vec<BlamedLink>,
    pub by_seed: Vec<SeedSummary>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FailureSummary {
    pub iteration: u32,
    pub at_us: f64,
    pub transfer: String,
    pub link: Option<String>,
    pub cause: String,
}

/// Times of iterations in microseconds; a percentile beyond which no value is expected is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct IterationTimes {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    #[serde(rename = "p99.9")]
    pub p999: Option<f64>,
    #[serde(rename = "p99.99")]
    pub p9999: Option<f64>,
    pub max: Option<f64>,
}

/// Lateness of all iterations in microseconds, 0 for those that are not late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatenessTimes {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    #[serde(rename = "p99.9")]
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PartsSummary {
    pub wire: f64,
    pub queue: f64,
    pub recovery: f64,
    pub waiting: f64,
    pub compute: f64,
}

/// A link, and the late iterations that it is accused of.
#[derive(Clone, Debug, Serialize)]
pub struct BlamedLink {
    pub link: Option<String>,
    pub iterations: u64,
    /// Share of the late iterations.
    pub share: f64,
    /// Mean of these iterations.
    pub lateness_us: f64,
    pub cause: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct SeedSummary {
    pub seed: u64,
    pub mean_us: Option<f64>,
    pub late_share: Option<f64>,
}

/// A job of one run, or of several runs of the same point.
#[derive(Clone, Debug)]
pub(super) struct JobDigest {
    traffic: usize,
    hosts: Vec<NodeId>,
    runs: u64,
    outcome: JobOutcome,
    by_seed: Vec<SeedSummary>,
}

impl JobDigest {
    pub(super) fn of(result: &JobResult) -> Self {
        let outcome = JobOutcome { rows: Vec::new(), transfers: Vec::new(), ..result.outcome.clone() };
        let seed = SeedSummary {
            seed: 0,
            mean_us: outcome.times.mean().map(Span::as_us),
            late_share: share(outcome.late, outcome.complete),
        };
        let (traffic, hosts) = (usize::from(result.traffic), result.hosts.clone());
        Self { traffic, hosts, runs: 1, outcome, by_seed: vec![seed] }
    }

    /// The same, of a run with this seed.
    pub(super) fn seeded(&mut self, seed: u64) {
        self.by_seed.iter_mut().for_each(|one| one.seed = seed);
    }

    pub(super) fn add(&mut self, other: Self) {
        let (mine, theirs) = (&mut self.outcome, other.outcome);
        mine.complete += theirs.complete;
        mine.simulated += theirs.simulated;
        mine.failed = mine.failed.or(theirs.failed);
        mine.times.append(&theirs.times);
        mine.without_loss.append(&theirs.without_loss);
        mine.lateness.append(&theirs.lateness);
        mine.late += theirs.late;
        mine.bound = mine.bound.max(theirs.bound);
        mine.losses += theirs.losses;
        mine.timeouts += theirs.timeouts;
        mine.parts.add(&theirs.parts);
        for (key, count) in theirs.blamed {
            let blame = mine.blamed.entry(key).or_default();
            blame.iterations += count.iterations;
            blame.lateness += count.lateness;
        }
        self.runs += other.runs;
        self.by_seed.extend(other.by_seed);
    }

    pub(super) fn summary(&self, point: &SweepPoint) -> Option<CollectiveSummary> {
        let about = point.job(self.traffic)?;
        let (outcome, plan) = (&self.outcome, &about.job.plan);
        let all_bytes = || (0..plan.transfers()).map(|id| plan.transfer(id).bytes).sum();
        let size = about.shape.map_or_else(all_bytes, |shape| shape.size);
        let mean = outcome.times.mean();
        let seconds = mean.map(Span::as_secs).filter(|seconds| *seconds > 0.0);
        let algbw = seconds.map(|seconds| size as f64 / seconds / 1e9);
        let factor = about.shape.map_or(1.0, |shape| shape.pattern.bus_factor(shape.ranks));
        let without = if outcome.without_loss.is_empty() { &outcome.times } else { &outcome.without_loss };
        Some(CollectiveSummary {
            name: about.name.to_owned(),
            pattern: about.shape.map_or_else(|| about.graph.to_owned(), |shape| shape.pattern.to_string()),
            algorithm: about.shape.map(|shape| shape.algorithm.to_string()),
            ranks: plan.ranks(),
            channels: about.shape.map_or(1, |shape| shape.channels),
            pieces: about.shape.map_or(1, |shape| shape.pieces),
            size,
            iterations: u64::from(about.job.iterations) * self.runs,
            simulated_iterations: outcome.simulated,
            complete: outcome.complete,
            failed: outcome.failed.map(|failed| failure(point, &about, &self.hosts, &failed)),
            time_us: IterationTimes::of(&outcome.times),
            bound_us: outcome.bound.as_us(),
            without_loss_us: without.mean().map(Span::as_us),
            lateness_us: LatenessTimes::of(&outcome.lateness),
            late: outcome.late,
            late_share: share(outcome.late, outcome.complete),
            algbw_gbytes: algbw,
            busbw_gbytes: algbw.map(|algbw| algbw * factor),
            losses: outcome.losses,
            timeouts: outcome.timeouts,
            parts_us: PartsSummary::of(&outcome.parts, outcome.complete),
            blamed: blamed(point, outcome),
            by_seed: self.by_seed.clone(),
        })
    }
}

/// Transfers of complete iterations, counted as flows.
pub(super) fn transfers_of(point: &SweepPoint, result: &JobResult) -> FlowCounts {
    let Some(about) = point.job(usize::from(result.traffic)) else { return FlowCounts::default() };
    let (plan, iterations) = (&about.job.plan, result.outcome.complete);
    let bytes: u64 = (0..plan.transfers()).map(|id| plan.transfer(id).bytes).sum();
    let transfers = u64::from(plan.transfers()) * iterations;
    FlowCounts { flows: transfers, complete: transfers, failed: 0, received: bytes * iterations }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// Time that one in this many exceeds, if any does in expectation.
fn beyond<const N: usize>(times: &RunLengths, of: [u64; N]) -> [Option<f64>; N] {
    let n = times.len();
    let shares = of.map(|of| if n == 0 { 0.0 } else { (n - n / of) as f64 / n as f64 });
    let quantiles = times.quantiles(shares).map(|(values, _)| values);
    let mut found = [None; N];
    for (at, found) in found.iter_mut().enumerate() {
        *found = quantiles.filter(|_| n / of[at] > 0).map(|values| values[at].as_us());
    }
    found
}

fn longest(times: &RunLengths) -> Option<f64> {
    times.iter().map(|(time, _)| time).max().map(Span::as_us)
}

impl IterationTimes {
    pub fn of(times: &RunLengths) -> Self {
        let [p50, p99, p999, p9999] = beyond(times, [2, 100, 1_000, 10_000]);
        let mean = times.mean().map(Span::as_us);
        Self { mean, p50, p99, p999, p9999, max: longest(times) }
    }
}

impl LatenessTimes {
    fn of(times: &RunLengths) -> Self {
        let [p50, p99, p999] = beyond(times, [2, 100, 1_000]);
        Self { mean: times.mean().map(Span::as_us), p50, p99, p999, max: longest(times) }
    }
}

impl PartsSummary {
    fn of(parts: &PathParts, iterations: u64) -> Self {
        let mean = |part: Span| part.as_us() / iterations.max(1) as f64;
        let PathParts { wire, queue, recovery, waiting, compute } = *parts;
        let [wire, queue, recovery, waiting, compute] = [wire, queue, recovery, waiting, compute].map(mean);
        Self { wire, queue, recovery, waiting, compute }
    }
}

/// Name of a link by its ends.
fn link_name(point: &SweepPoint, link: u32) -> String {
    let link = point.topology().link(TopologyLinkId(link));
    [link.a, link.b].map(|end| point.topology().name(end)).join("-")
}

fn blamed(point: &SweepPoint, outcome: &JobOutcome) -> Vec<BlamedLink> {
    let mut found: Vec<(&(Option<u32>, DelayCause), &BlameCount)> = outcome.blamed.iter().collect();
    found.sort_by_key(|(key, count)| (u64::MAX - count.iterations, **key));
    let one = |(&(link, cause), count): (&(Option<u32>, DelayCause), &BlameCount)| BlamedLink {
        link: link.map(|link| link_name(point, link)),
        iterations: count.iterations,
        share: count.iterations as f64 / outcome.late.max(1) as f64,
        lateness_us: count.lateness.as_us() / count.iterations.max(1) as f64,
        cause: cause.to_string(),
    };
    found.into_iter().map(one).collect()
}

fn failure(point: &SweepPoint, about: &JobDescription<'_>, hosts: &[NodeId], failed: &JobFailure) -> FailureSummary {
    let JobFailure { iteration, at, transfer, link, cause } = *failed;
    let [src, dst] = ends(point, &about.job.plan, hosts, transfer);
    let of_plan = about.job.plan.transfer(transfer);
    let name = match about.job.plan.name(transfer) {
        Some(name) => format!("{name}, {src} to {dst}"),
        None => format!("{src} to {dst}, step {}, channel {}", of_plan.step, of_plan.lane),
    };
    FailureSummary {
        iteration,
        at_us: at.since(Time::ZERO).as_us(),
        transfer: name,
        link: link.map(|link| link_name(point, link)),
        cause: cause.to_string(),
    }
}

fn ends<'a>(point: &'a SweepPoint, plan: &TransferPlan, hosts: &[NodeId], transfer: u32) -> [&'a str; 2] {
    let transfer = plan.transfer(transfer);
    let host = |rank: u32| hosts.get(rank as usize).map_or("", |host| point.topology().name(*host));
    [host(transfer.src), host(transfer.dst)]
}

/// A row of a job.
pub(super) type JobRow<'a, R> = (&'a JobResult, R);

/// Rows of all jobs of a run.
pub(super) fn iterations(jobs: &[JobResult]) -> Vec<JobRow<'_, IterationRow>> {
    jobs.iter().flat_map(|job| job.outcome.rows.iter().map(move |row| (job, *row))).collect()
}

pub(super) fn transfers(jobs: &[JobResult]) -> Vec<JobRow<'_, TransferRow>> {
    jobs.iter().flat_map(|job| job.outcome.transfers.iter().map(move |row| (job, *row))).collect()
}

fn job_name(point: &SweepPoint, job: &JobResult) -> String {
    point.traffic_names().nth(usize::from(job.traffic)).unwrap_or_default().to_owned()
}

/// Ends, step and channel of a transfer, or nothing.
fn place(point: &SweepPoint, job: &JobResult, transfer: Option<u32>) -> [String; 4] {
    let about = point.job(usize::from(job.traffic));
    let Some((about, transfer)) = about.zip(transfer) else { return Default::default() };
    let [src, dst] = ends(point, &about.job.plan, &job.hosts, transfer);
    let of_plan = about.job.plan.transfer(transfer);
    [src.to_owned(), dst.to_owned(), of_plan.step.to_string(), of_plan.lane.to_string()]
}

/// Columns of `iterations.csv` and `iterations.parquet`.
pub(super) fn iteration_columns(point: &SweepPoint) -> Vec<Column<'_, JobRow<'_, IterationRow>>> {
    type Iterations<'a> = Column<'a, JobRow<'a, IterationRow>>;
    let accused = |row: &JobRow<'_, IterationRow>| row.1.accused;
    let cell = move |row: &JobRow<'_, IterationRow>, at: usize| {
        let [src, dst, step, channel] = place(point, row.0, accused(row).map(|accused| accused.transfer));
        [src, dst, step, channel].into_iter().nth(at).unwrap_or_default()
    };
    let us = |span: Span| Some(span.as_us());
    vec![
        Iterations::text("job", move |row| job_name(point, row.0)),
        Iterations::whole("iteration", |row| row.1.iteration.into()),
        Iterations::optional("start_us", move |row| us(row.1.start.since(Time::ZERO))),
        Iterations::optional("time_us", move |row| us(row.1.time)),
        Iterations::optional("lateness_us", move |row| us(row.1.lateness)),
        Iterations::flag("late", |row| row.1.late),
        Iterations::text("link", move |row| {
            let link = accused(row).and_then(|Accusation { link, .. }| link);
            link.map(|link| link_name(point, link)).unwrap_or_default()
        }),
        Iterations::text("cause", move |row| accused(row).map(|accused| accused.cause.to_string()).unwrap_or_default()),
        Iterations::text("src", move |row| cell(row, 0)),
        Iterations::text("dst", move |row| cell(row, 1)),
        Iterations::text("step", move |row| cell(row, 2)),
        Iterations::text("channel", move |row| cell(row, 3)),
        Iterations::whole("losses", |row| row.1.losses.into()),
        Iterations::whole("timeouts", |row| row.1.timeouts.into()),
        Iterations::optional("wire_us", move |row| us(row.1.parts.wire)),
        Iterations::optional("queue_us", move |row| us(row.1.parts.queue)),
        Iterations::optional("recovery_us", move |row| us(row.1.parts.recovery)),
        Iterations::optional("waiting_us", move |row| us(row.1.parts.waiting)),
        Iterations::optional("compute_us", move |row| us(row.1.parts.compute)),
    ]
}

/// Columns of `transfers.csv` and `transfers.parquet`.
pub(super) fn transfer_columns(point: &SweepPoint) -> Vec<Column<'_, JobRow<'_, TransferRow>>> {
    type Transfers<'a> = Column<'a, JobRow<'a, TransferRow>>;
    let cell = move |row: &JobRow<'_, TransferRow>, at: usize| {
        place(point, row.0, Some(row.1.transfer)).into_iter().nth(at).unwrap_or_default()
    };
    let plan = move |row: &JobRow<'_, TransferRow>| point.job(usize::from(row.0.traffic)).map(|about| &about.job.plan);
    vec![
        Transfers::text("job", move |row| job_name(point, row.0)),
        Transfers::whole("iteration", |row| row.1.iteration.into()),
        Transfers::text("id", move |row| {
            let name = plan(row).and_then(|plan| plan.name(row.1.transfer));
            name.map_or_else(|| row.1.transfer.to_string(), str::to_owned)
        }),
        Transfers::text("src", move |row| cell(row, 0)),
        Transfers::text("dst", move |row| cell(row, 1)),
        Transfers::text("step", move |row| cell(row, 2)),
        Transfers::text("channel", move |row| cell(row, 3)),
        Transfers::whole("bytes", move |row| plan(row).map_or(0, |plan| plan.transfer(row.1.transfer).bytes)),
        Transfers::optional("released_us", |row| Some(row.1.released.since(Time::ZERO).as_us())),
        Transfers::optional("arrived_us", |row| Some(row.1.arrived.since(Time::ZERO).as_us())),
        Transfers::whole("losses", |row| row.1.losses.into()),
        Transfers::whole("timeouts", |row| row.1.timeouts.into()),
    ]
}

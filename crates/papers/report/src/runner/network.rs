//! Claims about networks: a scenario, the runs to make of it, and measures of them.
//!
//! The claim's file names a scenario file beside it (which `hitless sim run` takes as well), a list of runs, each with what
//! it sets differently, and points: a measure of one run, or of one run over another. How much stands behind a value
//! depends on the scale.

mod charts;
mod measures;
mod racks;
mod statistics;
mod totals;

use scenario::{Scenario, SweepPoint as ScenarioPoint};

pub use measures::MEASURES;
pub use racks::RackTotals;
pub use totals::{MeasureBasis, NetworkRun, RunCounts, SampledMoment, SizedFlow, Traffic};

use super::Effort;
use crate::claim::{ChartKind, Claim, ClaimError, ClaimPoint, ClaimResult, MeasuredValue, RunScale, RunSpec, number};
use parallel::Stopwatch;

/// A claim with the runs made for it.
#[derive(Debug)]
struct NetworkRuns<'a> {
    claim: &'a Claim,
    /// Runs by name, in the order of the claim; unfinished runs are missing.
    runs: Vec<(String, NetworkRun)>,
    /// Seconds that the runs took, one after the other.
    seconds: f64,
}

/// One simulation.
struct NetworkTask {
    claim: usize,
    run: usize,
    point: ScenarioPoint,
    seed: u64,
}

/// Fails if a run of the claim cannot be made or a measure cannot be taken.
pub fn check(claim: &Claim) -> Result<(), ClaimError> {
    claim.point.iter().try_for_each(|point| check_point(claim, point))?;
    let charted = claim.chart.iter().flat_map(|chart| chart.runs.iter().chain(&chart.base));
    if let Some(run) = charted.into_iter().find(|run| !has_run(claim, run)) {
        return Err(claim.error(format_args!("no run is called {run}")));
    }
    if let Some(chart) = claim.chart.iter().find(|chart| chart.kind == ChartKind::Points && chart.base.is_none()) {
        return Err(claim.error(format_args!("chart {}: expected base, the name of a run", chart.title)));
    }
    for measure in claim.chart.iter().map(|chart| chart.measure.as_str()).filter(|measure| !measure.is_empty()) {
        let _taker = measures::parse(measure).map_err(|error| claim.error(error))?;
    }
    for scale in [RunScale::Quick, RunScale::Full] {
        if claim.amount(scale).seeds == 0 {
            return Err(claim.error(format_args!("expected {scale}.seeds, at least one")));
        }
    }
    Ok(())
}

fn has_run(claim: &Claim, run: &str) -> bool {
    claim.run.iter().any(|spec| spec.name == run)
}

fn check_point(claim: &Claim, point: &ClaimPoint) -> Result<(), ClaimError> {
    if point.of.is_none() {
        return Err(claim.error_at(point, "of", "expected of, the name of a run"));
    }
    for (key, run) in [("of", &point.of), ("minus", &point.minus), ("over", &point.over)] {
        if let Some(run) = run.as_ref().filter(|run| !has_run(claim, run)) {
            return Err(claim.error_at(point, key, format_args!("no run is called {run}")));
        }
    }
    for (key, measure) in [("measure", Some(claim.measure(point))), ("over_measure", point.over_measure.as_deref())] {
        let taker = measure.map(measures::parse).transpose();
        let _taker = taker.map_err(|error| claim.error_at(point, key, error))?;
    }
    Ok(())
}

/// Scenario point that a run of a claim simulates, with any seed.
pub fn point(claim: &Claim, run: &RunSpec, scale: RunScale) -> Result<ScenarioPoint, ClaimError> {
    let sets = [claim.amount(scale).set.as_slice(), run.set.as_slice()].concat();
    let scenario = Scenario::parse(&claim.scenario, claim.scenario_text, &sets).map_err(ClaimError::new)?;
    match <[ScenarioPoint; 1]>::try_from(scenario.points) {
        Ok([point]) => Ok(point),
        Err(_) => Err(ClaimError::new(format_args!("{}: {} is a sweep", claim.id, run.name))),
    }
}

/// Everything to simulate for a claim, in order.
fn tasks(claim: &Claim, at: usize, scale: RunScale, seed: u64) -> Result<Vec<NetworkTask>, ClaimError> {
    let mut tasks = Vec::new();
    for (run, spec) in claim.run.iter().enumerate() {
        let point = point(claim, spec, scale)?;
        let task = |n| NetworkTask { claim: at, run, point: point.clone(), seed: seed.wrapping_mul(1_000) + n };
        tasks.extend((0..claim.amount(scale).seeds).map(task));
    }
    Ok(tasks)
}

/// Makes all runs of some claims. The result is the same for any number of jobs. Points that need a run that was
/// stopped early are unmeasured.
pub fn run(claims: &[Claim], effort: &Effort<'_>) -> Result<Vec<ClaimResult>, ClaimError> {
    made(claims, effort)?.iter().map(NetworkRuns::judge).collect()
}

fn made<'a>(claims: &'a [Claim], effort: &Effort<'_>) -> Result<Vec<NetworkRuns<'a>>, ClaimError> {
    let Effort { scale, jobs, seed, progress } = *effort;
    let mut all_tasks = Vec::new();
    for (at, claim) in claims.iter().enumerate() {
        all_tasks.extend(tasks(claim, at, scale, seed)?);
    }
    progress.expect_parts(all_tasks.len());
    let results = parallel::map(&all_tasks, jobs, |task| {
        let begun = Stopwatch::start();
        let setup = task.point.setup(task.seed);
        let basis = MeasureBasis::of(&setup, task.point.watched());
        let outcome = sim::net::run(setup, progress);
        progress.part_done();
        outcome.map(|outcome| (NetworkRun::new(&outcome, &basis), begun.seconds()))
    });
    let mut made: Vec<NetworkRuns<'_>> =
        claims.iter().map(|claim| NetworkRuns { claim, runs: Vec::new(), seconds: 0.0 }).collect();
    for (task, result) in all_tasks.iter().zip(results) {
        let (run, seconds) = result.map_err(ClaimError::new)?;
        made[task.claim].add(task.run, run, seconds);
    }
    made.iter_mut().flat_map(|runs| &mut runs.runs).for_each(|(_, run)| run.sort());
    Ok(made)
}

impl NetworkRuns<'_> {
    fn add(&mut self, run: usize, outcome: NetworkRun, seconds: f64) {
        self.seconds += seconds;
        if outcome.interrupted {
            return;
        }
        let name = &self.claim.run[run].name;
        match self.runs.last_mut() {
            Some((last, pooled)) if last == name => pooled.pool(outcome),
            _ => self.runs.push((name.clone(), outcome)),
        }
    }

    fn run(&self, name: &str) -> Option<&NetworkRun> {
        self.runs.iter().find(|(run, _)| run == name).map(|(_, run)| run)
    }

    /// `None` if the run was not finished, or has too little of what the measure takes.
    fn take(&self, run: &str, measure: &str) -> Result<Option<MeasuredValue>, ClaimError> {
        let take = measures::parse(measure)?;
        Ok(self.run(run).and_then(take))
    }

    fn judge(&self) -> Result<ClaimResult, ClaimError> {
        let value = |point| Ok((point, self.value(point)?));
        let values = self.claim.point.iter().map(value).collect::<Result<Vec<_>, ClaimError>>()?;
        Ok(ClaimResult { charts: self.charts(), ..ClaimResult::judge(self.claim, &values, self.seconds) })
    }

    fn value(&self, point: &ClaimPoint) -> Result<Option<MeasuredValue>, ClaimError> {
        let (of, measure) = (point.of.as_deref().unwrap_or_default(), self.claim.measure(point));
        let Some(mut measured) = self.take(of, measure)? else { return Ok(None) };
        if let Some(run) = &point.minus {
            let Some(minus) = self.take(run, measure)? else { return Ok(None) };
            measured = difference(&measured, &minus);
        }
        if point.over.is_none() && point.over_measure.is_none() {
            return Ok(Some(measured));
        }
        let over = self.take(point.over.as_deref().unwrap_or(of), point.over_measure.as_deref().unwrap_or(measure))?;
        Ok(over.and_then(|over| ratio(&measured, &over)))
    }
}

fn difference(of: &MeasuredValue, minus: &MeasuredValue) -> MeasuredValue {
    of.minus(minus).with_note(format!("{} minus {}", number(of.value), number(minus.value)))
}

/// `None` over nothing.
fn ratio(of: &MeasuredValue, over: &MeasuredValue) -> Option<MeasuredValue> {
    of.over(over).map(|ratio| ratio.with_note(format!("{} over {}", number(of.value), number(over.value))))
}

#[cfg(test)]
mod tests;

//! Claims about one link: LinkGuardian's (SIGCOMM'23 §4.1, §4.6, App. B.1).
//!
//! The figures of §4.1 and §4.6 come from the same stress test: full-size frames at line rate over a link
//! with a given loss. So do ours: each pair of rate, loss and mode is simulated once, on the `tofino`
//! profile, and every claim takes its value from those runs.

mod chart;
#[cfg(test)]
mod example;

use faults::{FaultSchedule, LossModel};
use guard::copies_for;
use sim::link::{HardwareProfile, LevelBytes, LinkOutcome, LinkSimConfig, LinkSimMode, OfferedLoad};
use units::{Prob, Rate};
use wire::ethernet::on_wire;

use super::Effort;
use crate::claim::measure::{Measure, find};
use crate::claim::{Claim, ClaimError, ClaimPoint, ClaimResult, MeasuredValue, RunScale};
use ::chart::Chart;
use parallel::Stopwatch;

/// Input of a point's measure: a loss, and the outcome of the run with it if the point asks for one.
pub(super) struct LinkRun<'a> {
    loss: Prob,
    rate: Option<Rate>,
    outcome: Option<&'a LinkOutcome>,
}

type LinkTake = fn(&LinkRun<'_>) -> Option<MeasuredValue>;

/// Size of the frames that all runs send.
const FULL_FRAME: u32 = 1_518;

/// The target of LinkGuardian's Eq. 2.
const TARGET: Prob = Prob::literal(1e-8);

pub(super) const MEASURES: &[Measure<LinkTake>] = &[
    Measure::new("copies", "1", "copies of a retransmission by Eq. 2; needs no run", |run| {
        copies_for(run.loss, TARGET).map(|(copies, _)| MeasuredValue::exact(f64::from(copies), 1))
    }),
    Measure::new("expected_loss", "1", "loss left with that number of copies; needs no run", |run| {
        copies_for(run.loss, TARGET).map(|(_, effective)| MeasuredValue::exact(effective.get(), 1))
    }),
    Measure::new("effective_loss", "1", "share of frames that never arrive", |run| {
        run.outcome.map(|outcome| share(outcome.frames_lost, outcome.frames_offered))
    }),
    Measure::new("effective_speed", "1", "share of the link's speed that is left for frames", |run| {
        Some(MeasuredValue::exact(run.outcome?.effective_speed?, run.outcome?.frames_offered))
    }),
    Measure::new(
        "carried_speed",
        "1",
        "share of the link's speed that delivered frames fill, where not all is offered",
        |run| carried(run.rate?, run.outcome?),
    ),
    Measure::new("overhead", "1", "share of the link's speed that is lost", |run| {
        Some(MeasuredValue::exact(1.0 - run.outcome?.effective_speed?, run.outcome?.frames_offered))
    }),
    Measure::new("timeouts", "1", "share of losses given up", |run| {
        run.outcome.map(|outcome| share(outcome.given_up, outcome.receiver.rx_missing_seq))
    }),
    Measure::new("tx_buffer_bytes", "B", "highest level of the send buffer", |run| {
        run.outcome.map(|outcome| level(outcome.tx_buffer_bytes, outcome))
    }),
    Measure::new("rx_buffer_bytes", "B", "highest level of the reorder buffer", |run| {
        run.outcome.map(|outcome| level(outcome.rx_buffer_bytes, outcome))
    }),
    Measure::new("tx_buffer_bytes.min", "B", "lowest level of the send buffer", |run| at(run, TX, |level| level.min)),
    Measure::new("tx_buffer_bytes.p25", "B", "its 25th percentile", |run| at(run, TX, |level| level.p25)),
    Measure::new("tx_buffer_bytes.p50", "B", "its median", |run| at(run, TX, |level| level.p50)),
    Measure::new("tx_buffer_bytes.p75", "B", "its 75th percentile", |run| at(run, TX, |level| level.p75)),
    Measure::new("rx_buffer_bytes.min", "B", "lowest level of the reorder buffer", |run| {
        at(run, RX, |level| level.min)
    }),
    Measure::new("rx_buffer_bytes.p25", "B", "its 25th percentile", |run| at(run, RX, |level| level.p25)),
    Measure::new("rx_buffer_bytes.p50", "B", "its median", |run| at(run, RX, |level| level.p50)),
    Measure::new("rx_buffer_bytes.p75", "B", "its 75th percentile", |run| at(run, RX, |level| level.p75)),
    Measure::new("recovery_us", "µs", "longest recovery", |run| {
        Some(MeasuredValue::exact(run.outcome?.recovery_delay_us?.max, run.outcome?.recovered))
    }),
];

pub(super) fn check(claim: &Claim) -> Result<(), ClaimError> {
    for point in &claim.point {
        let at = |key: &'static str| move |error: ClaimError| claim.error_at(point, key, error);
        let take = find(MEASURES, claim.measure(point)).map_err(at("measure"))?.take;
        let without_run = take(&LinkRun { loss: loss(point).map_err(at("loss"))?, rate: None, outcome: None });
        let _over = PointSetup::over(point).map_err(at("over"))?;
        if PointSetup::of(point).map_err(at("mode"))?.is_none() && without_run.is_none() {
            return Err(claim.error_at(point, "measure", "expected rate and mode"));
        }
    }
    Ok(())
}

/// Claims share their runs, and with them the time that those took. Points whose run was stopped early are missing.
pub(super) fn run(claims: &[Claim], effort: &Effort<'_>) -> Result<Vec<ClaimResult>, ClaimError> {
    let begun = Stopwatch::start();
    let mut outcomes = Vec::new();
    simulate(claims, effort, &mut outcomes)?;
    let mut results = Vec::new();
    for claim in claims {
        results.extend(judge(claim, &outcomes)?);
    }
    let each = begun.seconds() / results.len().max(1) as f64;
    results.iter_mut().for_each(|result| result.seconds = each);
    Ok(results)
}

/// Runs the claims one after the other; the first that needs a run is charged with its time.
pub(super) fn run_each(
    claims: &[Claim],
    effort: &Effort<'_>,
    done: &mut dyn FnMut(ClaimResult) -> Result<(), ClaimError>,
) -> Result<(), ClaimError> {
    let mut outcomes = Vec::new();
    for claim in claims {
        let begun = Stopwatch::start();
        simulate(std::slice::from_ref(claim), effort, &mut outcomes)?;
        if let Some(result) = judge(claim, &outcomes)? {
            done(ClaimResult { seconds: begun.seconds(), ..result })?;
        }
    }
    Ok(())
}

/// `None` if no point could be measured.
fn judge(claim: &Claim, outcomes: &[(PointSetup, LinkOutcome)]) -> Result<Option<ClaimResult>, ClaimError> {
    let mut values = Vec::new();
    for point in &claim.point {
        let made = |setup: Option<PointSetup>| {
            let setup = setup?;
            outcomes.iter().find(|(made, _)| *made == setup).map(|(_, outcome)| outcome)
        };
        let (setup, other) = (PointSetup::of(point)?, PointSetup::over(point)?);
        let (outcome, over) = (made(setup), made(other));
        if outcome.into_iter().chain(over).any(|outcome| outcome.interrupted) {
            continue;
        }
        let take = find(MEASURES, claim.measure(point))?.take;
        let rate = setup.map(|setup| setup.rate);
        let value = take(&LinkRun { loss: loss(point)?, rate, outcome });
        let value = match other {
            Some(other) => value
                .zip(take(&LinkRun { loss: other.loss, rate, outcome: over }))
                .and_then(|(of, over)| of.over(&over)),
            None => value,
        };
        values.push((point, value));
    }
    let mut result = ClaimResult::judge(claim, &values, 0.0);
    result.charts = vec![Chart::Bars(chart::bars(claim, &result.points))];
    Ok((!values.is_empty()).then_some(result))
}

/// Each setup that the points ask for and that is not there yet, run once.
fn simulate(
    claims: &[Claim],
    effort: &Effort<'_>,
    outcomes: &mut Vec<(PointSetup, LinkOutcome)>,
) -> Result<(), ClaimError> {
    let Effort { scale, jobs, seed, progress } = *effort;
    let mut setups: Vec<PointSetup> = Vec::new();
    for point in claims.iter().flat_map(|claim| &claim.point) {
        for setup in [PointSetup::of(point)?, PointSetup::over(point)?].into_iter().flatten() {
            if !setups.contains(&setup) && !outcomes.iter().any(|(made, _)| *made == setup) {
                setups.push(setup);
            }
        }
    }
    progress.expect_parts(setups.len());
    let simulated = parallel::map(&setups, jobs, |setup| {
        let outcome = sim::link::run(&setup.config(scale, seed), progress);
        progress.part_done();
        outcome.map(|outcome| (*setup, outcome))
    });
    outcomes.extend(simulated.into_iter().collect::<Result<Vec<_>, _>>().map_err(ClaimError::new)?);
    Ok(())
}

/// Simulation that a point asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PointSetup {
    rate: Rate,
    loss: Prob,
    mode: LinkSimMode,
    load: OfferedLoad,
}

impl PointSetup {
    /// `None` if the point needs no run.
    fn of(point: &ClaimPoint) -> Result<Option<Self>, ClaimError> {
        let (Some(rate), Some(mode)) = (&point.rate, &point.mode) else { return Ok(None) };
        let unknown = || ClaimError::new(format_args!("mode {mode}: expected ordered or nonblocking"));
        let known = [LinkSimMode::Ordered, LinkSimMode::NonBlocking];
        let mode = known.into_iter().find(|known| known.name() == mode).ok_or_else(unknown)?;
        let rate = rate.parse().map_err(|error| ClaimError::new(format_args!("rate: {error}")))?;
        let load = point.load.map_or(OfferedLoad::Saturated, OfferedLoad::Periodic);
        Ok(Some(Self { rate, loss: loss(point)?, mode, load }))
    }

    /// Simulation that a point is divided by: the same with another mode or another loss.
    fn over(point: &ClaimPoint) -> Result<Option<Self>, ClaimError> {
        if point.over.is_none() && point.over_loss.is_none() {
            return Ok(None);
        }
        let mode = point.over.clone().or_else(|| point.mode.clone());
        let loss = point.over_loss.clone().or_else(|| point.loss.clone());
        let mut other = point.clone();
        (other.mode, other.loss) = (mode, loss);
        Self::of(&other)
    }

    fn config(&self, scale: RunScale, seed: u64) -> LinkSimConfig {
        LinkSimConfig {
            rate: self.rate,
            profile: HardwareProfile::Tofino,
            mode: self.mode,
            forward: FaultSchedule::always(LossModel::PerFrame(self.loss)),
            frames: self.frames(scale),
            load: self.load,
            seed,
            ..LinkSimConfig::default()
        }
    }

    /// Quick: 200,000 losses each. Full: 30 expected to be lost permanently. A link that is not always busy is simulated
    /// frame by frame.
    fn frames(&self, scale: RunScale) -> u64 {
        if self.load != OfferedLoad::Saturated {
            return 10_000_000;
        }
        let loss = self.loss.get();
        if loss == 0.0 {
            return 1_000_000;
        }
        let effective = copies_for(self.loss, TARGET).map_or(loss, |(_, effective)| effective.get());
        match scale {
            RunScale::Quick => (2e5 / loss) as u64,
            RunScale::Full => (30.0 / effective) as u64,
        }
    }
}

fn loss(point: &ClaimPoint) -> Result<Prob, ClaimError> {
    let wrong = |error: &dyn std::fmt::Display| ClaimError::new(format_args!("loss: {error}"));
    let loss = point.loss.as_ref().ok_or_else(|| wrong(&"expected one"))?;
    loss.parse().map_err(|error| wrong(&error))
}

fn share(count: u64, of: u64) -> MeasuredValue {
    let (low, high) = units::poisson(count);
    let of = of.max(1) as f64;
    MeasuredValue::counted(count as f64 / of, of as u64, (low / of, high / of))
}

type LevelsOf = fn(&LinkOutcome) -> LevelBytes;
const TX: LevelsOf = |outcome| outcome.tx_buffer_bytes;
const RX: LevelsOf = |outcome| outcome.rx_buffer_bytes;

fn at(run: &LinkRun<'_>, buffer: LevelsOf, take: fn(LevelBytes) -> u64) -> Option<MeasuredValue> {
    run.outcome.map(|outcome| MeasuredValue::exact(take(buffer(outcome)) as f64, outcome.frames_offered))
}

/// Share of the link's speed that delivered frames of full size fill.
fn carried(rate: Rate, outcome: &LinkOutcome) -> Option<MeasuredValue> {
    let bits = outcome.frames_delivered as f64 * f64::from(on_wire(FULL_FRAME)) * 8.0;
    let offered = outcome.simulated_seconds * rate.bits_per_second() as f64;
    (offered > 0.0).then(|| MeasuredValue::exact(bits / offered, outcome.frames_offered))
}

fn level(level: LevelBytes, outcome: &LinkOutcome) -> MeasuredValue {
    MeasuredValue::exact(level.max as f64, outcome.frames_offered)
        .with_note(format!("p50 {}, p99 {}", level.p50, level.p99))
}

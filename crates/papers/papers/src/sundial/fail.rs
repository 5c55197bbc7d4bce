//! sun.fail: ε, and who hears nothing, while things fail (§3.6.1.3, Fig. 3.19 and 3.20).

use clocksim::{ClockFailure, ClockOutcome, ClockScheme, ClockSetup, DriftModel, TimedFailure};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use units::{Span, Time};

use super::testbed::{PlannedFabric, in_its_unit, run_all};

/// Six minutes, as long as the thesis's figure.
const DURATION: Span = Span::from_ms(360_000);
const FAILURES: u32 = 50;
/// Longest silence behind a wave.
const BEHIND_A_WAVE: Span = Span::from_us(90 * 20 + 10);
const SCHEMES: [ClockScheme; 3] = [ClockScheme::Sundial, ClockScheme::Ptp, ClockScheme::PtpDtp];

/// Subset of the drawn failures that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureGroup {
    All,
    Links,
    Devices,
    Domains,
    Root,
}

const GROUPS: [(FailureGroup, &str); 4] = [
    (FailureGroup::Links, "links"),
    (FailureGroup::Devices, "devices"),
    (FailureGroup::Domains, "domains"),
    (FailureGroup::Root, "root"),
];

impl FailureGroup {
    fn has(self, what: ClockFailure) -> bool {
        let kind = match what {
            ClockFailure::Link(_) => Self::Links,
            ClockFailure::Node(_) => Self::Devices,
            ClockFailure::Domain(_) => Self::Domains,
            ClockFailure::Root => Self::Root,
        };
        self == Self::All || self == kind
    }
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let PlannedFabric { graph, plan } = PlannedFabric::testbed()?;
    let seeds = if effort.scale == RunScale::Quick { 8 } else { 40 };
    let seeds = || (0..seeds).map(|n| effort.seed.wrapping_mul(1_000) + n);
    let setup = |scheme, seed, group: FailureGroup| {
        let mut failures = TimedFailure::random(&graph, plan.root, FAILURES, DURATION, seed);
        failures.retain(|failure| group.has(failure.what));
        let usual = ClockSetup::new(&graph, &plan, DURATION);
        ClockSetup { scheme, failures, drift: DriftModel::Walk, seed, ..usual }
    };
    let root = TimedFailure { what: ClockFailure::Root, at: Time::ZERO + BEHIND_A_WAVE, until: Time::NEVER };
    let alone = setup(ClockScheme::Sundial, effort.seed, FailureGroup::Root);
    let mut setups = vec![ClockSetup { failures: vec![root], duration: Span::from_ms(200), ..alone }];
    for scheme in SCHEMES {
        setups.extend(seeds().map(|seed| setup(scheme, seed, FailureGroup::All)));
    }
    for (group, _) in GROUPS {
        setups.extend(seeds().map(|seed| setup(ClockScheme::PtpDtp, seed, group)));
    }
    let Some(outcomes) = run_all(&setups, effort)? else { return Ok(None) };
    let Some((alone, runs)) = outcomes.split_first() else { return Ok(None) };
    let runs: Vec<&[ClockOutcome]> = runs.chunks_exact(seeds().count()).collect();
    let mut computed = ComputedValues::default();
    of_sundial(runs[0], &mut computed);
    for (scheme, runs) in SCHEMES.into_iter().zip(&runs).skip(1) {
        let during = most(runs, |run| run.eps_failure_max_ns.max(run.eps_root_max_ns));
        computed.value(format!("eps.{scheme}"), in_runs(in_its_unit(scheme, during), runs));
        computed.value(format!("affected.{scheme}"), in_runs(mean(runs, |run| run.affected as f64), runs));
    }
    for ((_, name), runs) in GROUPS.iter().zip(&runs[SCHEMES.len()..]) {
        let affected = mean(runs, |run| run.affected as f64);
        computed.value(format!("affected.ptp+dtp.{name}"), in_runs(affected, runs));
    }
    computed.value("root.alone", MeasuredValue::exact(alone.impacted_ms, 1));
    let wrong: u64 = outcomes.iter().map(|outcome| outcome.wrong).sum();
    computed.value("wrong", MeasuredValue::exact(wrong as f64, outcomes.iter().map(|outcome| outcome.events).sum()));
    Ok(Some(computed))
}

fn of_sundial(runs: &[ClockOutcome], computed: &mut ComputedValues) {
    for (name, value) in [
        ("eps.max", most(runs, |run| run.eps_failure_max_ns)),
        ("recovery", most(runs, |run| run.recovery_us_max)),
        ("eps.root", most(runs, |run| run.eps_root_max_ns)),
        ("recovery.root", most(runs, |run| run.root_recovery_us)),
        ("turned.max", most(runs, |run| run.eps_turned_max_ns)),
        ("impacted.all", mean(runs, |run| run.impacted_ms)),
        ("impacted.switches", mean(runs, |run| run.impacted_switches_ms)),
        ("affected.sundial", mean(runs, |run| run.affected as f64)),
        ("silences.switches", mean(runs, |run| run.silences_switches as f64)),
    ] {
        computed.value(name, in_runs(value, runs));
    }
}

fn most(runs: &[ClockOutcome], of: impl Fn(&ClockOutcome) -> f64) -> f64 {
    runs.iter().map(of).fold(0.0, f64::max)
}

fn mean(runs: &[ClockOutcome], of: impl Fn(&ClockOutcome) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

fn in_runs(value: f64, runs: &[ClockOutcome]) -> MeasuredValue {
    MeasuredValue::exact(value, runs.len() as u64)
}

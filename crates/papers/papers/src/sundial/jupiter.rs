//! sun.jupiter: 88,064 devices, beside Marzullo's algorithm, and when their root fails (§3.6.2, Fig. 3.23).

use clocksim::{ClockFailure, ClockScheme, ClockSetup, TimedFailure};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use units::{Span, Time};

use super::testbed::{PlannedFabric, run_all};

/// Enough waves for every phase, few enough for a minute.
const DURATION: Span = Span::from_ms(2);
/// Time behind a wave at which the root fails.
const ROOT_FAILS: Span = Span::from_us(910);

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let PlannedFabric { graph, plan } = PlannedFabric::jupiter()?;
    let usual = || ClockSetup { seed: effort.seed, ..ClockSetup::new(&graph, &plan, DURATION) };
    let root = TimedFailure { what: ClockFailure::Root, at: Time::ZERO + ROOT_FAILS, until: Time::NEVER };
    let setups = [
        usual(),
        ClockSetup { scheme: ClockScheme::Marzullo, ..usual() },
        ClockSetup { failures: vec![root], ..usual() },
    ];
    let Some(outcomes) = run_all(&setups, effort)? else { return Ok(None) };
    let [normal, marzullo, failed] = outcomes.as_slice() else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for (name, value) in [
        ("normal.p50", normal.eps_p50_ns),
        ("normal.max", normal.eps_normal_max_ns),
        ("marzullo.p50", marzullo.eps_p50_ns),
        ("marzullo.max", marzullo.eps_normal_max_ns),
        ("ratio.p50", marzullo.eps_p50_ns / normal.eps_p50_ns),
        ("ratio.max", marzullo.eps_normal_max_ns / normal.eps_normal_max_ns),
        ("root.max", failed.eps_root_max_ns),
        ("wrong", outcomes.iter().map(|outcome| outcome.wrong).sum::<u64>() as f64),
    ] {
        computed.value(name, MeasuredValue::exact(value, normal.nodes as u64));
    }
    Ok(Some(computed))
}

//! sun.normal: ε while nothing fails (§3.6.1.2, Fig. 3.18).

use clocksim::{ClockScheme, ClockSetup, DriftModel};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use units::Span;

use super::testbed::{PlannedFabric, in_its_unit, run_all};

const SCHEMES: [ClockScheme; 4] = [ClockScheme::Sundial, ClockScheme::Ptp, ClockScheme::PtpDtp, ClockScheme::Huygens];
/// Ten messages of the schemes that send every two seconds.
const DURATION: Span = Span::from_ms(20_000);

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let PlannedFabric { graph, plan } = PlannedFabric::testbed()?;
    let setup = |scheme| {
        let usual = ClockSetup::new(&graph, &plan, DURATION);
        ClockSetup { scheme, drift: DriftModel::Walk, seed: effort.seed, ..usual }
    };
    let Some(outcomes) = run_all(&SCHEMES.map(setup), effort)? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for (scheme, outcome) in SCHEMES.into_iter().zip(&outcomes) {
        let value = |ns| MeasuredValue::exact(in_its_unit(scheme, ns), outcome.waves);
        computed.value(format!("{scheme}.max"), value(outcome.eps_normal_max_ns));
        computed.value(format!("{scheme}.p50"), value(outcome.eps_p50_ns));
        if let Some(direct) = outcome.by_depth.get(1) {
            computed.value(format!("{scheme}.one-hop"), MeasuredValue::exact(direct.normal_ns / 1e3, outcome.waves));
        }
    }
    let children = plan.nodes().filter(|node| plan.depth[node.index()] == Some(1)).count();
    let devices = plan.nodes().count();
    computed.value("one-hop.share", MeasuredValue::exact(children as f64 / devices as f64, devices as u64));
    let wrong: u64 = outcomes.iter().map(|outcome| outcome.wrong).sum();
    computed.value("wrong", MeasuredValue::exact(wrong as f64, outcomes.iter().map(|outcome| outcome.waves).sum()));
    Ok(Some(computed))
}

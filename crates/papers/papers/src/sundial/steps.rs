//! sun.steps: what each technique brings to a device below a link that fails (§3.6.1.4, Fig. 3.21 and 3.22).

use chart::{Axis, Chart, Line, LinesChart};
use clock::graph::{GraphLink, GraphNode};
use clock::plan::ClockPlan;
use clocksim::{ClockFailure, ClockOutcome, ClockScheme, ClockSetup, DepthBounds, TimedFailure};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use units::{Span, Time};

use super::testbed::{PlannedFabric, run_all};

const SCHEMES: [ClockScheme; 4] =
    [ClockScheme::Ptp, ClockScheme::PtpFrequent, ClockScheme::PtpFrequentSynchronous, ClockScheme::Sundial];
/// Depth of the device that the figure follows.
const DEPTH: usize = 3;
const DURATION: Span = Span::from_ms(12_000);
/// Shortly before a message of the scheme that sends every two seconds, and right behind one of those that send every 90 µs.
const FAILS: Span = Span::from_us(5_950_000 + 20);

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let PlannedFabric { graph, plan } = PlannedFabric::testbed()?;
    let what = ClockFailure::Link(link_of_device(&plan)?);
    let failure = TimedFailure { what, at: Time::ZERO + FAILS, until: Time::NEVER };
    let setup = |scheme| {
        let usual = ClockSetup::new(&graph, &plan, DURATION);
        ClockSetup { scheme, failures: vec![failure], seed: effort.seed, ..usual }
    };
    let Some(outcomes) = run_all(&SCHEMES.map(setup), effort)? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for (scheme, outcome) in SCHEMES.into_iter().zip(&outcomes) {
        let Some(device) = outcome.by_depth.get(DEPTH) else { continue };
        computed.value(format!("{scheme}.normal"), MeasuredValue::exact(device.normal_ns, outcome.waves));
        computed.value(format!("{scheme}.failure"), MeasuredValue::exact(device.failure_ns, outcome.waves));
    }
    if let Some(sundial) = outcomes.last() {
        let levels = sundial.by_depth.len().saturating_sub(1).max(1);
        let (first, last) = (sundial.by_depth.get(1), sundial.by_depth.last());
        let rise = last.zip(first).map_or(0.0, |(last, first)| last.normal_ns - first.normal_ns);
        let per_level = rise / (levels - 1).max(1) as f64;
        computed.value("level", MeasuredValue::exact(per_level, levels as u64));
        computed.charts.push(chart(sundial));
    }
    Ok(Some(computed))
}

/// Link by which a device of the figure's depth hears its parent.
fn link_of_device(plan: &ClockPlan) -> Result<GraphLink, ClaimError> {
    let is_as_deep = |node: &GraphNode| plan.depth[node.index()] == Some(DEPTH as u32);
    let uplink = plan.nodes().find(is_as_deep).and_then(|node| plan.parent[node.index()]);
    uplink.map(|uplink| uplink.link).ok_or_else(|| ClaimError::new("no device is as deep"))
}

fn chart(sundial: &ClockOutcome) -> Chart {
    let points = |ns: fn(&DepthBounds) -> f64| {
        let of_depth = |(depth, bounds)| (depth as f64, ns(bounds));
        sundial.by_depth.iter().enumerate().map(of_depth).filter(|(_, ns)| *ns > 0.0).collect::<Vec<_>>()
    };
    Chart::Lines(LinesChart {
        title: "ε by depth".into(),
        caption: "The largest ε of devices at each depth of the tree, with Sundial.".into(),
        x: Axis::linear("depth"),
        y: Axis::linear("ns"),
        lines: vec![
            Line::new("nothing fails", points(|bounds| bounds.normal_ns)),
            Line::new("a link fails", points(|bounds| bounds.failure_ns)),
        ],
    })
}

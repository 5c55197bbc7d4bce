//! fr.extra: how many more flows a network decodes than its switches alone, in the same memory (§4.5.1, Fig. 4.5).

use chart::{Axis, Chart, Line, LinesChart};
use radar::flowset::FlowsetShape;
use radar::flowset::sizing::DecoderKind;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

use super::equations;
use super::fabric::{DIFFERING, FatTreeFabric};
use super::memory::{ROWS, SUCCESS};

/// Shares that are tried, one after the other, as long as they succeed.
const MORE: [f64; 9] = [0.2, 0.266, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8];
/// Shares tried with many flows, where each try takes seconds.
const FEW: [f64; 3] = [0.266, 0.3, 0.4];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let full = effort.scale == RunScale::Full;
    let mut points = Vec::new();
    for (name, flows, runs) in [("1k", 1_000, 10), ("10k", 10_000, 2), ("100k", 100_000, 1), ("1m", 1_000_000, 1)] {
        let tried: &[f64] = if full || flows < 100_000 { &MORE } else { &FEW };
        let is_wanted = full || flows < 1_000_000;
        let most = if is_wanted { most_decoded(flows, tried, runs, effort) } else { None };
        if super::is_over(effort) {
            return Ok(None);
        }
        let switches = FatTreeFabric::new(4).switches() as u64 * runs;
        computed.values.push((name.to_owned(), most.map(|most| MeasuredValue::exact(most, switches))));
        points.extend(most.map(|most| (flows as f64, most)));
    }
    let mut determined = Vec::new();
    for (name, flows, trials) in [("1k", 1_000, 100), ("10k", 10_000, if full { 100 } else { 4 })] {
        let cells = FlowsetShape::for_flows(flows, SUCCESS, ROWS, DecoderKind::Single, 0).cells();
        let Some(more) = equations::extra_flows(flows, cells, trials, effort) else { return Ok(None) };
        determined.push((flows as f64, more.value));
        computed.value(format!("equations.{name}"), more);
    }
    computed.charts.push(chart(points, determined));
    Ok(Some(computed))
}

/// Fig. 4.5.
fn chart(points: Vec<(f64, f64)>, determined: Vec<(f64, f64)>) -> Chart {
    let thesis = |more: f64| [1e3, 1e4, 1e5, 1e6].map(|flows| (flows, more)).to_vec();
    Chart::Lines(LinesChart {
        title: "More flows in the same memory, with neighbours".into(),
        caption: "Beyond those that a switch decodes alone. The thesis's are 26.6 to 30 %.".into(),
        x: Axis::log("flows that the memory is for"),
        y: Axis::linear("more, as a share").within(0.0, 1.0),
        lines: vec![
            Line::new("counters alike at first", points),
            Line::new("equations alone", determined),
            Line::reference("thesis, least", thesis(0.266)),
            Line::reference("thesis, most", thesis(0.3)),
        ],
    })
}

/// The most of those tried with which 99 of 100 switches are known completely.
fn most_decoded(flows: u64, tried: &[f64], runs: u64, effort: &Effort<'_>) -> Option<f64> {
    let fabric = FatTreeFabric::new(4);
    let shape = FlowsetShape::for_flows(flows, SUCCESS, ROWS, DecoderKind::Single, 0);
    let succeeds = |more: &f64| {
        let each = (flows as f64 * (1.0 + more)).round() as u64;
        let complete = |run: u64| {
            let seed = effort.seed.wrapping_mul(100).wrapping_add(run);
            if super::is_over(effort) { 0 } else { fabric.complete(fabric.count(each, shape, DIFFERING, seed)) as u64 }
        };
        (0..runs).map(complete).sum::<u64>() as f64 >= SUCCESS.get() * (runs * fabric.switches() as u64) as f64
    };
    tried.iter().copied().take_while(|more| succeeds(more)).last()
}

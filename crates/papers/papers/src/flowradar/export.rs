//! fr.export: what goes to the collector, how finding flows grows with the network, and what a decoder that gets stuck still
//! decodes (§4.5.1, §4.5.2, Fig. 4.4 and 4.8).

use chart::{Axis, Chart, Line, LinesChart};
use parallel::Stopwatch;
use radar::flowset::FlowsetShape;
use radar::flowset::network::{CandidateSwitches, FlowsetNetwork};
use radar::flowset::sizing::DecoderKind;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

use super::fabric::{self, DIFFERING, FatTreeFabric};
use super::memory::SUCCESS;

const FLOWS: u64 = 100_000;
const SLOT: f64 = 10e-3;
/// Flows that a network decodes in the memory for [`FLOWS`], by the thesis.
const MOST: f64 = 1.268;
const RUNS: u64 = 3;
/// FatTrees whose flows are looked for.
const KS: [usize; 4] = [4, 8, 12, 16];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let full = effort.scale == RunScale::Full;
    let shape = FlowsetShape::for_flows(FLOWS, SUCCESS, 4, DecoderKind::Single, 0);
    let gbps = shape.switch_bytes(FLOWS) * 8.0 / SLOT / 1e9;
    computed.value("gbps.10ms", MeasuredValue::exact(gbps, 1));
    computed.value("gbps.100ms", MeasuredValue::exact(gbps / 10.0, 1));
    let written = fabric::alone(FLOWS, shape, 1).to_bytes().len() as f64;
    computed.value("as-written", MeasuredValue::exact(written * 8.0 / SLOT / 1e9, 1));
    for rows in [4, 3] {
        let trials = if full { 40_000 } else { 4_000 };
        computed.values.push((format!("stuck.{rows}"), told_when_stuck(rows, trials, effort)));
    }
    // A part of the flows shows the same in a part of the time; caches make it somewhat less.
    let part = if full { 1 } else { 20 };
    let mut lines = [Vec::new(), Vec::new()];
    for k in KS {
        for (line, with_routes) in lines.iter_mut().zip([false, true]) {
            let Some(seconds) = find_flows(k, FLOWS / part, with_routes, effort) else { return Ok(None) };
            line.push((k as f64, seconds * part as f64));
        }
    }
    let each = (FLOWS / part) as f64 * MOST;
    let note = (part > 1).then(|| format!("{part} times what it took with {each} flows in each switch"));
    let mut value = |name: &str, value| {
        computed.value(name, MeasuredValue { note: note.clone(), ..MeasuredValue::exact(value, RUNS) });
    };
    let at =
        |line: usize, k: f64| lines[line].iter().find(|(at, _)| *at == k).map_or(f64::NAN, |(_, seconds)| *seconds);
    value("k16", at(0, 16.0));
    value("k16.routes", at(1, 16.0));
    value("k16-over-k8", at(0, 16.0) / at(0, 8.0));
    value("routes-gain", at(0, 16.0) / at(1, 16.0));
    computed.charts.push(chart(lines));
    Ok(Some(computed))
}

/// The share of flows that SingleDecode decodes when it does not decode all.
fn told_when_stuck(rows: u8, trials: u64, effort: &Effort<'_>) -> Option<MeasuredValue> {
    const EACH: u64 = 10_000;
    let shape = FlowsetShape::for_flows(EACH, SUCCESS, rows, DecoderKind::Single, 0);
    let seeds: Vec<u64> =
        (0..trials).map(|trial| effort.seed.wrapping_mul(100_000).wrapping_add(trial) % (1 << 30)).collect();
    let shares = parallel::map(&seeds, effort.jobs, |seed| {
        if super::is_over(effort) {
            return None;
        }
        let decoded = fabric::alone(EACH, shape, *seed).decode();
        (decoded.left > 0).then(|| decoded.flows.len() as f64 / EACH as f64)
    });
    let shares: Vec<f64> = shares.into_iter().flatten().collect();
    let stuck = shares.len();
    let mean = shares.iter().sum::<f64>() / stuck.max(1) as f64;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / stuck.max(1) as f64;
    // Two standard deviations of a mean of this many, either way.
    let off = 2.0 * (variance / stuck.max(1) as f64).sqrt();
    let measured = MeasuredValue::counted(mean, stuck as u64, (mean - off, mean + off));
    (stuck > 1).then(|| measured.with_note(format!("{stuck} of {trials} were stuck")))
}

/// Fig. 4.8.
fn chart([neighbours, routes]: [Vec<(f64, f64)>; 2]) -> Chart {
    Chart::Lines(LinesChart {
        title: "Finding flows, by the size of the FatTree".into(),
        caption: "Each flowset on one core, with 126.8 K flows in memory for 100 K. Hollow marks are the thesis's."
            .into(),
        x: Axis::linear("k"),
        y: Axis::linear("seconds").within(0.0, 0.3),
        lines: vec![
            Line::new("all neighbours", neighbours).with_paper(vec![(16.0, 0.24)]),
            Line::new("with routes", routes).with_paper(vec![(16.0, 0.093)]),
        ],
    })
}

/// Seconds that each switch of a FatTree takes to find its flows: the best of some runs, since other programs on the
/// machine can only make it longer.
fn find_flows(k: usize, expected: u64, with_routes: bool, effort: &Effort<'_>) -> Option<f64> {
    let fabric = FatTreeFabric::new(k);
    let shape = FlowsetShape::for_flows(expected, SUCCESS, 4, DecoderKind::Single, 0);
    let flowsets = fabric.count((expected as f64 * MOST) as u64, shape, DIFFERING, effort.seed);
    let neighbours = fabric.neighbours();
    let hops = |key: &_, at| fabric.hops(key, at);
    let ways = if with_routes {
        CandidateSwitches::Routes(&neighbours, &hops)
    } else {
        CandidateSwitches::Neighbours(&neighbours)
    };
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        if super::is_over(effort) {
            return None;
        }
        let flowsets = flowsets.clone();
        let begun = Stopwatch::start();
        FlowsetNetwork::new(flowsets, ways).ok()?.find_flows();
        best = best.min(begun.seconds());
    }
    Some(best / fabric.switches() as f64)
}

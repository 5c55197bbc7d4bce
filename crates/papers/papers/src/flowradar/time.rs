//! fr.time: how long decoding takes on one core (§4.5.1, Fig. 4.6 and 4.7). The best of some runs, since other programs on the
//! machine can only make it longer.

use chart::{Axis, Chart, Line, LinesChart};
use parallel::Stopwatch;
use radar::flowset::network::{CandidateSwitches, FlowsetNetwork};
use radar::flowset::sizing::DecoderKind;
use radar::flowset::{Flowset, FlowsetShape};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

use super::equations;
use super::fabric::{self, DIFFERING, FatTreeFabric};
use super::memory::{ROWS, SUCCESS};

const EXPECTED: u64 = 100_000;
const SINGLE_RUNS: u64 = 9;

/// Milliseconds that each switch takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub flows: f64,
    pub counters: f64,
    /// Switches of which everything is known.
    pub complete: usize,
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let full = effort.scale == RunScale::Full;
    let shape = FlowsetShape::for_flows(EXPECTED, SUCCESS, ROWS, DecoderKind::Single, 0);
    let single = (0..SINGLE_RUNS).map(|seed| {
        let flowset = fabric::alone(EXPECTED, shape, seed);
        let begun = Stopwatch::start();
        std::hint::black_box(flowset.decode());
        begun.seconds() * 1e3
    });
    computed.value("single.100k", MeasuredValue::exact(single.fold(f64::MAX, f64::min), SINGLE_RUNS));
    let runs = if full { 5 } else { 1 };
    let mut points: Vec<(f64, Times)> = Vec::new();
    for (name, each, differing, k) in [
        ("101k", 101_000, DIFFERING, 8),
        ("110k", 110_000, DIFFERING, 4),
        ("118k", 118_000, DIFFERING, 4),
        ("126.8k", 126_800, DIFFERING, 8),
        ("126.8k.tenth", 126_800, 10.0 * DIFFERING, 4),
    ] {
        let fabric = FatTreeFabric::new(k);
        let flowsets = fabric.count(each, shape, differing, effort.seed);
        let mut best: Option<Times> = None;
        for _ in 0..runs {
            if super::is_over(effort) {
                return Ok(None);
            }
            let times = network(&fabric, flowsets.clone());
            let less = |best: Times| Times {
                flows: best.flows.min(times.flows),
                counters: best.counters.min(times.counters),
                ..times
            };
            best = Some(best.map_or(times, less));
        }
        let Some(Times { flows, counters, complete }) = best else { continue };
        let note = format!("{complete} of {} switches complete", fabric.switches());
        computed.value(format!("network.{name}"), MeasuredValue::exact(flows + counters, runs).with_note(note));
        computed.value(format!("flows.{name}"), MeasuredValue::exact(flows, runs));
        points.extend(best.filter(|_| differing == DIFFERING).map(|best| (each as f64, best)));
    }
    for (name, each, differing) in
        [("101k", 101_000, DIFFERING), ("126.8k", 126_800, DIFFERING), ("126.8k.all", 126_800, 1.0)]
    {
        let time = equations::milliseconds(each, shape.cells(), differing, effort.seed);
        computed.values.push((format!("equations.{name}"), time));
    }
    computed.charts.push(chart(&points));
    Ok(Some(computed))
}

/// Fig. 4.6 and 4.7.
fn chart(points: &[(f64, Times)]) -> Chart {
    let line = |of: &dyn Fn(&Times) -> f64| points.iter().map(|(flows, times)| (*flows, of(times))).collect();
    Chart::Lines(LinesChart {
        title: "What decoding takes, by the flows of a switch".into(),
        caption:
            "Each flowset on one core, in memory for 100 K flows. Under a FatTree of 8 at both ends, of 4 between \
                  them. Hollow marks are the thesis's."
                .into(),
        x: Axis::linear("flows"),
        y: Axis::log("milliseconds"),
        lines: vec![
            Line::new("both", line(&|times| times.flows + times.counters))
                .with_paper(vec![(101_000.0, 283.0), (126_800.0, 3_275.0)]),
            Line::new("flows", line(&|times| times.flows)).with_paper(vec![(126_800.0, 135.0)]),
            Line::new("counters", line(&|times| times.counters)).with_paper(vec![(126_800.0, 3_140.0)]),
        ],
    })
}

/// Decodes a network, one switch after the other.
fn network(fabric: &FatTreeFabric, flowsets: Vec<Flowset>) -> Times {
    let neighbours = fabric.neighbours();
    let switches = fabric.switches();
    let each = |seconds: f64| seconds * 1e3 / switches as f64;
    let begun = Stopwatch::start();
    let Ok(mut network) = FlowsetNetwork::new(flowsets, CandidateSwitches::Neighbours(&neighbours)) else {
        return Times { flows: f64::NAN, counters: f64::NAN, complete: 0 };
    };
    network.find_flows();
    let flows = each(begun.seconds());
    network.guess_counters();
    let complete = (0..switches).filter(|at| network.switch(*at).is_complete).count();
    Times { flows, counters: each(begun.seconds()) - flows, complete }
}

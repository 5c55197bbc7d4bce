//! hpcc.theory: convergence, fairness and queues of §2.4, held against the thesis's statements.
//!
//! The Lemma of §2.4.1 is tried on random networks, Eq. 2.7 by its own recursion on a parking lot, ΣD/D/1 by its formula and
//! by queues with random phases.

mod fairness;
mod networks;

use chart::{Axis, Chart, Line, LinesChart};
use congestion::theory::lemma::RateNetwork;
use congestion::theory::periodic::{PeriodicQueue, PeriodicSources};
use faults::Random;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

/// Streams of randomness.
const NETWORKS: u64 = 1;
const QUEUES: u64 = 2;

/// The thesis's example.
const SOURCES: u32 = 50;
const LOAD: f64 = 0.95;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let more = if effort.scale == RunScale::Full { 10 } else { 1 };
    let mut computed = ComputedValues::default();
    networks::compute(&mut computed, Random::new(effort.seed, NETWORKS), 3_000 * more);
    if !effort.progress.go_on(0) {
        return Ok(None);
    }
    counterexample(&mut computed);
    fairness::compute(&mut computed);
    queues(&mut computed, Random::new(effort.seed, QUEUES), 4_000 * more);
    Ok(Some(computed))
}

/// Rates of the counterexample to (iii), step by step.
fn counterexample(computed: &mut ComputedValues) {
    const STEPS: usize = 8;
    let (network, start) = RateNetwork::counterexample();
    let rates: Vec<Vec<f64>> =
        std::iter::successors(Some(start), |rates| Some(network.step(rates))).take(STEPS + 1).collect();
    let after = network.resources();
    computed.value("counterexample.after-2", MeasuredValue::exact(rates[after][1], after as u64));
    computed.value("counterexample.after-8", MeasuredValue::exact(rates[STEPS][1], STEPS as u64));
    let line = |name: &str, path: usize| {
        Line::new(name, rates.iter().enumerate().map(|(step, rates)| (step as f64, rates[path])).collect())
    };
    computed.charts.push(Chart::Lines(LinesChart {
        title: "A network of two resources that is not constant after two steps".into(),
        caption:
            "Capacities 1 and 2; path A uses both, path B the second. A is settled after one step, but still loads the \
                  second resource: B's rate is 2/3, 4/5, 8/9, 16/17, … and never 1."
                .into(),
        x: Axis::linear("step"),
        y: Axis::linear("rate").within(0.0, 2.0),
        lines: vec![line("path A", 0), line("path B", 1)],
    }));
}

fn queues(computed: &mut ComputedValues, mut random: Random, runs: u64) {
    let mut simulated = |load: f64| {
        let mut phases = || (0..SOURCES).map(|_| random.unit()).collect::<Vec<f64>>();
        let sum: f64 = (0..runs).map(|_| PeriodicQueue::new(&phases(), load).mean()).sum();
        MeasuredValue::exact(sum / runs as f64, runs)
    };
    let sources = PeriodicSources { sources: SOURCES, load: LOAD };
    let (at_load, full) = (simulated(LOAD), simulated(1.0));
    let values = [
        ("queue.mean", sources.mean()),
        ("queue.above-20", sources.tail(20.0)),
        ("queue.above-21", sources.tail(21.0)),
        ("queue.full", PeriodicSources::mean_at_full_load(SOURCES)),
    ];
    computed.value("queue.over-formula", MeasuredValue::exact(at_load.value / values[0].1, runs));
    computed.value("queue.mean.simulated", at_load);
    computed.value("queue.full.simulated", full);
    for (name, value) in values {
        computed.value(name, MeasuredValue::exact(value, SOURCES.into()));
    }
}

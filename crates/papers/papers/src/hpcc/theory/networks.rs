//! The Lemma of §2.4.1 on random networks.

use congestion::theory::lemma::{RateNetwork, never_falls};
use faults::Random;
use report::claim::MeasuredValue;
use report::runner::ComputedValues;

const MOST_RESOURCES: u64 = 6;
const MOST_PATHS: u64 = 8;
/// Share by which a computed rate may be off.
const EXACT: f64 = 1e-9;
/// A rate within this share of its limit is constant.
const CONSTANT: f64 = 1e-6;
/// A resource within this share of its capacity is full. Some are approached very slowly.
const FULL: f64 = 1e-3;
/// Steps that are looked at one by one.
const STEPS: usize = 50;
const MOST_STEPS: usize = 200_000;

/// Properties of one network.
struct LemmaTrial {
    feasible: bool,
    never_falls: bool,
    pareto: bool,
    /// Largest distance of a rate from its limit, as a share of the limit, after as many steps as there are resources.
    distance: f64,
    /// True if a path is not settled by then when the load of settled paths is subtracted from the capacities.
    is_open_if_subtracted: bool,
}

pub(super) fn compute(computed: &mut ComputedValues, mut random: Random, networks: u64) {
    let trials: Vec<LemmaTrial> =
        (0..networks).filter_map(|_| RandomNetwork::draw(&mut random)).map(|drawn| drawn.trial()).collect();
    let n = trials.len() as u64;
    let mut share = |name: &str, of: fn(&LemmaTrial) -> bool| {
        let count = trials.iter().filter(|trial| of(trial)).count();
        computed.value(name, MeasuredValue::exact(count as f64 / n as f64, n));
    };
    share("feasible", |trial| trial.feasible);
    share("never-falls", |trial| trial.never_falls);
    share("pareto", |trial| trial.pareto);
    share("not-constant", |trial| trial.distance > CONSTANT);
    share("not-constant.subtracted", |trial| trial.is_open_if_subtracted);
    let furthest = trials.iter().fold(0.0_f64, |most, trial| most.max(trial.distance));
    computed.value("furthest", MeasuredValue::exact(furthest, n));
}

/// Resources, paths over at least one of them each, and rates to begin with.
struct RandomNetwork {
    capacities: Vec<f64>,
    paths: Vec<Vec<usize>>,
    start: Vec<f64>,
    network: RateNetwork,
}

impl RandomNetwork {
    fn draw(random: &mut Random) -> Option<Self> {
        let resources = 1 + random.below(MOST_RESOURCES) as usize;
        let paths = 1 + random.below(MOST_PATHS);
        let capacities: Vec<f64> = (0..resources).map(|_| 0.1 + 9.9 * random.unit()).collect();
        let start = (0..paths).map(|_| 0.01 + 9.99 * random.unit()).collect();
        let paths: Vec<Vec<usize>> = (0..paths).map(|_| path(random, resources)).collect();
        let network = RateNetwork::new(capacities.clone(), paths.clone())?;
        Some(Self { capacities, paths, start, network })
    }

    fn trial(&self) -> LemmaTrial {
        let (network, start) = (&self.network, &self.start);
        let rates: Vec<Vec<f64>> =
            std::iter::successors(Some(network.step(start)), |rates| Some(network.step(rates))).take(STEPS).collect();
        let (limit, _) = network.limit(start, 1e-12, MOST_STEPS);
        let after = &rates[network.resources() - 1];
        LemmaTrial {
            feasible: rates.iter().all(|rates| network.is_feasible(rates, EXACT)),
            never_falls: rates.windows(2).all(|steps| never_falls(&steps[0], &steps[1], EXACT)),
            pareto: network.is_pareto_optimal(&limit, FULL),
            distance: after.iter().zip(&limit).fold(0.0, |most, (rate, limit)| most.max((1.0 - rate / limit).abs())),
            is_open_if_subtracted: self.is_open_if_subtracted(),
        }
    }

    /// True if a path is not settled under the assumption that the proof of (iii) takes for granted: a full resource and
    /// the paths through it leave the network, and nothing of their load remains in it.
    fn is_open_if_subtracted(&self) -> bool {
        let mut free = self.capacities.clone();
        let (mut open, mut rates) = (self.paths.clone(), self.start.clone());
        for _ in 0..free.len() {
            let Some(network) = RateNetwork::new(free.clone(), open.clone()) else { return true };
            rates = network.step(&rates);
            let loads = network.loads(&rates);
            let is_full: Vec<bool> =
                loads.iter().zip(&free).map(|(load, free)| *load >= free * (1.0 - EXACT)).collect();
            let (settled, left): (Vec<_>, Vec<_>) =
                open.into_iter().zip(rates).partition(|(path, _)| path.iter().any(|at| is_full[*at]));
            for (path, rate) in &settled {
                path.iter().filter(|at| !is_full[**at]).for_each(|at| free[*at] -= rate);
            }
            (open, rates) = left.into_iter().unzip();
            if open.is_empty() {
                return false;
            }
        }
        true
    }
}

fn path(random: &mut Random, resources: usize) -> Vec<usize> {
    let path: Vec<usize> = (0..resources).filter(|_| random.below(2) == 0).collect();
    if path.is_empty() { vec![random.below(resources as u64) as usize] } else { path }
}

//! tb.permutation: one flow from each host to another one, each on one path at random, beside the max-min rates of such
//! paths, which are computed without packets.

use faults::Random;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

use crate::files;

/// Stream of randomness.
const PATHS: u64 = 5;
/// Ports of a switch.
const K: usize = 8;
const HOSTS: usize = K * K * K / 4;
const HALF: usize = K / 2;
/// Payload of a full packet by its time on the wire.
const PAYLOAD: f64 = 1_448.0 / 1_538.0;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let (seeds, draws) = if effort.scale == RunScale::Quick { (4, 400_u32) } else { (20, 4_000) };
    let seeds: Vec<u64> = (0..seeds).map(|n| effort.seed.wrapping_mul(1_000) + n).collect();
    effort.progress.expect_parts(seeds.len());
    let runs = parallel::map(&seeds, effort.jobs, |seed| run(*seed, effort));
    let Some(runs) = runs.into_iter().collect::<Result<Option<Vec<f64>>, _>>()? else { return Ok(None) };
    let simulated = runs.iter().sum::<f64>() / runs.len() as f64;
    let mut random = Random::new(effort.seed, PATHS);
    let model = (0..draws).map(|_| mean_rate(&mut random)).sum::<f64>() / f64::from(draws);
    let mut computed = ComputedValues::default();
    computed.value("simulated", MeasuredValue::exact(simulated, (runs.len() * HOSTS) as u64));
    computed.value("max-min", MeasuredValue::exact(model, draws.into()));
    computed.value("over-max-min", MeasuredValue::exact(simulated / model, (runs.len() * HOSTS) as u64));
    Ok(Some(computed))
}

/// The mean share of its link that a host's flow gets, packet by packet; `None` if it was stopped.
fn run(seed: u64, effort: &Effort<'_>) -> Result<Option<f64>, ClaimError> {
    let setup = files::setup("textbook/permutation-network.toml", &[], seed)?;
    let outcome = sim::net::run(setup, effort.progress).map_err(ClaimError::new)?;
    effort.progress.part_done();
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.received).sum();
    let seconds = outcome.ended.since(units::Time::ZERO).as_secs();
    let share = bytes as f64 * 8.0 / seconds / (10e9 * PAYLOAD) / HOSTS as f64;
    Ok((!outcome.interrupted).then_some(share))
}

/// The mean max-min rate of a random permutation over random paths, links of capacity one.
fn mean_rate(random: &mut Random) -> f64 {
    let paths = paths(random);
    max_min(&paths).iter().sum::<f64>() / paths.len() as f64
}

/// The links that each flow takes, by number. Hosts' own links carry one flow each, so they limit it to one.
fn paths(random: &mut Random) -> Vec<Vec<usize>> {
    let mut below = |end: usize| ((random.unit() * end as f64) as usize).min(end - 1);
    let mut to: Vec<usize> = (0..HOSTS).collect();
    for host in (1..HOSTS).rev() {
        to.swap(host, below(host + 1));
    }
    let (edges, aggregates) = (HOSTS / HALF, HOSTS / HALF);
    // Four kinds of links between switches: edge up and down, core up and down.
    let link = |kind: usize, switch: usize, port: usize| (kind * edges.max(aggregates) + switch) * HALF + port;
    let path = |from: usize, to: usize, below: &mut dyn FnMut(usize) -> usize| {
        let (edge, edge_to) = (from / HALF, to / HALF);
        let (pod, pod_to) = (edge / HALF, edge_to / HALF);
        if edge == edge_to {
            return Vec::new();
        }
        let (aggregate, core) = (below(HALF), below(HALF));
        let mut links = vec![link(0, edge, aggregate), link(1, edge_to, aggregate)];
        if pod != pod_to {
            links.push(link(2, pod * HALF + aggregate, core));
            links.push(link(3, pod_to * HALF + aggregate, core));
        }
        links
    };
    to.iter().enumerate().map(|(from, to)| path(from, *to, &mut below)).collect()
}

/// Rates grow together; who shares a full link stops.
fn max_min(paths: &[Vec<usize>]) -> Vec<f64> {
    let links = paths.iter().flatten().max().map_or(0, |most| most + 1);
    let (mut left, mut rates) = (vec![1.0; links], vec![0.0; paths.len()]);
    let mut growing: Vec<usize> = (0..paths.len()).collect();
    while !growing.is_empty() {
        let mut users = vec![0_u32; links];
        growing.iter().flat_map(|flow| &paths[*flow]).for_each(|link| users[*link] += 1);
        let room = |(left, users): (&f64, &u32)| (*users > 0).then(|| left / f64::from(*users));
        let tightest = left.iter().zip(&users).filter_map(room).fold(f64::INFINITY, f64::min);
        let own = growing.iter().map(|flow| 1.0 - rates[*flow]).fold(f64::INFINITY, f64::min);
        let step = tightest.min(own);
        for flow in &growing {
            rates[*flow] += step;
            paths[*flow].iter().for_each(|link| left[*link] -= step);
        }
        growing.retain(|flow| rates[*flow] < 1.0 - 1e-9 && paths[*flow].iter().all(|link| left[*link] > 1e-9));
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_share_a_link_halve_it_and_the_rest_goes_to_others() {
        let close = |rates: &[f64], expected: &[f64]| {
            let off = rates.iter().zip(expected).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
            assert!(rates.len() == expected.len() && off < 1e-6, "{rates:?}");
        };
        close(&max_min(&[vec![0], vec![0], vec![1]]), &[0.5, 0.5, 1.0]);
        close(&max_min(&[vec![0, 1], vec![0], vec![0], vec![1]]), &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]);
        close(&max_min(&[vec![], vec![2]]), &[1.0, 1.0]);
    }

    #[test]
    fn a_path_has_two_links_in_a_pod_and_four_across() {
        let paths = paths(&mut Random::new(1, PATHS));
        assert_eq!(paths.len(), HOSTS);
        assert!(paths.iter().all(|path| [0, 2, 4].contains(&path.len())));
        assert!(paths.iter().filter(|path| path.len() == 4).count() > HOSTS * 3 / 4);
    }
}

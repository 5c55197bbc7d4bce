//! Equal ports that share unequally: is it the network's hash, or one large flow? (li-thesis §4.6.3)
//!
//! Of a group of equal ports, one with more than 1.5 times the mean of bytes is uneven. If no fair hash explains how many flows each
//! port has (χ², 1e-3), it is the *network*: unequal weights, or a hash over too few fields. If not, and the three largest flows of
//! the port make up the excess and are three times as large as others, it is the *application*. Else it is unknown, and said only if
//! the sizes of all flows, spread by chance, do not explain it (four deviations). The verdict must hold for two windows running. Below
//! five flows a path nothing is said, nor while flows of the group go round or into a blackhole.

use std::collections::BTreeMap;

use super::window::{WindowFlow, WindowRule};
use super::{AccusedFlows, RuleInput};
use crate::fabricmap::findings::{FindingEvidence, FindingKind, FindingLog};
use crate::fabricmap::ports::{EndOfLink, FabricPorts};
use crate::flowset::FlowKey;

const UNEVEN: f64 = 1.5;
const FEWEST: usize = 5;
const LARGEST: usize = 3;
/// Large flows have so many times the mean; what is not chance is so many deviations away.
const LARGE: f64 = 3.0;
const DEVIATIONS: f64 = 4.0;
/// Normal quantile of 1 − 1e-3.
const QUANTILE: f64 = 3.090_232;

#[derive(Debug)]
pub(super) struct BalanceRule {
    groups: Vec<EqualPorts>,
}

#[derive(Debug)]
struct EqualPorts {
    ends: Vec<EndOfLink>,
    /// Verdict on the window before, with the heaviest port and when that began.
    before: Option<(&'static str, usize, u64)>,
}

/// A group in one window.
struct GroupLoad {
    /// By port.
    bytes: Vec<u64>,
    /// Each flow at the first port that had it.
    flows: BTreeMap<FlowKey, (usize, WindowFlow)>,
}

impl BalanceRule {
    pub(super) fn new(fabric: &FabricPorts) -> Self {
        let group = |ends| EqualPorts { ends, before: None };
        Self { groups: fabric.equal_ports().into_iter().map(group).collect() }
    }

    pub(super) fn judge(
        &mut self,
        input: &RuleInput<'_>,
        window: &WindowRule,
        accused: &AccusedFlows,
        log: &mut FindingLog,
    ) {
        for group in &mut self.groups {
            let load = GroupLoad::of(&group.ends, window, accused);
            let verdict = load.as_ref().and_then(GroupLoad::verdict);
            let before = group.before.take();
            let Some((load, (why, heaviest))) = load.zip(verdict) else { continue };
            let since = match before {
                Some((then, at, since)) if (then, at) == (why, heaviest) => since,
                _ => {
                    group.before = Some((why, heaviest, window.since()));
                    continue;
                }
            };
            group.before = Some((why, heaviest, since));
            let mut place: Vec<String> = group.ends.iter().map(|end| input.fabric.port_name(*end)).collect();
            place.swap(0, heaviest);
            log.note(FindingEvidence {
                kind: FindingKind::Imbalance,
                place,
                why,
                is_sure: why != "unknown",
                since,
                until: input.end,
                flows: load.largest(heaviest, if why == "application" { LARGEST } else { usize::MAX }),
            });
        }
    }
}

impl GroupLoad {
    fn of(ends: &[EndOfLink], window: &WindowRule, accused: &AccusedFlows) -> Option<Self> {
        let mut load = Self { bytes: vec![0; ends.len()], flows: BTreeMap::new() };
        for (at, end) in ends.iter().enumerate() {
            for (flow, count) in window.flows(*end)? {
                // What goes round, or nowhere, is no load that a hash shares out.
                if accused.contains(flow) {
                    return None;
                }
                load.bytes[at] = load.bytes[at].saturating_add(count.bytes);
                load.flows.entry(*flow).or_insert((at, *count));
            }
        }
        Some(load)
    }

    /// Reason why ports share unequally, and the port that has most; `None` if they do not.
    fn verdict(&self) -> Option<(&'static str, usize)> {
        let ports = self.bytes.len();
        if self.flows.len() < FEWEST * ports {
            return None;
        }
        let mean = self.bytes.iter().map(|bytes| *bytes as f64).sum::<f64>() / ports as f64;
        let (heaviest, most) =
            self.bytes.iter().enumerate().max_by_key(|(at, bytes)| (**bytes, std::cmp::Reverse(*at)))?;
        if *most as f64 <= UNEVEN * mean {
            return None;
        }
        let mut flows = vec![0_u64; ports];
        self.flows.values().for_each(|(at, _)| flows[*at] += 1);
        let expected = self.flows.len() as f64 / ports as f64;
        let distance: f64 = flows.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
        if distance > chi_squared_limit(ports - 1) {
            return Some(("network", heaviest));
        }
        let excess = *most as f64 - mean;
        let largest: Vec<f64> = self.at(heaviest).take(LARGEST).map(|(_, count)| count.bytes as f64).collect();
        let sum: f64 = largest.iter().sum();
        let mean_flow = mean * ports as f64 / self.flows.len() as f64;
        if sum >= excess && sum >= LARGE * mean_flow * largest.len() as f64 {
            return Some(("application", heaviest));
        }
        // Variance of a port's bytes under a fair hash: each flow is there with probability 1 of so many.
        let share = 1.0 / ports as f64;
        let squares: f64 = self.flows.values().map(|(_, count)| (count.bytes as f64).powi(2)).sum();
        (excess > DEVIATIONS * (squares * share * (1.0 - share)).sqrt()).then_some(("unknown", heaviest))
    }

    /// Flows of a port, the largest first.
    fn at(&self, port: usize) -> impl Iterator<Item = (FlowKey, WindowFlow)> {
        let here = self.flows.iter().filter(|(_, (at, _))| *at == port).map(|(flow, (_, count))| (*flow, *count));
        let mut here: Vec<(FlowKey, WindowFlow)> = here.collect();
        here.sort_by_key(|(flow, count)| (std::cmp::Reverse(count.bytes), *flow));
        here.into_iter()
    }

    fn largest(&self, port: usize, most: usize) -> Vec<(FlowKey, u64)> {
        self.at(port).take(most).map(|(flow, count)| (flow, count.packets)).collect()
    }
}

/// Value that a χ² with so many degrees of freedom exceeds with probability 1e-3 (Wilson and Hilferty).
fn chi_squared_limit(degrees: usize) -> f64 {
    let degrees = degrees as f64;
    let part = 2.0 / (9.0 * degrees);
    degrees * (1.0 - part + QUANTILE * part.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabricmap::stories::flow;
    use crate::flowset::FlowKey;
    use crate::signature::fold;

    fn random(seed: u64, nth: u64) -> u64 {
        fold(seed ^ 0x9b05_688c_2b3e_6c1f, nth.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1f83_d9ab_fb41_bd6b)
    }

    /// Flows of Pareto sizes, each on the port that a hash gives it.
    fn load(seed: u64, flows: u64, ports: usize, port: impl Fn(u64) -> usize) -> GroupLoad {
        let mut load = GroupLoad { bytes: vec![0; ports], flows: BTreeMap::new() };
        for nth in 0..flows {
            let uniform = ((random(seed, nth) >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
            let count = WindowFlow { packets: 1, bytes: (1_000.0 * uniform.powf(-1.0 / 1.2)) as u64 };
            let at = port(random(!seed, nth));
            load.bytes[at] += count.bytes;
            load.flows
                .insert(FlowKey::from(&crate::packet::Flow { src_port: nth as u16, ..flow(0).flow() }), (at, count));
        }
        load
    }

    #[test]
    fn a_fair_hash_is_hardly_ever_accused_and_a_polarised_one_nearly_always() {
        let trials = 1_000;
        for (flows, ports) in [(50, 2), (200, 2), (200, 4), (1_000, 8)] {
            let network = |seed: u64, port: &dyn Fn(u64) -> usize| {
                load(seed, flows, ports, port).verdict().is_some_and(|(why, _)| why == "network")
            };
            let fair = (0..trials).filter(|seed| network(*seed, &|hash| hash as usize % ports)).count();
            // Two of three flows go where one in so many should.
            let skewed = |hash: u64| if hash >> 32 & 3 < 3 { 0 } else { hash as usize % ports };
            let found = (0..trials).filter(|seed| network(*seed, &skewed)).count();
            assert!(fair <= 2, "{flows} flows, {ports} ports: {fair} of {trials} fair hashes accused");
            assert!(found >= 900, "{flows} flows, {ports} ports: {found} of {trials} polarised hashes found");
        }
    }

    #[test]
    fn what_chance_does_to_few_equal_flows_is_nothing() {
        for seed in 0..2_000 {
            let mut equal = load(seed, 20, 2, |hash| hash as usize % 2);
            equal.bytes = vec![0; 2];
            for (at, count) in equal.flows.values_mut() {
                count.bytes = 1_000;
                equal.bytes[*at] += 1_000;
            }
            // One in 20,000 fair hashes puts 19 of 20 flows on one port: that is the network's.
            let said = equal.verdict();
            assert!(said.is_none_or(|(why, _)| why == "network"), "{said:?}: {:?}", equal.bytes);
        }
    }

    #[test]
    fn one_large_flow_is_the_application_and_few_flows_are_nothing() {
        let mut large = load(3, 200, 2, |hash| hash as usize % 2);
        let (flow, (at, _)) = large.flows.iter().next().map(|(flow, entry)| (*flow, *entry)).unwrap();
        let huge = 10 * large.bytes.iter().sum::<u64>();
        large.bytes[at] += huge;
        large.flows.insert(flow, (at, WindowFlow { packets: 1, bytes: huge }));
        assert_eq!(large.verdict(), Some(("application", at)));
        assert_eq!(large.largest(at, 1), [(flow, 1)]);
        assert_eq!(load(3, 9, 2, |_| 0).verdict(), None, "below five flows a path");
    }

    #[test]
    fn limits_are_those_of_tables() {
        for (degrees, limit) in [(1, 10.83), (3, 16.27), (7, 24.32)] {
            assert!((chi_squared_limit(degrees) / limit - 1.0).abs() < 0.04, "{degrees}");
        }
    }
}

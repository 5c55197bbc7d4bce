//! Traffic between all pairs of ToRs of a FatTree that are in different pods, on all paths alike, so that every switch has the
//! same number of flows: §4.5.1.

use faults::Random;
use radar::flowset::network::{CandidateSwitches, FlowsetNetwork};
use radar::flowset::{FlowKey, Flowset, FlowsetShape};
use radar::packet::Flow;
use topology::{HostLinks, NodeOrder, Pods, ShapeWiring};

/// Hops at which a flow has a packet more or less than at the hop before: some are always on their way when a slot ends.
pub(super) const DIFFERING: f64 = 0.01;

/// Switches of a FatTree: ToRs first, then aggregation switches, then cores.
#[derive(Clone, Debug)]
pub(super) struct FatTreeFabric {
    pods: Pods,
    wiring: ShapeWiring,
}

impl FatTreeFabric {
    /// The fabric of switches with k ports, an even number.
    pub(super) fn new(k: usize) -> Self {
        let pods = Pods::fat_tree(k as u32, HostLinks::None).expect("an even number of ports");
        Self { pods, wiring: pods.wiring(NodeOrder::Tiers) }
    }

    /// ToRs in each pod, and as many aggregation switches.
    fn half(&self) -> usize {
        self.pods.lower as usize
    }

    fn tors(&self) -> usize {
        self.pods.pods as usize * self.half()
    }

    pub(super) fn switches(&self) -> usize {
        self.wiring.nodes.len()
    }

    /// Flows in all that make `each` at each switch.
    fn flows(&self, each: u64) -> u64 {
        each * (self.half() * self.half()) as u64
    }

    fn agg(&self, pod: usize, number: usize) -> usize {
        self.wiring.number(2, pod as u32, number as u32) as usize
    }

    fn core(&self, agg: usize, number: usize) -> usize {
        self.wiring.number(3, agg as u32, number as u32) as usize
    }

    pub(super) fn neighbours(&self) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new(); self.switches()];
        for [one, two] in self.wiring.links.iter().map(|ends| ends.map(|end| end as usize)) {
            lists[one].push(two);
            lists[two].push(one);
        }
        lists
    }

    /// The switches that the nth flow passes.
    pub(super) fn path(&self, nth: u64) -> [usize; 5] {
        let (half, tors) = (self.half(), self.tors());
        let pairs = tors * (tors - half);
        let (pair, way) = (nth as usize % pairs, nth as usize / pairs % (half * half));
        let (from, other) = (pair / (tors - half), pair % (tors - half));
        let pod = from / half;
        let to = if other < pod * half { other } else { other + half };
        let (agg, core) = (way / half, way % half);
        [from, self.agg(pod, agg), self.core(agg, core), self.agg(to / half, agg), to]
    }

    /// The hops of a flow before and after a switch.
    pub(super) fn hops(&self, key: &FlowKey, at: usize) -> [Option<usize>; 2] {
        let path = self.path(number(key));
        let Some(place) = path.iter().position(|switch| *switch == at) else { return [None; 2] };
        [place.checked_sub(1).map(|before| path[before]), path.get(place + 1).copied()]
    }

    /// Flowsets of switches with this shape, each with `each` flows; a share of flows differs from hop to hop.
    pub(super) fn count(&self, each: u64, shape: FlowsetShape, differing: f64, seed: u64) -> Vec<Flowset> {
        let of = |switch: usize| Flowset::new(shape.with_seed(seed << 16 | switch as u64));
        let mut flowsets: Vec<Flowset> = (0..self.switches()).map(of).collect();
        let mut random = Random::new(seed, 0);
        for nth in 0..self.flows(each) {
            let key = key(nth);
            let mut packets = 2 + random.below(60) as u32;
            for switch in self.path(nth) {
                if random.unit() < differing {
                    packets = if random.below(2) == 0 { packets + 1 } else { packets.max(2) - 1 };
                }
                flowsets[switch].add(&key, packets);
            }
        }
        flowsets
    }

    /// Number of switches of which everything is known, flows and counters.
    pub(super) fn complete(&self, flowsets: Vec<Flowset>) -> usize {
        let neighbours = self.neighbours();
        let network = FlowsetNetwork::new(flowsets, CandidateSwitches::Neighbours(&neighbours));
        network.map_or(0, |network| network.decode().iter().filter(|switch| switch.is_complete).count())
    }
}

/// The nth flow.
pub(super) fn key(nth: u64) -> FlowKey {
    FlowKey::from(&Flow {
        src: (nth as u32).to_be_bytes().into(),
        dst: [10, 0, 0, 1].into(),
        protocol: 6,
        src_port: (nth >> 32) as u16,
        dst_port: 80,
    })
}

fn number(key: &FlowKey) -> u64 {
    let flow = key.flow();
    let low = match flow.src {
        std::net::IpAddr::V4(address) => u32::from(address),
        std::net::IpAddr::V6(_) => 0,
    };
    u64::from(flow.src_port) << 32 | u64::from(low)
}

/// One switch with `flows` flows.
pub(super) fn alone(flows: u64, shape: FlowsetShape, seed: u64) -> Flowset {
    let mut flowset = Flowset::new(shape.with_seed(seed));
    (0..flows).for_each(|nth| flowset.add(&key(seed << 24 ^ nth), 1 + nth as u32 % 50));
    flowset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_as_many_flows() {
        let fabric = FatTreeFabric::new(4);
        // Four paths for each of 48 pairs of ToRs in different pods.
        let flowsets = fabric.count(48 * 10, FlowsetShape::new(4, 1_000, 24, 40_000, 0), DIFFERING, 1);
        assert_eq!(flowsets.len(), 20);
        let flows: Vec<u64> = flowsets.iter().map(Flowset::flows).collect();
        assert!(flows.iter().all(|of| *of == flows[0]), "{flows:?}");
        assert_eq!(fabric.complete(flowsets), 20);
    }

    #[test]
    fn paths_go_up_to_a_core_and_down_again() {
        let fabric = FatTreeFabric::new(8);
        let neighbours = fabric.neighbours();
        for nth in (0..100_000).step_by(997) {
            let path = fabric.path(nth);
            assert!(path.windows(2).all(|hop| neighbours[hop[0]].contains(&hop[1])), "{path:?}");
            assert_eq!(fabric.hops(&key(nth), path[2]), [Some(path[1]), Some(path[3])]);
            assert_eq!(fabric.hops(&key(nth), path[0]), [None, Some(path[1])]);
        }
    }
}

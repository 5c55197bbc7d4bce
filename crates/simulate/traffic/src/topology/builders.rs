//! The topologies that papers use.
//!
//! Hosts come first and are called `h0`, `h1`, … from the first rack to the last, so that a host's number is also its
//! [`NodeId`]; switches follow, called after their role. Only [`Topology::testbed`] keeps the names of its figure.

use units::{Rate, Span};

use super::error::check_size;
use super::{NodeId, NodeKind, Topology, TopologyError, TopologyLink, TopologyNode};

/// Ten metres of fibre.
const TESTBED_DELAY: Span = Span::from_ns(50);

/// Delay of a host link: of 5.4 µs, the packet twice at 25G takes 0.72 and its acknowledgement of 130 bytes 0.08; the rest
/// is four links.
const HPCC_TESTBED_HOST_DELAY: Span = Span::from_ns(1_150);

/// Delay of an uplink: of the 3.1 µs more, both packets twice at 100G take 0.18 and 0.02; the rest is four links.
const HPCC_TESTBED_UPLINK_DELAY: Span = Span::from_ns(725);

impl Topology {
    /// LinkGuardian (SIGCOMM'23) §4, Fig. 7: h4 – sw2 – sw6 – h8, where sw2 – sw6 is the corrupting link.
    pub fn testbed(rate: Rate) -> Self {
        let mut draft = TopologyDraft::default();
        let [h4, h8] = ["h4", "h8"].map(|name| draft.node(name.to_string(), NodeKind::Host));
        let [sw2, sw6] = ["sw2", "sw6"].map(|name| draft.switch(name));
        for (a, b) in [(h4, sw2), (sw2, sw6), (sw6, h8)] {
            draft.link(a, b, rate, TESTBED_DELAY);
        }
        draft.finish()
    }

    /// Two hosts and the wire between them.
    pub fn pair(rate: Rate, delay: Span) -> Self {
        let mut draft = TopologyDraft::with_hosts(2);
        draft.link(NodeId(0), NodeId(1), rate, delay);
        draft.finish()
    }

    /// All hosts on the switch `sw0`.
    pub fn single_switch(hosts: u32, rate: Rate, delay: Span) -> Result<Self, TopologyError> {
        expect(hosts >= 1, "a switch with at least one host")?;
        check_size(u128::from(hosts), 1, u128::from(hosts))?;
        let mut draft = TopologyDraft::with_hosts(hosts);
        let switch = draft.switch("sw0");
        draft.attach(0..hosts, switch, rate, delay);
        Ok(draft.finish())
    }

    /// h0 – sw0 – sw1 – … – h1: a path with several links that may corrupt.
    pub fn chain(switches: u32, rate: Rate, delay: Span) -> Result<Self, TopologyError> {
        expect(switches >= 1, "a chain of at least one switch")?;
        check_size(2, u128::from(switches), u128::from(switches) + 1)?;
        let mut draft = TopologyDraft::with_hosts(2);
        let mut last = NodeId(0);
        for number in 0..switches {
            let switch = draft.switch(format!("sw{number}"));
            draft.link(last, switch, rate, delay);
            last = switch;
        }
        draft.link(last, NodeId(1), rate, delay);
        Ok(draft.finish())
    }

    /// `pairs` hosts on the switch `left`, as many (numbered on) on `right`, and one link between the two. Each link
    /// has the delay.
    pub fn dumbbell(pairs: u32, edge: Rate, bottleneck: Rate, delay: Span) -> Result<Self, TopologyError> {
        expect(pairs >= 1, "a dumbbell of at least one pair")?;
        check_size(2 * u128::from(pairs), 2, 2 * u128::from(pairs) + 1)?;
        let mut draft = TopologyDraft::with_hosts(2 * pairs);
        let [left, right] = ["left", "right"].map(|name| draft.switch(name));
        draft.attach(0..pairs, left, edge, delay);
        draft.attach(pairs..2 * pairs, right, edge, delay);
        draft.link(left, right, bottleneck, delay);
        Ok(draft.finish())
    }

    /// Every leaf linked to every spine.
    pub fn leaf_spine(
        leaves: u32,
        spines: u32,
        hosts_per_leaf: u32,
        host: Rate,
        fabric: Rate,
        delay: Span,
    ) -> Result<Self, TopologyError> {
        expect(
            leaves >= 1 && spines >= 1 && hosts_per_leaf >= 1,
            "at least one leaf, one spine and one host per leaf",
        )?;
        let [l, s, h] = [leaves, spines, hosts_per_leaf].map(u128::from);
        check_size(l * h, l + s, l * h + l * s)?;
        let mut draft = TopologyDraft::with_hosts(leaves * hosts_per_leaf);
        let leaf_ids: Vec<NodeId> = (0..leaves).map(|leaf| draft.switch(format!("leaf{leaf}"))).collect();
        let spine_ids: Vec<NodeId> = (0..spines).map(|spine| draft.switch(format!("spine{spine}"))).collect();
        for (number, leaf) in (0..).zip(&leaf_ids) {
            draft.attach(number * hosts_per_leaf..(number + 1) * hosts_per_leaf, *leaf, host, delay);
        }
        for leaf in &leaf_ids {
            for spine in &spine_ids {
                draft.link(*leaf, *spine, fabric, delay);
            }
        }
        Ok(draft.finish())
    }

    /// Al-Fares et al. (SIGCOMM'08): k pods of k-port switches and k³/4 hosts, all links alike. Switches are
    /// `edge<pod>-<number>`, `agg<pod>-<number>` and `core<number>`.
    pub fn fat_tree(k: u32, rate: Rate, delay: Span) -> Result<Self, TopologyError> {
        expect(k >= 2 && k.is_multiple_of(2), "an even number of ports per switch, at least 2")?;
        let half = k / 2;
        let [pods, h] = [k, half].map(u128::from);
        check_size(pods * h * h, 2 * pods * h + h * h, 3 * pods * h * h)?;
        let tiers = ThreeTiers { pods: k, edges: half, aggs: half, hosts_per_edge: half, cores_per_agg: half };
        Ok(tiers.build("edge", rate, rate, delay))
    }

    /// HPCC (Li's thesis) §2.6.1: 5 pods of 4 ToRs and 4 aggregation switches, 16 cores, 16 hosts of 100G per rack,
    /// 400G between switches, 1 µs per link. The text gives the numbers; that each aggregation switch of a pod has
    /// four cores to itself is how the authors' simulation connects them. ToRs are `tor<pod>-<number>`.
    pub fn hpcc() -> Self {
        let tiers = ThreeTiers { pods: 5, edges: 4, aggs: 4, hosts_per_edge: 16, cores_per_agg: 4 };
        tiers.build("tor", Rate::gbps(100), Rate::gbps(400), Span::from_us(1))
    }

    /// HPCC's testbed (Li's thesis, §2.6.1): the switch `agg`, four ToRs each with one link of 100G to it, and 32 servers
    /// with two ports of 25G, half of them at `tor0` and `tor1`, half at `tor2` and `tor3`. A host has one link: a server
    /// is two hosts, `h0` and `h16`, `h1` and `h17`, …, `h32` and `h48`, ….
    ///
    /// Delays make the base RTT of a packet with 1,000 bytes of payload and its telemetry (1,124 bytes on the wire) that
    /// of the thesis, 5.4 µs in a rack and 8.5 µs across, with what switches take included.
    pub fn hpcc_testbed() -> Self {
        const RACK: u32 = 16;
        let mut draft = TopologyDraft::with_hosts(4 * RACK);
        let tors: Vec<NodeId> = (0..4).map(|tor| draft.switch(format!("tor{tor}"))).collect();
        let agg = draft.switch("agg");
        for (rack, tor) in (0..).zip(&tors) {
            draft.attach(rack * RACK..(rack + 1) * RACK, *tor, Rate::gbps(25), HPCC_TESTBED_HOST_DELAY);
        }
        for tor in tors {
            draft.link(tor, agg, Rate::gbps(100), HPCC_TESTBED_UPLINK_DELAY);
        }
        draft.finish()
    }
}

fn expect(holds: bool, expected: &'static str) -> Result<(), TopologyError> {
    if holds { Ok(()) } else { Err(TopologyError::Shape(expected)) }
}

/// Three tiers: within a pod every edge switch is linked to every aggregation switch; the n-th aggregation switch of
/// every pod is linked to the n-th group of cores.
struct ThreeTiers {
    pods: u32,
    edges: u32,
    aggs: u32,
    hosts_per_edge: u32,
    cores_per_agg: u32,
}

impl ThreeTiers {
    fn build(&self, edge_name: &str, host: Rate, fabric: Rate, delay: Span) -> Topology {
        let mut draft = TopologyDraft::with_hosts(self.pods * self.edges * self.hosts_per_edge);
        let edges = draft.tier(edge_name, self.pods, self.edges);
        let aggs = draft.tier("agg", self.pods, self.aggs);
        let cores: Vec<NodeId> =
            (0..self.aggs * self.cores_per_agg).map(|core| draft.switch(format!("core{core}"))).collect();
        for (rack, edge) in (0..).zip(edges.iter().flatten()) {
            draft.attach(rack * self.hosts_per_edge..(rack + 1) * self.hosts_per_edge, *edge, host, delay);
        }
        for (edges, aggs) in edges.iter().zip(&aggs) {
            for edge in edges {
                aggs.iter().for_each(|agg| draft.link(*edge, *agg, fabric, delay));
            }
        }
        for pod in &aggs {
            for (agg, cores) in pod.iter().zip(cores.chunks(self.cores_per_agg as usize)) {
                cores.iter().for_each(|core| draft.link(*agg, *core, fabric, delay));
            }
        }
        draft.finish()
    }
}

/// A topology in the making; right by construction, so that it needs no check.
#[derive(Default)]
struct TopologyDraft {
    nodes: Vec<TopologyNode>,
    links: Vec<TopologyLink>,
}

impl TopologyDraft {
    fn with_hosts(hosts: u32) -> Self {
        let mut draft = Self::default();
        for number in 0..hosts {
            draft.node(format!("h{number}"), NodeKind::Host);
        }
        draft
    }

    fn node(&mut self, name: String, kind: NodeKind) -> NodeId {
        self.nodes.push(TopologyNode { name, kind });
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn switch(&mut self, name: impl Into<String>) -> NodeId {
        self.node(name.into(), NodeKind::Switch)
    }

    /// The switches of one role, by pod.
    fn tier(&mut self, role: &str, pods: u32, per_pod: u32) -> Vec<Vec<NodeId>> {
        (0..pods).map(|pod| (0..per_pod).map(|number| self.switch(format!("{role}{pod}-{number}"))).collect()).collect()
    }

    fn link(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Span) {
        self.links.push(TopologyLink { a, b, rate, delay });
    }

    fn attach(&mut self, hosts: std::ops::Range<u32>, switch: NodeId, rate: Rate, delay: Span) {
        for host in hosts {
            self.link(NodeId(host), switch, rate, delay);
        }
    }

    fn finish(self) -> Topology {
        Topology { nodes: self.nodes, links: self.links }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::gbps(100);
    const DELAY: Span = Span::from_us(1);

    /// Hosts, switches, links; and that the checks would have found nothing.
    fn counts(topology: Topology) -> (usize, usize, usize) {
        let counts = (topology.hosts().count(), topology.switches().count(), topology.links.len());
        assert_eq!(Topology::new(topology.nodes.clone(), topology.links.clone()), Ok(topology));
        counts
    }

    #[test]
    fn every_topology_has_as_many_nodes_and_links_as_its_figure() {
        assert_eq!(counts(Topology::testbed(RATE)), (2, 2, 3));
        assert_eq!(counts(Topology::pair(RATE, DELAY)), (2, 0, 1));
        assert_eq!(counts(Topology::single_switch(17, RATE, DELAY).unwrap()), (17, 1, 17));
        assert_eq!(counts(Topology::chain(3, RATE, DELAY).unwrap()), (2, 3, 4));
        assert_eq!(counts(Topology::dumbbell(5, RATE, Rate::gbps(40), DELAY).unwrap()), (10, 2, 11));
        assert_eq!(counts(Topology::leaf_spine(9, 4, 16, RATE, RATE, DELAY).unwrap()), (144, 13, 180));
        assert_eq!(counts(Topology::fat_tree(4, RATE, DELAY).unwrap()), (16, 20, 48));
        assert_eq!(counts(Topology::fat_tree(16, RATE, DELAY).unwrap()), (1_024, 320, 3_072));
        assert_eq!(counts(Topology::hpcc()), (320, 56, 480));
        assert_eq!(counts(Topology::hpcc_testbed()), (64, 5, 68));
    }

    #[test]
    fn the_testbed_of_hpcc_has_its_round_trips() {
        let topology = Topology::hpcc_testbed();
        let trip = |bytes: u64, names: &[&str]| {
            let hop = |pair: &[&str]| {
                let link = topology.link(topology.link_between(pair[0], pair[1]).unwrap().link());
                link.delay + link.rate.span_of(units::Bytes::new(bytes))
            };
            names.windows(2).map(hop).fold(Span::ZERO, |sum, span| sum + span)
        };
        for (names, expected) in [(vec!["h0", "tor0", "h15"], 5.4), (vec!["h0", "tor0", "agg", "tor3", "h63"], 8.5)] {
            let round_trip = (trip(1_124, &names) + trip(130, &names)).as_us();
            assert!((round_trip - expected).abs() < 0.01, "{names:?}: {round_trip} µs");
        }
    }

    #[test]
    fn hosts_are_numbered_from_the_first_rack_to_the_last() {
        let topology = Topology::fat_tree(4, RATE, DELAY).unwrap();
        for (host, edge) in [("h0", "edge0-0"), ("h3", "edge0-1"), ("h15", "edge3-1")] {
            assert!(topology.link_between(host, edge).is_ok(), "{host} – {edge}");
        }
        assert_eq!(topology.node("h13"), Ok(NodeId(13)));
        assert!(topology.link_between("agg2-1", "core3").is_ok());
        assert!(topology.link_between("agg2-1", "core1").is_err());
    }

    #[test]
    fn the_bottleneck_of_a_dumbbell_has_its_own_rate() {
        let topology = Topology::dumbbell(2, RATE, Rate::gbps(40), DELAY).unwrap();
        let bottleneck = topology.link_between("left", "right").unwrap();
        assert_eq!(topology.link(bottleneck.link()).rate, Rate::gbps(40));
        assert!(topology.link_between("h3", "right").is_ok());
    }

    #[test]
    fn hpccs_fabric_is_four_times_as_fast_as_its_hosts() {
        let topology = Topology::hpcc();
        let rate = |from, to| topology.link(topology.link_between(from, to).unwrap().link()).rate;
        assert_eq!(rate("h319", "tor4-3"), Rate::gbps(100));
        assert_eq!(rate("tor4-3", "agg4-0"), Rate::gbps(400));
        assert_eq!(rate("agg4-3", "core15"), Rate::gbps(400));
    }

    #[test]
    fn numbers_that_make_no_topology_are_refused() {
        let said = |result: Result<Topology, TopologyError>| result.unwrap_err().to_string();
        assert_eq!(said(Topology::fat_tree(5, RATE, DELAY)), "expected an even number of ports per switch, at least 2");
        assert_eq!(said(Topology::chain(0, RATE, DELAY)), "expected a chain of at least one switch");
        assert!(said(Topology::leaf_spine(2, 0, 1, RATE, RATE, DELAY)).starts_with("expected at least one leaf"));
        assert!(said(Topology::fat_tree(1_000, RATE, DELAY)).contains("at most 100000, 10000 and 500000"));
        for most in [u32::MAX, u32::MAX - 1] {
            assert!(Topology::single_switch(most, RATE, DELAY).is_err());
            assert!(Topology::chain(most, RATE, DELAY).is_err());
            assert!(Topology::dumbbell(most, RATE, RATE, DELAY).is_err());
            assert!(Topology::leaf_spine(most, most, most, RATE, RATE, DELAY).is_err());
            assert!(Topology::fat_tree(most, RATE, DELAY).is_err());
        }
    }
}

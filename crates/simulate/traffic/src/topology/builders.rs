//! The topologies that papers use: the shapes of the crate `topology`, with names, rates and delays.
//!
//! Hosts come first and are called `h0`, `h1`, … from the first rack to the last, so that a host's number is also its
//! [`NodeId`]; switches follow, called after their role. Only [`Topology::testbed`] keeps the names of its figure.

use ::topology::{HostLinks, LeafSpine, NodeOrder, Pods, ShapeNode, ShapeSize, ShapeWiring, SwitchChain};
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
        let mut testbed = wired(&SwitchChain { switches: 2 }.wiring(), numbered, [(rate, TESTBED_DELAY); 2]);
        for (node, name) in testbed.nodes.iter_mut().zip(["h4", "h8", "sw2", "sw6"]) {
            name.clone_into(&mut node.name);
        }
        testbed
    }

    /// Two hosts and the wire between them.
    pub fn pair(rate: Rate, delay: Span) -> Self {
        wired(&SwitchChain { switches: 0 }.wiring(), numbered, [(rate, delay); 2])
    }

    /// All hosts on the switch `sw0`.
    pub fn single_switch(hosts: u32, rate: Rate, delay: Span) -> Result<Self, TopologyError> {
        expect(hosts >= 1, "a switch with at least one host")?;
        let rack = LeafSpine { leaves: 1, spines: 0, hosts };
        check_size(rack.size())?;
        Ok(wired(&rack.wiring(), numbered, [(rate, delay); 2]))
    }

    /// h0 – sw0 – sw1 – … – h1: a path with several links that may corrupt.
    pub fn chain(switches: u32, rate: Rate, delay: Span) -> Result<Self, TopologyError> {
        expect(switches >= 1, "a chain of at least one switch")?;
        let chain = SwitchChain { switches };
        check_size(chain.size())?;
        Ok(wired(&chain.wiring(), numbered, [(rate, delay); 2]))
    }

    /// `pairs` hosts on the switch `left`, as many (numbered on) on `right`, and one link between the two. Each link
    /// has the delay.
    pub fn dumbbell(pairs: u32, edge: Rate, bottleneck: Rate, delay: Span) -> Result<Self, TopologyError> {
        expect(pairs >= 1, "a dumbbell of at least one pair")?;
        let racks = LeafSpine { leaves: 2, spines: 0, hosts: pairs };
        let size = racks.size();
        check_size(ShapeSize { links: size.links + 1, ..size })?;
        let mut wiring = racks.wiring();
        wiring.links.push([0, 1].map(|side| wiring.number(1, 0, side)));
        let name = |node: ShapeNode| ["left", "right"][node.number as usize].to_owned();
        Ok(wired(&wiring, name, [(edge, delay), (bottleneck, delay)]))
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
        let shape = LeafSpine { leaves, spines, hosts: hosts_per_leaf };
        check_size(shape.size())?;
        let name = |node: ShapeNode| format!("{}{}", if node.tier == 1 { "leaf" } else { "spine" }, node.number);
        Ok(wired(&shape.wiring(), name, [(host, delay), (fabric, delay)]))
    }

    /// Al-Fares et al. (SIGCOMM'08): k pods of k-port switches and k³/4 hosts, all links alike. Switches are
    /// `edge<pod>-<number>`, `agg<pod>-<number>` and `core<number>`.
    pub fn fat_tree(k: u32, rate: Rate, delay: Span) -> Result<Self, TopologyError> {
        let tree = Pods::fat_tree(k, HostLinks::Single);
        let tree = tree.ok_or(TopologyError::Shape("an even number of ports per switch, at least 2"))?;
        check_size(tree.size())?;
        Ok(wired_pods(&tree, "edge", [(rate, delay); 2]))
    }

    /// HPCC (Li's thesis) §2.6.1: 5 pods of 4 ToRs and 4 aggregation switches, 16 cores, 16 hosts of 100G per rack,
    /// 400G between switches, 1 µs per link. The text gives the numbers; that each aggregation switch of a pod has
    /// four cores to itself is how the authors' simulation connects them. ToRs are `tor<pod>-<number>`.
    pub fn hpcc() -> Self {
        let shape = Pods { pods: 5, lower: 4, upper: 4, tops: 4, hosts: 16, host_links: HostLinks::Single };
        let delay = Span::from_us(1);
        wired_pods(&shape, "tor", [(Rate::gbps(100), delay), (Rate::gbps(400), delay)])
    }

    /// HPCC's testbed (Li's thesis, §2.6.1): the switch `agg`, four ToRs each with one link of 100G to it, and 32 servers
    /// with two ports of 25G, half of them at `tor0` and `tor1`, half at `tor2` and `tor3`. A host has one link: a server
    /// is two hosts, `h0` and `h16`, `h1` and `h17`, …, `h32` and `h48`, ….
    ///
    /// Delays make the base RTT of a packet with 1,000 bytes of payload and its telemetry (1,124 bytes on the wire) that
    /// of the thesis, 5.4 µs in a rack and 8.5 µs across, with what switches take included.
    pub fn hpcc_testbed() -> Self {
        let name = |node: ShapeNode| if node.tier == 1 { format!("tor{}", node.number) } else { "agg".to_owned() };
        let links = [(Rate::gbps(25), HPCC_TESTBED_HOST_DELAY), (Rate::gbps(100), HPCC_TESTBED_UPLINK_DELAY)];
        wired(&LeafSpine { leaves: 4, spines: 1, hosts: 16 }.wiring(), name, links)
    }
}

fn expect(holds: bool, expected: &'static str) -> Result<(), TopologyError> {
    if holds { Ok(()) } else { Err(TopologyError::Shape(expected)) }
}

/// Name of a switch without a role.
fn numbered(node: ShapeNode) -> String {
    format!("sw{}", node.number)
}

/// Rates and delays of the links of hosts, and of those between switches.
type LinkKinds = [(Rate, Span); 2];

fn wired_pods(pods: &Pods, edge: &str, links: LinkKinds) -> Topology {
    let name = |node: ShapeNode| match node.tier {
        1 => format!("{edge}{}-{}", node.block, node.number),
        2 => format!("agg{}-{}", node.block, node.number),
        _ => format!("core{}", pods.top(node)),
    };
    wired(&pods.wiring(NodeOrder::Tiers), name, links)
}

/// The topology of a shape whose hosts come first, with these names of switches. It is right by construction, and needs no
/// check.
fn wired(wiring: &ShapeWiring, name: impl Fn(ShapeNode) -> String, [access, fabric]: LinkKinds) -> Topology {
    let node = |(number, node): (u32, &ShapeNode)| match node.is_host() {
        true => TopologyNode { name: format!("h{number}"), kind: NodeKind::Host },
        false => TopologyNode { name: name(*node), kind: NodeKind::Switch },
    };
    let link = |&ends: &[u32; 2]| {
        let is_access = ends.iter().any(|end| wiring.nodes[*end as usize].is_host());
        let ((rate, delay), [a, b]) = (if is_access { access } else { fabric }, ends.map(NodeId));
        TopologyLink { a, b, rate, delay }
    };
    Topology { nodes: (0..).zip(&wiring.nodes).map(node).collect(), links: wiring.links.iter().map(link).collect() }
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

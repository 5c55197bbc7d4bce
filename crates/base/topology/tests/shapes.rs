//! Sizes of shapes against the figures of their papers, and what holds for any shape.

use std::collections::BTreeSet;

use proptest::prelude::*;
use topology::{
    HostLinks, LeafSpine, NodeOrder, PodNames, Pods, ShapeNode, ShapeSize, ShapeWiring, SwitchChain, jupiter, testbed,
};

const ORDERS: [NodeOrder; 2] = [NodeOrder::Pods, NodeOrder::Tiers];
const HOSTS: [HostLinks; 3] = [HostLinks::None, HostLinks::Single, HostLinks::Dual];

fn counts(size: ShapeSize) -> (u128, u128, u128) {
    (size.hosts, size.switches, size.links)
}

/// All that users of a wiring rely on.
fn check(size: ShapeSize, wiring: &ShapeWiring) {
    let hosts = wiring.nodes.iter().filter(|node| node.is_host()).count();
    let measured = (hosts as u128, (wiring.nodes.len() - hosts) as u128, wiring.links.len() as u128);
    assert_eq!(counts(size), measured);
    for (at, &ShapeNode { tier, block, number }) in (0..).zip(&wiring.nodes) {
        assert_eq!(wiring.number(tier, block, number), at);
        assert!(wiring.block(tier, block).contains(&at));
    }
    let tier = |end: u32| wiring.nodes[end as usize].tier;
    for [a, b] in &wiring.links {
        assert!(a != b && (tier(*a) < tier(*b) || !wiring.nodes[*b as usize].is_host()), "{a} {b}");
    }
}

/// Neighbours of each node, as a set: an order of numbers aside, shapes are the same if these are.
fn neighbours<T: Ord + Clone>(wiring: &ShapeWiring, named: impl Fn(ShapeNode) -> T) -> BTreeSet<[T; 2]> {
    wiring.links.iter().map(|ends| ends.map(|end| named(wiring.nodes[end as usize]))).collect()
}

#[test]
fn pods_have_as_many_nodes_and_links_as_their_figures() {
    for (k, switches, links) in [(2, 5, 4), (4, 20, 32), (16, 320, 2_048)] {
        let shape = Pods::fat_tree(k, HostLinks::None).unwrap();
        assert_eq!(counts(shape.size()), (0, switches, links));
    }
    let tree = |k, hosts| counts(Pods::fat_tree(k, hosts).unwrap().size());
    assert_eq!(tree(4, HostLinks::Single), (16, 20, 48));
    assert_eq!(tree(4, HostLinks::Dual), (16, 20, 64));
    assert_eq!(tree(16, HostLinks::Single), (1_024, 320, 3_072));
    assert_eq!(counts(Pods::facebook(261, HostLinks::None).size()), (0, 13_764, 100_224));
    let hpcc = Pods { pods: 5, lower: 4, upper: 4, tops: 4, hosts: 16, host_links: HostLinks::Single };
    assert_eq!(counts(hpcc.size()), (320, 56, 480));
    assert!([0, 1, 3, 5, u32::MAX].into_iter().all(|k| Pods::fat_tree(k, HostLinks::None).is_none()));
}

#[test]
fn jupiter_and_the_testbed_have_the_nodes_of_the_thesis() {
    for (hosts, expected) in HOSTS.into_iter().zip([(0, 229_376), (65_536, 294_912), (65_536, 360_448)]) {
        check(jupiter::size(hosts), &jupiter::wiring(hosts));
        assert_eq!(counts(jupiter::size(hosts)), (expected.0, 22_528, expected.1));
        check(testbed::size(hosts), &testbed::wiring(hosts));
    }
    assert_eq!(testbed::size(HostLinks::Dual).nodes(), 828);
    let dual = jupiter::wiring(HostLinks::Dual);
    let ends = neighbours(&dual, jupiter::name);
    for [lower, upper] in [["agg3/host1023", "agg3/tor126"], ["agg9/mb4/up1", "spine8/low9"]] {
        assert!(ends.contains(&[lower.to_owned(), upper.to_owned()]), "{lower}--{upper}");
    }
}

#[test]
fn racks_and_chains_have_as_many_nodes_and_links_as_their_figures() {
    let racks = |leaves, spines, hosts| {
        let shape = LeafSpine { leaves, spines, hosts };
        check(shape.size(), &shape.wiring());
        counts(shape.size())
    };
    assert_eq!(racks(9, 4, 16), (144, 13, 180));
    assert_eq!(racks(6, 4, 0), (0, 10, 24));
    assert_eq!(racks(1, 0, 17), (17, 1, 17));
    assert_eq!(racks(4, 1, 16), (64, 5, 68));
    assert_eq!(SwitchChain { switches: 0 }.wiring().links, [[0, 1]]);
    assert_eq!(SwitchChain { switches: 2 }.wiring().links, [[0, 2], [2, 3], [3, 1]]);
}

#[test]
fn names_are_paths_of_pods_and_planes() {
    let tree = Pods::fat_tree(4, HostLinks::Single).unwrap();
    let node = |tier, block, number| ShapeNode { tier, block, number };
    let named = |names| [node(0, 3, 1), node(1, 2, 1), node(2, 2, 0), node(3, 1, 1)].map(|node| tree.name(names, node));
    assert_eq!(named(PodNames::FatTree), ["pod3/host1", "pod2/edge1", "pod2/agg0", "core3"]);
    assert_eq!(named(PodNames::Facebook), ["pod3/host1", "pod2/tor1", "pod2/fabric0", "plane1/spine1"]);
}

#[test]
#[should_panic(expected = "must be checked")]
fn a_shape_that_is_too_large_for_its_numbers_is_not_wired() {
    let _ = LeafSpine { leaves: 1 << 16, spines: 1, hosts: 1 << 16 }.wiring();
}

proptest! {
    #[test]
    fn both_orders_of_any_pods_are_the_same_network(
        (pods, lower, upper) in (0..6_u32, 0..4_u32, 0..5_u32),
        (tops, hosts, links) in (0..5_u32, 0..5_u32, prop::sample::select(HOSTS.to_vec())),
    ) {
        let shape = Pods { pods, lower: 2 * lower, upper, tops, hosts, host_links: links };
        let key = |node: ShapeNode| (node.tier, node.block, node.number);
        let [by_pods, by_tiers] = ORDERS.map(|order| shape.wiring(order));
        for wiring in [&by_pods, &by_tiers] {
            check(shape.size(), wiring);
            let degree = |at: u32| wiring.links.iter().flatten().filter(|end| **end == at).count() as u32;
            for (at, node) in (0..).zip(&wiring.nodes) {
                let expected = match node.tier {
                    0 => if links == HostLinks::Dual { 2 } else { 1 },
                    1 => upper + match links { HostLinks::None => 0, HostLinks::Single => hosts, HostLinks::Dual => 2 * hosts },
                    2 => shape.lower + tops,
                    _ => pods,
                };
                prop_assert_eq!(degree(at), expected);
            }
        }
        prop_assert!(by_tiers.nodes.is_sorted_by_key(|node| node.tier));
        prop_assert_eq!(neighbours(&by_pods, key), neighbours(&by_tiers, key));
        prop_assert_eq!(neighbours(&by_pods, key).len(), by_pods.links.len());
    }

    #[test]
    fn sizes_of_any_numbers_are_counted_without_overflow(any in any::<[u32; 5]>()) {
        let [pods, lower, upper, tops, hosts] = any;
        let size = Pods { pods, lower, upper, tops, hosts, host_links: HostLinks::Dual }.size();
        prop_assert!(size.links >= size.hosts);
        prop_assert_eq!(LeafSpine { leaves: pods, spines: 0, hosts }.size().hosts, u128::from(pods) * u128::from(hosts));
        prop_assert_eq!(SwitchChain { switches: pods }.size().links, u128::from(pods) + 1);
    }
}

//! Fabrics that papers use, down to the hosts: the shapes of `topology`, named.
//!
//! Switches, their names and their order are those of the fabrics of `fleet`; hosts come behind them.

use topology::{HostLinks, NodeOrder, PodNames, Pods, ShapeNode, ShapeSize, ShapeWiring, jupiter, testbed};

use super::build::check_size;
use super::{Graph, GraphError, GraphNode};

impl Graph {
    /// Al-Fares et al. (SIGCOMM'08): `pod<p>/edge<e>`, `pod<p>/agg<a>`, `core<c>`, and k/2 hosts `pod<p>/host<h>` at each edge switch.
    pub fn fat_tree(k: u32, hosts: HostLinks) -> Result<Self, GraphError> {
        let tree = Pods::fat_tree(k, hosts).filter(|_| k <= 512);
        let tree = tree.ok_or(GraphError::Shape("an even number of ports per switch, from 2 to 512"))?;
        expect(
            hosts != HostLinks::Dual || tree.lower.is_multiple_of(2),
            "edge switches in pairs for hosts with two links: k a multiple of 4",
        )?;
        Self::of_pods(&tree, PodNames::FatTree)
    }

    /// Facebook's fabric: pods of 48 ToRs `pod<p>/tor<t>` and 4 fabric switches `pod<p>/fabric<f>`, 4 planes of 48 spines
    /// `plane<f>/spine<s>`, and 16 hosts `pod<p>/host<h>` at each ToR.
    pub fn pods(pods: u32, hosts: HostLinks) -> Result<Self, GraphError> {
        expect((1..=5_000).contains(&pods), "from 1 to 5000 pods")?;
        Self::of_pods(&Pods::facebook(pods, hosts), PodNames::Facebook)
    }

    /// Google's Jupiter (Singh et al., SIGCOMM'15), wired to 88,064 nodes with hosts (thesis §3.6): 256 spine blocks, 64 aggregation
    /// blocks of 8 middle blocks, 128 ToRs and 1,024 hosts.
    pub fn jupiter(hosts: HostLinks) -> Result<Self, GraphError> {
        let roots = |node: &ShapeNode| node.tier == 5 && node.number == 0;
        Self::wired(jupiter::size(hosts), || jupiter::wiring(hosts), jupiter::name, roots)
    }

    /// The testbed of thesis §3.6, 23 pods of 12 switches and 24 servers.
    pub fn testbed(hosts: HostLinks) -> Result<Self, GraphError> {
        const TIERS: [&str; 5] = ["server", "tor", "mid", "upper", "top"];
        let name = |ShapeNode { tier, block, number }| format!("pod{block}/{}{number}", TIERS[usize::from(tier)]);
        let roots = |node: &ShapeNode| node.tier == 4 && node.number == 0;
        Self::wired(testbed::size(hosts), || testbed::wiring(hosts), name, roots)
    }

    fn of_pods(pods: &Pods, names: PodNames) -> Result<Self, GraphError> {
        let name = |node| pods.name(names, node);
        Self::wired(pods.size(), || pods.wiring(NodeOrder::Pods), name, |node| node.tier == 3)
    }

    /// The graph of a shape, in which a plan may begin at any of the nodes that are `roots`.
    fn wired(
        size: ShapeSize,
        wiring: impl FnOnce() -> ShapeWiring,
        name: impl Fn(ShapeNode) -> String,
        roots: impl Fn(&ShapeNode) -> bool,
    ) -> Result<Self, GraphError> {
        check_size(size.nodes() as usize, size.links as usize)?;
        let ShapeWiring { nodes, links, .. } = wiring();
        let graph = Self::new(nodes.iter().map(|node| name(*node)), links)?;
        let roots = (0..).zip(&nodes).filter(|(_, node)| roots(node)).map(|(number, _)| GraphNode(number));
        Ok(graph.with_usual_roots(roots))
    }
}

fn expect(holds: bool, expected: &'static str) -> Result<(), GraphError> {
    if holds { Ok(()) } else { Err(GraphError::Shape(expected)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(graph: &Graph) -> (usize, usize) {
        (graph.node_count(), graph.link_count())
    }

    #[test]
    fn jupiter_has_the_nodes_of_the_thesis() {
        let dual = Graph::jupiter(HostLinks::Dual).unwrap();
        assert_eq!(size(&dual), (88_064, 360_448));
        assert_eq!(size(&Graph::jupiter(HostLinks::Single).unwrap()), (88_064, 294_912));
        assert_eq!(size(&Graph::jupiter(HostLinks::None).unwrap()), (22_528, 229_376));
        let host = dual.node_named("agg3/host1023").unwrap();
        let tors: Vec<&str> = dual.neighbours(host).iter().map(|(tor, _)| dual.name(*tor)).collect();
        assert_eq!(tors, ["agg3/tor127", "agg3/tor126"]);
        let up = dual.node_named("agg9/mb4/up1").unwrap();
        assert!(dual.neighbours(up).iter().any(|(low, _)| dual.name(*low) == "spine8/low9"));
        assert_eq!(dual.name(dual.usual_root().unwrap()), "spine0/up0");
    }

    #[test]
    fn the_testbed_has_23_pods_of_36_devices() {
        let graph = Graph::testbed(HostLinks::Dual).unwrap();
        assert_eq!(graph.node_count(), 828);
        let root = graph.usual_root().unwrap();
        assert_eq!((graph.name(root), graph.neighbours(root).len()), ("pod0/top0", 46));
        assert_eq!(graph.neighbours(graph.node_named("pod22/server23").unwrap()).len(), 2);
    }

    #[test]
    fn fabrics_have_as_many_switches_and_links_as_those_of_a_fleet() {
        assert_eq!(size(&Graph::fat_tree(4, HostLinks::None).unwrap()), (20, 32));
        assert_eq!(size(&Graph::fat_tree(4, HostLinks::Dual).unwrap()), (36, 64));
        assert_eq!(size(&Graph::pods(261, HostLinks::None).unwrap()), (13_764, 100_224));
        for (k, hosts) in
            [(3, HostLinks::None), (0, HostLinks::None), (2, HostLinks::Dual), (1_000_000, HostLinks::None)]
        {
            assert!(Graph::fat_tree(k, hosts).is_err(), "{k}");
        }
        assert!(Graph::pods(0, HostLinks::None).is_err());
    }
}

//! Equal-cost shortest paths, and the one that a flow takes (ECMP).
//!
//! The cost of a path is its number of links. Hosts behind the same switch share their routes up to that switch, so a
//! table has an entry per switch and *rack* (a switch with hosts), not per host: a small index into the few distinct
//! groups of ports that the switch ever uses. A fat-tree of 1,024 hosts needs 128 entries in each of its 320 switches.
//!
//! A flow is known by a hash. Each switch mixes its own number into it before it chooses: with the bare hash, all flows
//! that an edge switch sends up one port would make the same choice at the next (polarisation), and paths stay unused.

use std::collections::{BTreeMap, VecDeque};
use std::{fmt, slice};

use super::route_hash::RouteHash;
use super::{DirectedLink, NodeId, Topology};

type RoutePorts = Vec<DirectedLink>;

#[derive(Clone, Debug)]
pub struct Routes {
    /// Access link of each node; hosts only.
    access: Vec<Option<HostAccess>>,
    /// Routes of each node; empty for hosts.
    tables: Vec<SwitchRoutes>,
    /// Node to which each directed link leads.
    leads_to: Vec<NodeId>,
    hash: RouteHash,
}

/// Attachment of a host.
#[derive(Clone, Copy, Debug)]
struct HostAccess {
    uplink: DirectedLink,
    downlink: DirectedLink,
    /// Rack of the host.
    rack: usize,
}

/// Routes of one switch.
#[derive(Clone, Debug, Default)]
struct SwitchRoutes {
    /// Index into the groups, by rack.
    group_of: Vec<u16>,
    /// Sets of ports that are equally good.
    groups: Vec<RoutePorts>,
}

impl SwitchRoutes {
    fn ports(&self, rack: usize) -> &[DirectedLink] {
        self.group_of.get(rack).map_or(&[], |group| &self.groups[usize::from(*group)])
    }
}

/// Error for two nodes without a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    pub from: NodeId,
    pub to: NodeId,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no path from node {} to node {}", self.from.0, self.to.0)
    }
}

impl std::error::Error for Unreachable {}

impl Routes {
    pub fn of(topology: &Topology) -> Self {
        Self::chosen_by(topology, RouteHash::default())
    }

    /// Routes among which flows choose by this hash.
    pub fn chosen_by(topology: &Topology, hash: RouteHash) -> Self {
        let mut ports = topology.ports();
        hash.sort_neighbours(topology, &mut ports);
        let (access, racks) = attach(topology, &ports);
        let mut drafts = vec![RoutesDraft::default(); topology.nodes.len()];
        for rack in racks {
            let visits = visits(topology, &ports, rack);
            for switch in topology.switches() {
                let mut nearer = closer(topology, &ports, &visits, switch);
                if hash == RouteHash::HpccNs3 {
                    nearer.sort_by_key(|port| visits[topology.to(*port).index()].map(|visit| visit.turn));
                }
                drafts[switch.index()].add(nearer);
            }
        }
        Self {
            access,
            tables: drafts.into_iter().map(|draft| draft.table).collect(),
            leads_to: topology.link_ids().flat_map(|link| [topology.link(link).b, topology.link(link).a]).collect(),
            hash,
        }
    }

    /// Replaces `hops` with the directed links that a flow of this hash takes to a host, in order.
    pub fn path(&self, from: NodeId, to: NodeId, hash: u64, hops: &mut Vec<DirectedLink>) -> Result<(), Unreachable> {
        hops.clear();
        let mut at = from;
        while at != to {
            let port = self.next(at, to, hash).ok_or(Unreachable { from, to })?;
            hops.push(port);
            at = self.leads_to[port.index()];
        }
        Ok(())
    }

    /// Next link of a flow of this hash on its way to a host.
    pub fn next(&self, at: NodeId, to: NodeId, hash: u64) -> Option<DirectedLink> {
        let ports = self.choices(at, to);
        ports.get(self.hash.choose(at, to, hash, ports.len())).copied()
    }

    /// The node at the far end of a link.
    pub fn leads_to(&self, port: DirectedLink) -> NodeId {
        self.leads_to[port.index()]
    }

    /// The ports of a node that are equally near to a host; none if that cannot be reached, or is no host.
    pub fn choices(&self, at: NodeId, to: NodeId) -> &[DirectedLink] {
        let Some(destination) = &self.access[to.index()] else { return &[] };
        if at == self.leads_to[destination.uplink.index()] {
            return slice::from_ref(&destination.downlink);
        }
        match &self.access[at.index()] {
            Some(host) => slice::from_ref(&host.uplink),
            None => self.tables[at.index()].ports(destination.rack),
        }
    }
}

/// Attachment of each host, and the switches that hosts are attached to.
fn attach(topology: &Topology, ports: &[RoutePorts]) -> (Vec<Option<HostAccess>>, Vec<NodeId>) {
    let mut racks = BTreeMap::new();
    let mut access = vec![None; topology.nodes.len()];
    for host in topology.hosts() {
        access[host.index()] = ports[host.index()].first().map(|uplink| {
            let next = racks.len();
            let rack = *racks.entry(topology.to(*uplink)).or_insert(next);
            HostAccess { uplink: *uplink, downlink: uplink.reversed(), rack }
        });
    }
    let mut switches: Vec<(usize, NodeId)> = racks.into_iter().map(|(switch, rack)| (rack, switch)).collect();
    switches.sort_unstable();
    (access, switches.into_iter().map(|(_, switch)| switch).collect())
}

/// Visit of a switch by a search from a rack.
#[derive(Clone, Copy, Debug)]
struct SwitchVisit {
    /// Links from the rack's switch.
    away: u32,
    /// Number of switches that came before it.
    turn: u32,
}

/// The nearest switches first, each one's neighbours in the order of `ports`. Hosts are not visited: nothing passes through them.
fn visits(topology: &Topology, ports: &[RoutePorts], rack: NodeId) -> Vec<Option<SwitchVisit>> {
    let mut visits = vec![None; ports.len()];
    let mut to_visit = VecDeque::from([(rack, 0)]);
    let mut turn = 0;
    visits[rack.index()] = Some(SwitchVisit { away: 0, turn });
    while let Some((node, away)) = to_visit.pop_front() {
        for next in ports[node.index()].iter().map(|port| topology.to(*port)) {
            if !topology.is_host(next) && visits[next.index()].is_none() {
                turn += 1;
                visits[next.index()] = Some(SwitchVisit { away: away + 1, turn });
                to_visit.push_back((next, away + 1));
            }
        }
    }
    visits
}

/// The ports of a switch that lead one link nearer.
fn closer(topology: &Topology, ports: &[RoutePorts], visits: &[Option<SwitchVisit>], switch: NodeId) -> RoutePorts {
    let Some(here) = visits[switch.index()] else { return Vec::new() };
    let nearer =
        |port: &DirectedLink| visits[topology.to(*port).index()].is_some_and(|next| next.away + 1 == here.away);
    ports[switch.index()].iter().copied().filter(nearer).collect()
}

/// A table under construction, with the index of each group.
#[derive(Clone, Default)]
struct RoutesDraft {
    table: SwitchRoutes,
    known: BTreeMap<RoutePorts, u16>,
}

impl RoutesDraft {
    /// The ports to the next rack.
    fn add(&mut self, ports: RoutePorts) {
        let next = u16::try_from(self.table.groups.len()).expect("a topology has fewer racks than that");
        let group = *self.known.entry(ports).or_insert_with_key(|ports| {
            self.table.groups.push(ports.clone());
            next
        });
        self.table.group_of.push(group);
    }
}

#[cfg(test)]
mod tests {
    use units::{Rate, Span};

    use super::*;

    const RATE: Rate = Rate::gbps(100);
    const DELAY: Span = Span::from_us(1);

    fn fat_tree(k: u32) -> Topology {
        Topology::fat_tree(k, RATE, DELAY).unwrap()
    }

    fn path(topology: &Topology, from: &str, to: &str, hash: u64) -> Vec<String> {
        let mut hops = Vec::new();
        let [from, to] = [from, to].map(|name| topology.node(name).unwrap());
        Routes::of(topology).path(from, to, hash, &mut hops).unwrap();
        let visited = std::iter::once(from).chain(hops.iter().map(|port| topology.to(*port)));
        assert!(hops.is_sorted_by(|a, b| topology.to(*a) == topology.from(*b)), "the hops are joined");
        visited.map(|node| topology.name(node).to_string()).collect()
    }

    fn equal_cost_paths(topology: &Topology, routes: &Routes, from: NodeId, to: NodeId) -> u64 {
        if from == to {
            return 1;
        }
        let choices = routes.choices(from, to);
        choices.iter().map(|port| equal_cost_paths(topology, routes, topology.to(*port), to)).sum()
    }

    #[test]
    fn a_path_visits_what_lies_between() {
        assert_eq!(path(&Topology::testbed(RATE), "h4", "h8", 1), ["h4", "sw2", "sw6", "h8"]);
        assert_eq!(path(&Topology::testbed(RATE), "sw6", "h4", 1), ["sw6", "sw2", "h4"]);
        assert_eq!(path(&Topology::pair(RATE, DELAY), "h0", "h1", 1), ["h0", "h1"]);
        assert_eq!(path(&Topology::pair(RATE, DELAY), "h1", "h0", 1), ["h1", "h0"]);
        assert_eq!(path(&Topology::chain(3, RATE, DELAY).unwrap(), "h1", "h0", 1), ["h1", "sw2", "sw1", "sw0", "h0"]);
        assert_eq!(path(&Topology::testbed(RATE), "h4", "h4", 1), ["h4"]);
    }

    #[test]
    fn a_fat_tree_has_paths_of_two_four_and_six_links() {
        let topology = fat_tree(4);
        for (to, links) in [("h1", 2), ("h2", 4), ("h3", 4), ("h4", 6), ("h15", 6)] {
            assert_eq!(path(&topology, "h0", to, 7).len() - 1, links, "{to}");
        }
    }

    #[test]
    fn as_many_paths_cost_the_same_as_there_are_ways_up() {
        for (topology, from, to, paths) in [
            (fat_tree(4), 0, 1, 1),
            (fat_tree(4), 0, 2, 2),
            (fat_tree(4), 0, 15, 4),
            (fat_tree(16), 0, 1_023, 64),
            (Topology::hpcc(), 0, 319, 16),
            (Topology::leaf_spine(4, 3, 2, RATE, RATE, DELAY).unwrap(), 0, 7, 3),
        ] {
            let routes = Routes::of(&topology);
            assert_eq!(equal_cost_paths(&topology, &routes, NodeId(from), NodeId(to)), paths, "{from} → {to}");
        }
    }

    #[test]
    fn every_host_reaches_every_other_by_a_shortest_path() {
        let topology = Topology::hpcc();
        let routes = Routes::of(&topology);
        let mut hops = Vec::new();
        for from in topology.hosts() {
            for to in topology.hosts().filter(|to| *to != from) {
                routes.path(from, to, u64::from(from.0), &mut hops).unwrap();
                let links = match (from.0 / 16 == to.0 / 16, from.0 / 64 == to.0 / 64) {
                    (true, _) => 2,
                    (false, true) => 4,
                    (false, false) => 6,
                };
                assert_eq!(hops.len(), links, "{from:?} → {to:?}");
            }
        }
    }

    #[test]
    fn flows_spread_over_every_core_even_if_their_hashes_are_numbers_in_a_row() {
        let topology = fat_tree(8);
        let routes = Routes::of(&topology);
        let mut flows_of_core = BTreeMap::new();
        let mut hops = Vec::new();
        for hash in 0..16_000 {
            routes.path(NodeId(0), NodeId(127), hash, &mut hops).unwrap();
            *flows_of_core.entry(topology.name(topology.to(hops[2]))).or_insert(0_u32) += 1;
        }
        assert_eq!(flows_of_core.len(), 16);
        // A thousand expected in each, with a standard deviation of 31.
        for (core, flows) in flows_of_core {
            assert!((875..1_125).contains(&flows), "{core} has {flows}");
        }
    }

    /// Two paths from switch 2, by 4 or 3, in this order whatever the order of their links. Computed apart from this code:
    /// Murmur3 with seed 2 over the addresses of nodes 0 and 1 and ports 10,000, 10,001, … and 100, modulo 2.
    #[test]
    fn flows_of_a_pair_choose_as_in_the_simulator_of_hpccs_authors() {
        for (first, second) in [(3, 4), (4, 3)] {
            let file = format!(
                "6 4 6\n2 3 4 5\n0 2 100Gbps 1us 0\n1 5 100Gbps 1us 0\n2 {first} 100Gbps 1us 0\n2 {second} 100Gbps 1us 0\n\
                 3 5 100Gbps 1us 0\n4 5 100Gbps 1us 0\n"
            );
            let topology = Topology::parse_hpcc_ns3(&file).unwrap().topology;
            let routes = Routes::chosen_by(&topology, RouteHash::HpccNs3);
            let mut hops = Vec::new();
            let by = |port| {
                routes.path(NodeId(0), NodeId(1), RouteHash::key(NodeId(0), [port, 100]), &mut hops).unwrap();
                topology.to(hops[1]).0
            };
            assert_eq!([10_000, 10_001, 10_002, 10_003].map(by), [4, 4, 3, 4]);
        }
    }

    /// Host 1 is behind switch 7. Its neighbours are 6 and then 3; 4 is found from 6, before 5, which is found from 3. So
    /// switch 2 has 4 before 5, though of two neighbours the higher number comes first.
    #[test]
    fn equal_ports_are_in_the_order_of_a_search_from_the_receiver_there() {
        let file = "8 6 8\n2 3 4 5 6 7\n0 2 100Gbps 1us 0\n1 7 100Gbps 1us 0\n7 3 100Gbps 1us 0\n7 6 100Gbps 1us 0\n\
                    6 4 100Gbps 1us 0\n3 5 100Gbps 1us 0\n2 5 100Gbps 1us 0\n2 4 100Gbps 1us 0\n";
        let topology = Topology::parse_hpcc_ns3(file).unwrap().topology;
        let routes = Routes::chosen_by(&topology, RouteHash::HpccNs3);
        let next = |at, to| {
            let ports = routes.choices(NodeId(at), NodeId(to));
            ports.iter().map(|port| topology.to(*port).0).collect::<Vec<_>>()
        };
        assert_eq!([next(2, 1), next(7, 0)], [vec![4, 5], vec![3, 6]]);
    }

    #[test]
    fn the_same_flow_takes_the_same_path() {
        let topology = fat_tree(8);
        assert_eq!(path(&topology, "h3", "h99", 42), path(&topology, "h3", "h99", 42));
    }

    #[test]
    fn several_links_between_two_nodes_are_all_used() {
        let mut topology = Topology::testbed(RATE);
        topology.links.push(topology.links[1]);
        let routes = Routes::of(&topology);
        assert_eq!(equal_cost_paths(&topology, &routes, NodeId(0), NodeId(1)), 2);
    }

    #[test]
    fn a_host_that_cannot_be_reached_is_reported() {
        let mut topology = Topology::testbed(RATE);
        topology.links.remove(1);
        let routes = Routes::of(&topology);
        let [h4, h8, sw2] = ["h4", "h8", "sw2"].map(|name| topology.node(name).unwrap());
        let mut hops = Vec::new();
        for from in [h4, sw2] {
            assert_eq!(routes.path(from, h8, 0, &mut hops), Err(Unreachable { from, to: h8 }));
        }
        assert!(routes.path(sw2, h4, 0, &mut hops).is_ok());
        assert!(routes.path(h4, sw2, 0, &mut hops).is_err(), "only hosts are destinations");
    }
}

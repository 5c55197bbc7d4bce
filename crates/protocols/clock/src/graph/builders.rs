//! Fabrics that papers use, down to the hosts.
//!
//! Switches, their names and their order are those of the fabrics of `fleet`; hosts come behind them.

use super::build::check_size;
use super::{Graph, GraphError, GraphNode};

/// Links from hosts to their ToRs (edge switches).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLinks {
    /// There are no hosts.
    None,
    /// Each host has one link, to its ToR: it can have no backup parent.
    Single,
    /// Each host has two links, to its ToR and to the other of a pair of ToRs.
    Dual,
}

impl HostLinks {
    /// The ToRs of a host, by the first one's number. ToRs are in pairs, whose numbers differ in the lowest bit.
    fn tors(self, tor: u32) -> impl Iterator<Item = u32> {
        let second = (self == Self::Dual).then_some(tor ^ 1);
        std::iter::once(tor).chain(second)
    }

    /// Number of hosts where there is room for `hosts`.
    fn count(self, hosts: u32) -> u32 {
        if self == Self::None { 0 } else { hosts }
    }
}

/// Hosts of each ToR in Facebook's fabric.
const HOSTS_OF_A_POD_TOR: u32 = 16;

impl Graph {
    /// Al-Fares et al. (SIGCOMM'08): `pod<p>/edge<e>`, `pod<p>/agg<a>`, `core<c>`, and k/2 hosts `pod<p>/host<h>` at each edge switch.
    pub fn fat_tree(k: u32, hosts: HostLinks) -> Result<Self, GraphError> {
        let half = k / 2;
        expect((2..=512).contains(&k) && k.is_multiple_of(2), "an even number of ports per switch, from 2 to 512")?;
        expect(
            hosts != HostLinks::Dual || half.is_multiple_of(2),
            "edge switches in pairs for hosts with two links: k a multiple of 4",
        )?;
        let tiers = PodTiers { pods: k, lower: half, upper: half, tops: half, hosts, per_lower: half };
        tiers.build(["edge", "agg"], |group, core| format!("core{}", group * half + core))
    }

    /// Facebook's fabric: pods of 48 ToRs `pod<p>/tor<t>` and 4 fabric switches `pod<p>/fabric<f>`, 4 planes of 48 spines
    /// `plane<f>/spine<s>`, and 16 hosts `pod<p>/host<h>` at each ToR.
    pub fn pods(pods: u32, hosts: HostLinks) -> Result<Self, GraphError> {
        expect((1..=5_000).contains(&pods), "from 1 to 5000 pods")?;
        let tiers = PodTiers { pods, lower: 48, upper: 4, tops: 48, hosts, per_lower: HOSTS_OF_A_POD_TOR };
        tiers.build(["tor", "fabric"], |plane, spine| format!("plane{plane}/spine{spine}"))
    }

    /// Google's Jupiter (Singh et al., SIGCOMM'15), wired to 88,064 nodes with hosts (thesis §3.6): 256 spine blocks, 64 aggregation
    /// blocks of 8 middle blocks, 128 ToRs and 1,024 hosts.
    pub fn jupiter(hosts: HostLinks) -> Result<Self, GraphError> {
        let jupiter = Jupiter { hosts: hosts.count(1_024) };
        let graph = Self::new(jupiter.names(), jupiter.links(hosts))?;
        Ok(graph.with_usual_roots((0..SPINES).map(|spine| GraphNode(jupiter.spine_up(spine, 0)))))
    }

    /// The testbed of thesis §3.6, 23 pods of 12 switches and 24 servers. Its wiring is not published; this one has its depth: 2 tops,
    /// 2 uppers, 4 middles, 4 ToRs, neighbouring tiers of a pod fully linked, and both tops linked to both tops of every other pod.
    pub fn testbed(hosts: HostLinks) -> Result<Self, GraphError> {
        const TIERS: [(&str, u32, u32); 4] = [("top", 0, 2), ("upper", 2, 2), ("mid", 4, 4), ("tor", 8, 4)];
        const PODS: u32 = 23;
        let servers = hosts.count(24);
        let first = |pod: u32| pod * (12 + servers);
        let names = (0..PODS).flat_map(|pod| {
            let switches = TIERS.into_iter().flat_map(|(tier, _, many)| (0..many).map(move |number| (tier, number)));
            let servers = (0..servers).map(|number| ("server", number));
            switches.chain(servers).map(move |(tier, number)| format!("pod{pod}/{tier}{number}"))
        });
        let mut links = Vec::new();
        for pod in 0..PODS {
            for pair in TIERS.windows(2) {
                let [(_, above, uppers), (_, below, lowers)] = [pair[0], pair[1]];
                let here = first(pod);
                links.extend((0..uppers).flat_map(|u| (0..lowers).map(move |l| [here + below + l, here + above + u])));
            }
            for server in 0..servers {
                links.extend(hosts.tors(server / 6).map(|tor| [first(pod) + 12 + server, first(pod) + 8 + tor]));
            }
            for other in pod + 1..PODS {
                links.extend((0..4).map(|pair| [first(pod) + pair / 2, first(other) + pair % 2]));
            }
        }
        Ok(Self::new(names, links)?.with_usual_roots((0..PODS).map(|pod| GraphNode(first(pod)))))
    }
}

fn expect(holds: bool, expected: &'static str) -> Result<(), GraphError> {
    if holds { Ok(()) } else { Err(GraphError::Shape(expected)) }
}

/// Within a pod every lower switch is linked to every upper one; the n-th upper switch of every pod to the n-th group of tops.
struct PodTiers {
    pods: u32,
    lower: u32,
    upper: u32,
    tops: u32,
    hosts: HostLinks,
    per_lower: u32,
}

impl PodTiers {
    fn build(&self, [low, up]: [&str; 2], top: impl Fn(u32, u32) -> String) -> Result<Graph, GraphError> {
        let &Self { pods, lower, upper, tops, hosts, per_lower } = self;
        let per_pod = hosts.count(lower * per_lower);
        let switches = pods * (lower + upper) + upper * tops;
        check_size((switches + pods * per_pod) as usize, (pods * (upper * (lower + tops) + 2 * per_pod)) as usize)?;
        let mut names = Vec::new();
        for pod in 0..pods {
            names.extend((0..lower).map(|number| format!("pod{pod}/{low}{number}")));
            names.extend((0..upper).map(|number| format!("pod{pod}/{up}{number}")));
        }
        let first_top = names.len() as u32;
        names.extend(
            (0..upper)
                .flat_map(|group| (0..tops).map(move |number| (group, number)))
                .map(|(group, number)| top(group, number)),
        );
        names.extend((0..pods).flat_map(|pod| (0..per_pod).map(move |host| format!("pod{pod}/host{host}"))));
        let mut links = Vec::new();
        for pod in 0..pods {
            let first_low = pod * (lower + upper);
            let first_up = first_low + lower;
            links.extend((0..lower).flat_map(|low| (0..upper).map(move |up| [first_low + low, first_up + up])));
            links.extend(
                (0..upper).flat_map(|up| (0..tops).map(move |top| [first_up + up, first_top + up * tops + top])),
            );
        }
        for (pod, host) in (0..pods).flat_map(|pod| (0..per_pod).map(move |host| (pod, host))) {
            let here = switches + pod * per_pod + host;
            links.extend(hosts.tors(host / per_lower).map(|tor| [here, pod * (lower + upper) + tor]));
        }
        Ok(Graph::new(names, links)?.with_usual_roots((first_top..switches).map(GraphNode)))
    }
}

/// The numbers of Jupiter's nodes: aggregation blocks first, each with all that is in it, then spine blocks.
struct Jupiter {
    /// Hosts in an aggregation block.
    hosts: u32,
}

const AGGS: u32 = 64;
const SPINES: u32 = 256;
const MIDDLES: u32 = 8;
const TORS: u32 = 128;
const HOSTS_OF_A_TOR: u32 = 8;
/// Chips of a middle block: 8 up, 8 low.
const MIDDLE_CHIPS: u32 = 16;
/// Chips of a spine block: 8 up, 16 low.
const SPINE_CHIPS: u32 = 24;

impl Jupiter {
    fn agg(&self, agg: u32) -> u32 {
        agg * (MIDDLES * MIDDLE_CHIPS + TORS + self.hosts)
    }

    fn middle_up(&self, agg: u32, middle: u32, up: u32) -> u32 {
        self.agg(agg) + middle * MIDDLE_CHIPS + up
    }

    fn middle_low(&self, agg: u32, middle: u32, low: u32) -> u32 {
        self.middle_up(agg, middle, 8 + low)
    }

    fn tor(&self, agg: u32, tor: u32) -> u32 {
        self.agg(agg) + MIDDLES * MIDDLE_CHIPS + tor
    }

    fn host(&self, agg: u32, host: u32) -> u32 {
        self.tor(agg, TORS) + host
    }

    fn spine_up(&self, spine: u32, up: u32) -> u32 {
        self.agg(AGGS) + spine * SPINE_CHIPS + up
    }

    fn spine_low(&self, spine: u32, low: u32) -> u32 {
        self.spine_up(spine, 8 + low)
    }

    /// Names in the order of the numbers.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.spine_up(SPINES, 0) as usize);
        for agg in 0..AGGS {
            for middle in 0..MIDDLES {
                names.extend((0..8).map(|up| format!("agg{agg}/mb{middle}/up{up}")));
                names.extend((0..8).map(|low| format!("agg{agg}/mb{middle}/low{low}")));
            }
            names.extend((0..TORS).map(|tor| format!("agg{agg}/tor{tor}")));
            names.extend((0..self.hosts).map(|host| format!("agg{agg}/host{host}")));
        }
        for spine in 0..SPINES {
            names.extend((0..8).map(|up| format!("spine{spine}/up{up}")));
            names.extend((0..16).map(|low| format!("spine{spine}/low{low}")));
        }
        names
    }

    fn links(&self, hosts: HostLinks) -> Vec<[u32; 2]> {
        let mut links = Vec::with_capacity(360_448);
        for agg in 0..AGGS {
            for host in 0..self.hosts {
                links.extend(hosts.tors(host / HOSTS_OF_A_TOR).map(|tor| [self.host(agg, host), self.tor(agg, tor)]));
            }
            for (tor, middle) in (0..TORS).flat_map(|tor| (0..MIDDLES).map(move |middle| (tor, middle))) {
                let lows = [tor, tor + 128].map(|port| self.middle_low(agg, middle, port / 32));
                links.extend(lows.map(|low| [self.tor(agg, tor), low]));
            }
            for (middle, pair) in (0..MIDDLES).flat_map(|middle| (0..64).map(move |pair| (middle, pair))) {
                links.push([self.middle_low(agg, middle, pair / 8), self.middle_up(agg, middle, pair % 8)]);
            }
            for uplink in 0..512 {
                let up = self.middle_up(agg, uplink / 64, uplink / 8 % 8);
                links.push([up, self.spine_low(uplink % 256, (agg + 64 * (uplink / 256)) / 8)]);
            }
        }
        for (spine, pair) in (0..SPINES).flat_map(|spine| (0..128).map(move |pair| (spine, pair))) {
            links.push([self.spine_low(spine, pair / 8), self.spine_up(spine, pair % 8)]);
        }
        links
    }
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

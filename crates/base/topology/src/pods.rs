//! Three tiers. Within a pod every lower switch is linked to every upper one; the n-th upper switch of every pod is linked to
//! the n-th group of tops.

use crate::{HostLinks, ShapeNode, ShapeSize, ShapeWiring};

/// Pods of lower and upper switches, groups of top switches, and hosts below.
///
/// Tier 1 are the lower switches and tier 2 the upper ones, whose blocks are pods; tier 3 are the tops, whose blocks are
/// groups. Blocks of hosts are pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pods {
    pub pods: u32,
    /// Lower switches in each pod; an even number if hosts have two links.
    pub lower: u32,
    /// Upper switches in each pod, one for each group of tops.
    pub upper: u32,
    /// Tops in each group.
    pub tops: u32,
    /// Hosts at each lower switch, unless `host_links` says that there are none.
    pub hosts: u32,
    pub host_links: HostLinks,
}

/// Order of nodes and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOrder {
    /// Each pod with both its tiers and all its links upwards, then tops, then hosts.
    Pods,
    /// Hosts, then each tier of switches, and links in the same order.
    Tiers,
}

/// Names of nodes as paths, after the paper that a shape is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodNames {
    /// `pod0/edge1`, `pod0/agg1`, `core3`.
    FatTree,
    /// `pod0/tor1`, `pod0/fabric1`, `plane0/spine3`.
    Facebook,
}

impl Pods {
    /// Al-Fares et al. (SIGCOMM'08): k pods of k/2 edge and k/2 aggregation switches, k²/4 cores, and room for k/2 hosts at
    /// each edge switch. `None` unless k is even and at least 2.
    pub fn fat_tree(k: u32, host_links: HostLinks) -> Option<Self> {
        let half = k / 2;
        let pods = Self { pods: k, lower: half, upper: half, tops: half, hosts: half, host_links };
        (k >= 2 && k.is_multiple_of(2)).then_some(pods)
    }

    /// Facebook's fabric (Andreyev, 2014), as in LinkGuardian (SIGCOMM'23) Fig. 4: pods of 48 ToRs and 4 fabric switches,
    /// 4 planes of 48 spines, and room for 16 hosts at each ToR.
    pub const fn facebook(pods: u32, host_links: HostLinks) -> Self {
        Self { pods, lower: 48, upper: 4, tops: 48, hosts: 16, host_links }
    }

    /// Numbers of nodes and links.
    pub fn size(&self) -> ShapeSize {
        let hosts = self.host_links.count(self.hosts);
        let [pods, lower, upper, tops, hosts] = [self.pods, self.lower, self.upper, self.tops, hosts].map(u128::from);
        let hosts = pods * lower * hosts;
        ShapeSize {
            hosts,
            switches: pods * (lower + upper) + upper * tops,
            links: pods * upper * (lower + tops) + hosts * u128::from(self.host_links.of_each()),
        }
    }

    /// Nodes and links in this order; the size must have been checked.
    pub fn wiring(&self, order: NodeOrder) -> ShapeWiring {
        let mut wiring = self.nodes(order);
        match order {
            NodeOrder::Pods => {
                for pod in 0..self.pods {
                    self.link_pod(&mut wiring, pod);
                    self.link_tops(&mut wiring, pod);
                }
                (0..self.pods).for_each(|pod| wiring.link_hosts(pod, self.hosts, self.host_links));
            }
            NodeOrder::Tiers => {
                (0..self.pods).for_each(|pod| wiring.link_hosts(pod, self.hosts, self.host_links));
                (0..self.pods).for_each(|pod| self.link_pod(&mut wiring, pod));
                (0..self.pods).for_each(|pod| self.link_tops(&mut wiring, pod));
            }
        }
        wiring
    }

    fn nodes(&self, order: NodeOrder) -> ShapeWiring {
        let mut wiring = ShapeWiring::of_size(self.size());
        let hosts = self.host_links.count(self.hosts) * self.lower;
        let pods = |wiring: &mut ShapeWiring, tiers: &[(u8, u32)]| {
            for _ in 0..self.pods {
                tiers.iter().for_each(|(tier, nodes)| wiring.add_block(*tier, *nodes));
            }
        };
        match order {
            NodeOrder::Pods => pods(&mut wiring, &[(1, self.lower), (2, self.upper)]),
            NodeOrder::Tiers => {
                [(0, hosts), (1, self.lower), (2, self.upper)].iter().for_each(|tier| pods(&mut wiring, &[*tier]));
            }
        }
        (0..self.upper).for_each(|_| wiring.add_block(3, self.tops));
        if order == NodeOrder::Pods {
            pods(&mut wiring, &[(0, hosts)]);
        }
        wiring
    }

    fn link_pod(&self, wiring: &mut ShapeWiring, pod: u32) {
        wiring.link_all(wiring.block(1, pod), wiring.block(2, pod));
    }

    fn link_tops(&self, wiring: &mut ShapeWiring, pod: u32) {
        for (group, upper) in (0..).zip(wiring.block(2, pod)) {
            wiring.link_all(upper..upper + 1, wiring.block(3, group));
        }
    }

    /// Number of a top among those of all groups.
    pub const fn top(&self, node: ShapeNode) -> u32 {
        node.block * self.tops + node.number
    }

    /// Name of a node. Hosts are `pod0/host1`.
    pub fn name(&self, names: PodNames, node: ShapeNode) -> String {
        let ShapeNode { tier, block, number } = node;
        match (tier, names) {
            (0, _) => format!("pod{block}/host{number}"),
            (1, PodNames::FatTree) => format!("pod{block}/edge{number}"),
            (2, PodNames::FatTree) => format!("pod{block}/agg{number}"),
            (_, PodNames::FatTree) => format!("core{}", self.top(node)),
            (1, PodNames::Facebook) => format!("pod{block}/tor{number}"),
            (2, PodNames::Facebook) => format!("pod{block}/fabric{number}"),
            (_, PodNames::Facebook) => format!("plane{block}/spine{number}"),
        }
    }
}

//! The testbed of Sundial's thesis §3.6: 23 pods of 12 switches and 24 servers.
//!
//! Its wiring is not published; this one has its depth: 2 tops (tier 4), 2 uppers (3), 4 middles (2) and 4 ToRs (1) in each
//! pod, neighbouring tiers of a pod fully linked, and both tops linked to both tops of every other pod. Pods are numbered one
//! after the other, each from its tops down to its servers.

use crate::{HostLinks, ShapeSize, ShapeWiring};

const PODS: u32 = 23;
const SERVERS_OF_A_TOR: u32 = 6;
/// Tiers of a pod's switches from the top down, and the switches of each.
const TIERS: [(u8, u32); 4] = [(4, 2), (3, 2), (2, 4), (1, 4)];

/// Numbers of nodes and links.
pub fn size(hosts: HostLinks) -> ShapeSize {
    let servers = PODS * hosts.count(4 * SERVERS_OF_A_TOR);
    let links = PODS * (2 * 2 + 2 * 4 + 4 * 4) + PODS * (PODS - 1) / 2 * 4 + servers * hosts.of_each();
    ShapeSize { hosts: servers.into(), switches: (PODS * 12).into(), links: links.into() }
}

/// Nodes and links.
pub fn wiring(hosts: HostLinks) -> ShapeWiring {
    let mut wiring = ShapeWiring::of_size(size(hosts));
    for _ in 0..PODS {
        TIERS.into_iter().for_each(|(tier, switches)| wiring.add_block(tier, switches));
        wiring.add_block(0, hosts.count(4 * SERVERS_OF_A_TOR));
    }
    for pod in 0..PODS {
        for tier in [4, 3, 2] {
            for upper in wiring.block(tier, pod) {
                wiring.links.extend(wiring.block(tier - 1, pod).map(|lower| [lower, upper]));
            }
        }
        wiring.link_hosts(pod, SERVERS_OF_A_TOR, hosts);
        (pod + 1..PODS).for_each(|other| wiring.link_all(wiring.block(4, pod), wiring.block(4, other)));
    }
    wiring
}

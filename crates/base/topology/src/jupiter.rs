//! Google's Jupiter (Singh et al., SIGCOMM'15), wired to 88,064 nodes with hosts (Sundial's thesis §3.6): 64 aggregation blocks
//! of 8 middle blocks, 128 ToRs and 1,024 hosts, and 256 spine blocks.
//!
//! Nodes are numbered block by block: each aggregation block with all that is in it, then spine blocks. Tiers from 1 upwards
//! are ToRs, lower and upper chips of middle blocks, lower and upper chips of spine blocks.

use crate::{HostLinks, ShapeNode, ShapeSize, ShapeWiring};

const AGGS: u32 = 64;
const SPINES: u32 = 256;
/// Middle blocks of an aggregation block, each with 8 chips up and 8 low.
const MIDDLES: u32 = 8;
const TORS: u32 = 128;
const HOSTS_OF_A_TOR: u32 = 8;
/// Chips of a spine block with links down; 8 are above them.
const SPINE_LOWS: u32 = 16;

/// Nodes and links.
pub fn wiring(hosts: HostLinks) -> ShapeWiring {
    let mut wiring = nodes(hosts);
    for agg in 0..AGGS {
        wiring.link_hosts(agg, HOSTS_OF_A_TOR, hosts);
        link_agg(&mut wiring, agg);
    }
    (0..SPINES).for_each(|spine| wiring.link_all(wiring.block(4, spine), wiring.block(5, spine)));
    wiring
}

/// Numbers of nodes and links.
pub fn size(hosts: HostLinks) -> ShapeSize {
    let here = AGGS * hosts.count(TORS * HOSTS_OF_A_TOR);
    let links = AGGS * (TORS * MIDDLES * 2 + MIDDLES * 64 + 512) + SPINES * SPINE_LOWS * 8 + here * hosts.of_each();
    let switches = AGGS * (MIDDLES * 16 + TORS) + SPINES * (SPINE_LOWS + 8);
    ShapeSize { hosts: here.into(), switches: switches.into(), links: links.into() }
}

/// Name of a node, such as `agg3/tor127`, `agg9/mb4/up1` or `spine8/low9`.
pub fn name(node: ShapeNode) -> String {
    let ShapeNode { tier, block, number } = node;
    let (agg, middle) = (block / MIDDLES, block % MIDDLES);
    match tier {
        0 => format!("agg{block}/host{number}"),
        1 => format!("agg{block}/tor{number}"),
        2 => format!("agg{agg}/mb{middle}/low{number}"),
        3 => format!("agg{agg}/mb{middle}/up{number}"),
        4 => format!("spine{block}/low{number}"),
        _ => format!("spine{block}/up{number}"),
    }
}

fn nodes(hosts: HostLinks) -> ShapeWiring {
    let mut wiring = ShapeWiring::of_size(size(hosts));
    for _ in 0..AGGS {
        for _ in 0..MIDDLES {
            wiring.add_block(3, 8);
            wiring.add_block(2, 8);
        }
        wiring.add_block(1, TORS);
        wiring.add_block(0, hosts.count(TORS * HOSTS_OF_A_TOR));
    }
    for _ in 0..SPINES {
        wiring.add_block(5, 8);
        wiring.add_block(4, SPINE_LOWS);
    }
    wiring
}

/// Links of an aggregation block: ToRs to two chips of each middle block, the chips within, and 512 uplinks.
fn link_agg(wiring: &mut ShapeWiring, agg: u32) {
    let first_middle = agg * MIDDLES;
    for (tor, middle) in (0..TORS).flat_map(|tor| (0..MIDDLES).map(move |middle| (tor, middle))) {
        for port in [tor, tor + TORS] {
            let low = wiring.number(2, first_middle + middle, port / 32);
            wiring.links.push([wiring.number(1, agg, tor), low]);
        }
    }
    for middle in first_middle..first_middle + MIDDLES {
        wiring.link_all(wiring.block(2, middle), wiring.block(3, middle));
    }
    for uplink in 0..512 {
        let up = wiring.number(3, first_middle + uplink / 64, uplink / 8 % 8);
        let low = wiring.number(4, uplink % SPINES, (agg + AGGS * (uplink / SPINES)) / 8);
        wiring.links.push([up, low]);
    }
}

//! Access lists and traffic to try things with, in the manner of ClassBench: the same seed, the same rules.
//!
//! Addresses come from networks that share their first bits: a number of /16 blocks, in them subnets, in them hosts, all
//! drawn from pools, so that rules meet again in addresses, nest and overlap. Lengths of prefixes, kinds of port ranges and
//! protocols are drawn by shares ([`Mix`]) that resemble filters of real networks: hosts and subnets on either side, sources
//! often any, ports of sources nearly always any, ports of destinations mostly one, most of it TCP. Rules that match
//! less come first, so that few are shadowed, and the last denies everything. No two rules match the same.
//!
//! Traffic is drawn from within rules, some of which get much more of it than others; which rule then decides, the table
//! says.

use std::cmp::Reverse;

use super::{AclAction, AclRule, PortRange, Ternary};
use crate::packet::Flow;

/// Shares, each list adding up to one: what the rules of a list are like.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Lengths of the prefixes of sources and of destinations.
    pub src: &'static [(u8, f64)],
    pub dst: &'static [(u8, f64)],
    /// Destination ports: any, one, those above 1,023, some range.
    pub ports: [f64; 4],
    /// Source ports that are not any.
    pub src_ports: f64,
    /// Protocols; `None` for any.
    pub protocols: &'static [(Option<u8>, f64)],
    pub deny: f64,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            src: &[(0, 0.16), (16, 0.06), (20, 0.07), (22, 0.08), (24, 0.2), (28, 0.07), (30, 0.03), (32, 0.33)],
            dst: &[(0, 0.03), (16, 0.04), (21, 0.06), (23, 0.07), (24, 0.17), (27, 0.06), (29, 0.05), (32, 0.52)],
            ports: [0.28, 0.57, 0.07, 0.08],
            src_ports: 0.03,
            protocols: &[(Some(6), 0.76), (Some(17), 0.15), (Some(1), 0.03), (None, 0.06)],
            deny: 0.25,
        }
    }
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct SplitMix(u64);

impl SplitMix {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn share<T: Copy>(&mut self, shares: &[(T, f64)]) -> T {
        let mut left = self.unit();
        for (what, share) in shares {
            left -= share;
            if left < 0.0 {
                return *what;
            }
        }
        shares[shares.len() - 1].0
    }

    fn within(&mut self, PortRange { low, high }: PortRange) -> u16 {
        low + self.below(u64::from(high.saturating_sub(low)) + 1) as u16
    }
}

/// Rules, the first first; `count` of them, the last of which denies what no other matches.
pub fn generate(count: usize, seed: u64, mix: &Mix) -> Vec<AclRule> {
    let mut draw = SplitMix(seed);
    let hosts = (count / 4).max(16);
    let pools = [(); 2].map(|()| pool(&mut draw, hosts));
    let mut rules = Vec::with_capacity(count);
    while rules.len() + 1 < count {
        let missing = count - 1 - rules.len();
        rules.extend((0..missing + missing / 8 + 1).map(|_| rule(&mut draw, &pools, mix)));
        rules.sort_by_key(order);
        rules.dedup_by_key(|rule| order(rule));
        // Too many: those that go are drawn, lest it be those that match most.
        while rules.len() + 1 > count {
            let going = draw.below(rules.len() as u64) as usize;
            rules.swap_remove(going);
        }
        rules.sort_by_key(order);
    }
    rules.push(AclRule::any(AclAction::Deny));
    rules
}

/// Order of rules: those that match less come first, equals by their address after a shuffle of its bits.
pub(super) fn order(rule: &AclRule) -> (Reverse<u32>, u64, Ternary, Ternary, [PortRange; 2], Ternary) {
    let AclRule { src, dst, src_ports, dst_ports, protocol, .. } = *rule;
    let width = |ports: PortRange| 16 - (u32::from(ports.high - ports.low) + 1).ilog2();
    let bits = src.mask.count_ones() + dst.mask.count_ones() + width(dst_ports) + width(src_ports);
    let shuffled = SplitMix(u64::from(src.value) << 32 | u64::from(dst.value)).next();
    (Reverse(bits + protocol.mask.count_ones()), shuffled, src, dst, [src_ports, dst_ports], protocol)
}

/// Addresses of hosts: a few blocks, in each some subnets, in each some hosts.
pub(super) fn pool(draw: &mut SplitMix, hosts: usize) -> Vec<u32> {
    let blocks: Vec<u32> = (0..(hosts / 2_000).clamp(4, 200)).map(|_| (draw.next() as u32) & 0xffff_0000).collect();
    let subnets: Vec<u32> = (0..(hosts / 24).max(4))
        .map(|_| blocks[draw.below(blocks.len() as u64) as usize] | (draw.below(256) as u32) << 8)
        .collect();
    (0..hosts).map(|_| subnets[draw.below(subnets.len() as u64) as usize] | draw.below(256) as u32).collect()
}

fn rule(draw: &mut SplitMix, [sources, destinations]: &[Vec<u32>; 2], mix: &Mix) -> AclRule {
    let mut address = |hosts: &[u32], lengths: &[(u8, f64)]| {
        let host = hosts[draw.below(hosts.len() as u64) as usize];
        Ternary::prefix(host, draw.share(lengths))
    };
    let (src, dst) = (address(sources, mix.src), address(destinations, mix.dst));
    let protocol = draw.share(mix.protocols);
    let has_ports = matches!(protocol, Some(6 | 17));
    let dst_ports = if has_ports { ports(draw, &mix.ports) } else { PortRange::ANY };
    let is_narrow = has_ports && draw.unit() < mix.src_ports;
    let src_ports = if is_narrow { ports(draw, &[0.0, 0.4, 0.5, 0.1]) } else { PortRange::ANY };
    let protocol = protocol.map_or(Ternary::ANY, |value| Ternary { value: value.into(), mask: 0xff });
    let action = if draw.unit() < mix.deny { AclAction::Deny } else { AclAction::Accept };
    AclRule { src, dst, src_ports, dst_ports, protocol, action }
}

pub(super) fn ports(draw: &mut SplitMix, kinds: &[f64; 4]) -> PortRange {
    const SERVICES: [u16; 16] = [22, 25, 53, 80, 110, 123, 135, 139, 143, 161, 389, 443, 445, 993, 1433, 3306];
    let [any, one, high, range] = *kinds;
    match draw.share(&[(0, any), (1, one), (2, high), (3, range)]) {
        0 => PortRange::ANY,
        1 if draw.unit() < 0.6 => {
            let port = SERVICES[draw.below(16) as usize];
            PortRange { low: port, high: port }
        }
        1 => {
            let port = draw.within(PortRange { low: 1, high: 9_999 });
            PortRange { low: port, high: port }
        }
        2 => PortRange { low: 1_024, high: u16::MAX },
        _ => {
            let low = draw.within(PortRange { low: 1, high: 60_000 });
            PortRange { low, high: low + draw.below(2_000) as u16 }
        }
    }
}

/// Flows that the rules speak of.
pub fn traffic(rules: &[AclRule], flows: usize, seed: u64) -> Vec<Flow> {
    let mut draw = SplitMix(seed ^ 0x6a09_e667_f3bc_c908);
    let count = rules.len().max(1) as f64;
    let mut flow = || {
        // Squared: half of the traffic goes to a quarter of the rules. Which those are has nothing to do with their order.
        let busy = (draw.unit().powi(2) * count) as u64;
        let rule = rules.get((busy.wrapping_mul(0x9e37_79b9) % count as u64) as usize)?;
        let mut address = |Ternary { value, mask }: Ternary| value & mask | draw.next() as u32 & !mask;
        let (src, dst) = (address(rule.src), address(rule.dst));
        let protocol =
            if rule.protocol.mask == 0 { draw.share(&[(6, 0.8), (17, 0.2)]) } else { rule.protocol.value as u8 };
        let has_ports = matches!(protocol, 6 | 17);
        let mut port = |ports: PortRange| if has_ports { draw.within(ports) } else { 0 };
        let (src_port, dst_port) = (port(rule.src_ports), port(rule.dst_ports));
        Some(Flow { src: src.to_be_bytes().into(), dst: dst.to_be_bytes().into(), protocol, src_port, dst_port })
    };
    (0..flows).filter_map(|_| flow()).collect()
}

//! Access lists with the structure that ClassBench describes filter sets by: pairs of prefix lengths instead of two lengths
//! drawn apart, classes of ports, a mix of protocols, and filters that nest within others.
//!
//! Shares are our own. A part of the filters is drawn from pools of addresses, as in [`generate`](super::generate()); each of the
//! others is an existing filter made wider in one field, so that the two nest. No filter is wide in both addresses, and
//! what no filter matches is decided by the table's default, not by a last rule.

use super::generate::{SplitMix, order, pool, ports};
use super::{AclAction, AclRule, PortRange, Ternary};

/// Properties of the filters of a set.
#[derive(Clone, Copy, Debug)]
pub struct FilterStructure {
    /// Lengths of the prefixes of source and destination, with the share of filters that have both.
    pub pairs: &'static [((u8, u8), f64)],
    /// Destination ports: any, one, those above 1,023, some range.
    pub ports: [f64; 4],
    /// Protocols; `None` for any.
    pub protocols: &'static [(Option<u8>, f64)],
    /// Filters that are wider copies of others.
    pub nested: f64,
    pub deny: f64,
}

impl Default for FilterStructure {
    fn default() -> Self {
        Self {
            pairs: &[
                ((32, 32), 0.30),
                ((24, 32), 0.16),
                ((32, 24), 0.12),
                ((24, 24), 0.10),
                ((0, 32), 0.08),
                ((16, 32), 0.07),
                ((28, 32), 0.06),
                ((32, 28), 0.05),
                ((20, 24), 0.03),
                ((24, 20), 0.02),
                ((32, 16), 0.01),
            ],
            ports: [0.2, 0.65, 0.05, 0.1],
            protocols: &[(Some(6), 0.8), (Some(17), 0.14), (Some(1), 0.03), (None, 0.03)],
            nested: 0.6,
            deny: 1.0 / 3.0,
        }
    }
}

/// Prefixes become shorter in these steps.
const STEPS: [u8; 6] = [28, 24, 20, 16, 8, 0];
/// Fewest bits of the longer of the two address prefixes.
const NARROWEST: u32 = 16;

/// `count` filters, those that match less first.
pub fn generate_structured(count: usize, seed: u64, structure: &FilterStructure) -> Vec<AclRule> {
    let mut draw = SplitMix::new(seed);
    let pools = [(); 2].map(|()| pool(&mut draw, (count / 4).max(16)));
    let mut rules: Vec<AclRule> = Vec::with_capacity(count);
    while rules.len() < count {
        for _ in rules.len()..count {
            let wider = (draw.unit() < structure.nested && !rules.is_empty()).then(|| {
                let inner = rules[draw.below(rules.len() as u64) as usize];
                widen(&mut draw, inner)
            });
            let mut rule = wider.flatten().unwrap_or_else(|| base(&mut draw, &pools, structure));
            rule.action = if draw.unit() < structure.deny { AclAction::Deny } else { AclAction::Accept };
            rules.push(rule);
        }
        rules.sort_by_key(order);
        rules.dedup_by_key(|rule| order(rule));
    }
    rules
}

fn base(draw: &mut SplitMix, [sources, destinations]: &[Vec<u32>; 2], structure: &FilterStructure) -> AclRule {
    let (src, dst) = draw.share(structure.pairs);
    let protocol = draw.share(structure.protocols);
    let mut address = |hosts: &[u32], len: u8| Ternary::prefix(hosts[draw.below(hosts.len() as u64) as usize], len);
    let (src, dst) = (address(sources, src), address(destinations, dst));
    let dst_ports = if matches!(protocol, Some(6 | 17)) { ports(draw, &structure.ports) } else { PortRange::ANY };
    let protocol = protocol.map_or(Ternary::ANY, |value| Ternary { value: value.into(), mask: 0xff });
    AclRule { src, dst, dst_ports, protocol, ..AclRule::any(AclAction::Accept) }
}

/// A filter within which this one lies: wider in one field. `None` if the field drawn cannot be.
fn widen(draw: &mut SplitMix, rule: AclRule) -> Option<AclRule> {
    let shorter = |address: Ternary, other: Ternary| {
        let len = STEPS.into_iter().find(|len| u32::from(*len) < address.mask.count_ones())?;
        let is_narrow = other.mask.count_ones() >= NARROWEST || u32::from(len) >= NARROWEST;
        is_narrow.then(|| Ternary::prefix(address.value, len))
    };
    match draw.below(4) {
        0 => Some(AclRule { src: shorter(rule.src, rule.dst)?, ..rule }),
        1 => Some(AclRule { dst: shorter(rule.dst, rule.src)?, ..rule }),
        2 => (rule.dst_ports != PortRange::ANY).then_some(AclRule { dst_ports: PortRange::ANY, ..rule }),
        _ => {
            let is_wider = rule.protocol.mask != 0 && rule.dst_ports == PortRange::ANY;
            is_wider.then_some(AclRule { protocol: Ternary::ANY, ..rule })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_nest_are_different_and_never_wide_in_both_addresses() {
        let rules = generate_structured(2_000, 1, &FilterStructure::default());
        assert_eq!(rules.len(), 2_000);
        assert_eq!(rules, generate_structured(2_000, 1, &FilterStructure::default()));
        let bits = |address: Ternary| address.mask.count_ones();
        assert!(rules.iter().all(|rule| bits(rule.src).max(bits(rule.dst)) >= NARROWEST));
        let within = |inner: &AclRule, outer: &AclRule| {
            let covers =
                |outer: Ternary, inner: Ternary| outer.mask & inner.mask == outer.mask && outer.matches(inner.value);
            covers(outer.src, inner.src)
                && covers(outer.dst, inner.dst)
                && covers(outer.protocol, inner.protocol)
                && outer.dst_ports.low <= inner.dst_ports.low
                && outer.dst_ports.high >= inner.dst_ports.high
        };
        let nested =
            rules.iter().enumerate().filter(|(nth, rule)| rules[nth + 1..].iter().any(|wide| within(rule, wide)));
        let nested = nested.count();
        assert!((600..1_800).contains(&nested), "{nested}");
    }
}

//! One bit of a rule, as hardware keeps it, flipped.

use super::{AclAction, AclRule, PortRange, RuleKey, Ternary};

/// The flipped bit. In a mask, a set bit that is cleared lets the rule match more; a clear bit that is set makes the rule
/// insist on the value below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flip {
    Src(Bit),
    Dst(Bit),
    Protocol(Bit),
    SrcPortLow(u8),
    SrcPortHigh(u8),
    DstPortLow(u8),
    DstPortHigh(u8),
    Action,
}

/// A bit of a value or of its mask, from the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bit {
    Value(u8),
    Mask(u8),
}

impl Flip {
    /// Bits of a rule.
    pub const COUNT: usize = 64 + 64 + 16 + 64 + 1;

    /// The `nth` of all, below [`COUNT`](Self::COUNT).
    pub fn nth(nth: usize) -> Option<Self> {
        let part = |at: usize, bits: usize| match at {
            at if at < bits => Bit::Value(at as u8),
            at => Bit::Mask((at - bits) as u8),
        };
        Some(match nth {
            0..64 => Self::Src(part(nth, 32)),
            64..128 => Self::Dst(part(nth - 64, 32)),
            128..144 => Self::Protocol(part(nth - 128, 8)),
            144..160 => Self::SrcPortLow((nth - 144) as u8),
            160..176 => Self::SrcPortHigh((nth - 160) as u8),
            176..192 => Self::DstPortLow((nth - 176) as u8),
            192..208 => Self::DstPortHigh((nth - 192) as u8),
            208 => Self::Action,
            _ => return None,
        })
    }

    /// The rule that hardware has afterwards.
    #[must_use]
    pub fn apply(self, mut rule: AclRule) -> AclRule {
        match self {
            Self::Src(bit) => rule.src = bit.apply(rule.src),
            Self::Dst(bit) => rule.dst = bit.apply(rule.dst),
            Self::Protocol(bit) => rule.protocol = bit.apply(rule.protocol),
            Self::SrcPortLow(bit) => rule.src_ports.low ^= 1 << bit,
            Self::SrcPortHigh(bit) => rule.src_ports.high ^= 1 << bit,
            Self::DstPortLow(bit) => rule.dst_ports.low ^= 1 << bit,
            Self::DstPortHigh(bit) => rule.dst_ports.high ^= 1 << bit,
            Self::Action => {
                rule.action = match rule.action {
                    AclAction::Accept => AclAction::Deny,
                    AclAction::Deny => AclAction::Accept,
                }
            }
        }
        rule
    }

    /// Flips of one bit after which a rule that does not match would match.
    pub(super) fn towards(rule: &AclRule, key: &RuleKey) -> Vec<Self> {
        let misses = [rule.src.misses(key.src), rule.dst.misses(key.dst), rule.protocol.misses(key.protocol)]
            .map(u32::count_ones);
        let outside = [(rule.src_ports, key.src_port), (rule.dst_ports, key.dst_port)]
            .map(|(ports, port)| u32::from(!ports.matches(port)));
        // A second bit, or a second field, is more than one flip can mend.
        if misses.iter().chain(&outside).sum::<u32>() != 1 {
            return Vec::new();
        }
        let of_bits = |wrap: fn(Bit) -> Self, missing: u32| {
            let bit = missing.trailing_zeros() as u8;
            vec![wrap(Bit::Value(bit)), wrap(Bit::Mask(bit))]
        };
        match (misses, outside) {
            ([1, 0, 0], _) => of_bits(Self::Src, rule.src.misses(key.src)),
            ([0, 1, 0], _) => of_bits(Self::Dst, rule.dst.misses(key.dst)),
            ([0, 0, 1], _) => of_bits(Self::Protocol, rule.protocol.misses(key.protocol)),
            (_, [1, 0]) => bounds(rule.src_ports, key.src_port, Self::SrcPortLow, Self::SrcPortHigh),
            _ => bounds(rule.dst_ports, key.dst_port, Self::DstPortLow, Self::DstPortHigh),
        }
    }
}

/// Flips of a bound that take a port into the range.
fn bounds(ports: PortRange, port: u16, low: fn(u8) -> Flip, high: fn(u8) -> Flip) -> Vec<Flip> {
    let PortRange { low: from, high: to } = ports;
    let lows = (0..16).filter(|bit| PortRange { low: from ^ 1 << bit, high: to }.matches(port)).map(low);
    let highs = (0..16).filter(|bit| PortRange { low: from, high: to ^ 1 << bit }.matches(port)).map(high);
    lows.chain(highs).collect()
}

impl Bit {
    fn apply(self, Ternary { value, mask }: Ternary) -> Ternary {
        match self {
            Self::Value(bit) => Ternary { value: value ^ 1 << bit, mask },
            Self::Mask(bit) => Ternary { value, mask: mask ^ 1 << bit },
        }
    }
}

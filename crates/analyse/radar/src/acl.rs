//! Access lists, and which of their rules may be corrupted: li-thesis §5.5.2.
//!
//! Hardware keeps a rule as values, masks and bounds of ranges, and a bit of it may flip ([`Flip`]). Then packets are lost
//! that the rules as they were meant would have let pass, for one of three reasons:
//!
//! - (a) what a *deny* rule matches has changed, and now takes in packets that it should not;
//! - (b) what an *accept* rule matches has changed, and packets that it should let pass fall through to a deny rule;
//! - (c) the action of an accept rule has changed.
//!
//! [`RuleTable::candidates`] says which rules it may have been, given what was lost. The rule that was corrupted is always
//! among them as long as it was one bit of one rule. Others are, too, if one bit of them explains the same losses.
//!
//! A table answers "which rule decides on this packet" and "which deny rules would match it but for one bit" without looking
//! at every rule: see `table`.

mod candidates;
mod flip;
mod generate;
pub mod report;
mod structure;
mod table;
mod text;

use std::net::IpAddr;

pub use candidates::{CandidateCase, CandidateRule};
pub use flip::{Bit, Flip};
pub use generate::{Mix, generate, traffic};
pub use structure::{FilterStructure, generate_structured};
pub use table::{AclDecision, RuleTable};
pub use text::AclError;

use crate::packet::Flow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclAction {
    Accept,
    Deny,
}

/// Bits that must be those of `value` where `mask` is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ternary {
    pub value: u32,
    pub mask: u32,
}

impl Ternary {
    pub const ANY: Self = Self { value: 0, mask: 0 };

    /// The first `len` bits, at most 32.
    pub fn prefix(value: u32, len: u8) -> Self {
        let mask = u32::MAX.checked_shl(32 - u32::from(len.min(32))).unwrap_or(0);
        Self { value: value & mask, mask }
    }

    #[inline]
    pub fn matches(self, value: u32) -> bool {
        self.misses(value) == 0
    }

    /// The bits that would have to be others.
    #[inline]
    fn misses(self, value: u32) -> u32 {
        (value ^ self.value) & self.mask
    }
}

/// Ports from `low` to `high`, both included; nothing if they are the wrong way round, as a flipped bit may leave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortRange {
    pub low: u16,
    pub high: u16,
}

impl PortRange {
    pub const ANY: Self = Self { low: 0, high: u16::MAX };

    #[inline]
    pub fn matches(self, port: u16) -> bool {
        (self.low..=self.high).contains(&port)
    }
}

/// One line of an access list. The first one that matches decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclRule {
    pub src: Ternary,
    pub dst: Ternary,
    pub src_ports: PortRange,
    pub dst_ports: PortRange,
    /// Protocol number in the lowest 8 bits.
    pub protocol: Ternary,
    pub action: AclAction,
}

impl AclRule {
    /// Every packet.
    pub const fn any(action: AclAction) -> Self {
        Self {
            src: Ternary::ANY,
            dst: Ternary::ANY,
            src_ports: PortRange::ANY,
            dst_ports: PortRange::ANY,
            protocol: Ternary::ANY,
            action,
        }
    }

    /// Rules speak of IPv4 alone.
    pub fn matches(&self, flow: &Flow) -> bool {
        RuleKey::of(flow).is_some_and(|key| self.takes(&key))
    }

    #[inline]
    fn takes(&self, key: &RuleKey) -> bool {
        self.src.matches(key.src)
            && self.dst.matches(key.dst)
            && self.dst_ports.matches(key.dst_port)
            && self.src_ports.matches(key.src_port)
            && self.protocol.matches(key.protocol)
    }
}

/// Header fields that rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RuleKey {
    src: u32,
    dst: u32,
    src_port: u16,
    dst_port: u16,
    protocol: u32,
}

impl RuleKey {
    fn of(flow: &Flow) -> Option<Self> {
        let Flow { src: IpAddr::V4(src), dst: IpAddr::V4(dst), protocol, src_port, dst_port } = *flow else {
            return None;
        };
        Some(Self { src: src.into(), dst: dst.into(), src_port, dst_port, protocol: protocol.into() })
    }
}

#[cfg(test)]
mod tests;

//! A flow's 5-tuple as whole words: what FlowRadar's FlowXOR adds up (li-thesis §4.4.1).
//!
//! ```text
//!   word 0    source:32  destination:32         of IPv6 the last 32 bits
//!        1    source port:16  destination port:16  protocol:8  0:16  kind:8
//!        2-4  the first 96 bits of each IPv6 address; zero for IPv4
//! ```
//!
//! The kind is never zero and says which addresses are IPv6. So a key is never zero, and most words that are no key can be
//! recognized as such.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::Flow;
use crate::signature::fold;

pub(super) const WORDS: usize = 5;
/// Words that IPv4 needs.
pub(super) const WORDS_V4: usize = 2;

const KIND: u64 = 4;
const SOURCE_IS_V6: u64 = 1;
const DESTINATION_IS_V6: u64 = 2;
const UNUSED: u64 = 0x00ff_ff00;

/// A flow as the counting table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey([u64; WORDS]);

impl FlowKey {
    pub(super) fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// Decodes a flow; `None` if the words encode none.
    pub(super) fn from_words(words: [u64; WORDS]) -> Option<Self> {
        let kind = words[1] & 0xff;
        let is_kind = kind & !(SOURCE_IS_V6 | DESTINATION_IS_V6) == KIND;
        let [source, between, destination] = [words[2], words[3], words[4]];
        let source_fits = kind & SOURCE_IS_V6 != 0 || (source == 0 && between >> 32 == 0);
        let destination_fits = kind & DESTINATION_IS_V6 != 0 || (destination == 0 && between << 32 == 0);
        (is_kind && words[1] & UNUSED == 0 && source_fits && destination_fits).then_some(Self(words))
    }

    /// True if the key fits into its first two words.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.0[1] & (SOURCE_IS_V6 | DESTINATION_IS_V6) == 0
    }

    pub fn flow(&self) -> Flow {
        let [low, ports, source, between, destination] = self.0;
        let address = |is_v6: bool, high: u128, low: u32| match is_v6 {
            true => IpAddr::V6(Ipv6Addr::from(high << 32 | u128::from(low))),
            false => IpAddr::V4(Ipv4Addr::from(low)),
        };
        let source = u128::from(source) << 32 | u128::from(between >> 32);
        let destination = u128::from(between as u32) << 64 | u128::from(destination);
        Flow {
            src: address(ports & SOURCE_IS_V6 != 0, source, (low >> 32) as u32),
            dst: address(ports & DESTINATION_IS_V6 != 0, destination, low as u32),
            protocol: (ports >> 24) as u8,
            src_port: (ports >> 48) as u16,
            dst_port: (ports >> 32) as u16,
        }
    }

    /// Hash of the flow, equal at every switch; each switch derives the cells from it with a seed of its own.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        let [a, b, c, d, e] = self.0;
        let hash = fold(a ^ 0x6a09_e667_f3bc_c908, b ^ 0xbb67_ae85_84ca_a73b);
        if self.is_short() {
            return hash;
        }
        hash ^ fold(fold(c ^ 0x3c6e_f372_fe94_f82b, d ^ 0xa54f_f53a_5f1d_36f1), e ^ 0x510e_527f_ade6_82d1)
    }
}

impl From<&Flow> for FlowKey {
    #[inline]
    fn from(flow: &Flow) -> Self {
        let Flow { src, dst, protocol, src_port, dst_port } = *flow;
        let (source, source_high) = parts(src);
        let (destination, destination_high) = parts(dst);
        let kind =
            KIND | if src.is_ipv6() { SOURCE_IS_V6 } else { 0 } | if dst.is_ipv6() { DESTINATION_IS_V6 } else { 0 };
        let ports = u64::from(src_port) << 48 | u64::from(dst_port) << 32 | u64::from(protocol) << 24 | kind;
        let between = (source_high as u64) << 32 | (destination_high >> 64) as u64;
        Self([
            u64::from(source) << 32 | u64::from(destination),
            ports,
            (source_high >> 32) as u64,
            between,
            destination_high as u64,
        ])
    }
}

/// The last 32 bits of an address, and the 96 before them.
#[inline]
fn parts(address: IpAddr) -> (u32, u128) {
    match address {
        IpAddr::V4(address) => (address.into(), 0),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits as u32, bits >> 32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(src: &str, dst: &str) -> Flow {
        Flow { src: src.parse().unwrap(), dst: dst.parse().unwrap(), protocol: 17, src_port: 0xabcd, dst_port: 443 }
    }

    #[test]
    fn a_key_is_read_as_it_was_made() {
        let addresses = ["10.0.0.1", "255.255.255.255", "2001:db8:1:2:3:4:5:6", "fe80::ffff:ffff:ffff:ffff", "::"];
        for (src, dst) in addresses.iter().flat_map(|src| addresses.iter().map(move |dst| (src, dst))) {
            let flow = flow(src, dst);
            let key = FlowKey::from(&flow);
            assert_eq!(key.flow(), flow);
            assert_eq!(FlowKey::from_words(*key.words()), Some(key));
        }
    }

    #[test]
    fn keys_of_two_flows_make_no_key_together() {
        let [one, two] = ["10.0.0.1", "2001:db8::1"].map(|src| FlowKey::from(&flow(src, "10.0.0.2")));
        let together = std::array::from_fn(|at| one.words()[at] ^ two.words()[at]);
        assert_eq!(FlowKey::from_words(together), None);
        assert_eq!(FlowKey::from_words([0; WORDS]), None);
    }

    #[test]
    fn every_field_of_a_flow_reaches_its_hash() {
        let whole = flow("2001:db8::1", "2001:db8::2");
        let changes: [fn(&mut Flow); 7] = [
            |flow| flow.src = "2001:db9::1".parse().unwrap(),
            |flow| flow.src = "2001:db8::1:0:1".parse().unwrap(),
            |flow| flow.dst = "2001:db9::2".parse().unwrap(),
            |flow| flow.dst = "2001:db8::2:0:2".parse().unwrap(),
            |flow| flow.protocol = 6,
            |flow| flow.src_port += 1,
            |flow| flow.dst_port += 1,
        ];
        for change in changes {
            let mut other = whole;
            change(&mut other);
            assert_ne!(FlowKey::from(&whole).hash(), FlowKey::from(&other).hash(), "{other}");
        }
    }
}

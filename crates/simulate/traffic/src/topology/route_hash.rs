//! Choice of a switch among ports that are equally near.
//!
//! [`RouteHash::Mixed`] is ours: a number drawn for each flow, mixed with the switch's. [`RouteHash::HpccNs3`] is what the
//! simulator of HPCC's authors does (`SwitchNode::GetOutDev` and `EcmpHash`): 32-bit Murmur3 over source address,
//! destination address and ports, seeded with the number of the switch, modulo the number of ports.
//!
//! Their equal ports are in the order in which a search from the receiver comes to the switches behind them, and the search takes
//! neighbours in the order of their addresses in memory. Switches are so large there that each has its own mapping, and Linux
//! puts a new mapping below the last: the neighbour with the highest number is the first.

use std::cmp::Reverse;

use super::{DirectedLink, NodeId, Topology};

/// Rule by which a flow's hash chooses a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteHash {
    /// The hash is any number that tells flows apart.
    #[default]
    Mixed,
    /// The hash is what [`RouteHash::key`] makes of a packet's source and ports.
    HpccNs3,
}

impl RouteHash {
    /// Input of Murmur3 but for the destination, which is where the packet goes.
    pub fn key(src: NodeId, [source_port, destination_port]: [u16; 2]) -> u64 {
        u64::from(src.0) << 32 | u64::from(destination_port) << 16 | u64::from(source_port)
    }

    /// Brings the ports of each node into the order in which a search takes them.
    pub(super) fn sort_neighbours(self, topology: &Topology, ports: &mut [Vec<DirectedLink>]) {
        if self == Self::HpccNs3 {
            ports.iter_mut().for_each(|ports| ports.sort_by_key(|port| Reverse(topology.to(*port))));
        }
    }

    /// Index of the port, among `ports`, that a flow of this hash takes at a switch on its way to a host.
    #[inline]
    pub(super) fn choose(self, at: NodeId, to: NodeId, hash: u64, ports: usize) -> usize {
        match self {
            Self::Mixed => {
                let mixed = mix(hash ^ mix(u64::from(at.0)));
                ((u128::from(mixed) * ports as u128) >> 64) as usize
            }
            Self::HpccNs3 => {
                let words = [address((hash >> 32) as u32), address(to.0), hash as u32];
                murmur3(words, at.0) as usize % ports.max(1)
            }
        }
    }
}

/// The finaliser of SplitMix64: every bit of the input moves every bit of the output.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The address of a node there: 11.0.0.1 for node 0, 11.0.1.1 for node 1, 11.1.0.1 for node 256.
fn address(node: u32) -> u32 {
    0x0b00_0001 + (node / 256) * 0x1_0000 + (node % 256) * 0x100
}

/// MurmurHash3 (x86, 32 bits) of whole words.
fn murmur3<const N: usize>(words: [u32; N], seed: u32) -> u32 {
    let mut hash = seed;
    for word in words {
        let mixed = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = (hash ^ mixed).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    hash ^= 4 * N as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hash of the words of a text, read with the least significant byte first.
    fn of_text<const N: usize>(text: &[u8], seed: u32) -> u32 {
        let word = |at: usize| u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]]);
        murmur3(std::array::from_fn::<u32, N, _>(|at| word(4 * at)), seed)
    }

    #[test]
    fn murmur3_gives_the_published_values() {
        assert_eq!(murmur3([], 0), 0);
        assert_eq!(murmur3([], 1), 0x514e_28b7);
        assert_eq!(murmur3([], 0xffff_ffff), 0x81f1_6f39);
        assert_eq!(murmur3([0], 0), 0x2362_f9de);
        assert_eq!(murmur3([0xffff_ffff], 0), 0x7629_3b50);
        assert_eq!(of_text::<1>(b"\x21\x43\x65\x87", 0), 0xf55b_516b);
        assert_eq!(of_text::<1>(b"\x21\x43\x65\x87", 0x5082_edee), 0x2362_f9de);
        assert_eq!(of_text::<1>(b"test", 0x9747_b28c), 0x704b_81dc);
    }

    #[test]
    fn nodes_have_the_addresses_of_the_authors() {
        assert_eq!(
            [0, 1, 255, 256, 319].map(address),
            [0x0b00_0001, 0x0b00_0101, 0x0b00_ff01, 0x0b01_0001, 0x0b01_3f01]
        );
    }

    /// From node 0 to node 319, ports 10,000 and 100: the words are 0x0b000001, 0x0b013f01 and 100 · 65,536 + 10,000 =
    /// 0x00642710. Computed apart from this code with seed 320 (the first ToR of their fat tree): 0x750e303d, modulo
    /// four ports 1; and back, from 319 to 0 with the ports exchanged (0x27100064) and seed 339: 0x1a0aa49a, modulo 4: 2.
    #[test]
    fn a_choice_worked_out_by_hand() {
        let [there, back] = [RouteHash::key(NodeId(0), [10_000, 100]), RouteHash::key(NodeId(319), [100, 10_000])];
        assert_eq!((there, back), (0x0064_2710, 319 << 32 | 0x2710_0064));
        let choose = |at, to, hash| RouteHash::HpccNs3.choose(NodeId(at), NodeId(to), hash, 4);
        assert_eq!([choose(320, 319, there), choose(339, 0, back)], [1, 2]);
    }
}

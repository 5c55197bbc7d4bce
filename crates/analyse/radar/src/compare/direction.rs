//! Packets of UP that go the way that is compared, where captures hold both directions.
//!
//! A packet that crosses the segment has its sender on one side and its receiver on the other, so addresses that exchange
//! packets can be given two colors such that each packet goes from one to the other. The senders of lost packets have the
//! color of UP's side; packets from the other color came from DOWN's side, could not get lost on the way that is compared,
//! and must not dilute the share of loss.
//!
//! Invariant: when in doubt (colors that contradict each other, lost packets of both directions) nothing is taken for the
//! other direction.

use std::collections::HashMap;
use std::net::IpAddr;

use super::MissingPacket;
use super::difference::SignatureMap;
use crate::packet::Flow;
use crate::signature::fold;

/// Pairs of addresses that are followed; packets of others count as compared.
const MOST_PAIRS: usize = 1 << 16;
/// One lost packet in this many may go the other way, such as those at the edges of a capture.
const STRAY: u64 = 100;

#[derive(Debug, Default)]
pub(crate) struct CaptureDirections {
    pairs: Vec<AddressPair>,
    by_hash: SignatureMap<u64, u32>,
    ends: HashMap<IpAddr, u32>,
}

#[derive(Clone, Copy, Debug)]
struct AddressPair {
    src: IpAddr,
    dst: IpAddr,
    packets: u64,
}

impl CaptureDirections {
    /// A packet of UP that was compared.
    #[inline]
    pub(crate) fn count(&mut self, flow: &Flow) {
        let hash = hash(flow);
        if let Some(nth) = self.by_hash.get(&hash) {
            self.pairs[*nth as usize].packets += 1;
        } else if self.pairs.len() < MOST_PAIRS {
            self.by_hash.insert(hash, self.pairs.len() as u32);
            self.pairs.push(AddressPair { src: flow.src, dst: flow.dst, packets: 1 });
            for end in [flow.src, flow.dst] {
                let next = self.ends.len() as u32;
                self.ends.entry(end).or_insert(next);
            }
        }
    }

    /// Packets that turned out to be outside of what was compared.
    pub(crate) fn uncount(&mut self, flow: &Flow, packets: u64) {
        if let Some(nth) = self.by_hash.get(&hash(flow)) {
            let pair = &mut self.pairs[*nth as usize];
            pair.packets = pair.packets.saturating_sub(packets);
        }
    }

    /// Packets that went the other way, by the packets that were lost on the way compared.
    pub(crate) fn other_way(&self, lost: &[MissingPacket]) -> u64 {
        let mut colors = Colors::new(self.ends.len());
        for pair in &self.pairs {
            colors.oppose(self.ends[&pair.src], self.ends[&pair.dst]);
        }
        let mut votes = vec![[0_u64; 2]; self.ends.len()];
        for MissingPacket { loss, .. } in lost {
            if let Some(end) = self.ends.get(&loss.flow.src) {
                let (root, color) = colors.find(*end);
                votes[root as usize][usize::from(color)] += 1;
            }
        }
        let other_way = |pair: &AddressPair| {
            let (root, color) = colors.find(self.ends[&pair.src]);
            let [same, opposite] = match votes[root as usize] {
                votes if color => [votes[1], votes[0]],
                votes => votes,
            };
            !colors.contradict[root as usize] && opposite > 0 && same * STRAY <= opposite
        };
        self.pairs.iter().filter(|pair| other_way(pair)).map(|pair| pair.packets).sum()
    }
}

/// Two colors for what must differ: disjoint sets, each member with its color relative to the set's root.
struct Colors {
    parents: Vec<(u32, bool)>,
    sizes: Vec<u32>,
    contradict: Vec<bool>,
}

impl Colors {
    fn new(ends: usize) -> Self {
        let parents = (0..ends as u32).map(|end| (end, false)).collect();
        Self { parents, sizes: vec![1; ends], contradict: vec![false; ends] }
    }

    fn find(&self, mut end: u32) -> (u32, bool) {
        let mut color = false;
        loop {
            let (parent, differs) = self.parents[end as usize];
            if parent == end {
                return (end, color);
            }
            color ^= differs;
            end = parent;
        }
    }

    fn oppose(&mut self, one: u32, other: u32) {
        let ((a, color), (b, opposite)) = (self.find(one), self.find(other));
        if a == b {
            self.contradict[a as usize] |= color == opposite;
            return;
        }
        // The smaller set below the larger one keeps every way to a root short.
        let (root, below) = if self.sizes[a as usize] >= self.sizes[b as usize] { (a, b) } else { (b, a) };
        self.parents[below as usize] = (root, color == opposite);
        self.sizes[root as usize] += self.sizes[below as usize];
        self.contradict[root as usize] |= self.contradict[below as usize];
    }
}

#[inline]
fn hash(flow: &Flow) -> u64 {
    let bits = |address| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let (src, dst) = (bits(flow.src), bits(flow.dst));
    let high = fold((src >> 64) as u64 ^ 0xa409_3822_299f_31d0, (dst >> 64) as u64 ^ 0x082e_fa98_ec4e_6c89);
    fold(src as u64 ^ 0x243f_6a88_85a3_08d3, dst as u64 ^ 0x1319_8a2e_0370_7344) ^ high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use units::Timestamp;

    fn flow(src: u8, dst: u8) -> Flow {
        let address = |last| IpAddr::from([10, 0, 0, last]);
        Flow { src: address(src), dst: address(dst), protocol: 17, src_port: 1, dst_port: 2 }
    }

    fn lost(src: u8, dst: u8) -> MissingPacket {
        let loss = Loss { at: Timestamp(0), flow: flow(src, dst), ip_id: None, tcp: None, expired: false, place: None };
        MissingPacket { loss, frame: 0, len: 0 }
    }

    fn counted(packets: &[(u8, u8, u64)]) -> CaptureDirections {
        let mut directions = CaptureDirections::default();
        for (src, dst, count) in packets {
            (0..*count).for_each(|_| directions.count(&flow(*src, *dst)));
        }
        directions
    }

    #[test]
    fn pairs_without_losses_are_sorted_by_those_they_speak_with() {
        let directions = counted(&[(1, 2, 70), (2, 1, 30), (3, 2, 5), (2, 3, 4), (5, 6, 9)]);
        assert_eq!(directions.other_way(&[lost(1, 2)]), 34);
        assert_eq!(directions.other_way(&[lost(2, 1)]), 75);
        assert_eq!(directions.other_way(&[]), 0);
    }

    #[test]
    fn long_chains_keep_their_colors() {
        let packets: Vec<(u8, u8, u64)> = (1..100).map(|end| (end, end + 1, 1)).collect();
        let mut shuffled = packets.clone();
        shuffled.sort_by_key(|(end, _, _)| end.wrapping_mul(37) % 101);
        for packets in [packets, shuffled] {
            // From odd to even addresses is the way compared.
            assert_eq!(counted(&packets).other_way(&[lost(1, 2)]), 49);
            assert_eq!(counted(&packets).other_way(&[lost(98, 99)]), 50);
        }
    }

    #[test]
    fn in_doubt_everything_counts_as_compared() {
        let both_lost = [lost(1, 2), lost(2, 1)];
        assert_eq!(counted(&[(1, 2, 70), (2, 1, 30)]).other_way(&both_lost), 0);
        let triangle = counted(&[(1, 2, 10), (2, 3, 10), (3, 1, 10)]);
        assert_eq!(triangle.other_way(&[lost(1, 2)]), 0);
    }
}

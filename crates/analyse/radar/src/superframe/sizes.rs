//! Length of each flow's packets on the wire, from two captures of them.
//!
//! | what is known | a packet is at most |
//! | --- | --- |
//! | the handshake | what both ends announced: MSS and 20 bytes, of header and payload together (options take their part of it) |
//! | no handshake, one capture has longer frames than the other | the longest of the other |
//! | no handshake, both have frames that no wire carries | the longest that fits an ordinary packet |
//!
//! Only the first is sure. If the captures contradict it, as behind a path with a smaller MTU than either end's, the flow
//! is [distrusted](SegmentSizes::distrust), and the sizes that were seen decide.

use std::collections::{HashMap, HashSet};

use super::{JUMBO_PACKET, ORDINARY_PACKET, TransportPart};
use crate::packet::Flow;

/// Flows that are told apart; of others nothing is cut.
const MOST_FLOWS: usize = 1 << 20;
/// The least that Linux lets anybody announce (`TCP_MIN_SND_MSS`).
const LEAST_MSS: u16 = 48;
const TCP_HEADER: usize = 20;
/// Header and payload of a full segment where nobody announced more (RFC 9293 §3.7.1).
const LEAST_FULL: u32 = 556;
const SYN: u8 = 2;

/// Sizes of a flow in one capture. Lengths are those of transport header and payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CaptureSizes {
    /// The longest packet, its payload, and how many are as long.
    longest: u32,
    payload: u32,
    count: u32,
    /// The longest that fits an ordinary packet, and its payload.
    plain: u32,
    plain_payload: u32,
    /// Packets that fit none.
    beyond: u32,
}

impl CaptureSizes {
    fn see(&mut self, part: &TransportPart, is_plain: bool) {
        let (len, payload) = (part.len() as u32, part.payload as u32);
        if len > self.longest {
            (self.longest, self.payload, self.count) = (len, payload, 0);
        }
        self.count += u32::from(len == self.longest);
        if !is_plain {
            self.beyond += 1;
        } else if len > self.plain {
            (self.plain, self.plain_payload) = (len, payload);
        }
    }

    /// True if the longest packet can be one that the wire carries: an ordinary one, or a jumbo frame, of which most are
    /// equally long, and not so many of the ordinary ones joined.
    fn is_of_the_wire(&self, network: usize) -> bool {
        let packet = self.longest as usize + network;
        let is_joined = self.plain_payload > 0 && self.payload.is_multiple_of(self.plain_payload);
        let is_jumbo = packet <= JUMBO_PACKET && self.count.saturating_mul(2) > self.beyond && !is_joined;
        self.longest > 0 && (packet <= ORDINARY_PACKET || is_jumbo)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct FlowSegments {
    /// Maximum segment size that the sender of this flow announced.
    mss: Option<u16>,
    sides: [CaptureSizes; 2],
    /// Length of the IP header.
    network: u16,
}

/// The longest packet of a flow: transport header and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PacketLimit {
    len: usize,
    /// True if it comes from sizes that were seen, and not from a handshake.
    is_inferred: bool,
}

/// Treatment of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameCut {
    /// The frame is one packet.
    One,
    /// Segments with this much payload each.
    Into { size: usize, is_inferred: bool },
    /// A super-frame, of packets of unknown sizes.
    Unknown,
}

/// Gathers what two captures show, and says how long packets are.
#[derive(Debug)]
pub(crate) struct SegmentSizes {
    flows: HashMap<Flow, FlowSegments>,
    distrusted: HashSet<Flow>,
    least: usize,
}

impl Default for SegmentSizes {
    fn default() -> Self {
        Self { flows: HashMap::new(), distrusted: HashSet::new(), least: ORDINARY_PACKET }
    }
}

impl SegmentSizes {
    /// Length from which a frame may be a super-frame.
    pub(crate) fn least(&self) -> u32 {
        if self.distrusted.is_empty() { self.least as u32 } else { 0 }
    }

    /// A packet of the first capture, or of the second. `header` is its transport header.
    pub(crate) fn see(&mut self, flow: &Flow, part: &TransportPart, header: &[u8], second: bool) {
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(flow) {
            return;
        }
        let back = self.flows.get(&reversed(flow)).and_then(|sizes| sizes.mss);
        let sizes = self.flows.entry(*flow).or_default();
        if let Some(mss) = announced(part, header) {
            sizes.mss = Some(sizes.mss.map_or(mss, |known| known.min(mss)));
            self.least = self.least.min(limit(mss));
        }
        let most = least(sizes.mss, back).map_or(ORDINARY_PACKET.saturating_sub(part.layer.transport), limit);
        sizes.network = part.layer.transport as u16;
        sizes.sides[usize::from(second)].see(part, part.len() <= most);
    }

    /// The captures contradict what was announced for this flow; false if that is known.
    pub(crate) fn distrust(&mut self, flow: &Flow) -> bool {
        self.distrusted.insert(*flow)
    }

    pub(crate) fn cut(&self, flow: &Flow, part: &TransportPart) -> FrameCut {
        let Some(sizes) = self.flows.get(flow) else { return FrameCut::One };
        let is_distrusted = self.distrusted.contains(flow);
        let Some(PacketLimit { len, is_inferred }) = self.limit(flow, sizes, part.is_tcp(), is_distrusted) else {
            return if is_super(sizes, part) { FrameCut::Unknown } else { FrameCut::One };
        };
        if part.len() <= len || is_inferred && !is_distrusted && part.packet() <= ORDINARY_PACKET {
            return FrameCut::One;
        }
        FrameCut::Into { size: len.saturating_sub(part.header).max(8), is_inferred }
    }

    fn limit(&self, flow: &Flow, sizes: &FlowSegments, is_tcp: bool, is_distrusted: bool) -> Option<PacketLimit> {
        let back = self.flows.get(&reversed(flow)).and_then(|sizes| sizes.mss);
        if let Some(mss) = least(sizes.mss, back).filter(|_| is_tcp && !is_distrusted) {
            return Some(PacketLimit { len: limit(mss), is_inferred: false });
        }
        let inferred = |len: u32| (len > 0).then_some(PacketLimit { len: len as usize, is_inferred: true });
        let [one, other] = sizes.sides;
        let (shorter, longer) = if one.longest <= other.longest { (one, other) } else { (other, one) };
        let network = usize::from(sizes.network);
        // Datagrams have any size, and so has the end of a stream: one that nothing confirms says nothing.
        let is_full = if is_tcp { shorter.longest >= LEAST_FULL } else { shorter.count > 1 };
        if shorter.longest != longer.longest && shorter.is_of_the_wire(network) && is_full {
            return inferred(shorter.longest);
        }
        if is_tcp && (is_distrusted || !longer.is_of_the_wire(network)) {
            return inferred(one.plain.max(other.plain));
        }
        None
    }
}

/// Longer than a wire carries, where the other capture has shorter packets.
fn is_super(sizes: &FlowSegments, part: &TransportPart) -> bool {
    let [one, other] = sizes.sides.map(|side| side.longest);
    part.packet() > JUMBO_PACKET && one != other && one.min(other) > 0
}

/// Header and payload of a full segment.
fn limit(mss: u16) -> usize {
    usize::from(mss.max(LEAST_MSS)) + TCP_HEADER
}

fn least(one: Option<u16>, other: Option<u16>) -> Option<u16> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn reversed(flow: &Flow) -> Flow {
    Flow { src: flow.dst, dst: flow.src, src_port: flow.dst_port, dst_port: flow.src_port, ..*flow }
}

/// The option of a SYN.
fn announced(part: &TransportPart, header: &[u8]) -> Option<u16> {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const MSS: u8 = 2;
    if !part.is_tcp() || header.get(13)? & SYN == 0 {
        return None;
    }
    let mut rest = header.get(TCP_HEADER..part.header.min(header.len()))?;
    loop {
        rest = match rest {
            [MSS, 4, high, low, ..] => return Some(u16::from_be_bytes([*high, *low])),
            [] | [END, ..] | [_] => return None,
            [NOTHING, behind @ ..] => behind,
            [_, len, ..] => rest.get(usize::from((*len).max(2))..)?,
        };
    }
}

#[cfg(test)]
mod tests;

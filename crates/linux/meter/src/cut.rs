//! Super-frames: what a host hands to a card that segments, and what a card hands to a host after joining.
//!
//! On the wire there are segments, and the far end sees those. [`segment`](linux::offload::segment) makes them,
//! as Linux does: IP identification and sequence number advance. One thing cannot be known: a sender may leave the
//! identification the same in all segments (it may be always zero), and the card or host that joined them does not
//! report that. Where the identification matters, a super-frame that starts with zero is therefore not cut, but counted
//! as missed.

use linux::offload::{Pieces, VnetHeader};
use linux::packet::RingFrame;
use wire::layers::{IpVersion, Layers};

/// Room for the segments of one super-frame, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct SegmentCutter {
    pieces: Pieces,
    any: bool,
}

impl SegmentCutter {
    /// `longest` is the longest frame that the interface carries.
    pub(crate) fn is_super_frame(frame: &RingFrame<'_>, longest: usize) -> bool {
        frame.vnet.gso_type != VnetHeader::GSO_NONE || frame.len > longest
    }

    /// True if there were any super-frames.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// The frames on the wire; `None` if they cannot be known.
    pub(crate) fn cut(&mut self, frame: &RingFrame<'_>, with_ip_id: bool) -> Option<impl Iterator<Item = &[u8]>> {
        self.any = true;
        let is_whole = frame.bytes.len() == frame.len;
        if !is_whole || frame.vnet.gso_type == VnetHeader::GSO_NONE || (with_ip_id && is_ambiguous(frame)) {
            return None;
        }
        self.pieces.of(&frame.vnet, frame.bytes).ok()
    }
}

/// Joined on arrival, with an identification of zero.
fn is_ambiguous(frame: &RingFrame<'_>) -> bool {
    let ip = Layers::of(frame.bytes).and_then(|layers| layers.ip).filter(|ip| ip.version == IpVersion::V4);
    !frame.outgoing && ip.is_some_and(|ip| frame.bytes[ip.at + 4..ip.at + 6] == [0, 0])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A super-frame of TCP with so much payload, to be cut into pieces of 1,000 bytes.
    fn super_frame(identification: u16, payload: usize) -> Vec<u8> {
        let total = (40 + payload) as u16;
        let mut frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0][..], &total.to_be_bytes()].concat();
        frame.extend(identification.to_be_bytes());
        frame.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x9c, 0x40, 0, 80, 0, 0, 0x10, 0, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
        frame.resize(frame.len() + payload, 9);
        frame
    }

    fn in_ring(bytes: &[u8], outgoing: bool) -> RingFrame<'_> {
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: VnetHeader::GSO_TCPV4,
            hdr_len: 54,
            gso_size: 1_000,
            csum_start: 34,
            csum_offset: 16,
        };
        RingFrame { vnet, bytes, len: bytes.len(), at: Duration::ZERO, outgoing }
    }

    #[test]
    fn identification_and_sequence_advance_as_on_the_wire() {
        let bytes = super_frame(700, 2_500);
        let mut cut = SegmentCutter::default();
        let pieces: Vec<Vec<u8>> = cut.cut(&in_ring(&bytes, true), true).unwrap().map(<[u8]>::to_vec).collect();
        let of = |piece: &Vec<u8>| {
            let half = |at: usize| u16::from_be_bytes([piece[at], piece[at + 1]]);
            (half(18), u32::from(half(38)) << 16 | u32::from(half(40)), piece.len())
        };
        let sizes: Vec<(u16, u32, usize)> = pieces.iter().map(of).collect();
        assert_eq!(sizes, [(700, 0x1000, 1_054), (701, 0x1000 + 1_000, 1_054), (702, 0x1000 + 2_000, 554)]);
    }

    #[test]
    fn what_cannot_be_known_is_not_guessed() {
        let zero = super_frame(0, 2_500);
        let mut cut = SegmentCutter::default();
        assert!(cut.cut(&in_ring(&zero, false), true).is_none(), "all zero, or counted from zero?");
        assert!(cut.cut(&in_ring(&zero, false), false).is_some());
        assert!(cut.cut(&in_ring(&zero, true), true).is_some(), "what we send counts");
        let beginning = RingFrame { len: 9_000, ..in_ring(&zero, true) };
        assert!(cut.cut(&beginning, true).is_none());
        let jumbo = RingFrame { vnet: VnetHeader::default(), ..in_ring(&zero, true) };
        assert!(SegmentCutter::is_super_frame(&jumbo, 1_518) && cut.cut(&jumbo, true).is_none());
    }
}

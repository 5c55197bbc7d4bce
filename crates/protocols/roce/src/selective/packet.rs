//! A packet as it travels: what a RoCE WRITE has, and two kinds of NACK that RoCE does not have.
//!
//! MELO §3.2.4: a NACK carries at most three holes, two bytes for the start and two for the length of each. IRN §3.1: a
//! NACK carries the PSN of the packet that caused it. Both carry ePSN, and so acknowledge all that comes before it.

use std::fmt;

use units::Bytes;
use wire::ethernet::on_wire;
use wire::ip::Ecn;

use crate::packet::NOTIFICATION;
use crate::{ACK_LEN, CongestionHeader, HEADERS, MessagePart, Psn, RETH};

/// Start and length of a hole on the wire.
const HOLE_LEN: u32 = 4;
/// A PSN on the wire, and a reserved byte.
const SACKED_LEN: u32 = 4;

/// Packets in a row that are missing.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Hole {
    /// The lowest 16 bits of its first PSN.
    pub start: u16,
    /// Zero where there is no hole.
    pub len: u16,
}

impl fmt::Debug for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.start, self.len)
    }
}

/// The latest holes, older ones first.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Holes([Hole; Self::MOST]);

impl Holes {
    pub(crate) const MOST: usize = 3;

    /// Without any hole: what a bare NACK carries.
    pub const fn none() -> Self {
        Self([Hole { start: 0, len: 0 }; Self::MOST])
    }

    /// Gaps, up to three, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Hole> + '_ {
        self.0.iter().copied().filter(|hole| hole.len > 0)
    }

    /// 0 to 3.
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// True if there is no hole.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Remembers one more; of three before it, the oldest is forgotten.
    #[inline]
    pub fn push(&mut self, hole: Hole) {
        self.0 = [self.0[1], self.0[2], hole];
    }

    /// Forgets what lies before this PSN (its lowest 16 bits): it has been filled.
    #[inline]
    pub(crate) fn fill_before(&mut self, psn: u16) {
        for hole in &mut self.0 {
            let filled = psn.wrapping_sub(hole.start);
            // The other half of the circle lies ahead.
            if hole.len > 0 && filled < 1 << 15 {
                *hole = Hole { start: psn, len: hole.len.saturating_sub(filled) };
            }
            if hole.len == 0 {
                *hole = Hole::default();
            }
        }
    }
}

impl fmt::Debug for Holes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Missing packets, as a NACK reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// MELO: the latest holes. Without any, the receiver keeps nothing behind ePSN: go back there.
    Holes(Holes),
    /// IRN: this one arrived, out of order.
    Sacked(Psn),
}

/// Kind of packet, with what its headers carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectivePacketKind {
    /// A part of a WRITE.
    Data {
        /// The first of a message carries a RETH.
        part: MessagePart,
        /// Bytes, at most the MTU.
        payload: u32,
        /// The receiver is to acknowledge this packet.
        ack_request: bool,
    },
    /// Everything up to and including this PSN arrived.
    Ack,
    /// Everything before this PSN arrived, the PSN itself did not, and these gaps follow.
    Nack(Gaps),
    /// Data arrived with an ECN mark.
    Notification,
}

/// One packet of a connection, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectivePacket {
    /// Decides the length of the frame.
    pub kind: SelectivePacketKind,
    /// PSN of data itself; in an ACK, that of the last packet that arrived in order; in a NACK, the expected one.
    pub psn: Psn,
    /// Code point of the IP header.
    pub ecn: Ecn,
    /// Fields for congestion control.
    pub congestion: CongestionHeader,
}

impl SelectivePacket {
    /// Length of the Ethernet frame, frame check included; not yet padded to the shortest one allowed.
    #[inline]
    pub fn frame_len(&self) -> u32 {
        self.roce_len().saturating_add_signed(i32::from(self.congestion.extra_bytes))
    }

    fn roce_len(&self) -> u32 {
        match self.kind {
            SelectivePacketKind::Notification => HEADERS + NOTIFICATION,
            SelectivePacketKind::Data { part, payload, .. } => {
                HEADERS + if part.is_first() { RETH } else { 0 } + payload
            }
            SelectivePacketKind::Ack => ACK_LEN,
            SelectivePacketKind::Nack(Gaps::Holes(holes)) => ACK_LEN + HOLE_LEN * holes.count() as u32,
            SelectivePacketKind::Nack(Gaps::Sacked(_)) => ACK_LEN + SACKED_LEN,
        }
    }

    /// Bytes that the packet occupies on an Ethernet wire, gap and preamble included.
    #[inline]
    pub fn wire_bytes(&self) -> Bytes {
        Bytes::new(u64::from(on_wire(self.frame_len())))
    }

    /// Neither an ACK nor a NACK.
    pub const fn is_data(&self) -> bool {
        matches!(self.kind, SelectivePacketKind::Data { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len(kind: SelectivePacketKind) -> u32 {
        let congestion = CongestionHeader::default();
        SelectivePacket { kind, psn: Psn::new(0), ecn: Ecn::NotCapable, congestion }.frame_len()
    }

    fn holes(of: &[(u16, u16)]) -> Holes {
        let mut holes = Holes::none();
        of.iter().for_each(|&(start, len)| holes.push(Hole { start, len }));
        holes
    }

    #[test]
    fn data_is_as_long_as_go_back_ns_and_a_nack_grows_with_its_holes() {
        let data = |part| SelectivePacketKind::Data { part, payload: 1_024, ack_request: false };
        assert_eq!(len(data(MessagePart::Middle)), 1_086);
        assert_eq!(len(data(MessagePart::First)), 1_086 + 16);
        assert_eq!(len(SelectivePacketKind::Ack), 68);
        let nack = |of: &[(u16, u16)]| len(SelectivePacketKind::Nack(Gaps::Holes(holes(of))));
        assert_eq!([nack(&[]), nack(&[(7, 1)]), nack(&[(1, 1), (3, 1), (5, 9)])], [68, 72, 80]);
        assert_eq!(len(SelectivePacketKind::Nack(Gaps::Sacked(Psn::new(9)))), 72);
    }

    #[test]
    fn a_fourth_hole_takes_the_place_of_the_oldest() {
        assert_eq!(holes(&[(1, 1), (3, 1), (5, 1), (7, 1)]), holes(&[(3, 1), (5, 1), (7, 1)]));
    }

    #[test]
    fn a_hole_that_is_filled_is_forgotten_and_one_that_is_half_filled_is_shorter() {
        let mut list = holes(&[(0xFFFE, 4), (10, 2)]);
        list.fill_before(0);
        assert_eq!(list.iter().collect::<Vec<_>>(), [Hole { start: 0, len: 2 }, Hole { start: 10, len: 2 }]);
        list.fill_before(10);
        assert_eq!(list.iter().collect::<Vec<_>>(), [Hole { start: 10, len: 2 }]);
        list.fill_before(13);
        assert_eq!(list, Holes::none());
    }

    #[test]
    fn a_packet_is_small_enough_to_pass_by_value() {
        assert!(size_of::<SelectivePacket>() <= 56, "{}", size_of::<SelectivePacket>());
    }
}

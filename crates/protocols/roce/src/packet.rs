//! A packet as it travels: headers and lengths, no bytes.
//!
//! InfiniBand specification, vol. 1, chapter 9 (headers) and annex A17 (over UDP). Lengths are counted as "Packet
//! corruption in RDMA" §3.2 counts them, from the destination address to the frame check sequence.

use units::Bytes;
use wire::ethernet::on_wire;
use wire::ip::Ecn;

use super::congestion_header::CongestionHeader;
use super::psn::Psn;

/// Ethernet with check (18), IP (20), UDP (8), base transport header (12), invariant CRC (4).
pub const HEADERS: u32 = 62;
/// RDMA extended transport header: address, key and length of what is written or read.
pub const RETH: u32 = 16;
/// Additional bytes of a congestion notification, which are reserved.
pub(crate) const NOTIFICATION: u32 = 16;
/// ACK extended transport header: syndrome and message number.
const AETH: u32 = 4;
/// An ACK or NAK as the paper counts it (S_NAK). The headers above and an AETH make 66; where the other two bytes come
/// from it does not say.
pub const ACK_LEN: u32 = 68;

/// Part of its message that a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// First of several packets; more follow.
    First,
    /// Neither the first nor the last of its message.
    Middle,
    /// Last of several packets; completes the message.
    Last,
    /// The message fits one packet.
    Only,
}

impl MessagePart {
    pub(super) const fn new(first: bool, last: bool) -> Self {
        match (first, last) {
            (true, false) => Self::First,
            (false, false) => Self::Middle,
            (false, true) => Self::Last,
            (true, true) => Self::Only,
        }
    }

    /// The first of several, or the only one.
    pub const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    pub(super) const fn is_last(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// Opcode of the base transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoceOperation {
    /// Request: data for a receive buffer.
    Send(MessagePart),
    /// Request: data for an address; the first packet carries a RETH.
    Write(MessagePart),
    /// Request without payload; its RETH says how much is wanted.
    ReadRequest,
    /// Response: data that was read; all but middle ones carry an AETH.
    ReadResponse(MessagePart),
    /// Response: an ACK or a NAK, without payload.
    Acknowledge(AckSyndrome),
    /// Congestion notification (annex A17): packets of the peer arrived with an ECN mark.
    Notification,
}

/// Meaning of an acknowledge packet. The only NAK modelled is that of a lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckSyndrome {
    /// Everything up to and including this PSN arrived.
    Ack,
    /// NAK, PSN sequence error: everything before this PSN arrived, this one did not.
    SequenceError,
}

/// One packet of a reliable connection, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RocePacket {
    /// Kind of packet; decides which extended headers it carries.
    pub opcode: RoceOperation,
    /// PSN of the packet itself in a request or READ response, where a READ reserves one for each response; else see
    /// [`AckSyndrome`].
    pub psn: Psn,
    /// Payload in bytes.
    pub payload: u32,
    /// Length in a RETH: that of the whole message, or of the part of a READ that is missing. All packets of a SEND or
    /// WRITE have it here; on the wire only the first of a WRITE does.
    pub dma_len: u32,
    /// Messages that the responder has completed, in packets with an AETH; 24 bits.
    pub msn: u32,
    /// The responder is to acknowledge this packet.
    pub ack_request: bool,
    /// Code point of the IP header; acknowledgements are never capable.
    pub ecn: Ecn,
    /// Fields for congestion control.
    pub congestion: CongestionHeader,
}

impl RocePacket {
    /// Length of the Ethernet frame, frame check included; not yet padded to the shortest one allowed.
    #[inline]
    pub const fn frame_len(&self) -> u32 {
        self.roce_len().saturating_add_signed(self.congestion.extra_bytes as i32)
    }

    const fn roce_len(&self) -> u32 {
        match self.opcode {
            RoceOperation::Notification => HEADERS + NOTIFICATION,
            RoceOperation::Acknowledge(_) => ACK_LEN,
            RoceOperation::ReadRequest => HEADERS + RETH,
            RoceOperation::Write(part) if part.is_first() => HEADERS + RETH + self.payload,
            RoceOperation::ReadResponse(MessagePart::First | MessagePart::Last | MessagePart::Only) => {
                HEADERS + AETH + self.payload
            }
            RoceOperation::Write(_) | RoceOperation::Send(_) | RoceOperation::ReadResponse(MessagePart::Middle) => {
                HEADERS + self.payload
            }
        }
    }

    /// Bytes that the packet occupies on an Ethernet wire, gap and preamble included.
    #[inline]
    pub const fn wire_bytes(&self) -> Bytes {
        Bytes::new(on_wire(self.frame_len()) as u64)
    }

    /// True if it reports a PSN sequence error.
    pub const fn is_nak(&self) -> bool {
        matches!(self.opcode, RoceOperation::Acknowledge(AckSyndrome::SequenceError))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len(opcode: RoceOperation, payload: u32) -> u32 {
        let packet = RocePacket {
            opcode,
            psn: Psn::new(0),
            payload,
            dma_len: 0,
            msn: 0,
            ack_request: false,
            ecn: Ecn::NotCapable,
            congestion: CongestionHeader::default(),
        };
        packet.frame_len()
    }

    #[test]
    fn lengths_are_those_of_the_paper() {
        assert_eq!(len(RoceOperation::Write(MessagePart::Middle), 1_024), 1_086);
        assert_eq!(len(RoceOperation::Send(MessagePart::Only), 0), 62);
        assert_eq!(len(RoceOperation::Acknowledge(AckSyndrome::SequenceError), 0), 68);
    }

    #[test]
    fn extended_headers_are_where_the_specification_puts_them() {
        assert_eq!(len(RoceOperation::Write(MessagePart::First), 1_024), 1_086 + 16);
        assert_eq!(len(RoceOperation::Write(MessagePart::Only), 100), 162 + 16);
        assert_eq!(len(RoceOperation::Send(MessagePart::First), 1_024), 1_086);
        assert_eq!(len(RoceOperation::ReadRequest, 0), 62 + 16);
        assert_eq!(len(RoceOperation::ReadResponse(MessagePart::Last), 100), 162 + 4);
        assert_eq!(len(RoceOperation::ReadResponse(MessagePart::Middle), 1_024), 1_086);
    }

    #[test]
    fn a_packet_is_small_enough_to_pass_by_value() {
        assert!(size_of::<RocePacket>() <= 56, "{}", size_of::<RocePacket>());
    }
}

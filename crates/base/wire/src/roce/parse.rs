//! RoCEv2 out of a real Ethernet frame.
//!
//! The parser reads through two VLAN tags, IPv4 with options, and IPv6. It does not read through IPv6 extension headers,
//! fragments after the first, and tunnels: their contents count as something else. The headers of a first fragment count;
//! its payload is as much as the fragment has. Lengths must agree with each other. Checksums are not verified, and neither
//! is that payload and pad make whole words: the receiver of the packet checks that.

use std::fmt;

use super::opcode::Extension;
use super::{ACK, BASE, ExtensionHeader, Opcode, PORT, RDMA, RoceHeader, Syndrome};
use crate::udp::{self, UdpDatagram};

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum ParsedRoce {
    /// The frame is not RoCEv2, like nearly every frame of most networks.
    Foreign,
    /// A packet of a reliable connection, with `payload` bytes of payload, pad not counted.
    Reliable { header: RoceHeader, payload: usize },
    /// RoCEv2 of another transport, a congestion notification, or with an opcode that is reserved: what is behind its
    /// base header is not looked at.
    Other { opcode: u8 },
}

/// Error in a frame that goes to RoCEv2's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum MalformedRoce {
    /// The frame ends `missing` bytes before its IP packet does.
    Cut { missing: usize },
    /// UDP claims another length than IP leaves it.
    UdpLength { claimed: usize, there: usize },
    /// The packet has no room for the headers of its opcode and the invariant CRC.
    Short { needed: usize, there: usize },
    /// Version of the transport header: only 0 is known.
    Version(u8),
    /// More pad than there are bytes behind the headers.
    Pad { pad: u8, there: usize },
}

impl fmt::Display for MalformedRoce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { missing } => write!(f, "the frame ends {missing} bytes before its IP packet"),
            Self::UdpLength { claimed, there } => write!(f, "UDP claims {claimed} bytes, and IP has {there} for it"),
            Self::Short { needed, there } => write!(f, "headers and check need {needed} bytes, and there are {there}"),
            Self::Version(version) => write!(f, "transport header of version {version}, expected 0"),
            Self::Pad { pad, there } => write!(f, "{pad} bytes of pad among {there}"),
        }
    }
}

impl std::error::Error for MalformedRoce {}

/// Takes any bytes.
#[inline]
pub fn parse(frame: &[u8]) -> Result<ParsedRoce, MalformedRoce> {
    match udp::find(frame) {
        Some(datagram) if datagram.destination == PORT => inside(&datagram),
        _ => Ok(ParsedRoce::Foreign),
    }
}

fn inside(datagram: &UdpDatagram<'_>) -> Result<ParsedRoce, MalformedRoce> {
    let bytes = transport(datagram)?;
    let check = if datagram.is_fragment { 0 } else { RoceHeader::CHECK };
    let room = |headers: usize| {
        let (needed, there) = (headers + check, bytes.len());
        there.checked_sub(needed).ok_or(MalformedRoce::Short { needed, there })
    };
    let base: &[u8; BASE] =
        bytes.first_chunk().ok_or(MalformedRoce::Short { needed: BASE + check, there: bytes.len() })?;
    room(BASE)?;
    let version = base[1] & 0x0f;
    if version != 0 {
        return Err(MalformedRoce::Version(version));
    }
    let Some(opcode) = Opcode::from_code(base[0]) else { return Ok(ParsedRoce::Other { opcode: base[0] }) };
    let extension = match opcode.extension() {
        Extension::None => 0,
        Extension::Rdma => RDMA,
        Extension::Ack => ACK,
    };
    let behind = room(BASE + extension + opcode.operands())?;
    let pad = base[1] >> 4 & 3;
    let there = if datagram.is_fragment { 0 } else { usize::from(pad) };
    let payload = behind.checked_sub(there).ok_or(MalformedRoce::Pad { pad, there: behind })?;
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let extended = match opcode.extension() {
        Extension::None => None,
        Extension::Rdma => Some(ExtensionHeader::Rdma { len: word(BASE + RDMA - 4) }),
        Extension::Ack => Some(ExtensionHeader::Ack { syndrome: Syndrome(bytes[BASE]), msn: word(BASE) & 0xff_ffff }),
    };
    let (queue_pair, psn) = (word(4) & 0xff_ffff, word(8) & 0xff_ffff);
    let header = RoceHeader { opcode, queue_pair, psn, ack_request: base[8] >> 7 != 0, pad, extended };
    Ok(ParsedRoce::Reliable { header, payload })
}

/// UDP payload, if all lengths agree: from the base header to the invariant CRC, or as much of it as a first fragment has.
pub(super) fn transport<'a>(datagram: &UdpDatagram<'a>) -> Result<&'a [u8], MalformedRoce> {
    let UdpDatagram { packet, at, len: claimed, missing, is_fragment, .. } = *datagram;
    if missing > 0 {
        return Err(MalformedRoce::Cut { missing });
    }
    let there = packet.len() - at;
    let agrees = if is_fragment { claimed > there } else { claimed == there };
    if agrees { Ok(&packet[at + udp::UdpHeader::LEN..]) } else { Err(MalformedRoce::UdpLength { claimed, there }) }
}

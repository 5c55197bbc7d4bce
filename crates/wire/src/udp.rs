//! UDP headers (RFC 768).

use crate::ethernet::{self, inside};
use crate::ipv4::{self, finish, sum};
use crate::ipv6;

/// A header; the payload behind it is zeros, so that the checksum needs no look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub source: u16,
    pub destination: u16,
    /// Whether there is a checksum; RoCEv2 has its own and sends none.
    pub checked: bool,
}

impl Header {
    pub const LEN: usize = 8;

    /// Appends the header of a datagram that `ip` carries.
    pub fn emit(&self, ip: &ipv4::Header, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.source.to_be_bytes());
        out.extend(self.destination.to_be_bytes());
        out.extend(ip.payload.to_be_bytes());
        out.extend([0; 2]);
        if self.checked {
            // Zero would say that there is none; all ones are the same number.
            let check = match finish(ip.pseudo_sum() + sum(&out[start..])) {
                0 => 0xffff,
                check => check,
            };
            out[start + 6..start + 8].copy_from_slice(&check.to_be_bytes());
        }
    }
}

/// A datagram in an Ethernet frame, by what its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    pub source: u16,
    pub destination: u16,
    /// Length that the header claims, itself included.
    pub len: usize,
    /// What the frame has of the IP packet, from its header on; without what fills up a short frame.
    pub packet: &'a [u8],
    /// Where in the packet the datagram begins.
    pub at: usize,
    /// Bytes of the IP packet that the frame lacks.
    pub missing: usize,
    /// Only the beginning of it is here.
    pub is_fragment: bool,
}

/// The datagram in a frame, behind at most two VLAN tags and IPv4 or IPv6 without extension headers. Lengths and
/// checksums are told, not judged.
#[inline]
pub fn find(frame: &[u8]) -> Option<Datagram<'_>> {
    let (kind, at) = inside(frame)?;
    let packet = &frame[at..];
    let outline = match kind {
        ethernet::IPV4 => ipv4::outline(packet)?,
        ethernet::IPV6 => ipv6::outline(packet)?,
        _ => return None,
    };
    if outline.protocol != ipv4::UDP {
        return None;
    }
    let there = packet.len().min(outline.total);
    let packet = &packet[..there];
    let head: &[u8; Header::LEN] = packet.get(outline.header..)?.first_chunk()?;
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    Some(Datagram {
        source: half(0),
        destination: half(2),
        len: usize::from(half(4)),
        packet,
        at: outline.header,
        missing: outline.total - there,
        is_fragment: outline.has_more,
    })
}

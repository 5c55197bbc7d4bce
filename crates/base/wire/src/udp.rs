//! UDP headers (RFC 768).

use crate::checksum::Sum;
use crate::ipv4;
use crate::layers::{IpVersion, Layers};

/// A header; the payload behind it is zeros, so that the checksum needs no look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// True if there is a checksum; RoCEv2 has its own and sends none.
    pub checked: bool,
}

impl UdpHeader {
    /// Length of a header in bytes.
    pub const LEN: usize = 8;

    /// Appends the header of a datagram that `ip` carries.
    pub fn emit(&self, ip: &ipv4::Ipv4Header, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.source.to_be_bytes());
        out.extend(self.destination.to_be_bytes());
        out.extend(ip.payload.to_be_bytes());
        out.extend([0; 2]);
        if self.checked {
            let checksum = ip.pseudo_sum().and(Sum::of(&out[start..])).checksum_or_ones();
            out[start + 6..start + 8].copy_from_slice(&checksum);
        }
    }
}

/// A datagram in an Ethernet frame, by what its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Length that the header claims, itself included.
    pub len: usize,
    /// Part of the IP packet that the frame has, from its header on; without the padding of a short frame.
    pub packet: &'a [u8],
    /// Offset of the datagram in the packet.
    pub at: usize,
    /// Bytes of the IP packet that the frame lacks.
    pub missing: usize,
    /// True if only the beginning of the datagram is here.
    pub is_fragment: bool,
}

/// The datagram in a frame, behind at most two VLAN tags and IPv4 or IPv6 without extension headers. Lengths and
/// checksums are returned as found, not checked.
#[inline]
pub fn find(frame: &[u8]) -> Option<UdpDatagram<'_>> {
    let ip = Layers::of(frame)?.ip?;
    let has_extensions = ip.version == IpVersion::V6 && !ip.is_plain();
    if ip.protocol != ipv4::UDP || ip.is_later_fragment() || has_extensions {
        return None;
    }
    let head: &[u8; UdpHeader::LEN] = ip.inside(frame).first_chunk()?;
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let end = ip.end().min(frame.len());
    Some(UdpDatagram {
        source: half(0),
        destination: half(2),
        len: usize::from(half(4)),
        packet: &frame[ip.at..end],
        at: ip.transport - ip.at,
        missing: ip.end() - end,
        is_fragment: ip.fragment.is_some(),
    })
}

//! IPv4 in Ethernet: the headers before whatever a packet carries.

use crate::ethernet;
use crate::ip::Ecn;

/// Protocols that we emit.
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// An Ethernet header and an IPv4 header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub from: Station,
    pub to: Station,
    pub protocol: u8,
    pub ecn: Ecn,
    /// What follows the header, in bytes.
    pub payload: u16,
}

/// Who sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    pub mac: [u8; 6],
    pub ip: [u8; 4],
}

impl Header {
    /// Length of both headers.
    pub const LEN: usize = 14 + 20;

    /// Appends both headers.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.to.mac);
        out.extend(self.from.mac);
        out.extend(ethernet::IPV4.to_be_bytes());
        let start = out.len();
        let total = self.payload.saturating_add(20);
        let ecn = match self.ecn {
            Ecn::NotCapable => 0b00,
            Ecn::Capable => 0b10,
            Ecn::Experienced => 0b11,
        };
        out.extend([0x45, ecn]);
        out.extend(total.to_be_bytes());
        // No identification, never to be fragmented, 64 hops.
        out.extend([0, 0, 0x40, 0, 64, self.protocol, 0, 0]);
        out.extend(self.from.ip);
        out.extend(self.to.ip);
        let check = finish(sum(&out[start..]));
        out[start + 10..start + 12].copy_from_slice(&check.to_be_bytes());
    }

    /// What the checksums of TCP and UDP cover beside themselves.
    pub(crate) fn pseudo_sum(&self) -> u32 {
        sum(&self.from.ip) + sum(&self.to.ip) + u32::from(self.protocol) + u32::from(self.payload)
    }
}

/// What an IP header says of its packet, of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    pub protocol: u8,
    /// Length of the header, options included.
    pub header: usize,
    /// Length of the packet, header included.
    pub total: usize,
    /// The rest of what it carries comes in packets of their own.
    pub has_more: bool,
}

/// `None` for what is no IPv4 header, and for fragments behind the first, which have no header of what is inside.
#[inline]
pub fn outline(packet: &[u8]) -> Option<Outline> {
    const MORE: u16 = 1 << 13;
    let head: &[u8; 20] = packet.first_chunk()?;
    let header = usize::from(head[0] & 0x0f) * 4;
    let fragment = u16::from_be_bytes([head[6], head[7]]);
    let is_later = fragment & (MORE - 1) != 0;
    if head[0] >> 4 != 4 || header < head.len() || packet.len() < header || is_later {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
    Some(Outline { protocol: head[9], header, total, has_more: fragment & MORE != 0 })
}

/// RFC 1071, before the carries are added.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
}

pub(crate) fn finish(sum: u32) -> u16 {
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_sums_up_to_nothing() {
        let from = Station { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1] };
        let to = Station { mac: [2, 0, 0, 0, 0, 2], ip: [10, 0, 0, 2] };
        let mut out = Vec::new();
        Header { from, to, protocol: UDP, ecn: Ecn::Experienced, payload: 100 }.emit(&mut out);
        assert_eq!(out.len(), Header::LEN);
        assert_eq!(finish(sum(&out[14..])), 0);
        assert_eq!(out[12..18], [8, 0, 0x45, 3, 0, 120]);
    }
}

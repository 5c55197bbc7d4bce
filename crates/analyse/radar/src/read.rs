//! Reads the bytes of a frame into the fields that a meter sees of its packet.
//!
//! IPv4 and IPv6, behind VLAN tags and extension headers. The hash of the content begins at the transport header and leaves
//! out fields that NAT rewrites (ports) and fields that a card fills in after a capture has seen the frame (checksums). Any
//! bytes are accepted: a frame without IP is `None`, a frame that is cut short is read as far as it goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capture::LinkType;
use wire::ip;
use wire::layers::{Fragment, IpLayer, IpVersion};

use crate::packet::{Flow, Packet, TcpFields};
use crate::signature::fold;

/// Bytes of a packet that are read, from its IP header on. Meters that are compared must read the same number.
pub const DEPTH: usize = 128;

/// `None` for what is no IP packet.
#[inline]
pub fn packet(frame: &[u8], link: LinkType, depth: usize) -> Option<Packet> {
    let bytes = link.inside(frame)?;
    IpLayer::of(bytes, 0).map(|ip| look(&ip, bytes, depth))
}

/// Flow of the packet that has expired, in a router's message that says so (ICMP time exceeded in transit).
pub fn expired_flow(frame: &[u8], link: LinkType) -> Option<Flow> {
    const QUOTED: usize = 8;
    let bytes = link.inside(frame)?;
    let ip = IpLayer::of(bytes, 0)?;
    let head: &[u8; 2] = bytes.get(ip.transport..)?.first_chunk()?;
    let is_told = match ip.protocol {
        ip::ICMP => *head == [11, 0],
        ip::ICMP_V6 => *head == [3, 0],
        _ => false,
    };
    let quoted = bytes.get(ip.transport + QUOTED..).filter(|_| is_told && !ip.is_later_fragment())?;
    let inner = IpLayer::of(quoted, 0)?;
    Some(look(&inner, quoted, DEPTH).flow)
}

/// Reads a packet without its payload, for captures that kept only headers.
pub(crate) fn packet_of_headers(frame: &[u8], link: LinkType, depth: usize) -> Option<Packet> {
    let bytes = link.inside(frame)?;
    let ip = IpLayer::of(bytes, 0)?;
    let header = bytes.get(ip.transport + 12).map_or(0, |offset| usize::from(offset >> 4) * 4);
    let is_segment = ip.protocol == ip::TCP && !ip.is_later_fragment();
    let depth = if is_segment { depth.min(ip.transport + header.max(14)) } else { depth };
    Some(look(&ip, bytes, depth))
}

/// The packet, as far as it is looked into.
#[inline]
fn look(ip: &IpLayer, bytes: &[u8], depth: usize) -> Packet {
    // A card that cuts what is longer than 64 KB is handed it with no length.
    let has_no_length = matches!((ip.version, ip.total), (IpVersion::V4, 0) | (IpVersion::V6, 40));
    let total = if has_no_length { bytes.len() } else { ip.total };
    // A short frame is padded; the padding does not belong to the packet.
    let end = bytes.len().min(total).min(depth.max(ip.transport));
    let inside = bytes.get(ip.transport..end).unwrap_or_default();
    let protocol = if ip.is_later_fragment() { u8::MAX } else { ip.protocol };
    let behind = total.wrapping_sub(ip.transport);
    let (ports, tcp, content) = match protocol {
        ip::TCP => (ports(inside), segment(inside, total.saturating_sub(ip.transport)), around(inside, 4, 16..18)),
        ip::UDP => (ports(inside), None, around(inside, 4, 6..8)),
        ip::SCTP => (ports(inside), None, around(inside, 4, 8..12)),
        ip::ICMP | ip::ICMP_V6 => ((0, 0), None, around(inside, 0, 2..4)),
        _ => ((0, 0), None, hash(inside, 0)),
    };
    let (src, dst, ttl, ip_id) = header(ip, bytes);
    Packet {
        flow: Flow { src, dst, protocol: ip.protocol, src_port: ports.0, dst_port: ports.1 },
        ip_id,
        fragment: ip.fragment.map_or(0, |fragment| fragment_number(ip.version, fragment)),
        tcp,
        ttl,
        content: fold(content ^ behind as u64, 0x9e37_79b9_7f4a_7c15),
    }
}

/// Source, destination, time to live and identification.
#[inline]
fn header(ip: &IpLayer, bytes: &[u8]) -> (IpAddr, IpAddr, u8, Option<u16>) {
    let addresses = ip.addresses(bytes);
    match ip.version {
        IpVersion::V4 => {
            let address = |at: usize| Ipv4Addr::from(part::<4>(addresses, at)).into();
            (address(0), address(4), bytes[ip.at + 8], Some(u16::from_be_bytes(part(bytes, ip.at + 4))))
        }
        IpVersion::V6 => {
            let address = |at: usize| Ipv6Addr::from(part::<16>(addresses, at)).into();
            (address(0), address(16), bytes[ip.at + 7], None)
        }
    }
}

#[inline]
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

const MORE: u64 = 1 << 15;

#[inline]
fn fragment_number(version: IpVersion, fragment: Fragment) -> u64 {
    let id = if version == IpVersion::V6 { u64::from(fragment.id()) << 16 } else { 0 };
    u64::from(fragment.offset()) | if fragment.has_more() { MORE } else { 0 } | id
}

/// The place of a segment of `len` bytes, header included, of which `inside` is the beginning.
#[inline]
fn segment(inside: &[u8], len: usize) -> Option<TcpFields> {
    let head: &[u8; 14] = inside.first_chunk()?;
    let header = usize::from(head[12] >> 4) * 4;
    let (fin, syn) = (head[13] & 1 != 0, head[13] & 2 != 0);
    let payload = len.saturating_sub(header) as u16;
    let len = payload.wrapping_add(u16::from(fin)).wrapping_add(u16::from(syn));
    Some(TcpFields { seq: u32::from_be_bytes([head[4], head[5], head[6], head[7]]), len, syn })
}

#[inline]
fn ports(inside: &[u8]) -> (u16, u16) {
    let Some(head) = inside.first_chunk::<4>() else { return (0, 0) };
    (u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]]))
}

/// A hash of everything from `from` on but for the checksum.
#[inline]
fn around(inside: &[u8], from: usize, checksum: std::ops::Range<usize>) -> u64 {
    let before = inside.get(from..checksum.start.min(inside.len())).unwrap_or_default();
    let after = inside.get(checksum.end..).unwrap_or_default();
    hash(after, hash(before, 1))
}

/// Sixteen bytes at a time; the last ones overlap those before, which saves copying them.
#[inline]
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let seed = seed ^ bytes.len() as u64;
    let Some(last) = bytes.last_chunk::<16>() else { return hash_few(bytes, seed) };
    let (pairs, _) = bytes[..bytes.len() - 1].as_chunks::<16>();
    let hash = pairs.iter().fold(seed, |hash, pair| mix(hash, word(pair, 0), word(pair, 8)));
    mix(hash, word(last, 0), word(last, 8))
}

#[inline]
fn hash_few(bytes: &[u8], seed: u64) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return mix(seed, u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return mix(seed, u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)));
    }
    mix(seed, bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 0)
}

#[inline]
fn word(pair: &[u8; 16], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|nth| pair[at + nth]))
}

#[inline]
fn mix(hash: u64, one: u64, two: u64) -> u64 {
    fold(hash ^ one, two ^ 0xa54f_f53a_5f1d_36f1)
}

#[cfg(test)]
mod tests;

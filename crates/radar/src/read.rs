//! From the bytes of a frame to what a meter sees of its packet.
//!
//! IPv4 and IPv6, behind VLAN tags and extension headers. What is hashed as content begins at the transport header and
//! leaves out what NAT rewrites (ports) and what a card fills in after a capture has seen the frame (checksums). Any
//! bytes do: what is no IP is `None`, what is cut short is read as far as it goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{ethernet, ipv4};

use crate::packet::{Flow, Packet, Segment};
use crate::signature::fold;

/// What a captured frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    Ethernet,
    /// Nothing: the IP header comes first.
    Ip,
    /// Linux "cooked" captures of any interface, and their second version.
    Cooked,
    Cooked2,
    /// Four bytes of a BSD loopback.
    Loopback,
}

impl LinkType {
    /// By its number in capture files.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Self::Ip),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            0 | 108 => Some(Self::Loopback),
            _ => None,
        }
    }

    /// The IP packet in a frame.
    #[inline]
    pub(crate) fn inside(self, frame: &[u8]) -> Option<&[u8]> {
        let protocol = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        let (kind, at) = match self {
            Self::Ethernet => ethernet::inside(frame)?,
            Self::Ip => return Some(frame),
            Self::Loopback => return frame.get(4..),
            Self::Cooked => (protocol(14)?, 16),
            Self::Cooked2 => (protocol(0)?, 20),
        };
        matches!(kind, ethernet::IPV4 | ethernet::IPV6).then(|| &frame[at.min(frame.len())..])
    }
}

/// How far a packet is looked into, from its IP header on. Meters that are compared must look equally far.
pub const DEPTH: usize = 128;

/// Protocols whose headers are known here beside TCP and UDP.
const ICMP: u8 = 1;
pub(crate) const ICMP_V6: u8 = 58;
const SCTP: u8 = 132;

/// `None` for what is no IP packet.
#[inline]
pub fn packet(frame: &[u8], link: LinkType, depth: usize) -> Option<Packet> {
    let ip = link.inside(frame)?;
    match ip.first()? >> 4 {
        4 => v4(ip, depth),
        6 => v6(ip, depth),
        _ => None,
    }
}

/// What an IP header says, of either version.
struct Head {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    ttl: u8,
    ip_id: Option<u16>,
    fragment: u64,
    /// Where what it carries begins, and how long the whole is.
    at: usize,
    total: usize,
}

const MORE: u64 = 1 << 15;

#[inline]
fn v4(ip: &[u8], depth: usize) -> Option<Packet> {
    let head: &[u8; 20] = ip.first_chunk()?;
    let at = usize::from(head[0] & 0x0f) * 4;
    if at < head.len() {
        return None;
    }
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let address = |at: usize| Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]).into();
    // Offset and "more follow", without "do not fragment".
    let (offset, more) = (u64::from(half(6) & 0x1fff), half(6) & 0x2000 != 0);
    let total = usize::from(half(2));
    let head = Head {
        src: address(12),
        dst: address(16),
        protocol: head[9],
        ttl: head[8],
        ip_id: Some(half(4)),
        fragment: offset | if more { MORE } else { 0 },
        at,
        // A card that cuts what is longer than 64 KB is handed it with no length.
        total: if total == 0 { ip.len() } else { total },
    };
    Some(head.packet(ip, depth))
}

#[inline]
fn v6(ip: &[u8], depth: usize) -> Option<Packet> {
    let first: &[u8; 40] = ip.first_chunk()?;
    let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&first[at..at + 16]).unwrap_or_default()).into();
    let payload = usize::from(u16::from_be_bytes([first[4], first[5]]));
    let mut head = Head {
        src: address(8),
        dst: address(24),
        protocol: first[6],
        ttl: first[7],
        ip_id: None,
        fragment: 0,
        at: 40,
        total: if payload == 0 { ip.len() } else { 40 + payload },
    };
    head.pass_extensions(ip);
    Some(head.packet(ip, depth))
}

impl Head {
    /// Steps over the extension headers that the way of a packet may change, and notes that of fragments.
    #[inline]
    fn pass_extensions(&mut self, ip: &[u8]) {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        const DESTINATION: u8 = 60;
        // More than these in one packet are an attack, not a packet.
        for _ in 0..8 {
            let Some(extension) = ip.get(self.at..).and_then(<[u8]>::first_chunk::<8>) else { return };
            match self.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION => self.at += 8 * (usize::from(extension[1]) + 1),
                FRAGMENT => {
                    let place = u16::from_be_bytes([extension[2], extension[3]]);
                    let id = u32::from_be_bytes([extension[4], extension[5], extension[6], extension[7]]);
                    let more = if place & 1 == 1 { MORE } else { 0 };
                    self.fragment = u64::from(place >> 3) | more | u64::from(id) << 16;
                    self.at += 8;
                }
                _ => return,
            }
            self.protocol = extension[0];
        }
    }

    #[inline]
    fn packet(&self, ip: &[u8], depth: usize) -> Packet {
        // A short frame is filled up; that is none of the packet.
        let end = ip.len().min(self.total).min(depth.max(self.at));
        let inside = ip.get(self.at..end).unwrap_or_default();
        let is_later_fragment = self.fragment & (MORE - 1) != 0;
        let protocol = if is_later_fragment { u8::MAX } else { self.protocol };
        let (ports, tcp, content) = match protocol {
            ipv4::TCP => (ports(inside), self.segment(inside), around(inside, 4, 16..18)),
            ipv4::UDP => (ports(inside), None, around(inside, 4, 6..8)),
            SCTP => (ports(inside), None, around(inside, 4, 8..12)),
            ICMP | ICMP_V6 => ((0, 0), None, around(inside, 0, 2..4)),
            _ => ((0, 0), None, hash(inside, 0)),
        };
        Packet {
            flow: Flow { src: self.src, dst: self.dst, protocol: self.protocol, src_port: ports.0, dst_port: ports.1 },
            ip_id: self.ip_id,
            fragment: self.fragment,
            tcp,
            ttl: self.ttl,
            content: fold(content ^ self.total.wrapping_sub(self.at) as u64, 0x9e37_79b9_7f4a_7c15),
        }
    }

    #[inline]
    fn segment(&self, inside: &[u8]) -> Option<Segment> {
        let head: &[u8; 14] = inside.first_chunk()?;
        let header = usize::from(head[12] >> 4) * 4;
        let (fin, syn) = (head[13] & 1 != 0, head[13] & 2 != 0);
        let payload = self.total.saturating_sub(self.at + header);
        let len = payload as u16;
        let len = len.wrapping_add(u16::from(fin)).wrapping_add(u16::from(syn));
        Some(Segment { seq: u32::from_be_bytes([head[4], head[5], head[6], head[7]]), len, syn })
    }
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

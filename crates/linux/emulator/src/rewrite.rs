//! A wire with a router at its end: what it rewrites in IPv4 packets, as a test of tools that look at both sides needs.
//!
//! Checksums are carried on (RFC 1624), so a packet that was right stays right, and one that was wrong stays wrong.

use std::net::Ipv4Addr;

use wire::checksum;
use wire::ip;
use wire::layers::{IpLayer, IpVersion, Layers};

/// Changes that are made to frames that come out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// A router forwards: the time to live becomes less by one.
    pub hop: bool,
    pub nat: Option<Nat>,
    /// The identification becomes zero.
    pub no_ip_id: bool,
}

/// A host on the first side, and how it is known on the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat {
    pub inside: Ipv4Addr,
    pub outside: Ipv4Addr,
    /// Offset that is added to its ports.
    pub port_shift: u16,
}

/// Places in an IPv4 header, and in TCP's and UDP's.
const TTL: usize = 8;
const IDENTIFICATION: usize = 4;
const CHECKSUM: usize = 10;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

impl Rewrite {
    /// `forth` is from the first side to the second.
    pub fn apply(&self, frame: &mut [u8], forth: bool) {
        let Some(ip) = Layers::of(frame).and_then(|layers| layers.ip) else { return };
        let Some(mut packet) = Ip::new(&ip, frame) else { return };
        if self.hop {
            let ttl = packet.half(TTL);
            packet.put(TTL, ttl.wrapping_sub(0x0100), false);
        }
        if self.no_ip_id {
            packet.put(IDENTIFICATION, 0, false);
        }
        if let Some(nat) = &self.nat {
            let (from, to) = if forth { (nat.inside, nat.outside) } else { (nat.outside, nat.inside) };
            let (address, port) = if forth { (SOURCE, 0) } else { (DESTINATION, 2) };
            if packet.address(address) == from.octets() {
                packet.put_address(address, to.octets());
                let shift = if forth { nat.port_shift } else { nat.port_shift.wrapping_neg() };
                packet.shift_port(port, shift);
            }
        }
    }
}

struct Ip<'a> {
    bytes: &'a mut [u8],
    /// Position of the checksum of the payload's protocol, if that covers addresses.
    inner: Option<usize>,
    transport: usize,
}

impl<'a> Ip<'a> {
    /// `None` for what is no whole header of IPv4. Fragments keep what they carry as it is.
    fn new(ip: &IpLayer, frame: &'a mut [u8]) -> Option<Self> {
        if ip.version != IpVersion::V4 || frame.len() < ip.transport {
            return None;
        }
        let (bytes, transport) = (&mut frame[ip.at..], ip.transport - ip.at);
        let inner = match ip.protocol {
            ip::TCP => Some(transport + 16),
            ip::UDP => Some(transport + 6),
            _ => None,
        };
        let inner = inner.filter(|inner| ip.fragment.is_none() && inner + 2 <= bytes.len());
        Some(Self { bytes, inner, transport })
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn address(&self, at: usize) -> [u8; 4] {
        [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]]
    }

    /// Two bytes of the header, with the checksums that cover them.
    fn put(&mut self, at: usize, new: u16, is_covered_inside: bool) {
        let old = self.half(at);
        self.bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
        if at < self.transport {
            self.carry_on(CHECKSUM, old, new);
        }
        if let Some(inner) = self.inner.filter(|_| is_covered_inside) {
            self.carry_on(inner, old, new);
        }
    }

    fn put_address(&mut self, at: usize, [a, b, c, d]: [u8; 4]) {
        self.put(at, u16::from_be_bytes([a, b]), true);
        self.put(at + 2, u16::from_be_bytes([c, d]), true);
    }

    fn shift_port(&mut self, at: usize, shift: u16) {
        if self.inner.is_some() {
            let port = self.half(self.transport + at).wrapping_add(shift);
            self.put(self.transport + at, port, true);
        }
    }

    /// The checksum at `at` with `new` in the place of `old`. A checksum of UDP that is zero is none.
    fn carry_on(&mut self, at: usize, old: u16, new: u16) {
        let sum = [self.bytes[at], self.bytes[at + 1]];
        if sum == [0, 0] && at != CHECKSUM && self.bytes[9] == ip::UDP {
            return;
        }
        let sum = checksum::update(sum, &old.to_be_bytes(), &new.to_be_bytes());
        self.bytes[at..at + 2].copy_from_slice(&sum);
    }
}

#[cfg(test)]
mod tests {
    use wire::checksum::Sum;
    use wire::ip::Ecn;
    use wire::ipv4::{Ipv4Header, Station};
    use wire::udp;

    use super::*;

    fn datagram(checked: bool) -> Vec<u8> {
        let station = |last| Station { mac: [2, 0, 0, 0, 0, last], ip: [10, 0, 0, last] };
        let ip = Ipv4Header { from: station(1), to: station(2), protocol: ip::UDP, ecn: Ecn::Capable, payload: 8 + 5 };
        let mut frame = Vec::new();
        ip.emit(&mut frame);
        udp::UdpHeader { source: 7_000, destination: 53, checked }.emit(&ip, &mut frame);
        frame.extend(b"query");
        if checked {
            frame[40..42].copy_from_slice(&[0, 0]);
            let sum = Sum::of(&inside(&frame)).checksum();
            frame[40..42].copy_from_slice(&sum);
        }
        frame
    }

    /// Bytes that the checksum of UDP covers: addresses, protocol, length, all of the datagram.
    fn inside(frame: &[u8]) -> Vec<u8> {
        let packet = &frame[14..];
        [&packet[12..20], &[0, packet[9]], &packet[24..26], &packet[20..]].concat()
    }

    fn assert_right(frame: &[u8]) {
        assert!(Sum::of(&frame[14..34]).verifies(), "the header's checksum");
        assert!(Sum::of(&inside(frame)).verifies(), "that of what it carries");
    }

    const NAT: Nat =
        Nat { inside: Ipv4Addr::new(10, 0, 0, 1), outside: Ipv4Addr::new(192, 0, 2, 77), port_shift: 1_000 };

    #[test]
    fn a_packet_that_is_right_stays_right() {
        let mut frame = datagram(true);
        assert_right(&frame);
        let ttl = frame[22];
        Rewrite { hop: true, nat: Some(NAT), no_ip_id: true }.apply(&mut frame, true);
        assert_right(&frame);
        assert_eq!((frame[22], &frame[18..20], &frame[26..30]), (ttl - 1, &[0, 0][..], &[192, 0, 2, 77][..]));
        assert_eq!(frame[34..36], 8_000_u16.to_be_bytes());
    }

    #[test]
    fn what_comes_back_is_as_it_was() {
        let there = datagram(true);
        let mut frame = there.clone();
        // The answer goes the other way: addresses and ports change places.
        let swap = |frame: &mut [u8]| {
            (0..4).for_each(|at| frame.swap(26 + at, 30 + at));
            (0..2).for_each(|at| frame.swap(34 + at, 36 + at));
        };
        let rewrite = Rewrite { nat: Some(NAT), ..Rewrite::default() };
        rewrite.apply(&mut frame, true);
        swap(&mut frame);
        rewrite.apply(&mut frame, false);
        swap(&mut frame);
        assert_eq!(frame, there);
    }

    #[test]
    fn what_has_no_checksum_gets_none_and_any_bytes_pass() {
        let mut frame = datagram(false);
        Rewrite { nat: Some(NAT), ..Rewrite::default() }.apply(&mut frame, true);
        assert_eq!(frame[40..42], [0, 0]);
        for len in 0..frame.len() {
            Rewrite { hop: true, nat: Some(NAT), no_ip_id: true }.apply(&mut frame[..len], true);
        }
    }
}

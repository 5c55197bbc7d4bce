//! Packets that no router forwards.
//!
//! Multicast of link-local scope (OSPF, mDNS, LLMNR, VRRP, MLD, router solicitations), link-local addresses (RFC 3927, RFC
//! 4291), the limited broadcast (DHCP), group management and neighbor discovery. They end at the next host or router by
//! design, most of them with a TTL of 1, so their absence farther along says nothing about losses or loops.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::ip::ICMP_V6;
use wire::layers::IpLayer;

use crate::packet::Packet;
use capture::LinkType;

const IGMP: u8 = 2;
const OSPF: u8 = 89;
/// Time to live that RFC 4861 requires of neighbor discovery: a packet with it cannot have passed a router.
const NEVER_FORWARDED: u8 = 255;

/// True if a packet stays on its link. `frame` is the frame that it was read from.
#[inline]
pub fn is_link_local(packet: &Packet, frame: &[u8], link: LinkType) -> bool {
    let flow = &packet.flow;
    match (flow.src, flow.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => stays_v4(src) || stays_v4(dst) || is_control(packet),
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            stays_v6(src)
                || stays_v6(dst)
                || is_control(packet)
                || flow.protocol == ICMP_V6 && is_neighbor_discovery(packet, frame, link)
        }
        _ => false,
    }
}

#[inline]
fn stays_v4(address: Ipv4Addr) -> bool {
    let octets = address.octets();
    octets[..3] == [224, 0, 0] || address.is_link_local() || address.is_broadcast()
}

/// Interface-local and link-local scope, with any flags of a multicast address.
#[inline]
fn stays_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    first & 0xffc0 == 0xfe80 || first & 0xff0f == 0xff01 || first & 0xff0f == 0xff02
}

/// IGMP reports go to the group itself, OSPF speaks to neighbors by unicast, too: both with a TTL of 1.
#[inline]
fn is_control(packet: &Packet) -> bool {
    matches!(packet.flow.protocol, IGMP | OSPF) && packet.ttl <= 1
}

/// Solicitations and advertisements between global addresses.
fn is_neighbor_discovery(packet: &Packet, frame: &[u8], link: LinkType) -> bool {
    let kind = link.inside(frame).and_then(|bytes| IpLayer::of(bytes, 0)?.inside(bytes).first());
    packet.ttl == NEVER_FORWARDED && kind.is_some_and(|kind| (133..=137).contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{DEPTH, packet};

    fn v4(dst: [u8; 4], protocol: u8, ttl: u8) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 28, 0, 1, 0, 0, ttl, protocol, 0, 0, 10, 0, 0, 1];
        ip.extend(dst);
        ip.extend([0; 8]);
        ip
    }

    fn v6(src: &str, dst: &str, protocol: u8, hops: u8, kind: u8) -> Vec<u8> {
        let mut ip = vec![0x60, 0, 0, 0, 0, 8, protocol, hops];
        for address in [src, dst] {
            ip.extend(address.parse::<Ipv6Addr>().unwrap().octets());
        }
        ip.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        ip
    }

    fn stays(frame: &[u8]) -> bool {
        is_link_local(&packet(frame, LinkType::Ip, DEPTH).unwrap(), frame, LinkType::Ip)
    }

    #[test]
    fn what_no_router_forwards_is_link_local() {
        let link_local = [
            ("OSPF hello", v4([224, 0, 0, 5], OSPF, 1)),
            ("OSPF by unicast", v4([10, 0, 0, 2], OSPF, 1)),
            ("mDNS", v4([224, 0, 0, 251], 17, 255)),
            ("IGMP report to its group", v4([239, 1, 2, 3], IGMP, 1)),
            ("DHCP", v4([255, 255, 255, 255], 17, 64)),
            ("autoconfigured", v4([169, 254, 7, 7], 17, 64)),
            ("MLD report", v6("fe80::1", "ff02::16", ICMP_V6, 1, 143)),
            ("MLDv1 report to its group", v6("fe80::1", "ff05::2", ICMP_V6, 1, 131)),
            ("router solicitation", v6("::", "ff02::2", ICMP_V6, 255, 133)),
            ("mDNS v6", v6("fe80::1", "ff02::fb", 17, 255, 0)),
            ("transient group", v6("2001:db8::1", "ff12::7", 17, 1, 0)),
            ("neighbor solicitation by unicast", v6("2001:db8::1", "2001:db8::2", ICMP_V6, 255, 135)),
        ];
        for (name, frame) in link_local {
            assert!(stays(&frame), "{name}");
        }
    }

    #[test]
    fn what_routers_forward_is_not() {
        let forwarded = [
            ("unicast", v4([10, 0, 0, 2], 17, 64)),
            ("a loop's last packet", v4([10, 0, 0, 2], 17, 1)),
            ("multicast of an organization", v4([239, 1, 2, 3], 17, 1)),
            ("224.0.1.0/24", v4([224, 0, 1, 1], 17, 64)),
            ("ping", v6("2001:db8::1", "2001:db8::2", ICMP_V6, 255, 128)),
            ("forged discovery from elsewhere", v6("2001:db8::1", "2001:db8::2", ICMP_V6, 254, 135)),
            ("site-local multicast", v6("2001:db8::1", "ff05::2", 17, 1, 0)),
        ];
        for (name, frame) in forwarded {
            assert!(!stays(&frame), "{name}");
        }
    }
}

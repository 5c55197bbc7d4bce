//! Addresses of hosts, ports of flows and headers that a simulated packet would have on a real wire.

use std::net::{IpAddr, Ipv4Addr};

pub use machine::Conversation;
use radar::packet::{Flow, Packet as Seen};
use wire::ipv4::Station;
use wire::roce;

use super::packet::SimPacket;
use super::transports::Body;
use crate::topology::NodeId;

/// The ports of servers: iperf's, and that of discard.
pub(crate) const TCP_PORT: u16 = 5_001;
pub(crate) const UDP_PORT: u16 = 9;
const FIRST_FREE_PORT: u16 = 1_024;

/// 10.0.0.1 is the first host, and so on.
pub fn station(node: NodeId) -> Station {
    let [_, a, b, c] = (node.0 + 1).to_be_bytes();
    Station { mac: [2, 0, 0, a, b, c], ip: [10, a, b, c] }
}

/// The host of an address.
pub fn host_of(address: IpAddr) -> Option<NodeId> {
    let IpAddr::V4(address) = address else { return None };
    let [ten, a, b, c] = address.octets();
    let number = u32::from_be_bytes([0, a, b, c]).checked_sub(1)?;
    (ten == 10).then_some(NodeId(number))
}

/// Source and destination, if `served` is the port of the host that flows go to.
pub fn ports(who: Conversation, served: u16) -> [u16; 2] {
    let own = FIRST_FREE_PORT + (who.flow % u32::from(u16::MAX - FIRST_FREE_PORT)) as u16;
    let own = if own == served { u16::MAX } else { own };
    if who.forward { [own, served] } else { [served, own] }
}

/// UDP ports of a flow's packets, derived from its number. Both directions use the same pair, so that ECMP hashes them alike.
pub(crate) fn roce_ports(who: Conversation) -> [u16; 2] {
    [0xc000 | (who.flow & 0x3fff) as u16, roce::PORT]
}

/// The 5-tuple of a packet.
pub fn flow(who: Conversation, body: &Body) -> Flow {
    let [src, dst] = [who.from, who.to].map(|host| IpAddr::V4(Ipv4Addr::from(station(NodeId(host)).ip)));
    let (protocol, [src_port, dst_port]) = body.ports(who);
    Flow { src, dst, protocol, src_port, dst_port }
}

/// Fields of a packet that a meter reads: all that no switch changes. The sending host counts the identification.
pub fn seen(who: Conversation, packet: &SimPacket, ip_id: u16) -> Seen {
    let (tcp, content) = packet.body.signature();
    let ttl = packet.route.time_to_live() as u8;
    Seen { flow: flow(who, &packet.body), ip_id: Some(ip_id), fragment: 0, tcp, ttl, content }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_by_its_address() {
        for host in [NodeId(0), NodeId(254), NodeId(70_000)] {
            assert_eq!(host_of(Ipv4Addr::from(station(host).ip).into()), Some(host));
        }
        assert_eq!(["10.0.0.0", "11.0.0.1", "::1"].map(|address| host_of(address.parse().unwrap())), [None; 3]);
    }

    #[test]
    fn both_ways_of_a_flow_have_the_same_ports() {
        let there = Conversation { from: 1, to: 2, flow: 3_977, forward: true };
        let back = Conversation { from: 2, to: 1, forward: false, ..there };
        assert_eq!((ports(there, TCP_PORT), ports(back, TCP_PORT)), ([u16::MAX, TCP_PORT], [TCP_PORT, u16::MAX]));
        assert_eq!(roce_ports(there), roce_ports(back));
    }
}

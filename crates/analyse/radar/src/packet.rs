//! Fields that a meter reads of a packet: LossRadar (li-thesis §5.3.2), *signature*.
//!
//! Every field but [`Packet::ttl`] has the value that the sender wrote, and no router changes it. For a network that
//! changes more than the time to live (addresses and ports, behind NAT), [`Fields`](crate::signature::Fields) names the
//! fields to leave out.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

/// Sender and receiver of a packet: the 5-tuple. Ports are zero where a packet has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub protocol: u8,
    pub src_port: u16,
    pub dst_port: u16,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |address: IpAddr, port: u16| match (address, port) {
            (address, 0) => address.to_string(),
            (IpAddr::V4(address), port) => format!("{address}:{port}"),
            (IpAddr::V6(address), port) => format!("[{address}]:{port}"),
        };
        let name = match self.protocol {
            wire::ipv4::TCP => "tcp".to_owned(),
            wire::ipv4::UDP => "udp".to_owned(),
            other => format!("protocol {other}"),
        };
        let (from, to) = (end(self.src, self.src_port), end(self.dst, self.dst_port));
        f.pad(&format!("{name} {from} > {to}"))
    }
}

/// A flow as its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FlowFields {
    src: IpAddr,
    dst: IpAddr,
    proto: u8,
    src_port: u16,
    dst_port: u16,
}

impl From<Flow> for FlowFields {
    fn from(flow: Flow) -> Self {
        let Flow { src, dst, protocol, src_port, dst_port } = flow;
        Self { src, dst, proto: protocol, src_port, dst_port }
    }
}

/// The part of TCP's header that gives a segment's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpFields {
    pub seq: u32,
    /// Sequence numbers that it takes up: payload, and one each for SYN and FIN.
    pub len: u16,
    pub syn: bool,
}

/// One packet, by what its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub flow: Flow,
    /// IPv4's identification; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// Offset of a fragment in units of 8 bytes, the highest bit set if more follow, and what IPv6 identifies fragments by;
    /// zero for what is whole.
    pub fragment: u64,
    pub tcp: Option<TcpFields>,
    /// Remaining time to live.
    pub ttl: u8,
    /// A hash of what else a packet has that nobody on its way changes: the transport header but for ports and checksum,
    /// and the beginning of the payload.
    pub content: u64,
}

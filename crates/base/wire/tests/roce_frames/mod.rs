//! RoCEv2 frames of every shape, as our emitter writes them.

use wire::checksum::Sum;
use wire::ip::Ecn;
use wire::ipv4::{self, Station};
use wire::roce::{self, ExtensionHeader, Opcode, RoceHeader, Syndrome};
use wire::udp;

/// Layers around a RoCEv2 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    Ipv4,
    Ipv4WithOptions,
    Ipv6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub tags: usize,
    pub around: Around,
}

impl Shape {
    pub(crate) const PLAIN: Self = Self { tags: 0, around: Around::Ipv4 };

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let arounds = [Around::Ipv4, Around::Ipv4WithOptions, Around::Ipv6];
        arounds.into_iter().flat_map(|around| (0..3).map(move |tags| Self { tags, around }))
    }

    /// Offset of UDP's header.
    pub(crate) fn udp(self) -> usize {
        14 + 4 * self.tags
            + match self.around {
                Around::Ipv4 => 20,
                Around::Ipv4WithOptions => 24,
                Around::Ipv6 => 40,
            }
    }
}

/// True if packets of this opcode can have payload.
pub(crate) fn carries(opcode: Opcode) -> bool {
    use Opcode::*;
    !matches!(opcode, ReadRequest | Acknowledge | AtomicAcknowledge | CompareSwap | FetchAdd)
}

pub(crate) fn pad(payload: usize) -> u8 {
    (payload.wrapping_neg() % 4) as u8
}

/// A header with the extension that its opcode has.
pub(crate) fn header(opcode: Opcode, psn: u32, pad: u8) -> RoceHeader {
    use Opcode::*;
    let extended = match opcode {
        WriteFirst | WriteOnly | WriteOnlyImmediate | ReadRequest => {
            Some(ExtensionHeader::Rdma { len: 0x0102_0304 ^ psn })
        }
        ReadResponseFirst | ReadResponseLast | ReadResponseOnly | AtomicAcknowledge => {
            Some(ExtensionHeader::Ack { syndrome: Syndrome::ACK, msn: psn / 3 })
        }
        Acknowledge => Some(ExtensionHeader::Ack { syndrome: Syndrome::SEQUENCE_ERROR, msn: psn / 5 }),
        _ => None,
    };
    let queue_pair = 0xab_cdef ^ psn;
    RoceHeader { opcode, queue_pair, psn, ack_request: psn % 2 == 1, pad, extended }
}

/// A whole frame, with a right check behind as many bytes of payload as are asked for.
pub(crate) fn frame(shape: Shape, header: &RoceHeader, payload: usize) -> Vec<u8> {
    let mut transport = Vec::new();
    header.emit(&mut transport);
    transport.extend((0..payload).map(|at| at as u8));
    transport.resize(transport.len() + usize::from(header.pad), 0);
    around(shape, &transport)
}

/// A frame around `transport`, which stands behind UDP's header, with a right check behind that.
pub(crate) fn around(shape: Shape, transport: &[u8]) -> Vec<u8> {
    let station = |last| Station { mac: [2, 0, 0, 0, 0, last], ip: [10, 0, 0, last] };
    let payload = (udp::UdpHeader::LEN + transport.len() + RoceHeader::CHECK) as u16;
    let ip = ipv4::Ipv4Header { from: station(1), to: station(2), protocol: ipv4::UDP, ecn: Ecn::Capable, payload };
    let mut out = Vec::new();
    ip.emit(&mut out);
    match shape.around {
        Around::Ipv4 => {}
        Around::Ipv4WithOptions => add_options(&mut out, payload),
        Around::Ipv6 => into_ipv6(&mut out, payload),
    }
    udp::UdpHeader { source: 0xc001, destination: roce::PORT, checked: false }.emit(&ip, &mut out);
    out.extend(transport);
    if transport.len() < 12 {
        out.extend([0; RoceHeader::CHECK]);
    } else {
        roce::append_icrc(&mut out, 14);
    }
    // The outer of two tags has a type of its own.
    for kind in [[0x81, 0x00], [0x88, 0xa8]].iter().take(shape.tags) {
        out.splice(12..12, [kind[0], kind[1], 0x60, 0x07]);
    }
    out
}

/// Four bytes of options that mean nothing.
fn add_options(out: &mut Vec<u8>, payload: u16) {
    out[14] = 0x46;
    out[16..18].copy_from_slice(&(24 + payload).to_be_bytes());
    out[24..26].fill(0);
    out.extend([1, 1, 1, 0]);
    let checksum = Sum::of(&out[14..]).checksum();
    out[24..26].copy_from_slice(&checksum);
}

fn into_ipv6(out: &mut Vec<u8>, payload: u16) {
    out.truncate(12);
    out.extend([0x86, 0xdd, 0x60, 0x20, 0, 7]);
    out.extend(payload.to_be_bytes());
    out.extend([ipv4::UDP, 64]);
    for last in [1, 2] {
        out.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
}

/// Frames to RoCEv2's port with something wrong, each by its name.
pub(crate) fn malformed(shape: Shape) -> Vec<(&'static str, Vec<u8>)> {
    let at = shape.udp();
    let write = frame(shape, &header(Opcode::WriteOnly, 9, 0), 64);
    let changed = |at: usize, to: u8| {
        let mut frame = write.clone();
        frame[at] = to;
        frame
    };
    let behind_udp = |bytes: usize| write[at + 8..at + 8 + bytes].to_vec();
    let nak = {
        let mut bytes = Vec::new();
        header(Opcode::Acknowledge, 9, 0).emit(&mut bytes);
        bytes
    };
    let mut padded = Vec::new();
    header(Opcode::SendOnly, 9, 3).emit(&mut padded);
    vec![
        ("cut", write[..write.len() - 30].to_vec()),
        ("cut-in-base", write[..at + 8 + 5].to_vec()),
        ("udp-too-long", changed(at + 5, write[at + 5] + 9)),
        ("udp-too-short", changed(at + 5, write[at + 5] - 9)),
        ("udp-below-its-header", changed(at + 5, 4)),
        ("no-base", around(shape, &[])),
        ("half-a-base", around(shape, &behind_udp(7))),
        ("half-an-rdma", around(shape, &behind_udp(20))),
        ("no-ack", around(shape, &nak[..12])),
        ("pad-of-nothing", around(shape, &padded)),
        ("version-1", changed(at + 9, 1)),
    ]
}

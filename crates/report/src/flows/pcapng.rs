//! Captured packets as pcapng, for Wireshark and its relatives.
//!
//! Packets of the simulator have no bytes; their headers are written out here, with addresses and ports of `sim::net::address`. Payload is zeros, and cut off: a packet's length is in the file all the same.
//! A packet that the wire corrupted is marked with a comment and with the flag for a wrong check sequence.
//!
//! Where a scenario has no handshakes, there are none: connections are established from the start. Windows count in units of
//! 256 bytes, as if that had been agreed.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};
use sim::net::address::{Conversation as Who, TCP_PORT, UDP_PORT, ports, roce_ports, station};
use sim::net::{Body, Captured, Handshake, Outcome};
use sim::scenario::Point;
use sim::topology::{DirectedLink, NodeId};
use transport::roce::{Opcode, Packet, Part, Syndrome, selective};
use transport::tcp;
use units::Time;
use wire::ip::Ecn;
use wire::ipv4;
use wire::{roce, udp};

/// Room for every header.
const SNAP: usize = 128;
/// RFC 7323's scale of the window.
const WINDOW_SCALE: u32 = 8;
/// Link-layer error, wrong frame check sequence (pcapng, §4.3.1).
const WRONG_CHECK: u32 = 1 << 24;
const FRAME_CHECK: u32 = 4;
const ETHERNET: u32 = 14;

pub(super) fn link_name(point: &Point, port: DirectedLink) -> String {
    let topology = point.topology();
    format!("{}-{}", topology.name(topology.from(port)), topology.name(topology.to(port)))
}

/// The packets of these ports, each an interface of the file.
pub(super) fn packets(
    point: &Point,
    outcome: &Outcome,
    ports: &[DirectedLink],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut writer = PcapNgWriter::new(out).map_err(to_io)?;
    for port in ports {
        let name = link_name(point, *port);
        let options =
            vec![InterfaceDescriptionOption::IfName(Cow::Borrowed(&name)), InterfaceDescriptionOption::IfTsResol(9)];
        let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: SNAP as u32, options };
        writer.write_pcapng_block(block).map_err(to_io)?;
    }
    for captured in &outcome.captured {
        let Some(interface) = ports.iter().position(|port| port.0 == captured.port) else { continue };
        writer.write_pcapng_block(block(captured, interface as u32)).map_err(to_io)?;
    }
    Ok(())
}

fn block(captured: &Captured, interface: u32) -> EnhancedPacketBlock<'static> {
    let original = u32::from(captured.packet.len).saturating_sub(FRAME_CHECK);
    let mut data = headers(captured);
    data.resize((original as usize).min(SNAP), 0);
    let mut options = Vec::new();
    if captured.corrupted {
        options.push(EnhancedPacketOption::Comment(Cow::Borrowed("corrupted on the wire")));
        options.push(EnhancedPacketOption::Flags(WRONG_CHECK));
    }
    EnhancedPacketBlock {
        interface_id: interface,
        timestamp: Duration::from_nanos(captured.at.since(Time::ZERO).as_ps() / 1_000),
        original_len: original,
        data: Cow::Owned(data),
        options,
    }
}

/// As long as the packet says, and no longer.
fn headers(captured: &Captured) -> Vec<u8> {
    let mut out = Vec::with_capacity(SNAP);
    let conversation = Conversation::of(captured);
    let inside = u32::from(captured.packet.len).saturating_sub(FRAME_CHECK + ETHERNET + 20) as u16;
    match &captured.packet.body {
        Body::Tcp(segment) => segment_headers(segment, None, &conversation, inside, &mut out),
        Body::Handshake(step) => {
            // Before position 0, which is the first byte's.
            let segment = tcp::Segment { seq: u64::MAX, ..tcp::Segment::default() };
            segment_headers(&segment, Some(*step), &conversation, inside, &mut out);
        }
        Body::Roce(packet) => packet_headers(packet, &conversation, &mut out),
        Body::Selective(packet) => packet_headers(&plain(packet), &conversation, &mut out),
        Body::Raw(_) => {
            let ip = conversation.ip(ipv4::UDP, inside);
            ip.emit(&mut out);
            let [source, destination] = ports(conversation.who, UDP_PORT);
            udp::Header { source, destination, checked: true }.emit(&ip, &mut out);
        }
    }
    out
}

/// As RoCE has it. What a NACK says of its gaps has no place there; it follows as zeros.
fn plain(packet: &selective::Packet) -> Packet {
    let (opcode, payload, ack_request) = match packet.kind {
        selective::Kind::Data { part, payload, ack_request } => (Opcode::Write(part), payload, ack_request),
        selective::Kind::Ack => (Opcode::Acknowledge(Syndrome::Ack), 0, false),
        selective::Kind::Nack(_) => (Opcode::Acknowledge(Syndrome::SequenceError), 0, false),
    };
    Packet { opcode, psn: packet.psn, payload, dma_len: payload, msn: 0, ack_request, ecn: packet.ecn }
}

/// Who speaks to whom.
struct Conversation {
    who: Who,
    ecn: Ecn,
}

impl Conversation {
    fn of(captured: &Captured) -> Self {
        let Captured { src, dst, forward, flow, packet, .. } = *captured;
        let (from, to) = if forward { (src.0, dst.0) } else { (dst.0, src.0) };
        Self { who: Who { from, to, flow, forward }, ecn: packet.ecn }
    }

    fn ip(&self, protocol: u8, payload: u16) -> ipv4::Header {
        let [from, to] = [self.who.from, self.who.to].map(|host| station(NodeId(host)));
        ipv4::Header { from, to, protocol, ecn: self.ecn, payload }
    }
}

fn segment_headers(
    segment: &tcp::Segment,
    handshake: Option<Handshake>,
    conversation: &Conversation,
    inside: u16,
    out: &mut Vec<u8>,
) {
    let ip = conversation.ip(ipv4::TCP, inside);
    ip.emit(out);
    let [source, destination] = ports(conversation.who, TCP_PORT);
    // Positions on a real wire are the lowest 32 bits of ours.
    let position = |offset: i32| segment.ack.wrapping_add_signed(offset.into()) as u32;
    let blocks: Vec<(u32, u32)> =
        segment.sack.blocks().iter().map(|(from, to)| (position(*from), position(*to))).collect();
    let header = wire::tcp::Header {
        source,
        destination,
        seq: segment.seq as u32,
        ack: (handshake != Some(Handshake::Syn)).then_some(segment.ack as u32),
        syn: handshake.is_some(),
        window: (segment.window >> WINDOW_SCALE).min(u16::MAX.into()) as u16,
        ece: segment.ece,
        cwr: segment.cwr,
        timestamp: segment.timestamp,
        echo: segment.echo,
        sack: &blocks,
    };
    header.emit(&ip, out);
}

fn packet_headers(packet: &Packet, conversation: &Conversation, out: &mut Vec<u8>) {
    let header = roce::Header {
        opcode: opcode(packet.opcode),
        // Each end of a flow has a queue pair of its own; 0 and 1 are reserved.
        queue_pair: 2 + 2 * conversation.who.flow + u32::from(conversation.who.forward),
        psn: packet.psn.number(),
        ack_request: packet.ack_request,
        pad: 0,
        extended: extended(packet),
    };
    let inside = udp::Header::LEN + header.size() + packet.payload as usize + roce::Header::CHECK;
    let ip = conversation.ip(ipv4::UDP, inside as u16);
    ip.emit(out);
    let [source, destination] = roce_ports(conversation.who);
    udp::Header { source, destination, checked: false }.emit(&ip, out);
    header.emit(out);
    out.resize(out.len() + packet.payload as usize, 0);
    roce::append_icrc(out, ETHERNET as usize);
}

fn opcode(opcode: Opcode) -> roce::Opcode {
    use roce::Opcode as Wire;
    let by_part = |part, [first, middle, last, only]: [Wire; 4]| match part {
        Part::First => first,
        Part::Middle => middle,
        Part::Last => last,
        Part::Only => only,
    };
    match opcode {
        Opcode::Send(part) => by_part(part, [Wire::SendFirst, Wire::SendMiddle, Wire::SendLast, Wire::SendOnly]),
        Opcode::Write(part) => by_part(part, [Wire::WriteFirst, Wire::WriteMiddle, Wire::WriteLast, Wire::WriteOnly]),
        Opcode::ReadRequest => Wire::ReadRequest,
        Opcode::ReadResponse(part) => by_part(
            part,
            [Wire::ReadResponseFirst, Wire::ReadResponseMiddle, Wire::ReadResponseLast, Wire::ReadResponseOnly],
        ),
        Opcode::Acknowledge(_) => Wire::Acknowledge,
    }
}

fn extended(packet: &Packet) -> Option<roce::Extended> {
    let msn = packet.msn;
    match packet.opcode {
        Opcode::Write(part) if part.is_first() => Some(roce::Extended::Rdma { len: packet.dma_len }),
        Opcode::ReadRequest => Some(roce::Extended::Rdma { len: packet.dma_len }),
        Opcode::Acknowledge(syndrome) => {
            let is_nak = matches!(syndrome, Syndrome::SequenceError);
            let syndrome = if is_nak { roce::Syndrome::SEQUENCE_ERROR } else { roce::Syndrome::ACK };
            Some(roce::Extended::Ack { syndrome, msn })
        }
        Opcode::ReadResponse(Part::First | Part::Last | Part::Only) => {
            Some(roce::Extended::Ack { syndrome: roce::Syndrome::ACK, msn })
        }
        Opcode::Send(_) | Opcode::Write(_) | Opcode::ReadResponse(Part::Middle) => None,
    }
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error.to_string()),
    }
}

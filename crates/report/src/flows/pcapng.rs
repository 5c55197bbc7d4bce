//! Captured packets as pcapng, for Wireshark and its relatives.
//!
//! Packets of the simulator have no bytes; their headers are written by `sim::net`. Payload is zeros, and cut off: a packet's length is in the file all the same.
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
use sim::net::address::Conversation;
use sim::net::{Captured, HeaderWriter, Outcome};
use sim::scenario::Point;
use sim::topology::DirectedLink;
use units::Time;

/// Room for every header.
const SNAP: usize = 128;
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
        let Some(interface) = ports.iter().position(|port| *port == captured.port) else { continue };
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
    let Captured { src, dst, forward, flow, packet, .. } = captured;
    let (from, to) = if *forward { (src.0, dst.0) } else { (dst.0, src.0) };
    let inside = u32::from(packet.len).saturating_sub(FRAME_CHECK + ETHERNET + 20) as u16;
    let who = Conversation { from, to, flow: *flow, forward: *forward };
    packet.body.write_headers(&mut HeaderWriter { who, ecn: packet.ecn, inside, out: &mut out });
    out
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error.to_string()),
    }
}

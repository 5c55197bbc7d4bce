//! Captured packets as pcapng, for Wireshark and its relatives.
//!
//! Packets of the simulator have no bytes; their headers are written by `sim::net`. Payload is zeros, and cut off: a packet's length is in the file all the same.
//! A packet that the wire corrupted is marked with a comment and with the flag for a wrong check sequence.
//!
//! Handshakes are absent where a scenario has none: connections are established from the start. Windows count in units of
//! 256 bytes, as if that had been agreed.

use std::io::{self, Write};

use capture::pcapng::{self, EnhancedPacket, PcapngWriter};
use scenario::SweepPoint;
use sim::net::{NetworkOutcome, PortCapture};
use sim::topology::DirectedLink;
use units::Time;

/// Room for every header.
const SNAP: usize = 128;
/// Link-layer error, wrong frame check sequence (pcapng, §4.3.1).
const WRONG_CHECK: u32 = 1 << 24;
const FRAME_CHECK: u32 = 4;

pub(super) fn link_name(point: &SweepPoint, port: DirectedLink) -> String {
    let topology = point.topology();
    format!("{}-{}", topology.name(topology.from(port)), topology.name(topology.to(port)))
}

/// The packets of these ports, each an interface of the file.
pub(super) fn packets(
    point: &SweepPoint,
    outcome: &NetworkOutcome,
    ports: &[DirectedLink],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut writer = PcapngWriter::new(out)?;
    for port in ports {
        writer.interface(pcapng::ETHERNET, SNAP as u32, Some(&link_name(point, *port)))?;
    }
    for captured in &outcome.captured {
        if let Some(interface) = ports.iter().position(|port| *port == captured.port) {
            packet(&mut writer, interface, captured)?;
        }
    }
    Ok(())
}

/// Packets of these hosts, each host an interface of the file.
pub(crate) fn of_hosts(hosts: &[u32], captured: &[PortCapture], out: &mut impl Write) -> io::Result<()> {
    let mut writer = PcapngWriter::new(out)?;
    for host in hosts {
        writer.interface(pcapng::ETHERNET, SNAP as u32, Some(&format!("host {host}")))?;
    }
    for captured in captured {
        if let Ok(interface) = hosts.binary_search(&captured.port.0) {
            packet(&mut writer, interface, captured)?;
        }
    }
    Ok(())
}

fn packet<W: Write>(writer: &mut PcapngWriter<W>, interface: usize, captured: &PortCapture) -> io::Result<()> {
    let len = u32::from(captured.packet.len).saturating_sub(FRAME_CHECK);
    let mut bytes = captured.headers();
    bytes.resize((len as usize).min(SNAP), 0);
    writer.packet(&EnhancedPacket {
        interface: interface as u32,
        at: captured.at.since(Time::ZERO).as_ps() / 1_000,
        len,
        bytes: &bytes,
        comment: captured.corrupted.then_some("corrupted on the wire"),
        flags: captured.corrupted.then_some(WRONG_CHECK),
    })
}

/// A record of a capture that holds headers alone: time, lengths, headers.
pub(crate) fn header_record(captured: &PortCapture) -> Vec<u8> {
    let (at, headers) = (captured.at.since(Time::ZERO).as_ps() / 1_000, captured.headers());
    let fields = [at / 1_000_000_000, at % 1_000_000_000, headers.len() as u64, u64::from(captured.packet.len)];
    let mut record: Vec<u8> = fields.iter().flat_map(|field| (*field as u32).to_le_bytes()).collect();
    record.extend(headers);
    record
}

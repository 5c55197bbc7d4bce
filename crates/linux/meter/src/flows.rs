//! A flow meter: every flow that passes the ports of a switch, slot by slot (FlowRadar, li-thesis §4.4.1).
//!
//! ```text
//!   each port, each way ──ring──▶ flowset of the slot ──slot is over──▶ decodes? ──yes──▶ list ─────┐
//!                                                                          └──no──▶ the flowset ────┴──▶ SwitchSlot
//! ```
//!
//! The time at which the kernel saw a packet decides to which slot it belongs. Packets come through packet sockets, one for each
//! interface, in one thread; what is too much for it is counted as missed. A super-frame of segmentation or receive offload counts
//! as the packets that it is on the wire.
//!
//! Link-local packets and multicast are not counted: they end at the next host. Packets for the switch itself and those whose time
//! to live ends there are counted as they come in, and their flows listed as ended.
//!
//! Invariants: memory is that of the flowsets, whatever passes; a slot in which a packet may have passed unseen says so.

mod in_flight;
mod own;
mod tables;

use std::io::PipeReader;
use std::os::fd::AsRawFd;
use std::time::Duration;

use capture::LinkType;
use linux::SystemError;
use linux::clock::{Clock, time_of_day};
use linux::net::Netlink;
use linux::offload::VnetHeader;
use linux::packet::{PacketSocket, PacketSocketOptions, RingFrame};
use linux::poll;
use radar::fabricmap::picture::{IN, OUT};
use radar::fabricmap::slot_report::{MOST_PORTS, SwitchSlot};
use radar::flowset::sizing::DecoderKind;
use radar::flowset::{FlowKey, FlowsetShape};
use radar::scope;
use units::Prob;
use wire::layers::IpLayer;

pub use in_flight::SlotOutlet;
use own::OwnAddresses;
use tables::SlotTables;

/// Time between two looks at rings that have something in them.
const NAP: Duration = Duration::from_millis(2);
/// Frames taken at a time, frames that a ring holds, and bytes of each.
const AT_A_TIME: usize = 4_096;
const RING: usize = 16_384;
const SNAP: usize = 256;
/// What a packet may take from its time stamp to the ring.
const GRACE: u64 = 1_000_000;
/// A clock that is further off than this has been set.
const CLOCK_WAS_SET: u64 = 2_000_000_000;
/// Chance that a slot with the expected number of flows can be decoded in full.
const SUCCESS: Prob = Prob::literal(0.99);

#[derive(Clone, Debug)]
pub struct FlowMeterConfig {
    pub interfaces: Vec<String>,
    pub switch: String,
    pub slot: Duration,
    /// Flows to expect at a port in a slot.
    pub flows: u64,
    /// A number that no other run of a meter has.
    pub life: u64,
}

/// Counters of a flow meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowMeterCounters {
    pub packets: u64,
    /// Frames that are no IP packet, or that no router forwards.
    pub other: u64,
    pub missed: u64,
    pub slots: u64,
    /// Ways of ports in slots that did not decode.
    pub undecoded: u64,
}

/// Event that a person should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowMeterNotice {
    /// The clock was set; a new incarnation begins.
    ClockWasSet,
    InterfaceDown(String),
}

pub struct FlowMeter {
    config: FlowMeterConfig,
    sockets: Vec<MeteredPort>,
    state: FlowMeterState,
    own: OwnAddresses,
}

impl std::fmt::Debug for FlowMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowMeter").field("config", &self.config).finish_non_exhaustive()
    }
}

struct MeteredPort {
    name: String,
    index: u32,
    socket: PacketSocket,
}

struct FlowMeterState {
    length: u64,
    tables: SlotTables,
    seen: FlowMeterCounters,
}

impl FlowMeter {
    /// Opens a meter in the network namespace of the calling thread.
    pub fn open(config: FlowMeterConfig) -> Result<Self, SystemError> {
        let netlink = Netlink::open()?;
        if config.interfaces.len() > MOST_PORTS {
            return Err(SystemError(format!(
                "{} interfaces; a switch has {MOST_PORTS} at most",
                config.interfaces.len()
            )));
        }
        let mut sockets: Vec<MeteredPort> = Vec::new();
        for name in &config.interfaces {
            let link = netlink.wire_of(name)?;
            let link = link
                .ok_or_else(|| SystemError(format!("there is no interface {name}; `ip link` shows which there are")))?;
            if sockets.iter().any(|port| port.index == link.index) {
                return Err(SystemError(format!("{name} is there twice: name each interface once")));
            }
            sockets.push(MeteredPort { name: name.clone(), index: link.index, socket: open_socket(name, link.index)? });
        }
        let length = config.slot.as_nanos() as u64;
        let shape = FlowsetShape::for_flows(config.flows, SUCCESS, 3, DecoderKind::Single, 0);
        let tables = SlotTables::new(&config.switch, &config.interfaces, shape, now() / length);
        let state = FlowMeterState { length, tables, seen: FlowMeterCounters::default() };
        let own = OwnAddresses::new(&netlink)?;
        Ok(Self { config, sockets, state, own })
    }

    pub fn seen(&self) -> FlowMeterCounters {
        self.state.seen
    }

    /// Bytes that tables take at most: eight slots of both ways of each port.
    pub fn most_memory(&self) -> usize {
        self.state.tables.most_memory()
    }

    /// Reports slot by slot until the time is over, or `stop` has something to read or is closed at its other end.
    pub fn run(
        &mut self,
        stop: &PipeReader,
        until: Option<Duration>,
        report: &mut dyn FnMut(&SwitchSlot),
        notice: &mut dyn FnMut(FlowMeterNotice),
    ) -> Result<FlowMeterCounters, SystemError> {
        let clock = Clock::start();
        loop {
            let seen_by = now();
            let took = self.look();
            // What is still in a ring belongs to slots that must stay open for it.
            if took < AT_A_TIME && self.close(seen_by, report) {
                notice(FlowMeterNotice::ClockWasSet);
            }
            self.own.refresh(clock.elapsed());
            if until.is_some_and(|until| clock.elapsed() >= until) || self.wait(took, stop, notice)? {
                return Ok(self.state.seen);
            }
        }
    }

    /// Takes what is in the rings, or much of it; the most frames that one of them had.
    fn look(&mut self) -> usize {
        let Self { sockets, state, own, .. } = self;
        let mut most = 0;
        for (port, MeteredPort { socket, .. }) in sockets.iter_mut().enumerate() {
            most = most.max(socket.receive(AT_A_TIME, |frame| state.on_frame(port, &frame, own)));
            state.note_missed(socket.overflowed());
        }
        most
    }

    /// Reports the slots that were over at a time by which all was seen. True if the clock was set.
    fn close(&mut self, seen_by: u64, report: &mut dyn FnMut(&SwitchSlot)) -> bool {
        let open = seen_by.saturating_sub(GRACE) / self.state.length;
        if open.abs_diff(self.state.tables.next()) > (CLOCK_WAS_SET / self.state.length).max(8) {
            self.config.life = self.config.life.wrapping_add(1);
            self.state.tables.begin(open);
            return true;
        }
        while self.state.tables.next() < open {
            let (slot, undecoded) = self.state.tables.over(&self.config, self.state.length);
            self.state.seen.slots += 1;
            self.state.seen.undecoded += undecoded;
            report(&slot);
        }
        false
    }

    /// True if it is time to end.
    fn wait(
        &mut self,
        took: usize,
        stop: &PipeReader,
        notice: &mut dyn FnMut(FlowMeterNotice),
    ) -> Result<bool, SystemError> {
        let failed = |error: std::io::Error| SystemError(error.to_string());
        let length = self.state.length;
        let to_close = Duration::from_nanos(length - (now() + length - GRACE % length) % length);
        let most = match took {
            0 => to_close,
            AT_A_TIME.. => Duration::ZERO,
            _ => NAP.min(to_close),
        };
        let mut fds = vec![(stop.as_raw_fd(), false)];
        if took == 0 {
            fds.extend(self.sockets.iter().map(|port| (port.socket.fd(), false)));
        }
        let ready = poll::wait_for_any(&fds, most).map_err(failed)?;
        for (port, ready) in self.sockets.iter().zip(&ready[1..]) {
            if *ready == poll::Readiness::Failed
                && let Err(error) = port.socket.take_error()
            {
                let link = Netlink::open()?.wire_of(&port.name)?;
                if link.is_none_or(|link| link.index != port.index) {
                    return Err(SystemError(format!("{} is gone: {error}", port.name)));
                }
                notice(FlowMeterNotice::InterfaceDown(port.name.clone()));
            }
        }
        Ok(ready[0] != poll::Readiness::Nothing)
    }
}

fn now() -> u64 {
    time_of_day().as_nanos() as u64
}

fn open_socket(name: &str, index: u32) -> Result<PacketSocket, SystemError> {
    let options = PacketSocketOptions {
        vnet: true,
        longest: SNAP,
        frames: RING,
        send_buffer: 4_096,
        promiscuous: false,
        outgoing_too: true,
    };
    match PacketSocket::open(index, &options) {
        Ok(socket) => Ok(socket.only_beginnings()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(SystemError(format!("{name}: {error}; a meter needs root, sudo or the capability CAP_NET_RAW")))
        }
        Err(error) => Err(SystemError(format!("packet socket on {name}: {error}"))),
    }
}

impl FlowMeterState {
    fn on_frame(&mut self, port: usize, frame: &RingFrame<'_>, own: &OwnAddresses) {
        let Some(packet) = crate::packet(frame.bytes) else {
            self.seen.other += 1;
            return;
        };
        let is_local = scope::is_link_local(&packet, frame.bytes, LinkType::Ethernet);
        if is_local || packet.flow.dst.is_multicast() {
            self.seen.other += 1;
            return;
        }
        let way = if frame.outgoing { OUT } else { IN };
        let slot = frame.at.as_nanos() as u64 / self.length;
        let (packets, bytes) = on_wire(frame);
        self.seen.packets += u64::from(packets);
        let key = FlowKey::from(&packet.flow);
        let ends = way == IN && (packet.ttl <= 1 || own.has(packet.flow.dst));
        if !self.tables.add(slot, [port, way], &key, (packets, bytes), ends) {
            self.note_missed(1);
        }
    }

    /// Frames have passed unseen at some time before now, and after the slots that are over.
    fn note_missed(&mut self, frames: u64) {
        if frames > 0 {
            self.seen.missed += frames;
            self.tables.note_missed(frames, now() / self.length);
        }
    }
}

/// Packets that a frame is on the wire, and their bytes.
fn on_wire(frame: &RingFrame<'_>) -> (u32, u64) {
    let one = (1, frame.len as u64);
    if frame.vnet.gso_type == VnetHeader::GSO_NONE || frame.vnet.gso_size == 0 {
        return one;
    }
    let Some(inside) = LinkType::Ethernet.inside(frame.bytes) else { return one };
    let Some(ip) = IpLayer::of(inside, 0) else { return one };
    let header = match ip.protocol {
        wire::ip::TCP => inside.get(ip.transport + 12).map_or(20, |offset| usize::from(offset >> 4) * 4),
        _ => 8,
    };
    let headers = frame.bytes.len() - inside.len() + ip.transport + header;
    let payload = frame.len.saturating_sub(headers).max(1);
    let packets = payload.div_ceil(frame.vnet.gso_size.into());
    (packets as u32, (frame.len + (packets - 1) * headers) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_super_frame_counts_as_the_packets_on_the_wire() {
        let mut frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0][..], &[0; 2]].concat();
        frame.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x9c, 0x40, 0, 80, 0, 0, 0x10, 0, 0, 0, 0, 1, 0x80, 0x18, 1, 0, 0, 0, 0, 0]);
        frame.resize(14 + 20 + 32, 9);
        let of = |payload: usize, gso_type, gso_size| {
            let vnet = VnetHeader { gso_type, gso_size, ..VnetHeader::default() };
            let (bytes, len) = (&frame[..], frame.len() + payload);
            on_wire(&RingFrame { vnet, bytes, len, at: Duration::ZERO, outgoing: true })
        };
        assert_eq!(of(2_500, VnetHeader::GSO_TCPV4, 1_000), (3, 3 * 66 + 2_500));
        assert_eq!(of(2_000, VnetHeader::GSO_TCPV4, 1_000), (2, 2 * 66 + 2_000));
        assert_eq!(of(1_448, VnetHeader::GSO_NONE, 0), (1, 66 + 1_448));
    }
}

//! The transports of the simulator, one file each.
//!
//! A transport is a machine (of `tcp`, `roce`, `homa`, or one in this folder) with an `impl` of `SimTransport`: what a
//! scenario may say about it, how a connection begins, how its segments travel, what they would look like on a real wire,
//! and what its application hears. The list at the end of this file is the only other place that names it; the three
//! enums that follow from it keep dispatch static.
//!
//! To add one: write its file and add a line to the list. `stop_and_wait.rs` is a worked example that is part of the tests
//! only; `datagrams.rs` is the smallest of the real ones.

#[macro_use]
mod dispatch;
mod controllers;
mod datagrams;
mod irn;
mod melo;
mod rdma;
mod receiver_driven;
mod roce;
mod selective;
#[cfg(test)]
mod stop_and_wait;
mod tcp;

use ::roce::irn::Irn;
use ::roce::melo::{Melo, Nic, PoolConfig};
use ::roce::selective::SelectiveConnection;
use ::roce::{RdmaFraming, Telemetry};
use congestion::ControllerConfig;
use homa::{GrantPolicy, GrantScheduler};
use machine::{Conversation, Machine, Out, Port};
use radar::packet::TcpFields as StreamSegment;
use units::{Rate, Span, Time};
use wire::int::TelemetrySample;
use wire::ip::Ecn;
use wire::ipv4;

use super::address::station;
use super::end::{Driver, FlowCounters, FlowProgress};
use crate::topology::NodeId;
use settings::{Keys, ReadResult, SettingsReader};

pub use datagrams::{DatagramConfig, DatagramGaps, HEADERS as DATAGRAM_HEADERS};
pub use irn::IrnSetup;
pub use melo::MeloSetup;
pub use tcp::HEADERS as TCP_HEADERS;
pub(crate) use tcp::config_of as tcp_config_of;

/// Connects a transport's machine to the simulator.
pub(crate) trait SimTransport: Machine<Inner = ()> + Sized {
    /// Setup that a connection is made from.
    type Setup: Clone + std::fmt::Debug;

    /// Names in a scenario: `transport = …`.
    const NAMES: &'static [&'static str];
    /// `recovery` of that transport, where one name stands for several.
    const RECOVERY: Option<&'static str> = None;
    /// Keys of `[[traffic]]` that it reads, apart from those of transports before it in the list.
    const KEYS: Keys;
    /// True if it sends messages that the interface handles without its host, and the sender waits for acknowledgements.
    const IS_RDMA: bool = false;
    /// True if a connection may begin with a handshake.
    const SHAKES_HANDS: bool = false;
    /// True if lost data is sent again.
    const IS_RELIABLE: bool = true;
    /// True if a call to one end may give another end of its host something to send.
    const WAKES_OTHERS: bool = false;
    /// The IP protocol.
    const PROTOCOL: u8 = ipv4::UDP;

    /// Reads what a scenario says about it.
    fn read(table: &SettingsReader<'_>, name: &str) -> ReadResult<Self::Setup>;

    /// One end of a connection.
    fn connect(setup: &Self::Setup, at: &mut Site<'_>) -> Self;

    /// The connection has ended: gives back what it shares with others.
    fn close(&mut self) {}

    fn sizes(setup: &Self::Setup) -> PacketSizes;

    /// The most bytes that one message may have; a stream has no such bound.
    fn largest_message(_setup: &Self::Setup) -> u64 {
        u64::MAX
    }

    /// Lengths of its headers, where they can be set.
    fn framing_mut(_setup: &mut Self::Setup) -> Option<&mut RdmaFraming> {
        None
    }

    /// Configuration of its congestion control, to be changed.
    fn congestion_mut(_setup: &mut Self::Setup) -> Option<&mut ControllerConfig> {
        None
    }

    /// Configuration of its congestion control.
    fn congestion(_setup: &Self::Setup) -> ControllerConfig {
        ControllerConfig::None
    }

    /// The pool that all its connections at a host share.
    fn shared_pool(_setup: &Self::Setup) -> Option<PoolConfig> {
        None
    }

    /// Policy by which a host schedules the messages that it receives, if it does.
    fn grant_policy(_setup: &Self::Setup) -> Option<GrantPolicy> {
        None
    }

    /// True if its segments have priorities of their own, beside the class of their traffic.
    fn has_levels(_setup: &Self::Setup) -> bool {
        false
    }

    /// Asks for `bytes` to be carried over.
    fn send(bytes: u64) -> Self::Command;

    fn on_done(done: Self::Done, progress: &mut FlowProgress);

    fn on_note(note: Self::Note, counters: &mut FlowCounters);

    /// Length of a segment as an Ethernet frame with its check.
    fn frame_len(frame: &Self::Frame) -> u32;

    fn ecn(frame: &Self::Frame) -> Ecn;

    /// The segment as it arrives, perhaps marked on its way.
    fn with_ecn(frame: Self::Frame, ecn: Ecn) -> Self::Frame;

    /// Position and length in a stream, if receive offload may join segments that follow each other.
    fn in_stream(_frame: &Self::Frame) -> Option<(u64, u32)> {
        None
    }

    /// A segment has come, with the telemetry that it brings back.
    #[inline]
    fn receive<O: Out<Self>>(
        &mut self,
        now: Time,
        frame: Self::Frame,
        _telemetry: Option<TelemetrySample<'_>>,
        out: &mut O,
    ) {
        self.on_frame(now, Port(0), frame, out);
    }

    /// Telemetry of a segment: switches write some on it, or it brings some back.
    #[inline]
    fn telemetry(_frame: &Self::Frame) -> Telemetry {
        Telemetry::None
    }

    /// True for acknowledgements and other control segments, which go before data and may have a class of their own.
    #[inline]
    fn is_control(_frame: &Self::Frame) -> bool {
        false
    }

    /// True if a control segment is the next to be sent.
    #[inline]
    fn owes_control(&self) -> bool {
        false
    }

    /// Offset that is added to the class of a segment.
    #[inline]
    fn level(_frame: &Self::Frame) -> u8 {
        0
    }

    /// Offset of the segment that it would send next.
    #[inline]
    fn next_level(&self) -> u8 {
        0
    }

    /// Round trip of the data packet that a segment acknowledges.
    #[inline]
    fn round_trip(_frame: &Self::Frame, _now: Time) -> Option<Span> {
        None
    }

    /// Payload that has arrived in order, of a transport that does not report it by itself.
    #[inline]
    fn received_bytes(&self) -> Option<u64> {
        None
    }

    /// True if everything up to the peer's packet of this number ([`SimTransport::signature`]) is there, if it can tell.
    fn has_passed(&self, _number: u64) -> bool {
        true
    }

    /// Times that the controller could not use telemetry, because the path had changed or for another reason.
    fn telemetry_resets(&self) -> u64 {
        0
    }

    /// Source and destination port.
    fn ports(who: Conversation) -> [u16; 2];

    /// Distinguishes a segment from others of its flow: TCP's numbers, and a word that stands for its content.
    fn signature(frame: &Self::Frame) -> (Option<StreamSegment>, u64);

    /// Writes the headers that it would have on a real wire.
    fn write_headers(frame: &Self::Frame, writer: &mut HeaderWriter<'_>);
}

/// Place and time at which a connection begins.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub now: Time,
    /// Round trip that a handshake would have measured.
    pub round_trip: Span,
    /// A round trip as congestion control is to assume it.
    pub base_rtt: Span,
    /// Rate of the host's interface, and switches between the two hosts.
    pub line_rate: Rate,
    pub hops: u32,
    pub seed: u32,
    /// The interface of the host; the first connection that shares its pools brings them along.
    pub nic: &'a mut Option<Nic<u16>>,
    /// Scheduler of messages to the host; the first connection that needs it makes it.
    pub grants: &'a mut Option<GrantScheduler>,
    /// The number of this end, and the host at the other one.
    pub end: u32,
    pub peer: u32,
}

/// Lengths of packets, as Ethernet frames with their check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizes {
    /// Payload of a full packet, and its length as a frame.
    pub payload: u32,
    pub frame: u32,
    /// The longest frame of all.
    pub longest: u32,
    /// An acknowledgement that the sender waits for; 0 if it waits for none.
    pub acknowledge: u32,
}

/// TCP before there is a connection to speak of, and behind its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    Syn,
    SynAck,
    /// There is nothing left to send.
    Fin,
}

/// Writes a packet's headers as bytes, from Ethernet on.
#[derive(Debug)]
pub struct HeaderWriter<'a> {
    pub who: Conversation,
    pub ecn: Ecn,
    /// Bytes behind the IP header.
    pub inside: u16,
    pub out: &'a mut Vec<u8>,
}

impl HeaderWriter<'_> {
    /// Writes Ethernet and IP; what checksums behind them need.
    fn ip(&mut self, protocol: u8, inside: u16) -> ipv4::Ipv4Header {
        let [from, to] = [self.who.from, self.who.to].map(|host| station(NodeId(host)));
        let ip = ipv4::Ipv4Header { from, to, protocol, ecn: self.ecn, payload: inside };
        ip.emit(self.out);
        ip
    }

    /// Writes Ethernet as before a message about a reservation.
    fn reservation(&mut self) {
        let [from, to] = [self.who.from, self.who.to].map(|host| station(NodeId(host)).mac);
        self.out.extend(to);
        self.out.extend(from);
        self.out.extend(wire::reserve::OUI_EXTENDED.to_be_bytes());
    }
}

/// Conversion between the segments of a transport and a packet's body.
pub(crate) trait BodyConversion: SimTransport {
    fn wrap(frame: Self::Frame) -> Body;
    fn unwrap(body: Body) -> Option<Self::Frame>;
}

/// A name that a scenario knows, and how the rest is read.
struct ListedTransport {
    names: &'static [&'static str],
    recovery: Option<&'static str>,
    read: fn(&SettingsReader<'_>, &str) -> ReadResult<TransportSetup>,
}

/// Reads the `transport` of a `[[traffic]]`, with all that can be set about it.
pub fn read(table: &SettingsReader<'_>) -> ReadResult<TransportSetup> {
    let mut names: Vec<(&str, &'static str)> =
        LISTED.iter().flat_map(|one| one.names).map(|name| (*name, *name)).collect();
    names.dedup();
    let expected = "a transport such as cubic, dctcp, rdma or datagrams";
    let name = table.needed("transport", table.choice("transport", &names)?, expected)?;
    let of_name: Vec<&ListedTransport> = LISTED.iter().filter(|one| one.names.contains(&name)).collect();
    let recoveries: Vec<(&str, &ListedTransport)> =
        of_name.iter().filter_map(|one| Some((one.recovery?, *one))).collect();
    let chosen = if recoveries.is_empty() { None } else { table.choice("recovery", &recoveries)? };
    let chosen = chosen.unwrap_or(of_name[0]);
    (chosen.read)(table, name)
}

transports! { ($)
    Tcp: ::tcp::TcpConnection, from ::tcp::TcpConfig;
    Roce: ::roce::Qp, from ::roce::RoceConfig;
    Melo: SelectiveConnection<Melo<u16>>, from MeloSetup;
    Irn: SelectiveConnection<Irn>, from IrnSetup;
    Datagrams: datagrams::DatagramGenerator, from DatagramConfig;
    ReceiverDriven: homa::ReceiverDriven, from homa::ReceiverDrivenConfig;
    #[cfg(test)]
    StopAndWait: stop_and_wait::StopAndWait, from Span;
}

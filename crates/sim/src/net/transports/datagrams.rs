//! Datagrams: packets that nobody acknowledges, as a packet generator sends them.

use machine::{Conversation, Machine, Out, Port, Pull};
use radar::packet::TcpFields as StreamSegment;
use units::{Bytes, Rate, Time};
use wire::ethernet::{MAX_FRAME, on_wire};
use wire::ip::Ecn;
use wire::{ipv4, udp};

use super::{HeaderWriter, PacketSizes, SimTransport, Site};
use crate::net::address::{self, UDP_PORT};
use crate::net::end::{FlowCounters, FlowProgress};
use settings::KeyShape::One;
use settings::{Keys, ReadResult, ScenarioReader};

/// Ethernet, IP and UDP around a payload.
pub const HEADERS: u32 = 14 + 20 + 8 + 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimDatagram {
    /// Position of its first byte among all that were asked for.
    pub offset: u64,
    pub len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DatagramConfig {
    /// Payload of a full packet.
    pub payload: u32,
    /// As fast as the wire if not given.
    pub rate: Option<Rate>,
}

/// One end: sends what it is asked to, counts what arrives.
#[derive(Debug)]
pub struct DatagramGenerator {
    config: DatagramConfig,
    asked: u64,
    sent: u64,
    received: u64,
    next: Time,
}

impl DatagramGenerator {
    pub fn new(config: DatagramConfig) -> Self {
        Self { config, asked: 0, sent: 0, received: 0, next: Time::ZERO }
    }
}

/// The type of timers for a machine that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTimer {}

impl From<NoTimer> for usize {
    fn from(timer: NoTimer) -> usize {
        match timer {}
    }
}

impl Machine for DatagramGenerator {
    type Frame = SimDatagram;
    type Inner = ();
    type Timer = NoTimer;
    type Command = u64;
    /// Bytes received so far.
    type Done = u64;
    type Note = ();

    fn on_frame<O: Out<Self>>(&mut self, _now: Time, _port: Port, frame: SimDatagram, out: &mut O) {
        self.received += u64::from(frame.len);
        out.complete(self.received);
    }

    fn on_timer<O: Out<Self>>(&mut self, _now: Time, key: NoTimer, _out: &mut O) {
        match key {}
    }

    fn on_command<O: Out<Self>>(&mut self, _now: Time, bytes: u64, out: &mut O) {
        self.asked = self.asked.saturating_add(bytes);
        out.wake(Port(0));
    }

    fn pull<O: Out<Self>>(&mut self, now: Time, port: Port, out: &mut O) -> Pull {
        if self.sent == self.asked {
            return Pull::Idle;
        }
        if now < self.next {
            return Pull::NotBefore(self.next);
        }
        let len = (self.asked - self.sent).min(u64::from(self.config.payload)) as u32;
        out.transmit(port, SimDatagram { offset: self.sent, len });
        self.sent += u64::from(len);
        if let Some(rate) = self.config.rate {
            self.next = now + rate.span_of(Bytes::new(u64::from(on_wire(len + HEADERS))));
        }
        if self.sent == self.asked { Pull::Last } else { Pull::Sent }
    }
}

impl SimTransport for DatagramGenerator {
    type Setup = DatagramConfig;

    const NAMES: &'static [&'static str] = &["datagrams"];
    const KEYS: Keys = &[("payload", One), ("rate", One)];
    const IS_RELIABLE: bool = false;

    fn read(table: &ScenarioReader<'_>, _name: &str) -> ReadResult<DatagramConfig> {
        Ok(DatagramConfig {
            payload: table.small("payload", 1..=MAX_FRAME - HEADERS)?.unwrap_or(1_518 - HEADERS),
            rate: table.parsed("rate")?,
        })
    }

    fn connect(setup: &DatagramConfig, _at: &mut Site<'_>) -> Self {
        Self::new(*setup)
    }

    fn sizes(setup: &DatagramConfig) -> PacketSizes {
        let frame = setup.payload + HEADERS;
        PacketSizes { payload: setup.payload, frame, longest: frame, acknowledge: 0 }
    }

    fn send(bytes: u64) -> u64 {
        bytes
    }

    fn on_done(received: u64, progress: &mut FlowProgress) {
        progress.received = Some(received);
    }

    fn on_note(_note: (), _counters: &mut FlowCounters) {}

    fn frame_len(frame: &SimDatagram) -> u32 {
        frame.len + HEADERS
    }

    fn ecn(_frame: &SimDatagram) -> Ecn {
        Ecn::NotCapable
    }

    fn with_ecn(frame: SimDatagram, _ecn: Ecn) -> SimDatagram {
        frame
    }

    fn ports(who: Conversation) -> [u16; 2] {
        address::ports(who, UDP_PORT)
    }

    fn signature(frame: &SimDatagram) -> (Option<StreamSegment>, u64) {
        (None, frame.offset)
    }

    fn write_headers(_frame: &SimDatagram, writer: &mut HeaderWriter<'_>) {
        let ip = writer.ip(ipv4::UDP, writer.inside);
        let [source, destination] = Self::ports(writer.who);
        udp::UdpHeader { source, destination, checked: true }.emit(&ip, writer.out);
    }
}

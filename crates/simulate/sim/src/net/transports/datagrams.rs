//! Datagrams: packets that nobody acknowledges, as a packet generator sends them.

use faults::Random;
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
use settings::{Keys, ReadResult, SettingsReader};

/// Ethernet, IP and UDP around a payload.
pub const HEADERS: u32 = 14 + 20 + 8 + 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimDatagram {
    /// Offset of its first byte in the flow.
    pub offset: u64,
    pub len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DatagramConfig {
    /// Payload of a full packet.
    pub payload: u32,
    /// Rate; as fast as the wire if not given.
    pub rate: Option<Rate>,
    pub gaps: DatagramGaps,
}

/// The times between the datagrams of a sender that has a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DatagramGaps {
    /// Always the same. Senders of one rate stay in step, and one that always comes first at a full port loses nothing.
    #[default]
    Even,
    /// Exponentially distributed around it.
    Drawn,
}

/// One end: sends what it is asked to, counts what arrives.
#[derive(Debug)]
pub struct DatagramGenerator {
    config: DatagramConfig,
    asked: u64,
    sent: u64,
    received: u64,
    next: Time,
    random: Random,
}

impl DatagramGenerator {
    /// One that draws its gaps from `seed`.
    pub fn new(config: DatagramConfig, seed: u64) -> Self {
        Self { config, asked: 0, sent: 0, received: 0, next: Time::ZERO, random: Random::new(seed, 0) }
    }

    /// Time at which the next datagram may leave after one of `len` bytes that leaves now.
    fn next_after(&mut self, now: Time, len: u32) -> Time {
        let Some(rate) = self.config.rate else { return now };
        let even = rate.span_of(Bytes::new(u64::from(on_wire(len + HEADERS))));
        match self.config.gaps {
            DatagramGaps::Even => now + even,
            // From when this one was due: what waited for the wire makes nothing slower.
            DatagramGaps::Drawn => {
                let due = if self.next == Time::ZERO { now } else { self.next };
                due + even.scale(self.random.exponential())
            }
        }
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
        self.next = self.next_after(now, len);
        if self.sent == self.asked { Pull::Last } else { Pull::Sent }
    }
}

impl SimTransport for DatagramGenerator {
    type Setup = DatagramConfig;

    const NAMES: &'static [&'static str] = &["datagrams"];
    const KEYS: Keys = &[("payload", One), ("rate", One), ("gaps", One)];
    const IS_RELIABLE: bool = false;

    fn read(table: &SettingsReader<'_>, _name: &str) -> ReadResult<DatagramConfig> {
        Ok(DatagramConfig {
            payload: table.small("payload", 1..=MAX_FRAME - HEADERS)?.unwrap_or(1_518 - HEADERS),
            rate: table.parsed("rate")?,
            gaps: table
                .choice("gaps", &[("even", DatagramGaps::Even), ("drawn", DatagramGaps::Drawn)])?
                .unwrap_or_default(),
        })
    }

    fn connect(setup: &DatagramConfig, at: &mut Site<'_>) -> Self {
        Self::new(*setup, at.seed.into())
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

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;

    /// Departures of 2,000 packets over a wire that is always free.
    fn departures(gaps: DatagramGaps, seed: u64) -> Vec<Time> {
        let config = DatagramConfig { payload: 1_000, rate: Some(Rate::gbps(10)), gaps };
        let mut sender = DatagramGenerator::new(config, seed);
        let next = |now: &Time| {
            sender.next = sender.next_after(*now, 1_000);
            Some(sender.next)
        };
        std::iter::successors(Some(Time::from_ps(1)), next).take(2_000).collect()
    }

    #[test]
    fn drawn_gaps_keep_the_rate_and_differ_from_sender_to_sender() {
        let wire = Rate::gbps(10).span_of(Bytes::new(u64::from(on_wire(1_000 + HEADERS))));
        let even = departures(DatagramGaps::Even, 1);
        assert!(even.windows(2).all(|pair| pair[1].since(pair[0]) == wire));
        let [a, b] = [1, 2].map(|seed| departures(DatagramGaps::Drawn, seed));
        assert_ne!(a, b);
        assert_eq!(a, departures(DatagramGaps::Drawn, 1));
        let mean = a[1_999].since(a[0]).as_us() / 1_999.0 / wire.as_us();
        assert!((mean - 1.0).abs() < 0.1, "{mean}");
        assert!(a.windows(2).any(|pair| pair[1].since(pair[0]) > wire + Span::from_ns(500)));
    }
}

//! Packets that nobody acknowledges: what a packet generator sends.

use machine::{Machine, Out, Port, Pull};
use units::{Bytes, Rate, Time};
use wire::ethernet::on_wire;

/// Ethernet, IP and UDP around a payload.
pub const HEADERS: u32 = 14 + 20 + 8 + 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Position of its first byte among all that were asked for.
    pub offset: u64,
    pub len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full packet.
    pub payload: u32,
    /// As fast as the wire if not given.
    pub rate: Option<Rate>,
}

/// One end: sends what it is told to, counts what arrives.
#[derive(Debug)]
pub struct Generator {
    config: Config,
    asked: u64,
    sent: u64,
    received: u64,
    next: Time,
}

impl Generator {
    pub fn new(config: Config) -> Self {
        Self { config, asked: 0, sent: 0, received: 0, next: Time::ZERO }
    }
}

/// It has no timers; there must be a type for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {}

impl From<Timer> for usize {
    fn from(timer: Timer) -> usize {
        match timer {}
    }
}

/// Bytes received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received(pub u64);

impl Machine for Generator {
    type Frame = Datagram;
    type Inner = ();
    type Timer = Timer;
    type Command = u64;
    type Done = Received;
    type Note = ();

    fn on_frame<O: Out<Self>>(&mut self, _now: Time, _port: Port, frame: Datagram, out: &mut O) {
        self.received += u64::from(frame.len);
        out.complete(Received(self.received));
    }

    fn on_timer<O: Out<Self>>(&mut self, _now: Time, key: Timer, _out: &mut O) {
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
        out.transmit(port, Datagram { offset: self.sent, len });
        self.sent += u64::from(len);
        if let Some(rate) = self.config.rate {
            self.next = now + rate.span_of(Bytes::new(u64::from(on_wire(len + HEADERS))));
        }
        if self.sent == self.asked { Pull::Last } else { Pull::Sent }
    }
}

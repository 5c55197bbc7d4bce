//! Calls of machines at the ends of connections, in order, as a program may see them.

use machine::{SwitchProgram, TimeSite};
use units::{Span, Time};
use wire::ip::Ecn;

use crate::net::index::{ConnectionId, EndId};
use crate::net::packet::SimPacket;
use crate::net::transports::{Body, TransportSetup};
use crate::topology::NodeId;

/// A program of the simulator: it may also watch the machines at the ends of connections. Most do not, and pay nothing.
pub trait NetworkProgram: SwitchProgram<Frame = SimPacket> {
    /// True if it wants to know when packets leave their hosts.
    #[inline]
    fn watches_ends(&self) -> bool {
        false
    }

    /// A connection begins.
    #[inline]
    fn on_connect(&mut self, _now: Time, _connection: &BegunConnection<'_>) {}

    /// Called after each call of an end's machine; `tag` is that of the packet that arrived, if one did.
    #[inline]
    fn on_call(&mut self, _now: Time, _end: EndId, _call: EndCall<'_>, _tag: Option<&Self::Tag>) {}

    /// Receiver of the decisions about time that an end's machine makes during the next call. The default ignores them and
    /// compiles to nothing.
    #[inline]
    fn decisions(&mut self, _end: EndId) -> impl DecisionSink {
        NoDecisions
    }

    /// The first bit of a packet leaves its host. Only if the program watches ends.
    #[inline]
    fn on_leaving(&mut self, _at: Time, _end: EndId, _tag: &Self::Tag) {}

    /// A connection ends: there are no more calls.
    #[inline]
    fn on_close(&mut self, _id: ConnectionId) {}
}

/// Hears what time decides at an end during a call of its machine.
pub trait DecisionSink {
    fn decide(&mut self, site: TimeSite, answer: bool);
    fn tick(&mut self, site: TimeSite, value: u64);
}

/// Hears nothing.
struct NoDecisions;

impl DecisionSink for NoDecisions {
    #[inline]
    fn decide(&mut self, _site: TimeSite, _answer: bool) {}

    #[inline]
    fn tick(&mut self, _site: TimeSite, _value: u64) {}
}

impl<A: DecisionSink, B: DecisionSink> DecisionSink for (A, B) {
    #[inline]
    fn decide(&mut self, site: TimeSite, answer: bool) {
        self.0.decide(site, answer);
        self.1.decide(site, answer);
    }

    #[inline]
    fn tick(&mut self, site: TimeSite, value: u64) {
        self.0.tick(site, value);
        self.1.tick(site, value);
    }
}

impl<S: DecisionSink> DecisionSink for Option<S> {
    #[inline]
    fn decide(&mut self, site: TimeSite, answer: bool) {
        if let Some(sink) = self {
            sink.decide(site, answer);
        }
    }

    #[inline]
    fn tick(&mut self, site: TimeSite, value: u64) {
        if let Some(sink) = self {
            sink.tick(site, value);
        }
    }
}

/// A connection that begins now.
#[derive(Debug)]
pub struct BegunConnection<'a> {
    /// Number of the connection, which is used again when it is over.
    pub id: ConnectionId,
    /// Number in the order of starts.
    pub number: u32,
    /// The host that began it, and the other.
    pub hosts: [NodeId; 2],
    /// Setup that its ends are made from.
    pub transport: &'a TransportSetup,
    /// Round trip that a handshake would have measured, and seed of its machines.
    pub round_trip: Span,
    pub seed: u32,
}

/// Call that was made to an end.
#[derive(Clone, Copy, Debug)]
pub enum EndCall<'a> {
    /// Sends this many bytes more.
    Send(u64),
    /// Takes a packet with this ECN mark.
    Receive(&'a Body, Ecn),
    /// A step of a handshake came, which its machine does not see.
    Shaken,
    /// A timer expired, by its number.
    Timer(usize),
    /// Asks for a packet, with the one that was sent.
    Pull(Option<&'a Body>),
}

impl<A: NetworkProgram, B: NetworkProgram> NetworkProgram for (A, B) {
    #[inline]
    fn watches_ends(&self) -> bool {
        self.0.watches_ends() || self.1.watches_ends()
    }

    fn on_connect(&mut self, now: Time, connection: &BegunConnection<'_>) {
        self.0.on_connect(now, connection);
        self.1.on_connect(now, connection);
    }

    #[inline]
    fn on_call(&mut self, now: Time, end: EndId, call: EndCall<'_>, tag: Option<&Self::Tag>) {
        self.0.on_call(now, end, call, tag.map(|tag| &tag.0));
        self.1.on_call(now, end, call, tag.map(|tag| &tag.1));
    }

    #[inline]
    fn decisions(&mut self, end: EndId) -> impl DecisionSink {
        (self.0.decisions(end), self.1.decisions(end))
    }

    #[inline]
    fn on_leaving(&mut self, at: Time, end: EndId, tag: &Self::Tag) {
        self.0.on_leaving(at, end, &tag.0);
        self.1.on_leaving(at, end, &tag.1);
    }

    fn on_close(&mut self, id: ConnectionId) {
        self.0.on_close(id);
        self.1.on_close(id);
    }
}

impl<P: NetworkProgram> NetworkProgram for Option<P> {
    #[inline]
    fn watches_ends(&self) -> bool {
        self.as_ref().is_some_and(P::watches_ends)
    }

    fn on_connect(&mut self, now: Time, connection: &BegunConnection<'_>) {
        if let Some(program) = self {
            program.on_connect(now, connection);
        }
    }

    #[inline]
    fn on_call(&mut self, now: Time, end: EndId, call: EndCall<'_>, tag: Option<&Self::Tag>) {
        if let Some(program) = self {
            program.on_call(now, end, call, tag);
        }
    }

    #[inline]
    fn decisions(&mut self, end: EndId) -> impl DecisionSink {
        self.as_mut().map(|program| program.decisions(end))
    }

    #[inline]
    fn on_leaving(&mut self, at: Time, end: EndId, tag: &Self::Tag) {
        if let Some(program) = self {
            program.on_leaving(at, end, tag);
        }
    }

    fn on_close(&mut self, id: ConnectionId) {
        if let Some(program) = self {
            program.on_close(id);
        }
    }
}

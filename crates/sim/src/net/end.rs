//! One end of a connection: a transport's machine, its timers, and how its segments become packets.

use machine::{Lane, Machine, Out, Port, Pull};
use transport::roce::irn::Irn;
use transport::roce::melo::Melo;
use transport::roce::selective::Connection;
use transport::{roce, tcp};
use units::Time;
use wire::ip::Ecn;

use super::events::Event;
use super::packet::Body;
use super::raw;
use crate::engine::{Queue, Ring, Timers};

const MOST_TIMERS: usize = 6;

/// What a transport's machine must say for its segments to travel.
pub trait Speaks: Machine<Inner = ()> {
    /// As a packet's body, its length as an Ethernet frame with its check, and whether it may be marked.
    fn pack(frame: Self::Frame) -> (Body, u16, Ecn);
    fn unpack(body: Body, ecn: Ecn) -> Option<Self::Frame>;
    fn on_done(done: Self::Done, progress: &mut Progress);
    fn on_note(note: Self::Note, tally: &mut Tally);
    /// Asks for so many bytes to be carried over.
    fn send(bytes: u64) -> Self::Command;
}

/// What a machine told its application, the latest of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the stream received in order; or, of datagrams, at all.
    pub received: Option<u64>,
    /// Requests that this end made and knows to be complete.
    pub completed: Option<u64>,
    /// Messages of the other end that are there, where it sends messages.
    pub placed: Option<u64>,
    pub failed: bool,
}

impl Progress {
    pub fn is_some(&self) -> bool {
        *self != Self::default()
    }
}

units::counters! {
    /// What happened to a flow on its way. Of both ends together: what concerns SACKs is the sender's, and only one end
    /// sends much.
    Tally as u32:
    /// Segments sent again because later ones had arrived, as a probe, or after a timeout.
    retransmitted,
    probes,
    timeouts,
    /// Windows reduced because of a loss.
    reductions,
    /// Of these, such as turned out to be for nothing.
    undone,
    naks,
    /// Empty messages sent behind a tail, and tail packets sent twice.
    dummies,
    tails_repeated,
    /// Packets that were placed before one that was sent earlier (selective retransmission).
    out_of_order,
    ; most u64:
    /// The most bytes that were ever SACKed at once.
    most_sacked,
    /// What was left to send for the first time when the window was first reduced.
    pending_when_reduced,
}

#[derive(Debug)]
pub struct Driven<M: Machine> {
    machine: M,
    timers: Timers<M::Timer, MOST_TIMERS>,
}

#[derive(Debug)]
pub enum Transport {
    Tcp(Box<Driven<tcp::Connection>>),
    Roce(Box<Driven<roce::Qp>>),
    Melo(Box<Driven<Connection<Melo<u16>>>>),
    Irn(Box<Driven<Connection<Irn>>>),
    Raw(Driven<raw::Generator>),
}

/// Does the same to whichever it is.
macro_rules! each {
    ($transport:expr, $driven:ident => $what:expr) => {
        match $transport {
            Transport::Tcp($driven) => $what,
            Transport::Roce($driven) => $what,
            Transport::Melo($driven) => $what,
            Transport::Irn($driven) => $what,
            Transport::Raw($driven) => $what,
        }
    };
}

#[derive(Debug)]
pub struct End {
    pub transport: Transport,
    pub host: u32,
    /// Where the route of its packets begins.
    pub route: u32,
    pub flow: u32,
    pub class: u8,
    /// Whether it waits for the wire.
    pub ready: bool,
    /// The flow is over; what still arrives is ignored.
    pub over: bool,
    /// The earliest event that makes it ready.
    pub wake_at: Time,
    /// Packets made, by this end or on the way to it, and packets that ended at it or on the way to it.
    pub made: u64,
    pub ended: u64,
    pub tally: Tally,
    pub run: Run,
}

/// Segments that follow each other among what a host deals with at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    batch: u32,
    next: u64,
    bytes: u32,
}

/// Receive offload joins no more than fits an IP packet.
const LONGEST_RUN: u32 = 65_535;

impl Run {
    /// Takes the next segment in; whether it ends the run before it.
    pub fn takes(&mut self, batch: u32, seq: u64, len: u32) -> bool {
        let begun = self.batch == batch && self.bytes > 0;
        let joins = begun && self.next == seq && self.bytes + len <= LONGEST_RUN;
        *self = Self { batch, next: seq + u64::from(len), bytes: if joins { self.bytes + len } else { len } };
        begun && !joins
    }
}

/// What a call to an end came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct After {
    pub woken: bool,
    pub progress: Progress,
}

/// A segment that an end wants on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub body: Body,
    pub len: u16,
    pub ecn: Ecn,
}

impl Transport {
    pub fn tcp(connection: tcp::Connection) -> Self {
        Self::Tcp(Box::new(Driven::new(connection)))
    }

    pub fn roce(qp: roce::Qp) -> Self {
        Self::Roce(Box::new(Driven::new(qp)))
    }

    pub fn melo(connection: Connection<Melo<u16>>) -> Self {
        Self::Melo(Box::new(Driven::new(connection)))
    }

    pub fn irn(connection: Connection<Irn>) -> Self {
        Self::Irn(Box::new(Driven::new(connection)))
    }

    /// Gives back what is shared with other connections.
    pub fn let_go(&mut self) {
        if let Self::Melo(driven) = self {
            driven.machine.swap_out();
        }
    }

    pub fn raw(generator: raw::Generator) -> Self {
        Self::Raw(Driven::new(generator))
    }
}

impl End {
    /// One that has done nothing yet.
    pub fn new(transport: Transport, host: u32, route: u32, flow: u32, class: u8) -> Self {
        Self {
            transport,
            host,
            route,
            flow,
            class,
            ready: false,
            over: false,
            wake_at: Time::NEVER,
            made: 0,
            ended: 0,
            tally: Tally::default(),
            run: Run::default(),
        }
    }

    #[inline]
    pub fn receive(&mut self, now: Time, id: u32, body: Body, ecn: Ecn, queue: &mut Queue<Event>) -> After {
        let tally = &mut self.tally;
        each!(&mut self.transport, driven => driven.receive(now, id, body, ecn, queue, tally))
    }

    pub fn send(&mut self, now: Time, id: u32, bytes: u64, queue: &mut Queue<Event>) -> After {
        let tally = &mut self.tally;
        each!(&mut self.transport, driven => driven.send(now, id, bytes, queue, tally))
    }

    pub fn ring(&mut self, now: Time, id: u32, slot: u8, queue: &mut Queue<Event>) -> After {
        let tally = &mut self.tally;
        each!(&mut self.transport, driven => driven.ring(now, id, slot, queue, tally))
    }

    #[inline]
    pub fn pull(&mut self, now: Time, id: u32, queue: &mut Queue<Event>) -> (Pull, Option<Segment>) {
        let tally = &mut self.tally;
        each!(&mut self.transport, driven => driven.pull(now, id, queue, tally))
    }
}

impl<M: Speaks> Driven<M> {
    fn new(machine: M) -> Self {
        Self { machine, timers: Timers::new() }
    }

    #[inline]
    fn with<R>(
        &mut self,
        end: u32,
        queue: &mut Queue<Event>,
        tally: &mut Tally,
        act: impl FnOnce(&mut M, &mut Sink<'_, M>) -> R,
    ) -> (R, After, Option<M::Frame>) {
        let mut sink = Sink { end, timers: &mut self.timers, queue, tally, staged: None, after: After::default() };
        let result = act(&mut self.machine, &mut sink);
        (result, sink.after, sink.staged)
    }

    #[inline]
    fn receive(
        &mut self,
        now: Time,
        end: u32,
        body: Body,
        ecn: Ecn,
        queue: &mut Queue<Event>,
        tally: &mut Tally,
    ) -> After {
        let Some(frame) = M::unpack(body, ecn) else { return After::default() };
        self.with(end, queue, tally, |machine, sink| machine.on_frame(now, Port(0), frame, sink)).1
    }

    fn send(&mut self, now: Time, end: u32, bytes: u64, queue: &mut Queue<Event>, tally: &mut Tally) -> After {
        self.with(end, queue, tally, |machine, sink| machine.on_command(now, M::send(bytes), sink)).1
    }

    fn ring(&mut self, now: Time, end: u32, slot: u8, queue: &mut Queue<Event>, tally: &mut Tally) -> After {
        match self.timers.ring(now, slot) {
            Ring::Nothing => After::default(),
            Ring::Later(at) => {
                queue.schedule(at, Event::EndTimer { end, slot });
                After::default()
            }
            Ring::Now(key) => self.with(end, queue, tally, |machine, sink| machine.on_timer(now, key, sink)).1,
        }
    }

    #[inline]
    fn pull(&mut self, now: Time, end: u32, queue: &mut Queue<Event>, tally: &mut Tally) -> (Pull, Option<Segment>) {
        let (pull, _, staged) = self.with(end, queue, tally, |machine, sink| machine.pull(now, Port(0), sink));
        let segment = staged.map(|frame| {
            let (body, len, ecn) = M::pack(frame);
            Segment { body, len, ecn }
        });
        (pull, segment)
    }
}

struct Sink<'a, M: Machine> {
    end: u32,
    timers: &'a mut Timers<M::Timer, MOST_TIMERS>,
    queue: &'a mut Queue<Event>,
    tally: &'a mut Tally,
    staged: Option<M::Frame>,
    after: After,
}

impl<M: Speaks> Out<M> for Sink<'_, M> {
    #[inline]
    fn transmit(&mut self, _port: Port, frame: M::Frame) {
        self.staged = Some(frame);
    }

    #[inline]
    fn wake(&mut self, _port: Port) {
        self.after.woken = true;
    }

    fn waiting(&self, _lane: Lane) -> bool {
        false
    }

    fn take(&mut self, _lane: Lane) -> Option<()> {
        None
    }

    fn keep(&mut self, _inner: &()) {}

    fn release(&mut self, _inner: ()) {}

    fn deliver(&mut self, _lane: Lane, _inner: ()) {}

    #[inline]
    fn arm(&mut self, key: M::Timer, at: Time) {
        if let Some(slot) = self.timers.arm(key, at) {
            self.queue.schedule(at, Event::EndTimer { end: self.end, slot });
        }
    }

    #[inline]
    fn disarm(&mut self, key: M::Timer) {
        self.timers.disarm(key);
    }

    #[inline]
    fn complete(&mut self, done: M::Done) {
        M::on_done(done, &mut self.after.progress);
    }

    #[inline]
    fn note(&mut self, note: M::Note) {
        M::on_note(note, self.tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_a_gap_at_its_longest_and_with_its_batch() {
        let mut run = Run::default();
        assert!(!run.takes(1, 0, 1_000) && !run.takes(1, 1_000, 1_000));
        assert!(run.takes(1, 3_000, 1_000), "a gap");
        assert!(!run.takes(2, 9_000, 40_000), "another batch");
        assert!(run.takes(2, 49_000, 40_000), "too long");
    }
}

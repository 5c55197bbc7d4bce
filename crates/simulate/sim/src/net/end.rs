//! One end of a connection: a transport's machine, its timers, and how its segments become packets.

use machine::{Machine, Out, Port, Pull, QueueId, TimeSite};
use units::{Span, Time};
use wire::int::TelemetrySample;
use wire::ip::Ecn;

use super::events::NetworkEvent;
use super::index::{EndId, HostId};
use super::port::CLASSES;
use super::programs::{DecisionSink, EndCall, NetworkProgram};
use super::transports::{Body, BodyConversion, SimTransport, Transport, each_transport};
use crate::engine::{EventQueue, TimerFiring, Timers};

const MOST_TIMERS: usize = 6;
const LAST_CLASS: u8 = CLASSES as u8 - 1;

/// Latest report of each kind from a machine to its application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowProgress {
    /// Bytes of the stream received in order; or, of datagrams, at all.
    pub received: Option<u64>,
    /// Requests that this end made and knows to be complete.
    pub completed: Option<u64>,
    /// Messages of the other end that are there, where it sends messages.
    pub placed: Option<u64>,
    /// Bytes of its own stream that the other end has.
    pub acknowledged: Option<u64>,
    pub failed: bool,
}

impl FlowProgress {
    pub(crate) fn is_some(&self) -> bool {
        *self != Self::default()
    }
}

units::counters! {
    /// Counters of a flow over both ends: those of SACKs are the sender's, and only one end sends much.
    FlowCounters as u32:
    /// Segments sent again because later ones had arrived, as a probe, or after a timeout.
    retransmitted,
    probes,
    timeouts,
    /// Windows reduced because of a loss.
    reductions,
    /// Retransmissions that turned out to be unnecessary.
    undone,
    naks,
    /// Empty messages sent behind a tail.
    dummies,
    /// Tail packets sent twice.
    tails_repeated,
    /// Packets that were placed before one that was sent earlier (selective retransmission).
    out_of_order,
    ; most u64:
    /// The most bytes that were ever SACKed at once.
    most_sacked,
    /// Bytes that were left to send for the first time when the window was first reduced.
    pending_when_reduced,
}

/// A machine with its timers.
#[derive(Debug)]
pub(crate) struct Driver<M: Machine> {
    machine: M,
    timers: Timers<M::Timer, MOST_TIMERS>,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct FlowEnd {
    pub transport: Transport,
    pub host: HostId,
    /// The context of its host that reserves for it; 0 if there is one line for all.
    pub lane: u8,
    pub class: u8,
    /// Class of acknowledgements and the like.
    pub ack_class: u8,
    /// `ready`: the end waits for the wire. `urgent`: it goes before ends that have only data.
    pub ready: bool,
    pub urgent: bool,
    /// The connection has ended; what still arrives is ignored.
    pub over: bool,
    /// The earliest event that makes it ready.
    pub wake_at: Time,
    /// Packets created by this end or on the way to it; `ended` counts those that ended at it or on the way to it.
    pub made: u64,
    pub ended: u64,
    /// Payload of its peer's that has been counted as received, where the transport does not report it.
    pub counted: u64,
    pub counters: FlowCounters,
    pub run: SegmentRun,
}

/// Segments that follow each other in a batch that a host processes at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentRun {
    batch: u32,
    next: u64,
    bytes: u32,
}

/// Receive offload joins no more than fits an IP packet.
const LONGEST_RUN: u32 = 65_535;

impl SegmentRun {
    /// Takes the next segment in; whether it ends the run before it.
    pub(crate) fn takes(&mut self, batch: u32, seq: u64, len: u32) -> bool {
        let begun = self.batch == batch && self.bytes > 0;
        let joins = begun && self.next == seq && self.bytes + len <= LONGEST_RUN;
        *self = Self { batch, next: seq + u64::from(len), bytes: if joins { self.bytes + len } else { len } };
        begun && !joins
    }
}

/// Effects of a call to an end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effects {
    pub woken: bool,
    /// An acknowledgement or the like waits.
    pub urgent: bool,
    pub progress: FlowProgress,
    /// Round trip of a data packet.
    pub round_trip: Option<Span>,
    /// Other ends of its host may have something to send.
    pub others: bool,
}

/// A segment that has come to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivedSegment<'a> {
    pub body: Body,
    pub ecn: Ecn,
    pub telemetry: Option<TelemetrySample<'a>>,
}

/// A segment that an end wants on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingSegment {
    pub body: Body,
    pub len: u16,
    pub ecn: Ecn,
    /// An acknowledgement or the like.
    pub control: bool,
    /// Offset that is added to its class.
    pub level: u8,
}

impl FlowEnd {
    /// One that has done nothing yet.
    pub(crate) fn new(transport: Transport, host: HostId, class: u8, ack_class: u8) -> Self {
        Self {
            transport,
            host,
            lane: 0,
            class,
            ack_class,
            ready: false,
            urgent: false,
            over: false,
            wake_at: Time::NEVER,
            made: 0,
            ended: 0,
            counted: 0,
            counters: FlowCounters::default(),
            run: SegmentRun::default(),
        }
    }

    #[inline]
    pub(crate) fn receive<P: NetworkProgram>(
        &mut self,
        now: Time,
        arrived: ArrivedSegment<'_>,
        tag: &P::Tag,
        around: EndContext<'_, P>,
    ) -> Effects {
        let EndContext { id, queue, program } = around;
        let counters = &mut self.counters;
        let effects = each_transport!(&mut self.transport, driver => {
            driver.receive(now, arrived, Context { id, queue, counters, decisions: program.decisions(id) })
        });
        program.on_call(now, id, EndCall::Receive(&arrived.body, arrived.ecn), Some(tag));
        effects
    }

    pub(crate) fn send<P: NetworkProgram>(&mut self, now: Time, bytes: u64, around: EndContext<'_, P>) -> Effects {
        let EndContext { id, queue, program } = around;
        let counters = &mut self.counters;
        let effects = each_transport!(&mut self.transport, driver => {
            driver.send(now, bytes, Context { id, queue, counters, decisions: program.decisions(id) })
        });
        program.on_call(now, id, EndCall::Send(bytes), None);
        effects
    }

    pub(crate) fn ring<P: NetworkProgram>(&mut self, now: Time, slot: u8, around: EndContext<'_, P>) -> Effects {
        let EndContext { id, queue, program } = around;
        let counters = &mut self.counters;
        let (effects, expired) = each_transport!(&mut self.transport, driver => {
            driver.ring(now, slot, Context { id, queue, counters, decisions: program.decisions(id) })
        });
        if let Some(timer) = expired {
            program.on_call(now, id, EndCall::Timer(timer), None);
        }
        effects
    }

    #[inline]
    pub(crate) fn pull<P: NetworkProgram>(
        &mut self,
        now: Time,
        around: EndContext<'_, P>,
    ) -> (Pull, Option<OutgoingSegment>) {
        let EndContext { id, queue, program } = around;
        let counters = &mut self.counters;
        let (pull, segment) = each_transport!(&mut self.transport, driver => {
            driver.pull(now, Context { id, queue, counters, decisions: program.decisions(id) })
        });
        program.on_call(now, id, EndCall::Pull(segment.as_ref().map(|segment| &segment.body)), None);
        (pull, segment)
    }

    /// True if an acknowledgement or another control packet waits.
    pub(crate) fn owes_control(&self) -> bool {
        each_transport!(&self.transport, driver => SimTransport::owes_control(&driver.machine))
    }

    /// Payload of the peer's that has arrived in order, of a transport that does not report it by itself.
    pub(crate) fn received_bytes(&self) -> Option<u64> {
        each_transport!(&self.transport, driver => SimTransport::received_bytes(&driver.machine))
    }

    /// True if it has everything up to the packet of its peer's with this number.
    pub(crate) fn has_passed(&self, number: u64) -> bool {
        each_transport!(&self.transport, driver => SimTransport::has_passed(&driver.machine, number))
    }

    /// Priority of what it would send next among the ends of its host.
    #[inline]
    pub(crate) fn turn(&self) -> u8 {
        let level = each_transport!(&self.transport, driver => SimTransport::next_level(&driver.machine));
        self.class_of(false, level)
    }

    /// The class of a segment.
    #[inline]
    pub(crate) fn class_of(&self, control: bool, level: u8) -> u8 {
        let class = if control { self.ack_class } else { self.class };
        (class + level).min(LAST_CLASS)
    }

    /// Times that the controller could not use telemetry.
    pub(crate) fn telemetry_resets(&self) -> u64 {
        each_transport!(&self.transport, driver => SimTransport::telemetry_resets(&driver.machine))
    }

    /// The connection has ended.
    pub(crate) fn close(&mut self) {
        self.over = true;
        each_transport!(&mut self.transport, driver => driver.machine.close());
    }
}

/// Surroundings of an end.
pub(crate) struct EndContext<'a, P> {
    pub id: EndId,
    pub queue: &'a mut EventQueue<NetworkEvent>,
    pub program: &'a mut P,
}

/// Part of the network that a machine's driver may touch.
struct Context<'a, D> {
    id: EndId,
    queue: &'a mut EventQueue<NetworkEvent>,
    counters: &'a mut FlowCounters,
    decisions: D,
}

impl<M: BodyConversion> Driver<M> {
    pub(crate) fn new(machine: M) -> Self {
        Self { machine, timers: Timers::new() }
    }

    #[inline]
    fn with<R, D: DecisionSink>(
        &mut self,
        context: Context<'_, D>,
        act: impl FnOnce(&mut M, &mut EndSink<'_, M, D>) -> R,
    ) -> (R, Effects, Option<M::Frame>) {
        let effects = Effects { others: M::WAKES_OTHERS, ..Effects::default() };
        let mut sink = EndSink { context, timers: &mut self.timers, staged: None, effects };
        let result = act(&mut self.machine, &mut sink);
        (result, sink.effects, sink.staged)
    }

    #[inline]
    fn receive<D: DecisionSink>(&mut self, now: Time, arrived: ArrivedSegment<'_>, context: Context<'_, D>) -> Effects {
        let Some(frame) = M::unwrap(arrived.body) else { return Effects::default() };
        let round_trip = M::round_trip(&frame, now);
        let frame = M::with_ecn(frame, arrived.ecn);
        let (_, effects, _) = self.with(context, |machine, sink| machine.receive(now, frame, arrived.telemetry, sink));
        Effects { urgent: effects.woken && self.machine.owes_control(), round_trip, ..effects }
    }

    fn send<D: DecisionSink>(&mut self, now: Time, bytes: u64, context: Context<'_, D>) -> Effects {
        self.with(context, |machine, sink| machine.on_command(now, M::send(bytes), sink)).1
    }

    /// Rings a timer; returns its effects, and the timer if one expired.
    fn ring<D: DecisionSink>(&mut self, now: Time, slot: u8, context: Context<'_, D>) -> (Effects, Option<usize>) {
        match self.timers.ring(now, slot) {
            TimerFiring::Nothing => (Effects::default(), None),
            TimerFiring::Later(at) => {
                context.queue.schedule(at, NetworkEvent::EndTimer { end: context.id, slot });
                (Effects::default(), None)
            }
            TimerFiring::Now(key) => {
                (self.with(context, |machine, sink| machine.on_timer(now, key, sink)).1, Some(key.into()))
            }
        }
    }

    #[inline]
    fn pull<D: DecisionSink>(&mut self, now: Time, context: Context<'_, D>) -> (Pull, Option<OutgoingSegment>) {
        let (pull, _, staged) = self.with(context, |machine, sink| machine.pull(now, Port(0), sink));
        let segment = staged.map(|frame| {
            let (len, ecn) = (M::frame_len(&frame) as u16, M::ecn(&frame));
            let (control, level) = (M::is_control(&frame), M::level(&frame));
            OutgoingSegment { body: M::wrap(frame), len, ecn, control, level }
        });
        (pull, segment)
    }
}

struct EndSink<'a, M: Machine, D> {
    context: Context<'a, D>,
    timers: &'a mut Timers<M::Timer, MOST_TIMERS>,
    staged: Option<M::Frame>,
    effects: Effects,
}

impl<M: SimTransport, D: DecisionSink> Out<M> for EndSink<'_, M, D> {
    #[inline]
    fn transmit(&mut self, _port: Port, frame: M::Frame) {
        self.staged = Some(frame);
    }

    #[inline]
    fn wake(&mut self, _port: Port) {
        self.effects.woken = true;
    }

    fn waiting(&self, _lane: QueueId) -> bool {
        false
    }

    fn take(&mut self, _lane: QueueId) -> Option<()> {
        None
    }

    fn keep(&mut self, _inner: &()) {}

    fn release(&mut self, _inner: ()) {}

    fn deliver(&mut self, _lane: QueueId, _inner: ()) {}

    #[inline]
    fn arm(&mut self, key: M::Timer, at: Time) {
        if let Some(slot) = self.timers.arm(key, at) {
            self.context.queue.schedule(at, NetworkEvent::EndTimer { end: self.context.id, slot });
        }
    }

    #[inline]
    fn disarm(&mut self, key: M::Timer) {
        self.timers.disarm(key);
    }

    #[inline]
    fn complete(&mut self, done: M::Done) {
        M::on_done(done, &mut self.effects.progress);
    }

    #[inline]
    fn note(&mut self, note: M::Note) {
        M::on_note(note, self.context.counters);
    }

    #[inline]
    fn decide(&mut self, site: TimeSite, computed: bool) -> bool {
        self.context.decisions.decide(site, computed);
        computed
    }

    #[inline]
    fn tick(&mut self, site: TimeSite, computed: u64) -> u64 {
        self.context.decisions.tick(site, computed);
        computed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_a_gap_at_its_longest_and_with_its_batch() {
        let mut run = SegmentRun::default();
        assert!(!run.takes(1, 0, 1_000) && !run.takes(1, 1_000, 1_000));
        assert!(run.takes(1, 3_000, 1_000), "a gap");
        assert!(!run.takes(2, 9_000, 40_000), "another batch");
        assert!(run.takes(2, 49_000, 40_000), "too long");
    }
}

//! The event loop: ports, wires, timers, and two machines for each link.
//!
//! Between losses a saturated link repeats itself. Once both ends are calm and the receiver is in a state
//! that it was in some frames before, everything since then will happen again, and again; so whole
//! periods up to shortly before the next loss are counted without being simulated ([`World::skip`]).
//! Nothing in the machines is touched: what persists across the stretch, such as a standing reorder
//! backlog, is still there when the loss comes. Loss models draw ahead, so not one draw changes either.

use std::collections::VecDeque;

use faults::Random;
use guard::pool::{Pool, Share};
use guard::{Body, Counters, Endpoint, Note, Packet, llr};
use machine::{Lane, Machine, Out, Port, Pull};
use units::{Bytes, Rate, Span, Time};
use wire::ethernet::{MIN_FRAME, on_wire};
use wire::link::{Kind, Wish};

use super::config::{Config, Load, Mode, Profile, Sizes};
use super::hardware::Hardware;
use super::measure::{Arrivals, Measure};
use super::outcome::Outcome;
use super::source::{Frame, Source};
use super::Watch;
use crate::engine::Queue;

const WIRE: Port = Port(0);
const MOST_TIMERS: usize = 4;
/// How often a run looks up from its work.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;
const FRAMES_BETWEEN_POLLS: u64 = 8;

/// What the loop must know of a frame on the wire.
pub trait OnWire {
    /// Wire time it takes, in bytes.
    fn wire_bytes(&self) -> u32;
    /// Bytes that an error can hit.
    fn frame_bytes(&self) -> u32;
    /// The number of the frame that this is a copy of, if a recirculating sender has to find it first.
    fn copy_of(&self) -> Option<(u8, u16)>;
    fn wish(&self) -> Option<Wish>;
}

impl<B: Body> OnWire for Packet<B> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        on_wire(self.frame_len())
    }

    #[inline]
    fn frame_bytes(&self) -> u32 {
        self.frame_len().max(MIN_FRAME)
    }

    fn copy_of(&self) -> Option<(u8, u16)> {
        match self.header.kind() {
            Kind::Retransmission(class, seq) => Some((class as u8, seq.number())),
            _ => None,
        }
    }

    fn wish(&self) -> Option<Wish> {
        self.header.wish()
    }
}

impl<B: Body> OnWire for llr::Packet<B> {
    fn wire_bytes(&self) -> u32 {
        self.frame_len().map_or(llr::CONTROL_LEN, on_wire)
    }

    fn frame_bytes(&self) -> u32 {
        self.frame_len().unwrap_or(llr::CONTROL_LEN)
    }

    fn copy_of(&self) -> Option<(u8, u16)> {
        None
    }

    fn wish(&self) -> Option<Wish> {
        None
    }
}

/// What the loop must know of a link protocol.
pub trait LinkMachine: Machine<Inner = Frame, Note = Note, Frame: OnWire> {
    fn is_calm(&self) -> bool;
    /// Equal for two calm states that will treat the next frame alike.
    fn fingerprint(&self, now: Time) -> u64;
    fn is_drained(&self) -> bool;
    fn counters(&self) -> Counters;
    fn tx_peak(&self) -> Bytes;
    fn rx_peak(&self) -> Bytes;
    fn tx_buffered(&self) -> Bytes;
    fn rx_held(&self) -> Bytes;
    fn limit_reorder<O: Out<Self>>(&mut self, share: Share, out: &mut O);
}

impl LinkMachine for Endpoint<Frame> {
    fn is_calm(&self) -> bool {
        self.is_calm()
    }

    fn fingerprint(&self, now: Time) -> u64 {
        self.fingerprint(now)
    }

    fn is_drained(&self) -> bool {
        self.is_drained()
    }

    fn counters(&self) -> Counters {
        *self.counters()
    }

    fn tx_peak(&self) -> Bytes {
        self.tx_peak()
    }

    fn rx_peak(&self) -> Bytes {
        self.rx_peak()
    }

    fn tx_buffered(&self) -> Bytes {
        self.tx_buffered()
    }

    fn rx_held(&self) -> Bytes {
        self.rx_held()
    }

    fn limit_reorder<O: Out<Self>>(&mut self, share: Share, out: &mut O) {
        self.limit_reorder(share, out);
    }
}

impl LinkMachine for llr::Endpoint<Frame> {
    fn is_calm(&self) -> bool {
        self.is_calm()
    }

    fn fingerprint(&self, _now: Time) -> u64 {
        0
    }

    fn is_drained(&self) -> bool {
        self.is_drained()
    }

    fn counters(&self) -> Counters {
        *self.counters()
    }

    fn tx_peak(&self) -> Bytes {
        self.tx_peak()
    }

    fn rx_peak(&self) -> Bytes {
        Bytes::ZERO
    }

    fn tx_buffered(&self) -> Bytes {
        self.tx_buffered()
    }

    fn rx_held(&self) -> Bytes {
        Bytes::ZERO
    }

    fn limit_reorder<O: Out<Self>>(&mut self, _share: Share, _out: &mut O) {}
}

/// Node A of link `n` is number `2n`, node B `2n + 1`.
type NodeId = u32;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A port may be free, or have been told to look again.
    Port(NodeId),
    /// A packet of the slab arrives.
    Arrival(NodeId, u32),
    /// Or is acted upon, if the hardware is slow about it.
    Action(NodeId, u32),
    Timer(NodeId, u8),
    Traffic(NodeId),
}

/// Packets in flight.
#[derive(Debug)]
struct Slab<P> {
    packets: Vec<Option<P>>,
    free: Vec<u32>,
}

impl<P> Slab<P> {
    fn insert(&mut self, packet: P) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.packets[at as usize] = Some(packet);
                at
            }
            None => {
                self.packets.push(Some(packet));
                self.packets.len() as u32 - 1
            }
        }
    }

    fn get(&self, at: u32) -> Option<&P> {
        self.packets[at as usize].as_ref()
    }

    fn take(&mut self, at: u32) -> Option<P> {
        self.free.push(at);
        self.packets[at as usize].take()
    }
}

/// The outside of a node: port, queue above, timers.
struct Shell<M: Machine> {
    source: Source,
    faults: faults::Running,
    busy_until: Time,
    /// The earliest event scheduled for the port.
    look_at: Time,
    woken: bool,
    staged: Option<M::Frame>,
    /// Copies on their way to the port, with the time of their arrival there.
    copies: VecDeque<(Time, M::Frame)>,
    last_copy: Option<((u8, u16), Time)>,
    /// New frames left when the last one went out.
    new_left: u64,
    deadlines: [Time; MOST_TIMERS],
    scheduled: [Time; MOST_TIMERS],
    timers: [Option<M::Timer>; MOST_TIMERS],
    last_wish: Wish,
    acting_until: Time,
}

struct Node<M: Machine> {
    machine: M,
    shell: Shell<M>,
}

struct Sink<'a, M: Machine> {
    now: Time,
    id: NodeId,
    shell: &'a mut Shell<M>,
    queue: &'a mut Queue<Event>,
    /// Of the traffic that this node receives, if it is measured.
    measure: Option<&'a mut Measure>,
}

impl<M: Machine<Inner = Frame, Note = Note>> Out<M> for Sink<'_, M> {
    #[inline]
    fn transmit(&mut self, _port: Port, frame: M::Frame) {
        self.shell.staged = Some(frame);
    }

    #[inline]
    fn wake(&mut self, _port: Port) {
        self.shell.woken = true;
    }

    #[inline]
    fn waiting(&self, lane: Lane) -> bool {
        self.shell.source.waiting(lane)
    }

    #[inline]
    fn take(&mut self, lane: Lane) -> Option<Frame> {
        self.shell.source.take(self.now, lane)
    }

    #[inline]
    fn keep(&mut self, inner: &Frame) -> Frame {
        *inner
    }

    #[inline]
    fn release(&mut self, _inner: Frame) {}

    #[inline]
    fn deliver(&mut self, lane: Lane, inner: Frame) {
        if let Some(measure) = &mut self.measure {
            measure.on_delivery(self.now, self.id as usize / 2, usize::from(lane.0), inner);
        }
    }

    fn arm(&mut self, key: M::Timer, at: Time) {
        let slot: usize = key.into();
        self.shell.timers[slot] = Some(key);
        self.shell.deadlines[slot] = at;
        // An event that comes too early looks at the deadline again: cheaper than moving it.
        if at < self.shell.scheduled[slot] {
            self.shell.scheduled[slot] = at;
            self.queue.schedule(at, Event::Timer(self.id, slot as u8));
        }
    }

    fn disarm(&mut self, key: M::Timer) {
        self.shell.deadlines[key.into()] = Time::NEVER;
    }

    fn complete(&mut self, _done: M::Done) {}

    fn note(&mut self, note: Note) {
        if let Some(measure) = &mut self.measure {
            match note {
                Note::Recovered { after, .. } => measure.recovery.record(after, 1),
                Note::Overflow => measure.overflowed += 1,
                Note::Missing { .. } | Note::GivenUp { .. } | Note::Paused | Note::Resumed => {}
            }
        }
    }
}

/// When and how far the quiet stretches are skipped.
#[derive(Debug)]
struct Shortcut {
    /// Frame time of the stretch, and sizes on the wire.
    period: Span,
    data: u32,
    ack: u32,
    acks_can_be_lost: bool,
    /// Frames for each acknowledgement.
    ack_every: u64,
    /// Frames after a loss before the next stretch can begin: it must have been noticed by then.
    settle: u32,
    calm: u32,
    /// The states of the latest calm frames, and how long those before the last had taken.
    states: VecDeque<u64>,
    transits: VecDeque<Span>,
    skipped: u64,
    time: Span,
}

/// The longest period looked for, in frames.
const LONGEST_PERIOD: usize = 256;

impl Shortcut {
    fn disturb(&mut self) {
        self.calm = 0;
        self.states.clear();
        self.transits.clear();
    }

    /// Takes note of a calm frame. The number of frames after which everything repeats, if it does.
    fn repeats(&mut self, state: u64, transit: Span) -> Option<usize> {
        let period = self.states.iter().rposition(|seen| *seen == state).map(|at| self.states.len() - at);
        self.states.push_back(state);
        self.transits.push_back(transit);
        if self.states.len() > LONGEST_PERIOD {
            self.states.pop_front();
            self.transits.pop_front();
        }
        period
    }
}

pub struct World<'a, M: LinkMachine> {
    config: &'a Config,
    queue: Queue<Event>,
    slab: Slab<M::Frame>,
    nodes: Vec<Node<M>>,
    measure: Measure,
    rate: Rate,
    flight: Span,
    hardware: Option<Hardware>,
    random: Random,
    shortcut: Option<Shortcut>,
    pool: Option<Pool>,
    events: u64,
    /// When the last new frame of node A left.
    last_new: Time,
}

impl<'a, M: LinkMachine> World<'a, M> {
    pub fn new(config: &'a Config, machine: impl Fn(u32) -> M) -> Self {
        let path = config.path();
        let nodes = (0..config.links * 2).map(|id| Node { machine: machine(id), shell: shell(config, id) }).collect();
        let hardware = (config.profile == Profile::Tofino).then(|| Hardware::tofino(&path, config.copies()));
        Self {
            config,
            queue: Queue::default(),
            slab: Slab { packets: Vec::new(), free: Vec::new() },
            nodes,
            measure: Measure::new(config.links as usize),
            rate: config.rate,
            flight: config.delay + path.pipeline,
            hardware,
            random: Random::new(config.seed, 1_000),
            shortcut: shortcut(config),
            pool: config.shared_reorder.map(|total| Pool::new(total, config.links as usize, config.headroom())),
            events: 0,
            last_new: Time::ZERO,
        }
    }

    pub fn run(mut self, watch: &dyn Watch) -> Outcome {
        for id in 0..self.nodes.len() as NodeId {
            self.queue.schedule(Time::ZERO, Event::Port(id));
            self.next_traffic(id);
        }
        let mut interrupted = false;
        while let Some((now, event)) = self.queue.take() {
            self.events += 1;
            self.handle(now, event);
            if self.events.is_multiple_of(EVENTS_BETWEEN_LOOKS) && !watch.go_on(self.offered()) {
                interrupted = true;
                break;
            }
            if self.is_over() {
                break;
            }
        }
        self.outcome(interrupted)
    }

    /// All traffic offered, and nothing of it on its way.
    fn is_over(&self) -> bool {
        self.nodes.iter().step_by(2).all(|node| node.shell.source.is_exhausted() && node.machine.is_drained())
            && self.nodes.iter().skip(1).step_by(2).all(|node| node.machine.rx_held() == Bytes::ZERO)
            && self.slab.free.len() == self.slab.packets.len()
    }

    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Port(id) => {
                let shell = &mut self.nodes[id as usize].shell;
                if shell.look_at <= now {
                    shell.look_at = Time::NEVER;
                }
                self.serve(now, id);
            }
            Event::Arrival(id, packet) => self.arrive(now, id, packet),
            Event::Action(id, packet) => self.act(now, id, packet),
            Event::Timer(id, slot) => self.ring(now, id, usize::from(slot)),
            Event::Traffic(id) => {
                self.nodes[id as usize].shell.source.arrive();
                self.next_traffic(id);
                self.serve(now, id);
            }
        }
    }

    fn next_traffic(&mut self, id: NodeId) {
        if let Some(gap) = self.nodes[id as usize].shell.source.next_arrival() {
            self.queue.schedule(self.queue.now() + gap, Event::Traffic(id));
        }
    }

    /// Lets a machine act, then looks whether its port has something to do.
    #[inline]
    fn with<R>(&mut self, now: Time, id: NodeId, act: impl FnOnce(&mut M, &mut Sink<'_, M>) -> R) -> R {
        let node = &mut self.nodes[id as usize];
        let measure = (id % 2 == 1).then_some(&mut self.measure);
        let mut sink = Sink { now, id, shell: &mut node.shell, queue: &mut self.queue, measure };
        act(&mut node.machine, &mut sink)
    }

    fn arrive(&mut self, now: Time, id: NodeId, packet: u32) {
        let Some(hardware) = &self.hardware else { return self.act(now, id, packet) };
        // PFC is slow to take effect, and holds up what comes behind it.
        let shell = &mut self.nodes[id as usize].shell;
        let mut at = now;
        if let Some(wish) = self.slab.get(packet).and_then(OnWire::wish)
            && wish != shell.last_wish
        {
            shell.last_wish = wish;
            at += if wish == Wish::Hold { hardware.pause } else { hardware.resume };
        }
        at = at.max(shell.acting_until);
        shell.acting_until = at;
        if at == now {
            self.act(now, id, packet);
        } else {
            self.queue.schedule(at, Event::Action(id, packet));
        }
    }

    #[inline]
    fn act(&mut self, now: Time, id: NodeId, packet: u32) {
        if let Some(packet) = self.slab.take(packet) {
            self.with(now, id, |machine, sink| machine.on_frame(now, WIRE, packet, sink));
            self.after(now, id);
        }
    }

    fn ring(&mut self, now: Time, id: NodeId, slot: usize) {
        let shell = &mut self.nodes[id as usize].shell;
        if shell.scheduled[slot] != now {
            return; // replaced by an earlier one
        }
        shell.scheduled[slot] = Time::NEVER;
        let deadline = shell.deadlines[slot];
        if deadline > now {
            if deadline != Time::NEVER {
                shell.scheduled[slot] = deadline;
                self.queue.schedule(deadline, Event::Timer(id, slot as u8));
            }
            return;
        }
        shell.deadlines[slot] = Time::NEVER;
        if let Some(key) = shell.timers[slot] {
            self.with(now, id, |machine, sink| machine.on_timer(now, key, sink));
            self.after(now, id);
        }
    }

    #[inline]
    fn after(&mut self, now: Time, id: NodeId) {
        if self.pool.is_some() && id % 2 == 1 {
            self.share_out(now, id);
        }
        if std::mem::take(&mut self.nodes[id as usize].shell.woken) {
            self.serve(now, id);
        }
    }

    /// Tells every link of the switch what the pool has left for it.
    fn share_out(&mut self, now: Time, id: NodeId) {
        let level = self.nodes[id as usize].machine.rx_held();
        let Some(pool) = &mut self.pool else { return };
        let before = pool.used();
        pool.set_level(id as usize / 2, level);
        if pool.used() == before {
            return;
        }
        for link in 0..self.config.links {
            let Some(share) = self.pool.as_ref().map(|pool| pool.share(link as usize)) else { return };
            let receiver = link * 2 + 1;
            self.with(now, receiver, |machine, sink| machine.limit_reorder(share, sink));
            if receiver != id && std::mem::take(&mut self.nodes[receiver as usize].shell.woken) {
                self.serve(now, receiver);
            }
        }
    }

    /// Schedules a look at the port, unless one comes no later.
    #[inline]
    fn look(&mut self, id: NodeId, at: Time) {
        let shell = &mut self.nodes[id as usize].shell;
        if at < shell.look_at {
            shell.look_at = at;
            self.queue.schedule(at, Event::Port(id));
        }
    }

    /// Puts the next frame on the wire, if the wire is free and there is one.
    fn serve(&mut self, now: Time, id: NodeId) {
        let shell = &self.nodes[id as usize].shell;
        if shell.busy_until > now {
            let at = shell.busy_until;
            return self.look(id, at);
        }
        loop {
            let copies = &mut self.nodes[id as usize].shell.copies;
            if copies.front().is_some_and(|(at, _)| *at <= now)
                && let Some((_, copy)) = copies.pop_front()
            {
                return self.send(now, id, copy, true);
            }
            let pull = self.with(now, id, |machine, sink| machine.pull(now, WIRE, sink));
            match pull {
                Pull::Sent | Pull::Last => {}
                Pull::Idle => return,
                Pull::NotBefore(at) => return self.look(id, at),
            }
            let Some(frame) = self.nodes[id as usize].shell.staged.take() else { return };
            match (&self.hardware, frame.copy_of()) {
                (Some(hardware), Some(key)) => {
                    let hardware = *hardware;
                    self.find_copy(now, id, hardware, key, frame);
                }
                _ => return self.send(now, id, frame, pull == Pull::Sent),
            }
        }
    }

    /// A copy goes to the port when the hardware has found its frame; all copies of one frame together.
    fn find_copy(&mut self, now: Time, id: NodeId, hardware: Hardware, key: (u8, u16), frame: M::Frame) {
        let shell = &mut self.nodes[id as usize].shell;
        let at = match shell.last_copy {
            Some((last, at)) if last == key && at >= now => at,
            _ => now + hardware.draw(&mut self.random),
        };
        shell.last_copy = Some((key, at));
        let place = shell.copies.partition_point(|(other, _)| *other <= at);
        shell.copies.insert(place, (at, frame));
        self.look(id, at);
    }

    #[inline]
    fn send(&mut self, now: Time, id: NodeId, frame: M::Frame, more: bool) {
        let shell = &mut self.nodes[id as usize].shell;
        let len = frame.frame_bytes();
        let sent = now + self.rate.span_of(Bytes::new(u64::from(frame.wire_bytes())));
        shell.busy_until = sent;
        let time = now + self.shortcut.as_ref().map_or(Span::ZERO, |shortcut| shortcut.time);
        let corrupted = shell.faults.at(time).corrupts(len);
        if corrupted {
            self.measure.corrupted += u64::from(id % 2 == 0);
            if let Some(shortcut) = &mut self.shortcut {
                shortcut.disturb();
            }
        } else {
            let packet = self.slab.insert(frame);
            self.queue.schedule(sent + self.flight, Event::Arrival(id ^ 1, packet));
        }
        if more || !self.nodes[id as usize].shell.copies.is_empty() {
            self.look(id, sent);
        }
        if id % 2 == 0 {
            let shell = &mut self.nodes[id as usize].shell;
            if shell.source.left() != shell.new_left {
                shell.new_left = shell.source.left();
                self.last_new = sent;
                if shell.new_left.is_multiple_of(FRAMES_BETWEEN_POLLS) {
                    self.poll_levels(id, len);
                }
            }
            if self.shortcut.is_some() {
                self.consider_skipping(now);
            }
        }
    }

    /// Looks at the buffers; the frame that is just setting out does not count.
    fn poll_levels(&mut self, sender: NodeId, len: u32) {
        let tx = self.nodes[sender as usize].machine.tx_buffered().saturating_sub(Bytes::new(u64::from(len)));
        self.measure.tx_level.record(tx);
        self.measure.rx_level.record(self.nodes[sender as usize + 1].machine.rx_held());
    }

    fn consider_skipping(&mut self, now: Time) {
        let calm = self.nodes.iter().all(|node| node.machine.is_calm());
        let Some(shortcut) = &mut self.shortcut else { return };
        if !calm {
            return shortcut.disturb();
        }
        shortcut.calm += 1;
        // Frames that entered before the calm may take longer to leave: wait for the last of them.
        let held = self.nodes[1].machine.rx_held().get() / u64::from(shortcut.data);
        if u64::from(shortcut.calm) < u64::from(shortcut.settle) + 2 * held {
            return;
        }
        let transit = self.measure.last_transit;
        let state = self.nodes[1].machine.fingerprint(now) ^ transit.as_ps().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if let Some(period) = shortcut.repeats(state, transit) {
            self.skip(period);
        }
    }

    /// Lets whole periods of frames pass that will certainly arrive, up to shortly before the next loss.
    fn skip(&mut self, period: usize) {
        let Some(shortcut) = &mut self.shortcut else { return };
        let now = self.queue.now() + shortcut.time;
        let mut frames = self.nodes[0].shell.source.left();
        for (node, len, counts) in
            [(0, shortcut.data, true), (1, shortcut.ack, shortcut.acks_can_be_lost)]
        {
            let running = &mut self.nodes[node].shell.faults;
            if counts {
                let each = if node == 0 { 1 } else { shortcut.ack_every };
                frames = frames.min(running.at(now).clear(len).saturating_mul(each));
            }
            let until_change = running.next_change().since(now).as_ps() / shortcut.period.as_ps();
            frames = frames.min(until_change);
        }
        let periods = frames.saturating_sub(shortcut.ack_every + 1) / period as u64;
        let frames = periods * period as u64;
        if frames == 0 {
            return;
        }
        self.nodes[0].shell.faults.at(now).pass(frames, shortcut.data);
        if shortcut.acks_can_be_lost {
            self.nodes[1].shell.faults.at(now).pass(frames / shortcut.ack_every, shortcut.ack);
        }
        self.nodes[0].shell.source.skip(frames);
        shortcut.skipped += frames;
        shortcut.time += shortcut.period * frames;
        for transit in shortcut.transits.iter().rev().take(period) {
            self.measure.transit.record(*transit, periods);
        }
        self.measure.tx_level.repeat(frames / FRAMES_BETWEEN_POLLS);
        self.measure.rx_level.repeat(frames / FRAMES_BETWEEN_POLLS);
        shortcut.disturb();
    }

    fn skipped(&self) -> (u64, Span) {
        self.shortcut.as_ref().map_or((0, Span::ZERO), |shortcut| (shortcut.skipped, shortcut.time))
    }

    fn offered(&self) -> u64 {
        self.nodes.iter().step_by(2).map(|node| node.shell.source.offered()).sum::<u64>() + self.skipped().0
    }

    fn outcome(&self, interrupted: bool) -> Outcome {
        let (skipped, skipped_time) = self.skipped();
        let arrivals = &self.measure.arrivals;
        let sum = |what: fn(&Arrivals) -> u64| arrivals.iter().flatten().map(what).sum::<u64>();
        let offered = self.offered();
        let delivered = sum(|lane| lane.delivered) + skipped;
        let mut sender = Counters::default();
        let mut receiver = Counters::default();
        for pair in self.nodes.chunks(2) {
            sender += pair[0].machine.counters();
            receiver += pair[1].machine.counters();
        }
        sender.tx_ok += skipped;
        receiver.rx_ok += skipped;
        receiver.rx_expected_seq_good += skipped;
        let in_flight = if interrupted { self.slab.packets.len() as u64 } else { 0 };
        let lost = offered.saturating_sub(delivered + in_flight);
        let elapsed = self.last_new.since(Time::ZERO) + skipped_time;
        let peak = |what: fn(&M) -> Bytes| self.nodes.iter().map(|node| what(&node.machine).get()).max().unwrap_or(0);
        Outcome {
            frames_offered: offered,
            frames_corrupted: self.measure.corrupted,
            frames_delivered: delivered,
            frames_lost: lost,
            frames_duplicated: sum(|lane| lane.duplicated),
            frames_reordered: sum(|lane| lane.reordered),
            frames_dropped_at_queue: self.nodes.iter().step_by(2).map(|node| node.shell.source.dropped).sum(),
            effective_loss: if offered == 0 { 0.0 } else { lost as f64 / offered as f64 },
            effective_speed: self.effective_speed(delivered, elapsed),
            recovered: receiver.recovered,
            given_up: receiver.given_up,
            retransmissions: sender.tx_replay,
            pauses: receiver.pauses,
            overflows: self.measure.overflowed,
            copies: self.config.copies(),
            tx_buffer_peak_bytes: peak(M::tx_peak),
            rx_buffer_peak_bytes: peak(M::rx_peak),
            tx_buffer_bytes: self.measure.tx_level.summary(),
            rx_buffer_bytes: self.measure.rx_level.summary(),
            recovery_delay_us: self.measure.recovery.summary(),
            transit_us: self.measure.transit.summary(),
            frames_skipped: skipped,
            simulated_seconds: (self.queue.now().since(Time::ZERO) + skipped_time).as_secs(),
            events: self.events,
            wall_seconds: 0.0,
            seed: self.config.seed,
            interrupted,
            sender,
            receiver,
        }
    }

    fn effective_speed(&self, delivered: u64, elapsed: Span) -> Option<f64> {
        let Sizes::Fixed(len) = self.config.sizes else { return None };
        if self.config.load != Load::Saturated || elapsed == Span::ZERO {
            return None;
        }
        let frame = self.rate.span_of(Bytes::new(u64::from(on_wire(len))));
        Some(frame.as_secs() * delivered as f64 / f64::from(self.config.links) / elapsed.as_secs())
    }
}

fn shell<M: Machine>(config: &Config, id: NodeId) -> Shell<M> {
    let forward = id % 2 == 0;
    let load = if forward { Some(config.load) } else { reverse_load(config) };
    let frames = if forward { config.frames } else { u64::MAX };
    let lanes = match config.mode {
        Mode::Both => 0..2,
        Mode::NonBlocking => 1..2,
        Mode::None | Mode::Ordered | Mode::Auto | Mode::UecLlr => 0..1,
    };
    let random = Random::new(config.seed, 2_000 + u64::from(id));
    let schedule = if forward { &config.forward } else { &config.reverse };
    Shell {
        source: Source::new(config.sizes.clone(), load, config.rate, frames, lanes, random),
        new_left: frames,
        faults: schedule.run(config.seed, u64::from(id)),
        busy_until: Time::ZERO,
        look_at: Time::ZERO,
        woken: false,
        staged: None,
        copies: VecDeque::new(),
        last_copy: None,
        deadlines: [Time::NEVER; MOST_TIMERS],
        scheduled: [Time::NEVER; MOST_TIMERS],
        timers: [None; MOST_TIMERS],
        last_wish: Wish::Flow,
        acting_until: Time::ZERO,
    }
}

fn reverse_load(config: &Config) -> Option<Load> {
    match config.reverse_load {
        0.0 => None,
        load if load >= 1.0 => Some(Load::Saturated),
        load => Some(Load::Poisson(load)),
    }
}

/// Skipping needs traffic that repeats itself: one link, always a frame, all of one size. Frames the
/// other way do not disturb it unless they, too, can be lost.
fn shortcut(config: &Config) -> Option<Shortcut> {
    let Sizes::Fixed(len) = config.sizes else { return None };
    let acks_can_be_lost = !config.reverse.steps().is_empty();
    let repeats = config.load == Load::Saturated
        && config.links == 1
        && !matches!(config.mode, Mode::Both | Mode::Auto)
        && !(config.reverse_load > 0.0 && (acks_can_be_lost || config.protect_reverse))
        && !(config.mode == Mode::UecLlr && acks_can_be_lost);
    if config.exact || !repeats {
        return None;
    }
    let data = len + match config.mode {
        Mode::None | Mode::UecLlr => 0,
        Mode::Ordered | Mode::NonBlocking | Mode::Both | Mode::Auto => 3,
    };
    let period = config.rate.span_of(Bytes::new(u64::from(on_wire(data))));
    let settle = config.path().round_trip().as_ps() / period.as_ps() + 4;
    Some(Shortcut {
        period,
        data,
        ack: MIN_FRAME,
        acks_can_be_lost,
        ack_every: u64::from(config.params().ack_every),
        settle: settle as u32,
        calm: 0,
        states: VecDeque::new(),
        transits: VecDeque::new(),
        skipped: 0,
        time: Span::ZERO,
    })
}

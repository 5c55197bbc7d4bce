//! One rack in a time of its own: hosts, links that a test may break, a switch with a queue for messages and one for data
//! at each port. Everything is checked while it runs: what a port queues, and that grants of one port do not overlap.

#![allow(dead_code, reason = "each test file uses its own part")]

mod world;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use machine::{Machine, Pull, QueueId};
use reserve::host::HOST_WIRE;
use reserve::{
    Charge, DataAnswer, FrameVisit, HostCommand, HostParams, HostTimer, MessageAnswer, MessageVisit, PortReservation,
    RackFrame, RackParams, ReservePacket, ReservingHost, ReservingSwitch, SlotUnit,
};
use units::{Bytes, Span, Time};
use wire::ethernet::on_wire;
use wire::reserve::{HostKey, ReserveMessage, ReserveVerb};

use self::world::HostWorld;

/// Host `n` is behind port `n`, and its address is `n + 1`.
pub(crate) fn key(host: u16) -> HostKey {
    HostKey::new(u64::from(host) + 1)
}

fn port_of(key: HostKey) -> Option<u16> {
    key.number().checked_sub(1).map(|port| port as u16)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) lane: u8,
    pub(crate) number: u32,
    pub(crate) len: u32,
    pub(crate) class: u8,
    pub(crate) reserves: bool,
}

impl RackFrame for Frame {
    fn len(&self) -> u32 {
        self.len
    }
    fn destination(&self) -> Option<HostKey> {
        self.reserves.then(|| key(self.to))
    }
    fn source(&self) -> HostKey {
        key(self.from)
    }
    fn class(&self) -> u8 {
        self.class
    }
}

pub(crate) type Packet = ReservePacket<Frame>;

fn len(packet: &Packet) -> u32 {
    match packet {
        ReservePacket::Message(_) => 64,
        ReservePacket::Data { body, .. } => body.len,
    }
}

struct HostSide {
    machine: ReservingHost<Frame>,
    world: HostWorld,
    wire_free: Time,
    /// A pull is on its way.
    pulling: bool,
    dead: bool,
}

#[derive(Default)]
struct OutputPort {
    messages: VecDeque<Packet>,
    data: VecDeque<(Packet, Charge)>,
    /// Bytes on the wire of both queues and the frame that is leaving.
    bytes: u64,
    leaving: Option<(Packet, Charge)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Pull(u16),
    AtSwitch(u16, Packet),
    AtHost(u16, Packet),
    Timer(u16, HostTimer, Time),
    PortFree(u16),
    SwitchWake,
}

/// Direction of a link on which a frame may get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
}

type Loses = Box<dyn FnMut(Way, &Packet) -> bool>;

pub(crate) struct Rack {
    pub(crate) now: Time,
    pub(crate) params: RackParams,
    pub(crate) switch: ReservingSwitch,
    hosts: Vec<HostSide>,
    ports: Vec<OutputPort>,
    events: BinaryHeap<Reverse<(Time, u64, usize)>>,
    stored: Vec<Event>,
    count: u64,
    delay: Span,
    /// True for a frame that is lost.
    pub(crate) loses: Loses,
    /// Delay with which a host acts after its time.
    pub(crate) lateness: Box<dyn FnMut() -> Span>,
    pub(crate) most_queued: Vec<u64>,
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
    pub(crate) cut: u64,
    queued: u64,
    /// Slots of each output port, by start; and whether to check that they do not overlap.
    slots: Vec<BTreeMap<Time, (Time, ReserveMessage)>>,
    numbers: BTreeMap<(u16, u8), u32>,
}

impl Rack {
    pub(crate) fn new(params: RackParams) -> Self {
        Self::with_hosts(params, |host| host)
    }

    pub(crate) fn with_hosts(params: RackParams, adapt: impl Fn(HostParams) -> HostParams) -> Self {
        let host = |number: u16| {
            let machine = ReservingHost::new(params, adapt(HostParams::new(key(number), 1, &params))).expect("valid");
            let lanes = vec![VecDeque::new(); usize::from(params.contexts) + 1];
            let world = HostWorld { lanes, ..HostWorld::default() };
            HostSide { machine, world, wire_free: Time::ZERO, pulling: false, dead: false }
        };
        Self {
            now: Time::ZERO,
            params,
            switch: ReservingSwitch::new(params, 1).expect("valid"),
            hosts: (0..params.ports).map(host).collect(),
            ports: (0..params.ports).map(|_| OutputPort::default()).collect(),
            events: BinaryHeap::new(),
            stored: Vec::new(),
            count: 0,
            delay: Span::from_ns(300),
            loses: Box::new(|_, _| false),
            lateness: Box::new(|| Span::ZERO),
            most_queued: vec![0; usize::from(params.ports)],
            dropped: 0,
            lost: 0,
            cut: 0,
            queued: 0,
            slots: vec![BTreeMap::new(); usize::from(params.ports)],
            numbers: BTreeMap::new(),
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.events.push(Reverse((time, self.count, self.stored.len())));
        self.stored.push(event);
        self.count += 1;
    }

    /// Puts full frames into a lane of a host.
    pub(crate) fn queue(&mut self, from: u16, to: u16, lane: u8, frames: u32) {
        self.queue_frames(from, to, lane, frames, 1_518, 0);
    }

    pub(crate) fn queue_frames(&mut self, from: u16, to: u16, lane: u8, frames: u32, len: u32, class: u8) {
        let reserves = u16::from(lane) < self.params.contexts;
        for _ in 0..frames {
            let number = self.numbers.entry((from, lane)).or_default();
            *number += 1;
            let frame = Frame { from, to, lane, number: *number, len, class, reserves };
            self.queued += 1;
            self.hosts[usize::from(from)].world.lanes[usize::from(lane)].push_back(frame);
        }
        self.act(from, |machine, now, world| machine.on_command(now, HostCommand::Queued(QueueId(lane)), world));
    }

    /// Calls a host's machine, and does what it asks for.
    fn act(&mut self, host: u16, call: impl FnOnce(&mut ReservingHost<Frame>, Time, &mut HostWorld)) {
        let now = self.now;
        let side = &mut self.hosts[usize::from(host)];
        if side.dead {
            return;
        }
        let before = side.world.timers.clone();
        call(&mut side.machine, now, &mut side.world);
        side.machine.check_invariants();
        let armed = side.world.timers.clone();
        let woken = std::mem::take(&mut side.world.woken);
        for (index, timer) in [HostTimer::Deadline, HostTimer::Silence].into_iter().enumerate() {
            let at = armed.get(index).copied().flatten();
            if let Some(at) = at.filter(|_| before.get(index).copied().flatten() != at) {
                self.at(at, Event::Timer(host, timer, at));
            }
        }
        if woken {
            self.pull_at(host, now);
        }
    }

    fn pull_at(&mut self, host: u16, time: Time) {
        let side = &mut self.hosts[usize::from(host)];
        let time = time.max(side.wire_free);
        // A pull at the same time or later than one under way may be superfluous, never harmful.
        side.pulling = true;
        self.at(time, Event::Pull(host));
    }

    fn pull(&mut self, host: u16) {
        let side = &mut self.hosts[usize::from(host)];
        if side.dead || side.wire_free > self.now {
            return;
        }
        let pulled = side.machine.pull(self.now, HOST_WIRE, &mut side.world);
        side.machine.check_invariants();
        side.world.woken = false;
        let armed: Vec<(usize, Time)> =
            side.world.timers.iter().enumerate().filter_map(|(at, due)| Some((at, (*due)?))).collect();
        for (index, at) in armed {
            let timer = if index == 0 { HostTimer::Deadline } else { HostTimer::Silence };
            self.at(at.max(self.now), Event::Timer(host, timer, at));
        }
        match pulled {
            Pull::Sent | Pull::Last => self.transmit(host),
            Pull::NotBefore(at) => {
                assert!(at > self.now);
                let late = (self.lateness)();
                self.at(at + late, Event::Pull(host));
            }
            Pull::Idle => (),
        }
    }

    fn transmit(&mut self, host: u16) {
        let side = &mut self.hosts[usize::from(host)];
        let packet = side.world.sent.take().expect("a frame was sent");
        let takes = self.params.rate.span_of(Bytes::new(u64::from(on_wire(len(&packet)))));
        side.wire_free = self.now + takes;
        let (free, arrives) = (side.wire_free, self.now + takes + self.delay);
        self.at(free, Event::Pull(host));
        if (self.loses)(Way::Up, &packet) {
            self.lost += u64::from(matches!(packet, ReservePacket::Data { .. }));
        } else {
            self.at(arrives, Event::AtSwitch(host, packet));
        }
    }

    fn at_switch(&mut self, from: u16, packet: Packet) {
        match packet {
            ReservePacket::Message(message) => self.message_at_switch(from, from, &message),
            ReservePacket::Data { mark, body } => {
                let frame = FrameVisit { from, to: body.to, len: body.len };
                match self.switch.on_data(self.now, frame, mark.as_ref()) {
                    DataAnswer::Pass(charge) => self.enqueue_data(body.to, packet, charge),
                    DataAnswer::Cut(message) => {
                        self.cut += 1;
                        self.enqueue_message(from, message);
                    }
                    DataAnswer::Drop => self.dropped += 1,
                }
            }
        }
        self.wake_switch();
    }

    fn message_at_switch(&mut self, from: u16, source: u16, message: &ReserveMessage) {
        let visit =
            MessageVisit { from, peer: port_of(message.about.peer), source: Some(source), token: u64::from(from) };
        let before = self.switch.counters().grants;
        match self.switch.on_message(self.now, visit, message) {
            MessageAnswer::Reply(reply) => self.reply(from, reply, self.switch.counters().grants > before),
            MessageAnswer::Kept(_) | MessageAnswer::Done => (),
        }
    }

    /// `new` if the slot was not given to this context before.
    fn reply(&mut self, to: u16, reply: ReserveMessage, new: bool) {
        if new {
            self.check_slot(&reply);
        }
        if self.switch.copies_grants()
            && let Some(copy) = ReservingSwitch::copy_for_receiver(&reply, key(to))
            && let Some(receiver) = port_of(reply.about.peer)
        {
            self.enqueue_message(receiver, copy);
        }
        self.enqueue_message(to, reply);
    }

    fn wake_switch(&mut self) {
        let at = self.switch.wake_at();
        if at < Time::NEVER {
            self.at(at.max(self.now), Event::SwitchWake);
        }
    }

    fn on_switch_wake(&mut self) {
        if self.switch.wake_at() > self.now {
            return;
        }
        while let Some(answer) = self.switch.on_wake(self.now) {
            assert_eq!(answer.token, u64::from(answer.port));
            self.reply(answer.port, answer.message, true);
        }
        self.wake_switch();
    }

    /// Slots of one output never overlap, as long as a clock gives them out.
    fn check_slot(&mut self, reply: &ReserveMessage) {
        use reserve::SchedulerKind::{Clock, Late};
        let (ReserveVerb::Grt(grant), Clock | Late) = (reply.verb, self.params.scheduler) else { return };
        let start = self.now + grant.recv;
        let demand = reply.about.demand;
        let takes = match self.params.unit {
            SlotUnit::Frames => self.params.slot * u64::from(demand.frames),
            SlotUnit::Bytes => self.params.slot * u64::from(demand.bytes) / u64::from(self.params.full_frame()),
        };
        let end = start + takes;
        let slots = &mut self.slots[usize::from(port_of(reply.about.peer).expect("a port"))];
        if let Some((other, (until, _))) = slots.range(..end).next_back() {
            assert!(*until <= start, "{start:?} lies in the slot from {other:?} to {until:?}");
        }
        slots.insert(start, (end, *reply));
    }

    fn enqueue_message(&mut self, port: u16, message: ReserveMessage) {
        self.ports[usize::from(port)].messages.push_back(ReservePacket::Message(message));
        self.serve(port);
    }

    fn enqueue_data(&mut self, port: u16, packet: Packet, charge: Charge) {
        let output = &mut self.ports[usize::from(port)];
        let bytes = u64::from(on_wire(len(&packet)));
        if output.bytes + bytes > self.params.buffer.get() {
            self.dropped += 1;
            self.switch.on_gone(charge);
            return;
        }
        output.bytes += bytes;
        let most = &mut self.most_queued[usize::from(port)];
        *most = (*most).max(output.bytes);
        output.data.push_back((packet, charge));
        self.serve(port);
    }

    fn serve(&mut self, port: u16) {
        let output = &mut self.ports[usize::from(port)];
        if output.leaving.is_some() {
            return;
        }
        let next = output.messages.pop_front().map(|packet| (packet, Charge::default()));
        let Some(next) = next.or_else(|| output.data.pop_front()) else { return };
        let takes = self.params.rate.span_of(Bytes::new(u64::from(on_wire(len(&next.0)))));
        output.leaving = Some(next);
        self.at(self.now + takes, Event::PortFree(port));
    }

    fn port_free(&mut self, port: u16) {
        let output = &mut self.ports[usize::from(port)];
        let (packet, charge) = output.leaving.take().expect("a frame leaves");
        if let ReservePacket::Data { .. } = packet {
            output.bytes -= u64::from(on_wire(len(&packet)));
            self.switch.on_gone(charge);
        }
        if (self.loses)(Way::Down, &packet) {
            self.lost += u64::from(matches!(packet, ReservePacket::Data { .. }));
        } else {
            self.at(self.now + self.delay, Event::AtHost(port, packet));
        }
        self.serve(port);
    }

    fn at_host(&mut self, host: u16, packet: Packet) {
        let side = &mut self.hosts[usize::from(host)];
        side.world.handles += i64::from(matches!(packet, ReservePacket::Data { .. }));
        self.act(host, |machine, now, world| machine.on_frame(now, HOST_WIRE, packet, world));
    }

    fn on_timer(&mut self, host: u16, timer: HostTimer, at: Time) {
        let armed = &mut self.hosts[usize::from(host)].world.timers[usize::from(timer)];
        if *armed == Some(at) {
            *armed = None;
            self.act(host, |machine, now, world| machine.on_timer(now, timer, world));
        }
    }

    /// Runs until nothing happens any more, or until `end`.
    pub(crate) fn run(&mut self, end: Time) {
        while let Some(&Reverse((time, _, index))) = self.events.peek() {
            if time > end {
                break;
            }
            self.events.pop();
            assert!(time >= self.now);
            self.now = time;
            match self.stored[index] {
                Event::Pull(host) => self.pull(host),
                Event::AtSwitch(host, packet) => self.at_switch(host, packet),
                Event::AtHost(host, packet) => self.at_host(host, packet),
                Event::Timer(host, timer, at) => self.on_timer(host, timer, at),
                Event::PortFree(port) => self.port_free(port),
                Event::SwitchWake => self.on_switch_wake(),
            }
        }
        self.now = self.now.max(end);
    }

    pub(crate) fn host(&self, host: u16) -> &ReservingHost<Frame> {
        &self.hosts[usize::from(host)].machine
    }

    pub(crate) fn delivered(&self, host: u16) -> &[Frame] {
        &self.hosts[usize::from(host)].world.delivered
    }

    /// The host stops, and the switch notices.
    pub(crate) fn kill(&mut self, host: u16) {
        self.hosts[usize::from(host)].dead = true;
        self.switch.on_port_down(host, |_| ());
        self.wake_switch();
    }

    /// The host leaves the rack.
    pub(crate) fn leave(&mut self, host: u16) {
        self.act(host, |machine, now, world| machine.on_command(now, HostCommand::Leave, world));
    }

    /// Something comes to the switch from the wire of a host, which did not send it. `source` is where the switch knows its
    /// source address.
    pub(crate) fn forge(&mut self, from: u16, source: u16, packet: Packet) {
        match packet {
            ReservePacket::Message(message) => self.message_at_switch(from, source, &message),
            ReservePacket::Data { .. } => self.at_switch(from, packet),
        }
        self.wake_switch();
    }

    /// The switch forgets everything.
    pub(crate) fn restart_switch(&mut self) {
        self.switch = ReservingSwitch::new(self.params, self.switch.epoch() + 1).expect("valid");
        self.slots.iter_mut().for_each(BTreeMap::clear);
    }

    /// Every frame that was queued came once and in order, except for `missing` of them.
    pub(crate) fn check_delivered(&self, missing: u64) {
        let mut delivered = 0;
        let mut last: BTreeMap<(u16, u8, u16), u32> = BTreeMap::new();
        for side in &self.hosts {
            for frame in &side.world.delivered {
                let before = last.insert((frame.from, frame.lane, frame.to), frame.number).unwrap_or_default();
                assert!(frame.number > before, "{frame:?} after {before}");
                delivered += 1;
            }
        }
        assert_eq!(delivered + missing, self.queued, "delivered and missing");
    }

    /// Nothing is reserved, no machine holds a frame, and no queue has one.
    pub(crate) fn check_quiet(&self) {
        for port in 0..self.params.ports {
            assert_eq!(self.switch.reserved(self.now, port), PortReservation::default(), "at port {port}");
            let side = &self.hosts[usize::from(port)];
            if !side.dead {
                assert_eq!((side.machine.held_frames(), side.world.handles), (0, 0), "held by host {port}");
                assert!(side.world.lanes.iter().all(VecDeque::is_empty), "waiting at host {port}");
            }
        }
    }

    /// No port ever queued more than is promised while `senders` hosts sent.
    pub(crate) fn check_bound(&self, senders: u16) {
        let bound = self.params.bound(senders).total().get();
        let most = self.most_queued.iter().max().copied().unwrap_or_default();
        assert!(most <= bound, "{most} bytes queued, promised {bound}");
    }
}

/// Small numbers that look random and are the same each time.
pub(crate) fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    }
}

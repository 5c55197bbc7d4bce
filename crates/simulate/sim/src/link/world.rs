//! The event loop: two machines for each link, and what passes between them.

use faults::Random;
use guard::Counters;
use guard::endpoint::WIRE;
use guard::pool::BufferPool;
use machine::Pull;
use units::{Bytes, Progress, Span, Time};
use wire::ethernet::on_wire;

use super::config::{HardwareProfile, LinkSimConfig, LinkSimMode, OfferedLoad};
use super::measure::{ArrivalTracker, LinkMeasure};
use super::node::{LinkNode, LinkNodeId, LinkSimEvent, NodeContext, NodeSink, PacketSlab};
use super::outcome::LinkOutcome;
use super::shortcut::Shortcut;
use super::source::SimFrame;
use crate::engine::{EventQueue, TimerFiring};
use crate::hardware::Hardware;
use crate::protocols::{LinkMachine, OnWire};

/// Events and frames between two checks for an interruption.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;
const FRAMES_BETWEEN_POLLS: u64 = 8;

pub(super) struct World<'a, M: LinkMachine<Inner = SimFrame>> {
    config: &'a LinkSimConfig,
    queue: EventQueue<LinkSimEvent>,
    slab: PacketSlab<M::Frame>,
    nodes: Vec<LinkNode<M>>,
    measure: LinkMeasure,
    flight: Span,
    hardware: Option<Hardware>,
    random: Random,
    shortcut: Option<Shortcut>,
    pool: Option<BufferPool>,
    events: u64,
    /// Frames on their way from a node A to its node B.
    flying: u64,
    /// Last time at which a new frame of node A left.
    last_new: Time,
}

impl<'a, M: LinkMachine<Inner = SimFrame>> World<'a, M> {
    pub(super) fn new(config: &'a LinkSimConfig, machine: impl Fn(LinkNodeId) -> M) -> Self {
        let path = config.path();
        let nodes = LinkNodeId::all(config.links)
            .map(|id| LinkNode { machine: machine(id), shell: NodeContext::new(config, id) })
            .collect();
        let hardware = (config.profile == HardwareProfile::Tofino).then(|| Hardware::tofino(&path, config.copies()));
        Self {
            config,
            queue: EventQueue::default(),
            slab: PacketSlab::new(),
            nodes,
            measure: LinkMeasure::new(config.links as usize),
            flight: config.delay + path.pipeline,
            hardware,
            random: Random::new(config.seed, 1_000),
            shortcut: Shortcut::new(config),
            pool: config.shared_reorder.map(|total| BufferPool::new(total, config.links as usize, config.headroom())),
            events: 0,
            flying: 0,
            last_new: Time::ZERO,
        }
    }

    pub(super) fn run(mut self, progress: &dyn Progress) -> LinkOutcome {
        for id in LinkNodeId::all(self.config.links) {
            self.queue.schedule(Time::ZERO, LinkSimEvent::Port(id));
            self.next_traffic(id);
        }
        let mut interrupted = false;
        while let Some((now, event)) = self.queue.take() {
            self.events += 1;
            self.handle(now, event);
            if self.events.is_multiple_of(EVENTS_BETWEEN_LOOKS) && !progress.go_on(self.offered()) {
                if interrupted {
                    break; // no end in sight
                }
                interrupted = true;
                self.stop_offering();
            }
            if self.is_over() {
                break;
            }
        }
        self.outcome(interrupted)
    }

    /// Ends a run early. Frames under way still arrive, so every missing frame is lost.
    fn stop_offering(&mut self) {
        for node in &mut self.nodes {
            node.shell.source.stop();
        }
    }

    /// All traffic offered, and nothing of it on its way.
    fn is_over(&self) -> bool {
        self.flying == 0
            && self.nodes.iter().step_by(2).all(LinkNode::is_done)
            && self.nodes.iter().skip(1).step_by(2).all(|node| node.machine.rx_held() == Bytes::ZERO)
    }

    fn handle(&mut self, now: Time, event: LinkSimEvent) {
        match event {
            LinkSimEvent::Port(id) => {
                let shell = &mut self.nodes[id.index()].shell;
                if shell.look_at <= now {
                    shell.look_at = Time::NEVER;
                }
                self.serve(now, id);
            }
            LinkSimEvent::Arrival(id, packet) => self.arrive(now, id, packet),
            LinkSimEvent::Action(id, packet) => self.act(now, id, packet),
            LinkSimEvent::Timer(id, slot) => self.ring(now, id, slot),
            LinkSimEvent::Traffic(id) => {
                self.nodes[id.index()].shell.source.arrive();
                self.next_traffic(id);
                self.serve(now, id);
            }
        }
    }

    fn next_traffic(&mut self, id: LinkNodeId) {
        if let Some(gap) = self.nodes[id.index()].shell.source.next_arrival() {
            self.queue.schedule(self.queue.now() + gap, LinkSimEvent::Traffic(id));
        }
    }

    /// Lets a machine act.
    #[inline]
    fn with<R>(&mut self, now: Time, id: LinkNodeId, act: impl FnOnce(&mut M, &mut NodeSink<'_, M>) -> R) -> R {
        let node = &mut self.nodes[id.index()];
        let measure = (!id.sends()).then_some(&mut self.measure);
        let mut sink = NodeSink { now, id, shell: &mut node.shell, queue: &mut self.queue, measure };
        act(&mut node.machine, &mut sink)
    }

    fn arrive(&mut self, now: Time, id: LinkNodeId, packet: u32) {
        let Some(hardware) = &self.hardware else { return self.act(now, id, packet) };
        let wish = self.slab.get(packet).and_then(OnWire::wish);
        let at = self.nodes[id.index()].shell.reaction.acts_at(now, hardware, wish);
        if at == now {
            self.act(now, id, packet);
        } else {
            self.queue.schedule(at, LinkSimEvent::Action(id, packet));
        }
    }

    #[inline]
    fn act(&mut self, now: Time, id: LinkNodeId, packet: u32) {
        if let Some(packet) = self.slab.take(packet) {
            self.flying -= u64::from(!id.sends() && packet.body_bytes() > 0);
            self.with(now, id, |machine, sink| machine.on_frame(now, WIRE, packet, sink));
            self.after(now, id);
        }
    }

    fn ring(&mut self, now: Time, id: LinkNodeId, slot: u8) {
        match self.nodes[id.index()].shell.timers.ring(now, slot) {
            TimerFiring::Nothing => {}
            TimerFiring::Later(at) => self.queue.schedule(at, LinkSimEvent::Timer(id, slot)),
            TimerFiring::Now(key) => {
                self.with(now, id, |machine, sink| machine.on_timer(now, key, sink));
                self.after(now, id);
            }
        }
    }

    #[inline]
    fn after(&mut self, now: Time, id: LinkNodeId) {
        if self.pool.is_some() && !id.sends() {
            self.share_out(now, id);
        }
        if std::mem::take(&mut self.nodes[id.index()].shell.woken) {
            self.serve(now, id);
        }
    }

    /// Tells every link of the switch what the pool has left for it.
    fn share_out(&mut self, now: Time, id: LinkNodeId) {
        let level = self.nodes[id.index()].machine.rx_held();
        let Some(pool) = &mut self.pool else { return };
        let before = pool.used();
        pool.set_level(id.link(), level);
        if pool.used() == before {
            return;
        }
        for link in 0..self.config.links as usize {
            let Some(share) = self.pool.as_ref().map(|pool| pool.share(link)) else { return };
            let receiver = LinkNodeId::receiver(link);
            self.with(now, receiver, |machine, sink| machine.limit_reorder(share, sink));
            if receiver != id && std::mem::take(&mut self.nodes[receiver.index()].shell.woken) {
                self.serve(now, receiver);
            }
        }
    }

    /// Schedules a look at the port, unless one comes no later.
    #[inline]
    fn look(&mut self, id: LinkNodeId, at: Time) {
        let shell = &mut self.nodes[id.index()].shell;
        if at < shell.look_at {
            shell.look_at = at;
            self.queue.schedule(at, LinkSimEvent::Port(id));
        }
    }

    /// Puts the next frame on the wire, if the wire is free and there is one.
    fn serve(&mut self, now: Time, id: LinkNodeId) {
        let shell = &self.nodes[id.index()].shell;
        if shell.busy_until > now {
            let at = shell.busy_until;
            return self.look(id, at);
        }
        loop {
            if let Some(copy) = self.nodes[id.index()].shell.copies.take(now) {
                return self.send(now, id, copy, true);
            }
            let pull = self.with(now, id, |machine, sink| machine.pull(now, WIRE, sink));
            match pull {
                Pull::Sent | Pull::Last => {}
                Pull::Idle => return self.look_for_copy(id),
                Pull::NotBefore(at) => {
                    self.look(id, at);
                    return self.look_for_copy(id);
                }
            }
            let Some(frame) = self.nodes[id.index()].shell.staged.take() else { return };
            match (&self.hardware, frame.copy_of()) {
                (Some(hardware), Some(key)) => {
                    let copies = &mut self.nodes[id.index()].shell.copies;
                    let at = copies.find(now, hardware, &mut self.random, key, frame);
                    self.look(id, at);
                }
                _ => return self.send(now, id, frame, pull == Pull::Sent),
            }
        }
    }

    /// Schedules a look for when the next copy will have been found.
    fn look_for_copy(&mut self, id: LinkNodeId) {
        if let Some(at) = self.nodes[id.index()].shell.copies.next() {
            self.look(id, at);
        }
    }

    #[inline]
    fn send(&mut self, now: Time, id: LinkNodeId, frame: M::Frame, more: bool) {
        let (len, body) = (frame.frame_bytes(), frame.body_bytes());
        let sent = now + self.config.rate.span_of(Bytes::new(u64::from(frame.wire_bytes())));
        let time = now + self.skipped().1;
        let shell = &mut self.nodes[id.index()].shell;
        shell.busy_until = sent;
        let corrupted = shell.faults.at(time).corrupts(len);
        if corrupted {
            self.measure.corrupted += u64::from(id.sends());
            if let Some(shortcut) = &mut self.shortcut {
                shortcut.disturb();
            }
        } else {
            self.flying += u64::from(id.sends() && body > 0);
            let packet = self.slab.insert(frame);
            self.queue.schedule(sent + self.flight, LinkSimEvent::Arrival(id.peer(), packet));
        }
        if more || !self.nodes[id.index()].shell.copies.is_empty() {
            self.look(id, sent);
        }
        if id.sends() {
            let shell = &mut self.nodes[id.index()].shell;
            if shell.source.left() != shell.new_left {
                shell.new_left = shell.source.left();
                self.last_new = sent;
                if shell.new_left.is_multiple_of(FRAMES_BETWEEN_POLLS) {
                    self.poll_levels(id, body);
                }
            }
            if self.shortcut.is_some() {
                self.consider_skipping(now);
            }
        }
    }

    /// Looks at the buffers; the frame that is just setting out does not count.
    fn poll_levels(&mut self, sender: LinkNodeId, len: u32) {
        let tx = self.nodes[sender.index()].machine.tx_buffered().saturating_sub(Bytes::new(u64::from(len)));
        self.measure.tx_level.record(tx);
        self.measure.rx_level.record(self.nodes[sender.peer().index()].machine.rx_held());
    }

    fn consider_skipping(&mut self, now: Time) {
        let [sender, receiver] = &mut self.nodes[..] else { return };
        let Some(shortcut) = &mut self.shortcut else { return };
        let back_to_back = shortcut.is_back_to_back(now);
        if !back_to_back || !sender.machine.is_calm() || !receiver.machine.is_calm() {
            return shortcut.disturb();
        }
        if !shortcut.is_settled(receiver.machine.rx_held()) {
            return;
        }
        let state = receiver.machine.fingerprint(now);
        let Some(period) = shortcut.period(state, self.measure.last_transit) else { return };
        let left = sender.shell.source.left();
        let Some(stretch) = shortcut.skip(now, period, left, &mut sender.shell.faults, &mut receiver.shell.faults)
        else {
            return;
        };
        sender.shell.source.skip(stretch.frames);
        for transit in &stretch.transits {
            self.measure.transit.record(*transit, stretch.periods);
        }
        self.measure.tx_level.repeat(stretch.frames / FRAMES_BETWEEN_POLLS);
        self.measure.rx_level.repeat(stretch.frames / FRAMES_BETWEEN_POLLS);
    }

    /// Frames and time that were not simulated.
    #[inline]
    fn skipped(&self) -> (u64, Span) {
        self.shortcut.as_ref().map_or((0, Span::ZERO), Shortcut::skipped)
    }

    fn offered(&self) -> u64 {
        self.nodes.iter().step_by(2).map(|node| node.shell.source.offered()).sum::<u64>() + self.skipped().0
    }

    fn outcome(&self, interrupted: bool) -> LinkOutcome {
        let (skipped, skipped_time) = self.skipped();
        let arrivals = &self.measure.arrivals;
        let sum = |what: fn(&ArrivalTracker) -> u64| arrivals.iter().flatten().map(what).sum::<u64>();
        let offered = self.offered();
        let delivered = sum(|lane| lane.delivered) + skipped;
        let mut sender = Counters::default();
        let mut receiver = Counters::default();
        for pair in self.nodes.chunks(2) {
            sender += pair[0].machine.counters();
            receiver += pair[1].machine.counters();
        }
        if self.config.mode == LinkSimMode::None {
            sender.tx_plain += skipped;
            receiver.rx_plain += skipped;
        } else {
            sender.tx_ok += skipped;
            receiver.rx_ok += skipped;
            receiver.rx_expected_seq_good += skipped;
        }
        let lost = offered.saturating_sub(delivered);
        let elapsed = self.last_new.since(Time::ZERO) + skipped_time;
        let peak = |what: fn(&M) -> Bytes| self.nodes.iter().map(|node| what(&node.machine).get()).max().unwrap_or(0);
        LinkOutcome {
            frames_offered: offered,
            frames_corrupted: self.measure.corrupted,
            frames_delivered: delivered,
            frames_lost: lost,
            frames_duplicated: sum(|lane| lane.duplicated),
            frames_reordered: sum(|lane| lane.reordered),
            frames_dropped_at_queue: self.nodes.iter().step_by(2).map(|node| node.shell.source.dropped).sum(),
            effective_loss: if offered == 0 { 0.0 } else { lost as f64 / offered as f64 },
            effective_speed: self.effective_speed(skipped, elapsed),
            recovered: receiver.recovered,
            given_up: receiver.given_up,
            retransmissions: sender.tx_replay,
            pauses: receiver.pauses,
            overflows: self.measure.overflowed,
            copies: self.config.mode.has_copies().then(|| self.config.copies()),
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

    fn effective_speed(&self, skipped: u64, elapsed: Span) -> Option<f64> {
        if self.config.load != OfferedLoad::Saturated || elapsed == Span::ZERO {
            return None;
        }
        // Only frames of one size are ever skipped.
        let bytes = self.measure.wire_bytes + skipped * u64::from(on_wire(self.config.sizes.longest()));
        let busy = bytes as f64 * 8.0 / self.config.rate.bits_per_second() as f64;
        // A frame's time is rounded to the picosecond, which must not show as more than the line rate.
        Some((busy / f64::from(self.config.links) / elapsed.as_secs()).min(1.0))
    }
}

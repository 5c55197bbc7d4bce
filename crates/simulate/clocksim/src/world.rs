//! All clocks of a fabric in true time: their oscillators, their messages, their failures, and the truth beside them.
//!
//! A node is called with what its own oscillator shows. Between two calls ε grows linearly and the true error is linear
//! between ticks, so the smallest difference between them is found where it is looked for: before and after every call, and at
//! every tick.
//!
//! Invariants: nodes that failed send and hear nothing; a node sends each wave of a term at most once.

mod control;
mod quiet;
mod tally;

use clock::bound::ClockInterval;
use clock::graph::Graph;
use clock::node::{Neighbour, NodeNote, NodeOut, PlanPart, SyncArrival, SyncRejection};
use clock::plan::ClockPlan;
use sim::engine::EventQueue;
use units::{Progress, Span, Time};
use wire::sync::{SyncMessage, SyncTerm};

use crate::failure::TimedFailure;
use crate::machines::SimulatedClock;
use crate::oscillator::{DriftModel, Oscillators};
use crate::scheme::ClockScheme;
use crate::setup::{ClockSetup, WayError};
use crate::wiring::{NOBODY, WaveListener, Wiring, part};
use crate::{ClockOutcome, SetupError};

use tally::{Observation, Tally};

/// Events of the simulation.
#[derive(Clone, Copy, Debug)]
enum ClockEvent {
    Arrival(WaveArrival),
    Timer(u32),
    Tick,
    Failure(u32),
    Repair(u32),
    Control,
    /// The node at this place of the order is told its part of the new plan.
    Tell(u32),
    End,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
struct WaveArrival {
    from: u32,
    to: WaveListener,
    message: SyncMessage,
    /// The link has sent it again; it is not lost twice.
    again: bool,
}

/// The time of a term: what the clock of its root shows, also when that root has failed.
#[derive(Clone, Copy, Debug)]
struct TimeScale {
    term: SyncTerm,
    root: usize,
    reading: Time,
    since: Time,
}

/// Actions of a node in one call.
#[derive(Debug, Default)]
struct NodeActions {
    sent: Vec<SyncMessage>,
    notes: Vec<NodeNote>,
}

impl NodeOut for NodeActions {
    fn send(&mut self, message: SyncMessage) {
        self.sent.push(message);
    }

    fn note(&mut self, note: NodeNote) {
        self.notes.push(note);
    }
}

pub(crate) struct ClockWorld<'a, M: SimulatedClock> {
    setup: &'a ClockSetup<'a>,
    params: M::Params,
    interval: Span,
    way: Span,
    residence: Span,
    queue: EventQueue<ClockEvent>,
    oscillators: Oscillators,
    nodes: Vec<M>,
    /// Identity of the next node that starts again: terms of an earlier run are not its own.
    next_identity: u32,
    /// Time of each node's timer event; an event at another time is stale.
    scheduled: Vec<Time>,
    /// The last wave that each node sent.
    sent: Vec<(SyncTerm, u64)>,
    scales: Vec<TimeScale>,
    wiring: Wiring,
    graph: Graph,
    plan: ClockPlan,
    plan_number: u32,
    failures: Vec<TimedFailure>,
    node_down: Vec<bool>,
    link_down: Vec<bool>,
    /// Calls of the controller to come.
    controls: Vec<Time>,
    /// Nodes in the order in which they are told the plan, and until when.
    told: Vec<u32>,
    told_until: Time,
    next_tick: Time,
    end: Time,
    disturbed: Time,
    tally: Tally,
    actions: NodeActions,
}

impl<'a, M: SimulatedClock> ClockWorld<'a, M> {
    pub(crate) fn new(setup: &'a ClockSetup<'a>, params: M::Params) -> Result<Self, SetupError> {
        let count = setup.graph.node_count();
        let broken = match &setup.drift {
            DriftModel::Broken(name, _) => {
                Some(setup.graph.node_named(name).ok_or_else(|| SetupError::UnknownNode(name.clone()))?.index())
            }
            _ => None,
        };
        let root = setup.plan.root.index();
        let oscillators = Oscillators::new(setup.drift.clone(), count, root, broken, setup.duration, setup.seed);
        let plan_number = 1;
        let node = |node: usize| {
            let now = oscillators.local(node, Time::ZERO);
            let alone = PlanPart { plan: plan_number, role: NOBODY };
            M::new(&params, node as u32, part(setup.plan, plan_number, node, setup.scheme).unwrap_or(alone), now)
        };
        let nodes: Vec<M> = (0..count).map(node).collect();
        let huygens = setup.scheme == ClockScheme::Huygens;
        let dwell = if huygens { Span::ZERO } else { setup.node.per_hop.dwell };
        let steady = matches!(setup.drift, DriftModel::Constant | DriftModel::Broken(..));
        let tick = oscillators.tick;
        let mut world = Self {
            setup,
            params,
            interval: setup.scheme.interval(&setup.node),
            way: dwell / 2,
            residence: dwell / 2,
            queue: EventQueue::default(),
            oscillators,
            nodes,
            next_identity: count as u32,
            scheduled: vec![Time::NEVER; count],
            sent: vec![Default::default(); count],
            scales: Vec::new(),
            wiring: Wiring::of(setup.plan, None, setup.scheme),
            graph: setup.graph.clone(),
            plan: setup.plan.clone(),
            plan_number,
            failures: if huygens { Vec::new() } else { setup.failures.clone() },
            node_down: (0..count).map(|node| setup.plan.depth[node].is_none()).collect(),
            link_down: vec![false; setup.graph.link_count()],
            controls: Vec::new(),
            told: Vec::new(),
            told_until: Time::ZERO,
            next_tick: if steady { Time::NEVER } else { Time::ZERO + tick },
            end: Time::ZERO + setup.duration,
            disturbed: Time::ZERO,
            tally: Tally::new(setup, count),
            actions: NodeActions::default(),
        };
        world.schedule_all();
        Ok(world)
    }

    fn schedule_all(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.rearm(node));
        for (place, failure) in self.failures.iter().enumerate() {
            for (at, event) in
                [(failure.at, ClockEvent::Failure(place as u32)), (failure.until, ClockEvent::Repair(place as u32))]
            {
                if at < self.end {
                    self.queue.schedule(at, event);
                }
            }
        }
        if self.next_tick < self.end {
            self.queue.schedule(self.next_tick, ClockEvent::Tick);
        }
        self.queue.schedule(self.end, ClockEvent::End);
    }

    pub(crate) fn run(mut self, progress: &dyn Progress) -> ClockOutcome {
        while let Some((at, event)) = self.queue.take() {
            self.tally.events += 1;
            if self.tally.events.is_multiple_of(1 << 16) {
                let share = at.as_ps() as f64 / self.end.as_ps().max(1) as f64;
                progress.simulated(at, share);
                if !progress.go_on(self.tally.events) {
                    self.tally.interrupted = true;
                    break;
                }
            }
            match event {
                ClockEvent::Arrival(arrival) => self.arrive(at, arrival),
                ClockEvent::Timer(node) => self.ring(at, node as usize),
                ClockEvent::Tick => self.tick(at),
                ClockEvent::Failure(place) => self.fail(at, place as usize),
                ClockEvent::Repair(place) => self.repair(at, place as usize),
                ClockEvent::Control => self.control(at),
                ClockEvent::Tell(place) => self.tell(at, place as usize),
                ClockEvent::End => break,
            }
        }
        self.finish()
    }

    #[inline]
    fn arrive(&mut self, at: Time, arrival: WaveArrival) {
        let WaveArrival { from, to, mut message, again } = arrival;
        let node = to.node as usize;
        let cut = to.link != u32::MAX && self.link_down[to.link as usize];
        if cut || self.node_down[node] || self.nodes[node].listens_to() != Some(Neighbour(from)) {
            return;
        }
        let chance = || unit(self.hash(to.link, from, message.wave, 1));
        if self.setup.loss > 0.0 && !again && chance() < self.setup.loss {
            let Some(stamped_again) = self.setup.link_retries else { return };
            let late = Span::from_ps(2_000_000 + self.hash(to.link, from, message.wave, 2) % 4_000_000);
            if stamped_again {
                // The new stamp differs from the old one by what the sender's oscillator counted meanwhile.
                let counted = |at| self.oscillators.local(from as usize, at);
                message.correction += counted(at).since(counted(Time::ZERO + (at.since(Time::ZERO) - late)));
            }
            let arrival = WaveArrival { message, again: true, ..arrival };
            self.queue.schedule(at + late, ClockEvent::Arrival(arrival));
            return;
        }
        let error = self.way_error(&arrival);
        let shown = (message.timestamp + message.correction + self.way).as_ps().saturating_add_signed(error);
        let arrival = SyncArrival { message, sender: ClockInterval::exactly(Time::from_ps(shown)) };
        self.call(at, node, |machine, params, now, out| {
            machine.on_message(params, now, (Neighbour(from), &arrival), out)
        });
    }

    /// Error with which the way of a message is measured, within the 5 ns that a hop may add, and the share that
    /// rounding takes.
    #[inline]
    fn way_error(&self, arrival: &WaveArrival) -> i64 {
        let most = self.setup.node.per_hop.measurement.as_ps().saturating_sub(10) as i64;
        if self.setup.scheme == ClockScheme::Huygens {
            return 0;
        }
        let wave = match (&self.setup.drift, self.setup.way_error) {
            (DriftModel::Adversary, _) => return if arrival.to.backup { -most } else { most },
            (_, WayError::Constant) => 0,
            (_, WayError::PerMessage) => arrival.message.wave,
        };
        (self.hash(arrival.to.link, arrival.from, wave, 3) % (2 * most as u64 + 1)) as i64 - most
    }

    /// A number that depends on the seed, a direction of a link, a wave and a purpose, and on nothing else.
    #[inline]
    fn hash(&self, link: u32, from: u32, wave: u64, purpose: u64) -> u64 {
        let place = (u64::from(link) << 32 | u64::from(from)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut x =
            self.setup.seed.wrapping_mul(0xd134_2543_de82_ef95) ^ place ^ wave.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = x.wrapping_add(purpose.wrapping_mul(0x94d0_49bb_1331_11eb));
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn ring(&mut self, at: Time, node: usize) {
        if self.scheduled[node] != at {
            return;
        }
        self.scheduled[node] = Time::NEVER;
        let due = self.nodes[node]
            .deadline(&self.params)
            .is_some_and(|deadline| self.oscillators.local(node, at) >= deadline);
        if self.node_down[node] {
            return;
        }
        if !due || self.skip_quiet_waves(at, node) {
            return self.rearm(node);
        }
        self.tally.waves += u64::from(self.nodes[node].is_root());
        self.call(at, node, |machine, params, now, out| machine.on_time(params, now, out));
    }

    /// Calls a node, looks at it before and after, and does what it wants done.
    #[inline]
    fn call(&mut self, at: Time, node: usize, act: impl FnOnce(&mut M, &M::Params, Time, &mut NodeActions)) {
        let now = self.oscillators.local(node, at);
        let before = self.observe(at, node);
        self.tally.check(at, node, before);
        let mut actions = std::mem::take(&mut self.actions);
        act(&mut self.nodes[node], &self.params, now, &mut actions);
        for note in &actions.notes {
            self.on_note(at, node, *note, before);
        }
        for message in &actions.sent {
            self.send(at, node, *message);
        }
        actions.notes.clear();
        actions.sent.clear();
        self.actions = actions;
        let after = self.observe(at, node);
        self.tally.check(at, node, after);
        self.rearm(node);
    }

    /// ε and the true error of a node; nothing if it knows no time or only because quiet waves were left out.
    #[inline]
    fn observe(&self, at: Time, node: usize) -> Option<Observation> {
        if self.tally.is_steady(node) {
            return None;
        }
        let now = self.oscillators.local(node, at);
        let machine = &self.nodes[node];
        let (epsilon, reading) = (machine.epsilon(&self.params, now)?, machine.reading(now)?);
        let term = machine.term();
        let scale = self.scales.iter().rev().find(|scale| scale.term == term)?;
        let truth = scale.reading + self.oscillators.local(scale.root, at).since(scale.since);
        Some(Observation { epsilon, error_ps: reading.as_ps() as i64 - truth.as_ps() as i64 })
    }

    fn on_note(&mut self, at: Time, node: usize, note: NodeNote, before: Option<Observation>) {
        match note {
            NodeNote::Synchronised => return self.tally.synchronised(at, node, before),
            NodeNote::Rejected(SyncRejection::Invalid) => self.tally.rejected += 1,
            NodeNote::Rejected(_) | NodeNote::ClockStep => return,
            NodeNote::Turned => {
                self.tally.turns += 1;
                self.request_control(at);
            }
            NodeNote::Elected => self.on_election(at, node),
            NodeNote::Reigns | NodeNote::Replaced => {}
            NodeNote::Evicted => self.tally.evicted += 1,
        }
        self.disturbed = at;
        self.tally.log(at, Some(node), label(note), before);
    }

    #[inline]
    fn send(&mut self, at: Time, node: usize, mut message: SyncMessage) {
        let id = (message.term, message.wave);
        if !M::SENDS_ALONE {
            let last = std::mem::replace(&mut self.sent[node], id);
            assert!(last.0 != id.0 || last.1 < id.1, "a node sends wave {} again", id.1);
        }
        let now = self.oscillators.local(node, at);
        if message.depth == 0 && !self.scales.iter().rev().any(|scale| scale.term == message.term) {
            let scale = TimeScale { term: message.term, root: node, reading: message.timestamp, since: now };
            self.scales.push(scale);
            self.tally.handover = self.tally.handover.max(message.handover);
        }
        let leaves = at + self.residence;
        message.correction = self.oscillators.local(node, leaves).since(now);
        for place in self.wiring.places(node) {
            let arrival = WaveArrival { from: node as u32, to: self.wiring.listener(place), message, again: false };
            self.queue.schedule(leaves + self.way, ClockEvent::Arrival(arrival));
        }
    }

    /// Sees to it that the node's timer comes in time; one that comes too early looks again.
    #[inline]
    fn rearm(&mut self, node: usize) {
        let Some(deadline) = self.nodes[node].deadline(&self.params) else { return };
        if self.scheduled[node] != Time::NEVER && !self.nodes[node].is_root() && self.scheduled[node] > self.queue.now()
        {
            // It comes earlier than any deadline that a message has moved back.
            let pending = self.oscillators.local(node, self.scheduled[node]);
            if pending <= deadline {
                return;
            }
        }
        let at = self.oscillators.when(node, deadline).max(self.queue.now());
        if at < self.end && at != self.scheduled[node] {
            self.scheduled[node] = at;
            self.queue.schedule(at, ClockEvent::Timer(node as u32));
        }
    }

    /// Frequencies change; deadlines move with them.
    fn tick(&mut self, at: Time) {
        for node in 0..self.nodes.len() {
            if !self.node_down[node] {
                self.tally.check(at, node, self.observe(at, node));
            }
        }
        self.oscillators.advance(at);
        for node in 0..self.nodes.len() {
            if self.scheduled[node] != Time::NEVER {
                self.scheduled[node] = Time::NEVER;
                self.rearm(node);
            }
        }
        self.next_tick = at + self.oscillators.tick;
        if self.next_tick < self.end {
            self.queue.schedule(self.next_tick, ClockEvent::Tick);
        }
    }
}

fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1u64 << 53) as f64
}

fn label(note: NodeNote) -> &'static str {
    match note {
        NodeNote::Synchronised => "synchronised",
        NodeNote::Rejected(_) => "rejected",
        NodeNote::Turned => "turned",
        NodeNote::Elected => "elected",
        NodeNote::Reigns => "reigns",
        NodeNote::Replaced => "replaced",
        NodeNote::Evicted => "evicted",
        NodeNote::ClockStep => "clock step",
    }
}

//! The outside of a node: its port, the queue above it, its timers; and the sink through which its machine
//! acts.

use faults::Random;
use guard::Note;
use machine::{Lane, Machine, Out, Port};
use units::Time;

use super::config::{Config, Load, Mode};
use super::measure::Measure;
use super::source::{Frame, Source};
use crate::engine::{Queue, Timers};
use crate::hardware::{Copies, Reaction};
use crate::protocols::LinkMachine;

const MOST_TIMERS: usize = 4;

/// Node A of link `n` is number `2n`, node B `2n + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

impl NodeId {
    /// The nodes of so many links.
    pub(super) fn all(links: u32) -> impl Iterator<Item = Self> {
        (0..links * 2).map(Self)
    }

    pub(super) fn receiver(link: usize) -> Self {
        Self(link as u32 * 2 + 1)
    }

    /// Whether this is a node A: the one whose frames are measured.
    #[inline]
    pub(super) fn sends(self) -> bool {
        self.0.is_multiple_of(2)
    }

    #[inline]
    pub(super) fn peer(self) -> Self {
        Self(self.0 ^ 1)
    }

    #[inline]
    pub(super) fn link(self) -> usize {
        self.0 as usize / 2
    }

    /// What tells its endpoint from any other.
    pub(super) fn instance(self) -> u32 {
        self.0 + 1
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
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
pub(super) struct Slab<P> {
    packets: Vec<Option<P>>,
    free: Vec<u32>,
}

impl<P> Slab<P> {
    pub(super) fn new() -> Self {
        Self { packets: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, packet: P) -> u32 {
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

    pub(super) fn get(&self, at: u32) -> Option<&P> {
        self.packets[at as usize].as_ref()
    }

    pub(super) fn take(&mut self, at: u32) -> Option<P> {
        self.free.push(at);
        self.packets[at as usize].take()
    }
}

/// The outside of a node: port, queue above, timers.
pub(super) struct Shell<M: Machine> {
    pub source: Source,
    pub faults: faults::Running,
    pub busy_until: Time,
    /// The earliest event scheduled for the port.
    pub look_at: Time,
    pub woken: bool,
    pub staged: Option<M::Frame>,
    pub copies: Copies<M::Frame>,
    /// New frames left when the last one went out.
    pub new_left: u64,
    pub timers: Timers<M::Timer, MOST_TIMERS>,
    pub reaction: Reaction,
}

impl<M: Machine> Shell<M> {
    pub(super) fn new(config: &Config, id: NodeId) -> Self {
        let forward = id.sends();
        let load = if forward { Some(config.load) } else { reverse_load(config) };
        let frames = if forward { config.frames } else { u64::MAX };
        let lanes = match config.mode {
            Mode::Both => 0..2,
            Mode::NonBlocking => 1..2,
            Mode::None | Mode::Ordered | Mode::Auto | Mode::UecLlr => 0..1,
        };
        let random = Random::new(config.seed, 2_000 + u64::from(id.0));
        let schedule = if forward { &config.forward } else { &config.reverse };
        Self {
            source: Source::new(config.sizes.clone(), load, config.rate, frames, lanes, random),
            new_left: frames,
            faults: schedule.run(config.seed, u64::from(id.0)),
            busy_until: Time::ZERO,
            look_at: Time::ZERO,
            woken: false,
            staged: None,
            copies: Copies::new(),
            timers: Timers::new(),
            reaction: Reaction::new(),
        }
    }
}

impl<M: LinkMachine> Node<M> {
    /// All its frames have been offered, and none of them is on its way to the wire or awaited.
    pub(super) fn is_done(&self) -> bool {
        self.shell.source.is_exhausted() && self.shell.copies.is_empty() && self.machine.is_drained()
    }
}

pub(super) struct Node<M: Machine> {
    pub machine: M,
    pub shell: Shell<M>,
}

pub(super) struct Sink<'a, M: Machine> {
    pub now: Time,
    pub id: NodeId,
    pub shell: &'a mut Shell<M>,
    pub queue: &'a mut Queue<Event>,
    /// Of the traffic that this node receives, if it is measured.
    pub measure: Option<&'a mut Measure>,
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
            measure.on_delivery(self.now, self.id.link(), usize::from(lane.0), inner);
        }
    }

    fn arm(&mut self, key: M::Timer, at: Time) {
        if let Some(slot) = self.shell.timers.arm(key, at) {
            self.queue.schedule(at, Event::Timer(self.id, slot));
        }
    }

    fn disarm(&mut self, key: M::Timer) {
        self.shell.timers.disarm(key);
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

fn reverse_load(config: &Config) -> Option<Load> {
    match config.reverse_load {
        0.0 => None,
        load if load >= 1.0 => Some(Load::Saturated),
        load => Some(Load::Poisson(load)),
    }
}

//! The outside of a node: its port, the queue above it, its timers; and the sink through which its machine
//! acts.

use faults::Random;
use guard::EndpointNote;
use machine::{Machine, Out, Port, QueueId};
use units::Time;

use super::config::{LinkSimConfig, LinkSimMode, OfferedLoad};
use super::measure::LinkMeasure;
use super::source::{FrameSource, SimFrame};
use crate::engine::{EventQueue, Timers};
use crate::hardware::{CopiesInFlight, PauseReaction};
use crate::protocols::LinkMachine;

const MOST_TIMERS: usize = 4;

/// Node A of link `n` is number `2n`, node B `2n + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkNodeId(u32);

impl LinkNodeId {
    /// The nodes of this number of links.
    pub(super) fn all(links: u32) -> impl Iterator<Item = Self> {
        (0..links * 2).map(Self)
    }

    pub(super) fn receiver(link: usize) -> Self {
        Self(link as u32 * 2 + 1)
    }

    /// True for a node A, whose frames are measured.
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

    /// A number that distinguishes its endpoint from any other.
    pub(super) fn instance(self) -> u32 {
        self.0 + 1
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum LinkSimEvent {
    /// A port may be free, or was asked to look again.
    Port(LinkNodeId),
    /// A packet of the slab arrives.
    Arrival(LinkNodeId, u32),
    /// Or is acted upon, if the hardware is slow about it.
    Action(LinkNodeId, u32),
    Timer(LinkNodeId, u8),
    Traffic(LinkNodeId),
}

/// Packets in flight.
#[derive(Debug)]
pub(super) struct PacketSlab<P> {
    packets: Vec<Option<P>>,
    free: Vec<u32>,
}

impl<P> PacketSlab<P> {
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
pub(super) struct NodeContext<M: Machine> {
    pub source: FrameSource,
    pub faults: faults::RunningSchedule,
    pub busy_until: Time,
    /// The earliest event scheduled for the port.
    pub look_at: Time,
    pub woken: bool,
    pub staged: Option<M::Frame>,
    pub copies: CopiesInFlight<M::Frame>,
    /// New frames left when the last one went out.
    pub new_left: u64,
    pub timers: Timers<M::Timer, MOST_TIMERS>,
    pub reaction: PauseReaction,
}

impl<M: Machine> NodeContext<M> {
    pub(super) fn new(config: &LinkSimConfig, id: LinkNodeId) -> Self {
        let forward = id.sends();
        let load = if forward { Some(config.load) } else { reverse_load(config) };
        let frames = if forward { config.frames } else { u64::MAX };
        let lanes = match config.mode {
            LinkSimMode::Both => 0..2,
            LinkSimMode::NonBlocking => 1..2,
            LinkSimMode::None | LinkSimMode::Ordered | LinkSimMode::Auto | LinkSimMode::UecLlr => 0..1,
        };
        let random = Random::new(config.seed, 2_000 + u64::from(id.0));
        let schedule = if forward { &config.forward } else { &config.reverse };
        Self {
            source: FrameSource::new(config.sizes.clone(), load, config.rate, frames, lanes, random),
            new_left: frames,
            faults: schedule.run(config.seed, u64::from(id.0)),
            busy_until: Time::ZERO,
            look_at: Time::ZERO,
            woken: false,
            staged: None,
            copies: CopiesInFlight::new(),
            timers: Timers::new(),
            reaction: PauseReaction::new(),
        }
    }
}

impl<M: LinkMachine> LinkNode<M> {
    /// True if all its frames have been offered, and none is under way or awaited.
    pub(super) fn is_done(&self) -> bool {
        self.shell.source.is_exhausted() && self.shell.copies.is_empty() && self.machine.is_drained()
    }
}

pub(super) struct LinkNode<M: Machine> {
    pub machine: M,
    pub shell: NodeContext<M>,
}

pub(super) struct NodeSink<'a, M: Machine> {
    pub now: Time,
    pub id: LinkNodeId,
    pub shell: &'a mut NodeContext<M>,
    pub queue: &'a mut EventQueue<LinkSimEvent>,
    /// Measures of the traffic that this node receives, if it is measured.
    pub measure: Option<&'a mut LinkMeasure>,
}

impl<M: Machine<Inner = SimFrame, Note = EndpointNote>> Out<M> for NodeSink<'_, M> {
    #[inline]
    fn transmit(&mut self, _port: Port, frame: M::Frame) {
        self.shell.staged = Some(frame);
    }

    #[inline]
    fn wake(&mut self, _port: Port) {
        self.shell.woken = true;
    }

    #[inline]
    fn waiting(&self, lane: QueueId) -> bool {
        self.shell.source.waiting(lane)
    }

    #[inline]
    fn take(&mut self, lane: QueueId) -> Option<SimFrame> {
        self.shell.source.take(self.now, lane)
    }

    #[inline]
    fn keep(&mut self, inner: &SimFrame) -> SimFrame {
        *inner
    }

    #[inline]
    fn release(&mut self, _inner: SimFrame) {}

    #[inline]
    fn deliver(&mut self, lane: QueueId, inner: SimFrame) {
        if let Some(measure) = &mut self.measure {
            measure.on_delivery(self.now, self.id.link(), usize::from(lane.0), inner);
        }
    }

    fn arm(&mut self, key: M::Timer, at: Time) {
        if let Some(slot) = self.shell.timers.arm(key, at) {
            self.queue.schedule(at, LinkSimEvent::Timer(self.id, slot));
        }
    }

    fn disarm(&mut self, key: M::Timer) {
        self.shell.timers.disarm(key);
    }

    fn complete(&mut self, _done: M::Done) {}

    fn note(&mut self, note: EndpointNote) {
        if let Some(measure) = &mut self.measure {
            match note {
                EndpointNote::Recovered { after, .. } => measure.recovery.record(after, 1),
                EndpointNote::Overflow => measure.overflowed += 1,
                EndpointNote::Missing { .. }
                | EndpointNote::GivenUp { .. }
                | EndpointNote::Paused
                | EndpointNote::Resumed => {}
            }
        }
    }
}

fn reverse_load(config: &LinkSimConfig) -> Option<OfferedLoad> {
    match config.reverse_load {
        0.0 => None,
        load if load >= 1.0 => Some(OfferedLoad::Saturated),
        load => Some(OfferedLoad::Poisson(load)),
    }
}

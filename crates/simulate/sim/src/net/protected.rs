//! A link under a link protocol: the two machines at its ends, and what is particular to where they run.
//!
//! The queue stays the port's, with its depth and its marking; the machine takes a packet from it only when the wire is
//! free. What it delivers goes on through the switch like any packet that arrived.

use faults::Random;
use guard::endpoint::WIRE;
use guard::{Counters, EndpointNote};
use machine::{Machine, Out, Port as MachinePort, Pull, QueueId};
use units::{Bytes, Span, Time};

use super::end::FlowEnd;
use super::events::NetworkEvent;
use super::index::{EndId, IndexVec, PacketId};
use super::packet::{PacketHandle, Packets};
use super::port::SimPort;
use crate::engine::{EventQueue, TimerFiring, Timers};
use crate::hardware::{CopiesInFlight, Hardware, PauseReaction};
use crate::protocols::{LinkMachine, OnWire};
use crate::topology::DirectedLink;

const MOST_TIMERS: usize = 4;

/// Counters of a link's machines; by direction where it has two ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkTally {
    pub counters: [Counters; 2],
    /// Reorder buffer overflows.
    pub overflows: u64,
    /// Delays of recovered frames.
    pub recovery: Vec<Span>,
    pub tx_peak: Bytes,
    pub rx_peak: Bytes,
}

/// More are counted, but their delays are not kept.
const MOST_RECOVERIES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct EndpointPair<M: Machine> {
    /// Side 0 sends from a to b, side 1 from b to a.
    sides: [LinkSide<M>; 2],
    /// Frames on the wire.
    frames: Vec<Option<M::Frame>>,
    free: Vec<u32>,
    hardware: Option<Hardware>,
    random: Random,
    /// The lane that its frames come from.
    lane: QueueId,
    overflows: u64,
    recovery: Vec<Span>,
}

#[derive(Debug)]
struct LinkSide<M: Machine> {
    machine: M,
    timers: Timers<M::Timer, MOST_TIMERS>,
    copies: CopiesInFlight<M::Frame>,
    reaction: PauseReaction,
}

/// Part of the network that a link protocol may touch.
#[derive(Debug)]
pub(crate) struct ProtectContext<'a> {
    pub now: Time,
    /// The port that the side sends by.
    pub at: DirectedLink,
    pub port: &'a mut SimPort,
    pub packets: &'a mut Packets,
    pub queue: &'a mut EventQueue<NetworkEvent>,
    pub ends: &'a mut IndexVec<EndId, FlowEnd>,
    /// True if packets change after the link has taken them, so that the link must track copies.
    pub follows_copies: bool,
    /// True if corrupted packets are written down.
    pub notes_losses: bool,
    pub actions: &'a mut LinkActions,
}

/// Actions of a link protocol on packets, until the network carries them out.
#[derive(Debug, Default)]
pub(crate) struct LinkActions {
    /// Packets that left the queue for the link.
    pub taken: Vec<PacketId>,
    /// Packets that were copied, each with its copy; only if [`ProtectContext::follows_copies`].
    pub copied: Vec<(PacketId, PacketId)>,
    /// Packets that were corrupted; only if [`ProtectContext::notes_losses`].
    pub corrupted: Vec<PacketId>,
    /// Packets that left for the wire, and whether they were corrupted there; only if the port is watched.
    pub sent: Vec<(PacketId, bool)>,
    /// Packets that came out of the link.
    pub delivered: Vec<PacketId>,
    /// Packets that are gone.
    pub released: Vec<PacketId>,
}

impl<M: LinkMachine<Inner = PacketHandle>> EndpointPair<M> {
    pub(crate) fn new(machines: [M; 2], hardware: Option<Hardware>, random: Random, lane: QueueId) -> Self {
        let sides = machines.map(|machine| LinkSide {
            machine,
            timers: Timers::new(),
            copies: CopiesInFlight::new(),
            reaction: PauseReaction::new(),
        });
        Self { sides, frames: Vec::new(), free: Vec::new(), hardware, random, lane, overflows: 0, recovery: Vec::new() }
    }

    pub(crate) fn tally(&self) -> LinkTally {
        let [a, b] = &self.sides;
        LinkTally {
            counters: [a.machine.counters(), b.machine.counters()],
            overflows: self.overflows,
            recovery: self.recovery.clone(),
            tx_peak: a.machine.tx_peak().max(b.machine.tx_peak()),
            rx_peak: a.machine.rx_peak().max(b.machine.rx_peak()),
        }
    }

    /// Bytes that the sender of this direction keeps, and bytes that its receiver holds back.
    pub(crate) fn levels(&self, side: usize) -> (Bytes, Bytes) {
        (self.sides[side].machine.tx_buffered(), self.sides[1 - side].machine.rx_held())
    }

    fn with<R>(
        &mut self,
        side: usize,
        around: &mut ProtectContext<'_>,
        act: impl FnOnce(&mut M, &mut LinkSink<'_, '_, M>) -> R,
    ) -> (R, Option<M::Frame>) {
        let LinkSide { machine, timers, .. } = &mut self.sides[side];
        let (overflows, recovery) = (&mut self.overflows, &mut self.recovery);
        let mut sink = LinkSink { around, timers, staged: None, woken: false, lane: self.lane, overflows, recovery };
        let result = act(machine, &mut sink);
        let (staged, woken) = (sink.staged, sink.woken);
        if woken {
            look(around, around.now.max(around.port.busy_until));
        }
        (result, staged)
    }

    pub(crate) fn command(&mut self, side: usize, around: &mut ProtectContext<'_>, command: M::Command) {
        let now = around.now;
        self.with(side, around, |machine, sink| machine.on_command(now, command, sink));
    }

    /// A frame that the other side sent has arrived. If the hardware takes its time, when it acts on it.
    pub(crate) fn arrive(&mut self, side: usize, around: &mut ProtectContext<'_>, frame: u32) -> Option<Time> {
        if let Some(hardware) = &self.hardware {
            let wish = self.frames[frame as usize].as_ref().and_then(OnWire::wish);
            let at = self.sides[side].reaction.acts_at(around.now, hardware, wish);
            if at > around.now {
                return Some(at);
            }
        }
        self.act(side, around, frame);
        None
    }

    pub(crate) fn act(&mut self, side: usize, around: &mut ProtectContext<'_>, frame: u32) {
        self.free.push(frame);
        if let Some(frame) = self.frames[frame as usize].take() {
            let now = around.now;
            self.with(side, around, |machine, sink| machine.on_frame(now, WIRE, frame, sink));
        }
    }

    pub(crate) fn ring(&mut self, side: usize, around: &mut ProtectContext<'_>, slot: u8) {
        let now = around.now;
        match self.sides[side].timers.ring(now, slot) {
            TimerFiring::Nothing => {}
            TimerFiring::Later(at) => around.queue.schedule(at, NetworkEvent::LinkTimer { port: around.at, slot }),
            TimerFiring::Now(key) => {
                self.with(side, around, |machine, sink| machine.on_timer(now, key, sink));
            }
        }
    }

    /// Puts the next frame on the wire, if it is free and there is one.
    pub(crate) fn serve(&mut self, side: usize, around: &mut ProtectContext<'_>) {
        let now = around.now;
        if around.port.busy_until > now {
            let at = around.port.busy_until;
            return look(around, at);
        }
        loop {
            if let Some(copy) = self.sides[side].copies.take(now) {
                return self.send(side, around, copy, true);
            }
            let (pull, staged) = self.with(side, around, |machine, sink| machine.pull(now, WIRE, sink));
            if let Pull::NotBefore(at) = pull {
                look(around, at);
            }
            let Some(frame) = staged else { return self.look_for_copy(side, around) };
            match (&self.hardware, frame.copy_of()) {
                (Some(hardware), Some(of)) => {
                    let at = self.sides[side].copies.find(now, hardware, &mut self.random, of, frame);
                    look(around, at);
                }
                _ => return self.send(side, around, frame, pull == Pull::Sent),
            }
        }
    }

    fn look_for_copy(&mut self, side: usize, around: &mut ProtectContext<'_>) {
        if let Some(at) = self.sides[side].copies.next() {
            look(around, at);
        }
    }

    fn send(&mut self, side: usize, around: &mut ProtectContext<'_>, frame: M::Frame, more: bool) {
        let (port, now) = (&mut *around.port, around.now);
        let wire = frame.wire_bytes();
        let sent = now + port.time_of_bytes(u64::from(wire));
        port.busy_until = sent;
        port.counters.frames += 1;
        port.counters.wire_bytes += u64::from(wire);
        if frame.is_filler() {
            port.counters.idle_bytes += u64::from(wire);
        }
        let corrupted = port.faults.as_mut().is_some_and(|faults| faults.at(now).corrupts(frame.frame_bytes()));
        if port.watched {
            around.actions.sent.extend(frame.body().map(|handle| (handle.packet, corrupted)));
        }
        if corrupted {
            port.counters.corrupted += 1;
            if around.notes_losses {
                around.actions.corrupted.extend(frame.body().map(|handle| handle.packet));
            }
            around.actions.released.extend(frame.handles().iter().map(|handle| handle.packet));
        } else {
            let at = sent + port.flight;
            let number = self.keep(frame);
            around.queue.schedule(at, NetworkEvent::LinkArrive { port: around.at, frame: number });
        }
        if more || !self.sides[side].copies.is_empty() {
            look(around, sent);
        }
    }

    fn keep(&mut self, frame: M::Frame) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.frames[at as usize] = Some(frame);
                at
            }
            None => {
                self.frames.push(Some(frame));
                self.frames.len() as u32 - 1
            }
        }
    }
}

/// Schedules a look at the port, unless one comes no later.
fn look(around: &mut ProtectContext<'_>, at: Time) {
    if around.port.look(around.now, at) {
        around.queue.schedule(at, NetworkEvent::Look { port: around.at });
    }
}

struct LinkSink<'a, 'b, M: Machine> {
    around: &'a mut ProtectContext<'b>,
    timers: &'a mut Timers<M::Timer, MOST_TIMERS>,
    staged: Option<M::Frame>,
    woken: bool,
    lane: QueueId,
    overflows: &'a mut u64,
    recovery: &'a mut Vec<Span>,
}

impl<M: Machine<Inner = PacketHandle, Note = EndpointNote>> Out<M> for LinkSink<'_, '_, M> {
    fn transmit(&mut self, _port: MachinePort, frame: M::Frame) {
        self.staged = Some(frame);
    }

    fn wake(&mut self, _port: MachinePort) {
        self.woken = true;
    }

    fn waiting(&self, lane: QueueId) -> bool {
        lane == self.lane && self.around.port.queues.as_ref().is_some_and(|queues| queues.has_any())
    }

    fn take(&mut self, lane: QueueId) -> Option<PacketHandle> {
        if lane != self.lane {
            return None;
        }
        let queues = self.around.port.queues.as_mut()?;
        let packet = queues.pop(self.around.packets)?;
        let len = self.around.packets.get(packet).len;
        let time = self.around.port.time_of(len);
        if let Some(queues) = &mut self.around.port.queues {
            queues.shorten(time);
        }
        self.around.actions.taken.push(packet);
        Some(PacketHandle::new(packet, len))
    }

    fn keep(&mut self, inner: &PacketHandle) -> PacketHandle {
        let copy = *self.around.packets.get(inner.packet);
        self.around.ends[copy.to()].made += 1;
        let kept = self.around.packets.insert(copy);
        if self.around.follows_copies {
            self.around.actions.copied.push((inner.packet, kept));
        }
        PacketHandle::new(kept, copy.len)
    }

    fn release(&mut self, inner: PacketHandle) {
        self.around.actions.released.push(inner.packet);
    }

    fn deliver(&mut self, _lane: QueueId, inner: PacketHandle) {
        self.around.actions.delivered.push(inner.packet);
    }

    fn arm(&mut self, key: M::Timer, at: Time) {
        if let Some(slot) = self.timers.arm(key, at) {
            self.around.queue.schedule(at, NetworkEvent::LinkTimer { port: self.around.at, slot });
        }
    }

    fn disarm(&mut self, key: M::Timer) {
        self.timers.disarm(key);
    }

    fn complete(&mut self, _done: M::Done) {}

    fn note(&mut self, note: EndpointNote) {
        match note {
            EndpointNote::Overflow => *self.overflows += 1,
            EndpointNote::Recovered { after, .. } if self.recovery.len() < MOST_RECOVERIES => self.recovery.push(after),
            _ => {}
        }
    }
}

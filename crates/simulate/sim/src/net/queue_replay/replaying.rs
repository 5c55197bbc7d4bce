//! Sending recorded packets again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use machine::{Conversation, DropReason, Forward, QueueRoom, SwitchOut, SwitchPort, SwitchProgram, Visit};
use units::{Progress, Span, Time};
use wire::ip::Ecn;

use super::contents::{FlowBytes, PacketTag, QueueContents, QueueQuestion, QueueViews, StreamId};
use super::recording::{PacketFate, RecordedConnection, RecordedPacket};
use super::{NEAR_LIMIT, ReplayError, check};
use crate::net::index::{EndId, PacketId, TrafficId};
use crate::net::packet::{RoutePosition, SimPacket};
use crate::net::programs::NetworkProgram;
use crate::net::setup::{NetworkSetup, TrafficSetup};
use crate::net::transports::{Body, DatagramConfig, DatagramGaps, TransportSetup};
use crate::net::world::Network;
use crate::topology::DirectedLink;
use crate::workload::{FlowSchedule, Workload, WorkloadFlow};

/// Tags of packets that were dropped in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayTags {
    /// Tagged packets are dropped near full queues, and no others.
    Used,
    /// Queues drop what has no room.
    Ignored,
}

/// Options of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    pub tags: ReplayTags,
    /// One in this many packets is asked for its view, as in the recording.
    pub one_in: u32,
    pub question: Option<QueueQuestion>,
}

/// Result of a replay.
#[derive(Debug, Default)]
pub struct QueueReplay {
    pub views: QueueViews,
    /// Packets that found no room: which, and where.
    pub dropped: Vec<(StreamId, u32, DirectedLink)>,
    /// Packets without a tag that joined a queue which had no room for them.
    pub overflows: u64,
    /// Streams of the port that was asked about, the largest first.
    pub answer: Vec<FlowBytes>,
    pub interrupted: bool,
}

/// Sends packets at their times through the network of a setup; its traffic and its faults do not take place. The connections are
/// all those of the run with the same seed, in the order of their starts.
pub fn replay(
    setup: &NetworkSetup,
    connections: &[RecordedConnection],
    options: ReplayOptions,
    progress: &dyn Progress,
) -> Result<QueueReplay, ReplayError> {
    check(setup)?;
    let mut program = ReplayProgram::new(setup, connections, options);
    let traffic = vec![silent()];
    let setup = NetworkSetup { traffic, links: Vec::new(), until: Time::NEVER, sampling: None, ..setup.clone() };
    let mut network = Network::new(setup, &mut program);
    for connection in connections {
        let RecordedConnection { src, dst, .. } = *connection;
        let flow = WorkloadFlow { start: Time::ZERO, src, dst, bytes: u64::MAX, group: 0 };
        network.connect(Time::ZERO, TrafficId(0), &flow, None, None)?;
    }
    // It goes on until the last packet has ended.
    network.flows.active = 1;
    let outcome = network.run(progress)?;
    let ReplayProgram { contents, mut replay, .. } = program;
    (replay.views, replay.answer) = contents.finish();
    replay.interrupted = outcome.interrupted;
    Ok(replay)
}

/// Traffic without flows: connections are made for packets that are replayed, and their ends say nothing.
fn silent() -> TrafficSetup {
    let transport = TransportSetup::Datagrams(DatagramConfig { payload: 1, rate: None, gaps: DatagramGaps::Even });
    TrafficSetup::new("replay", transport, Workload::Open(FlowSchedule::list(Vec::new())))
}

#[derive(Debug)]
struct ReplayProgram<'a> {
    connections: &'a [RecordedConnection],
    options: ReplayOptions,
    /// Links that corrupt, by their upstream port.
    corrupting: Vec<DirectedLink>,
    /// The next packet of every stream that has one.
    next: BinaryHeap<Reverse<(Time, StreamId, u32)>>,
    /// Packets that the network is about to send.
    leaving: VecDeque<ReplayTag>,
    contents: QueueContents,
    replay: QueueReplay,
}

/// Tag on a packet that is replayed.
#[derive(Clone, Copy, Debug, Default)]
struct ReplayTag {
    packet: PacketTag,
    /// True for a packet that was dropped near a full queue.
    dropped: bool,
    /// True for a packet that was lost behind a corrupting link.
    corrupted: bool,
}

impl<'a> ReplayProgram<'a> {
    fn new(setup: &NetworkSetup, connections: &'a [RecordedConnection], options: ReplayOptions) -> Self {
        let faulty = setup.links.iter().flat_map(|link| {
            let [there, back] = [&link.forward, &link.reverse].map(|faults| !faults.steps().is_empty());
            [(there, link.link.forward()), (back, link.link.backward())]
        });
        let ports = setup.topology.directed().count();
        let mut program = Self {
            connections,
            options,
            corrupting: faulty.filter(|(faulty, _)| *faulty).map(|(_, port)| port).collect(),
            next: BinaryHeap::new(),
            leaving: VecDeque::new(),
            contents: QueueContents::new(ports, options.one_in, options.question),
            replay: QueueReplay::default(),
        };
        for stream in 0..connections.len() as u32 * 2 {
            program.line_up(StreamId(stream), 0);
        }
        program
    }

    fn packet(&self, stream: StreamId, number: u32) -> Option<&RecordedPacket> {
        let (connection, direction) = stream.place();
        self.connections[connection].packets[direction].get(number as usize)
    }

    fn line_up(&mut self, stream: StreamId, number: u32) {
        if let Some(packet) = self.packet(stream, number) {
            self.next.push(Reverse((packet.at, stream, number)));
        }
    }

    /// The next packet that is due, with its tag.
    fn take_due(&mut self, now: Time) -> Option<SimPacket> {
        let Reverse((_, stream, number)) = *self.next.peek().filter(|Reverse((at, ..))| *at <= now)?;
        self.next.pop();
        self.line_up(stream, number + 1);
        let RecordedPacket { len, class, fate, .. } = *self.packet(stream, number)?;
        self.leaving.push_back(ReplayTag {
            packet: PacketTag { stream, number, hop: 0 },
            dropped: matches!(fate, PacketFate::Dropped(_)),
            corrupted: matches!(fate, PacketFate::Corrupted(_)),
        });
        let (route, came_by, next) = (RoutePosition::of(EndId(stream.0)), SimPacket::NOWHERE, PacketId::NONE);
        let (ecn, body) = (Ecn::NotCapable, Body::Datagrams(Default::default()));
        Some(SimPacket { route, came_by, next, len, class, ecn, body })
    }
}

impl NetworkProgram for ReplayProgram<'_> {}

impl SwitchProgram for ReplayProgram<'_> {
    type Frame = SimPacket;
    type Tag = ReplayTag;

    const REPLAYS: bool = true;

    fn watches_departures(&self) -> bool {
        true
    }

    fn watches_hosts(&self) -> bool {
        true
    }

    fn wake_at(&self) -> Time {
        self.next.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    fn on_wake<O: SwitchOut<SimPacket>>(&mut self, now: Time, out: &mut O) {
        while let Some(packet) = self.take_due(now) {
            out.send(SwitchPort { switch: u32::MAX, port: u32::MAX }, packet);
        }
    }

    fn on_host_sends(
        &mut self,
        _now: Time,
        _link: u32,
        _who: Conversation,
        _frame: &mut SimPacket,
        tag: &mut ReplayTag,
    ) {
        *tag = self.leaving.pop_front().unwrap_or_default();
    }

    fn on_route(&mut self, now: Time, at: Visit, frame: &mut SimPacket, tag: &mut ReplayTag) -> Forward {
        if tag.corrupted && self.corrupting.contains(&frame.came_by) {
            return Forward::Drop;
        }
        self.contents.join(now, at.at.port, frame.len, &mut tag.packet);
        Forward::Pass
    }

    fn admits(&mut self, _at: SwitchPort, room: QueueRoom, tag: &mut ReplayTag) -> bool {
        match (self.options.tags, tag.dropped) {
            (ReplayTags::Ignored, _) => room.fits,
            (ReplayTags::Used, true) => room.left >= NEAR_LIMIT as i64,
            (ReplayTags::Used, false) => {
                self.replay.overflows += u64::from(!room.fits);
                true
            }
        }
    }

    fn on_departure(&mut self, now: Time, at: SwitchPort, _left: u64, frame: &mut SimPacket, tag: &mut ReplayTag) {
        self.contents.leave(now, at.port, frame.len, &tag.packet);
    }

    fn on_drop(&mut self, now: Time, link: u32, reason: DropReason, frame: &mut SimPacket, tag: &mut ReplayTag) {
        if reason == DropReason::Full {
            let PacketTag { stream, number, .. } = tag.packet;
            self.contents.leave(now, link, frame.len, &tag.packet);
            self.replay.dropped.push((stream, number, DirectedLink(link)));
        }
    }
}

impl RecordedConnection {
    /// A copy with other times: `change` computes them for each stream, and the clock of the stream's host delays them.
    #[must_use]
    pub fn retimed(&self, mut change: impl FnMut(&[Time]) -> Vec<Time>, clocks: [Span; 2]) -> Self {
        let mut retimed = self.clone();
        for (packets, clock) in retimed.packets.iter_mut().zip(clocks) {
            let times: Vec<Time> = packets.iter().map(|packet| packet.at).collect();
            for (packet, at) in packets.iter_mut().zip(change(&times)) {
                packet.at = at + clock;
            }
        }
        retimed
    }
}

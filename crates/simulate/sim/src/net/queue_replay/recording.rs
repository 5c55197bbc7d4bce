//! Recording every packet of a run, and what queues held.

use machine::{Conversation, DropReason, Forward, SwitchPort, SwitchProgram, Visit};
use units::{Progress, Time};

use super::contents::{FlowBytes, PacketTag, QueueContents, QueueQuestion, QueueViews, StreamId};
use super::{ReplayError, check};
use crate::net::index::{IndexVec, SwitchId};
use crate::net::outcome::NetworkOutcome;
use crate::net::packet::SimPacket;
use crate::net::port::{Owner, SimPort};
use crate::net::programs::NetworkProgram;
use crate::net::setup::NetworkSetup;
use crate::net::world::Network;
use crate::topology::{DirectedLink, NodeId};

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    Delivered,
    /// The queue of this port was full.
    Dropped(DirectedLink),
    /// The wire behind this port corrupted it.
    Corrupted(DirectedLink),
    /// The packet was under way when the run ended.
    UnderWay,
}

/// A packet that a host sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// Time at which its first bit left the interface, behind what that was sending.
    pub at: Time,
    /// Length as a frame, check included.
    pub len: u16,
    pub class: u8,
    pub fate: PacketFate,
}

/// The packets of a connection.
#[derive(Clone, Debug)]
pub struct RecordedConnection {
    pub src: NodeId,
    pub dst: NodeId,
    /// Packets from the host that began the flow, and packets back, in the order of their transmission.
    pub packets: [Vec<RecordedPacket>; 2],
}

/// Recording of a run.
#[derive(Debug, Default)]
pub struct QueueRecording {
    /// Connections in the order of their starts. A replay must keep that order, because routes are drawn in it.
    pub connections: Vec<RecordedConnection>,
    pub views: QueueViews,
    /// Streams of the queue that was asked about, the largest first.
    pub answer: Vec<FlowBytes>,
}

impl QueueRecording {
    /// All packets of all connections, each with its stream and its number.
    pub fn packets(&self) -> impl Iterator<Item = (StreamId, u32, &RecordedPacket)> {
        let streams = self.connections.iter().flat_map(|connection| &connection.packets);
        streams.enumerate().flat_map(|(stream, packets)| {
            packets.iter().enumerate().map(move |(number, packet)| (StreamId(stream as u32), number as u32, packet))
        })
    }
}

/// Runs a network and records it. One in `one_in` packets, the same in every run, is asked what it sees.
pub fn record(
    setup: NetworkSetup,
    one_in: u32,
    progress: &dyn Progress,
) -> Result<(NetworkOutcome, QueueRecording), ReplayError> {
    record_asked(setup, one_in, None, progress)
}

/// Records as [`record`] does, and answers who was in a queue at a time.
pub fn record_asked(
    setup: NetworkSetup,
    one_in: u32,
    question: Option<QueueQuestion>,
    progress: &dyn Progress,
) -> Result<(NetworkOutcome, QueueRecording), ReplayError> {
    check(&setup)?;
    let mut program = RecordingProgram::new(&setup, one_in, question);
    let outcome = Network::new(setup, &mut program).run(progress)?;
    let RecordingProgram { contents, connections, .. } = program;
    let (views, answer) = contents.finish();
    Ok((outcome, QueueRecording { connections, views, answer }))
}

#[derive(Debug)]
struct RecordingProgram {
    contents: QueueContents,
    connections: Vec<RecordedConnection>,
    /// Model of each interface's sending by its port: a packet leaves behind those that were there before it.
    interfaces: IndexVec<DirectedLink, SimPort>,
}

impl RecordingProgram {
    fn new(setup: &NetworkSetup, one_in: u32, question: Option<QueueQuestion>) -> Self {
        let topology = &setup.topology;
        let interface = |port: DirectedLink| {
            let link = topology.link(port.link());
            let mut interface = SimPort::new(link.rate, link.delay, Owner::of_switch(SwitchId(0)));
            interface.framing = setup.profile.framing();
            interface
        };
        let interfaces: IndexVec<DirectedLink, SimPort> = topology.directed().map(interface).collect();
        let contents = QueueContents::new(interfaces.len(), one_in, question);
        Self { contents, connections: Vec::new(), interfaces }
    }

    fn set_fate(&mut self, tag: &PacketTag, fate: PacketFate) {
        let (connection, stream) = tag.stream.place();
        self.connections[connection].packets[stream][tag.number as usize].fate = fate;
    }
}

impl NetworkProgram for RecordingProgram {}

impl SwitchProgram for RecordingProgram {
    type Frame = SimPacket;
    type Tag = PacketTag;

    fn watches_departures(&self) -> bool {
        true
    }

    fn watches_hosts(&self) -> bool {
        true
    }

    fn on_host_sends(&mut self, now: Time, link: u32, who: Conversation, frame: &mut SimPacket, tag: &mut PacketTag) {
        let Conversation { from, to, flow, forward } = who;
        while self.connections.len() <= flow as usize {
            let packets = Default::default();
            self.connections.push(RecordedConnection { src: NodeId(from), dst: NodeId(to), packets });
        }
        let connection = &mut self.connections[flow as usize];
        let [src, dst] = if forward { [from, to] } else { [to, from] }.map(NodeId);
        (connection.src, connection.dst) = (src, dst);
        let interface = &mut self.interfaces[DirectedLink(link)];
        let at = interface.busy_until.max(now);
        interface.busy_until = at + interface.sending_time(frame.len);
        let packets = &mut connection.packets[usize::from(!forward)];
        *tag = PacketTag { stream: StreamId::new(flow, forward), number: packets.len() as u32, hop: 0 };
        packets.push(RecordedPacket { at, len: frame.len, class: frame.class, fate: PacketFate::UnderWay });
    }

    fn on_route(&mut self, now: Time, at: Visit, frame: &mut SimPacket, tag: &mut PacketTag) -> Forward {
        self.contents.join(now, at.at.port, frame.len, tag);
        Forward::Pass
    }

    fn on_departure(&mut self, now: Time, at: SwitchPort, _left: u64, frame: &mut SimPacket, tag: &mut PacketTag) {
        self.contents.leave(now, at.port, frame.len, tag);
    }

    fn on_host_receives(&mut self, _now: Time, _link: u32, _frame: &mut SimPacket, tag: &mut PacketTag) {
        self.set_fate(tag, PacketFate::Delivered);
    }

    fn on_drop(&mut self, now: Time, link: u32, reason: DropReason, frame: &mut SimPacket, tag: &mut PacketTag) {
        if reason == DropReason::Full {
            self.contents.leave(now, link, frame.len, tag);
            return self.set_fate(tag, PacketFate::Dropped(DirectedLink(link)));
        }
        self.set_fate(tag, PacketFate::Corrupted(DirectedLink(link)));
    }
}

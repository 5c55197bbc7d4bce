//! Hosts that reserve before they send: what stands between the ends of a host and its port.
//!
//! PL2, by the machine of the crate `reserve`. The ends of a host are dealt to contexts, each with a line of its own; the
//! machine takes packets from the lines into bursts, asks the switch, and waits. Messages about a burst ride on the route
//! of its packets. They go in class 0 and packets one class behind their own, so that an answer never waits behind data.
//! Marks and messages are in the packets' tags; a mark takes no bytes on the wire, as in the paper.

use faults::Random;
use machine::{Machine, Out, Port, Pull, QueueId};
use reserve::host::{HOST_WIRE, WaitRule};
use reserve::{HostCommand, HostCounters, HostParams, HostTimer, RackFrame, RackParams, ReservePacket, ReservingHost};
use units::{Span, Time};
use wire::ethernet::MIN_FRAME;
use wire::ip::Ecn;
use wire::reserve::{DataMark, HostKey, ReserveHeader, ReserveMessage, ReserveVerb};

use super::end::OutgoingSegment;
use super::events::NetworkEvent;
use super::index::{EndId, HostId, PacketId};
use super::packet::SimPacket;
use super::port::CLASSES;
use super::programs::NetworkProgram;
use super::setup::HostLatency;
use super::transports::Body;
use super::world::Network;
use crate::engine::{TimerFiring, Timers};
use crate::topology::NodeId;

const TIMERS: usize = 2;

/// Reservations in every rack of a network: a rack is a switch with hosts.
#[derive(Clone, Debug)]
pub struct RackSetup {
    /// Parameters of every rack; each has as many ports as its switch.
    pub params: RackParams,
    /// Gives a host a context for each destination; otherwise each connection is dealt to the context that has the fewest.
    pub per_destination: bool,
    /// Rule by which hosts shorten the wait that a GRT gives.
    pub wait: WaitRule,
    /// Time by which hosts are early on purpose.
    pub too_early: Span,
    /// Time that a thread needs for a burst before it asks for the next one.
    pub software: Span,
    /// Time from a GRT's arrival until the thread has it.
    pub answer: HostLatency,
    /// Time for which reports about a destination are believed.
    pub recent: Span,
    /// Shows receivers what was granted to their senders, so that they report what does not come. Only the scheduler of the
    /// paper needs it.
    pub resets: bool,
    /// Switches that restart, each when.
    pub restarts: Vec<(Time, NodeId)>,
}

/// A packet as the machine of a host holds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RackHandle {
    packet: PacketId,
    len: u16,
    class: u8,
    from: HostId,
    to: HostId,
}

impl RackFrame for RackHandle {
    #[inline]
    fn len(&self) -> u32 {
        u32::from(self.len)
    }

    #[inline]
    fn destination(&self) -> Option<HostKey> {
        Some(key(self.to))
    }

    #[inline]
    fn source(&self) -> HostKey {
        key(self.from)
    }

    #[inline]
    fn class(&self) -> u8 {
        self.class
    }
}

fn key(host: HostId) -> HostKey {
    HostKey::new(u64::from(host.0))
}

/// The interface of a host that reserves.
#[derive(Debug)]
pub(super) struct RackNic {
    machine: ReservingHost<RackHandle>,
    driver: RackDriver,
}

/// Surroundings of the machine.
#[derive(Debug)]
struct RackDriver {
    timers: Timers<HostTimer, TIMERS>,
    /// Lanes by context.
    lanes: Vec<RackLane>,
    /// Ways to hosts that grants were heard of.
    peers: Vec<PeerRoute>,
    delivered: Vec<PacketId>,
    software: Span,
    answer: HostLatency,
    random: Random,
    /// Time at which the last answer reaches its thread: no answer overtakes another.
    last_answer: Time,
    per_destination: bool,
}

#[derive(Debug)]
struct RackLane {
    /// Time until which the thread is busy with the last burst.
    ready_at: Time,
    /// Connections that it sends for: those that begin here, and those that other hosts began.
    connections: [u32; 2],
    routes: Vec<PeerRoute>,
}

/// An end whose packets go to this host, and the number of its connection: another one may have its place later.
#[derive(Clone, Copy, Debug)]
struct PeerRoute {
    peer: HostId,
    end: EndId,
    connection: u32,
}

fn learn(routes: &mut Vec<PeerRoute>, route: PeerRoute) {
    match routes.iter_mut().find(|known| known.peer == route.peer) {
        Some(known) => *known = route,
        None => routes.push(route),
    }
}

impl RackNic {
    /// # Panics
    /// If the parameters are not valid, which is found out when a scenario is read.
    pub(super) fn new(setup: &RackSetup, host: HostId, random: Random) -> Self {
        let params = setup.params;
        let own = HostParams::new(key(host), 1, &params);
        let own = HostParams { wait: setup.wait, too_early: setup.too_early, recent: setup.recent, ..own };
        let machine = ReservingHost::new(params, own).expect("parameters are checked before");
        let lane = |_| RackLane { ready_at: Time::ZERO, connections: [0; 2], routes: Vec::new() };
        let driver = RackDriver {
            timers: Timers::new(),
            lanes: (0..params.contexts).map(lane).collect(),
            peers: Vec::new(),
            delivered: Vec::new(),
            software: setup.software,
            answer: setup.answer,
            random,
            last_answer: Time::ZERO,
            per_destination: setup.per_destination,
        };
        Self { machine, driver }
    }

    pub(super) fn counters(&self) -> HostCounters {
        *self.machine.counters()
    }

    /// The context of a new connection to this host: that of the destination, or the one with the fewest. An end that only
    /// receives takes no context from one that sends, so those of the same `side` are counted first.
    pub(super) fn deal(&mut self, to: HostId, side: usize) -> u8 {
        let lanes = &mut self.driver.lanes;
        let load = |lane: &RackLane| (lane.connections[side], lane.connections[1 - side]);
        let fewest = lanes.iter().enumerate().min_by_key(|(_, lane)| load(lane)).map_or(0, |(lane, _)| lane);
        let lane = if self.driver.per_destination { to.0 as usize % lanes.len() } else { fewest };
        lanes[lane].connections[side] += 1;
        lane as u8
    }

    /// A connection of this context has ended.
    pub(super) fn leave(&mut self, lane: u8, side: usize) {
        self.driver.lanes[usize::from(lane)].connections[side] -= 1;
    }
}

impl<P: NetworkProgram> Network<'_, P> {
    /// Puts the next packet of a host that reserves on the wire.
    pub(super) fn serve_rack(&mut self, now: Time, host: HostId) {
        let Some(id) = self.next_of_rack(now, host) else { return };
        let at = self.hosts[host].port;
        let port = &mut self.fabric.ports[at];
        port.busy_until = now + port.sending_time(self.packets.get(id).len);
        let when = port.busy_until;
        self.transmit(now, at, id);
        self.look(now, at, when);
    }

    /// The next packet or message of a host that reserves, if one may go now.
    pub(super) fn next_of_rack(&mut self, now: Time, host: HostId) -> Option<PacketId> {
        while let Some(lane) = self.hosts[host].filled.pop() {
            self.with_rack(now, host, |machine, sink| {
                machine.on_command(now, HostCommand::Queued(QueueId(lane)), sink);
            });
        }
        loop {
            let (pull, staged) = self.with_rack(now, host, |machine, sink| machine.pull(now, HOST_WIRE, sink))?;
            if let Pull::NotBefore(at) = pull {
                let port = self.hosts[host].port;
                self.look(now, port, at);
            }
            // A message that no way is left for is lost.
            if let Some(id) = self.rack_packet(now, host, staged?) {
                return Some(id);
            }
        }
    }

    /// Lets the machine of a host act; what it transmits, too.
    fn with_rack<R>(
        &mut self,
        now: Time,
        host: HostId,
        act: impl FnOnce(&mut ReservingHost<RackHandle>, &mut RackSink<'_, '_, P>) -> R,
    ) -> Option<(R, Option<ReservePacket<RackHandle>>)> {
        let mut nic = self.hosts[host].rack.take()?;
        let RackNic { machine, driver } = &mut *nic;
        let mut sink = RackSink { network: self, driver, now, host, staged: None };
        let result = act(machine, &mut sink);
        let staged = sink.staged;
        self.hosts[host].rack = Some(nic);
        Some((result, staged))
    }

    /// Packet for what the machine of a host wants on the wire.
    fn rack_packet(&mut self, now: Time, host: HostId, staged: ReservePacket<RackHandle>) -> Option<PacketId> {
        match staged {
            ReservePacket::Data { mark, body } => {
                let class = (usize::from(body.class) + 1).min(CLASSES - 1);
                self.packets.get_mut(body.packet).class = class as u8;
                P::write_reserve(self.tags.get_mut(body.packet), mark.map(ReserveHeader::Mark));
                self.thread_is_busy(now, host, mark);
                Some(body.packet)
            }
            ReservePacket::Message(message) => {
                let end = self.way_of(host, &message)?;
                let segment = OutgoingSegment {
                    body: Body::Reservation,
                    len: MIN_FRAME as u16,
                    ecn: Ecn::NotCapable,
                    control: true,
                    level: 0,
                };
                let id = self.packet(now, end, segment);
                self.packets.get_mut(id).class = 0;
                P::write_reserve(self.tags.get_mut(id), Some(ReserveHeader::Message(message)));
                Some(id)
            }
        }
    }

    /// A thread has handed over a packet; after the last one of a burst it has other things to do.
    fn thread_is_busy(&mut self, now: Time, host: HostId, mark: Option<DataMark>) {
        let (Some(nic), Some(mark)) = (&mut self.hosts[host].rack, mark) else { return };
        let driver = &mut nic.driver;
        if driver.software == Span::ZERO || mark.index + 1 < mark.of {
            return;
        }
        let (at, lane) = (now + driver.software, mark.id.context as u8);
        driver.lanes[usize::from(lane)].ready_at = at;
        self.queue.schedule(at, NetworkEvent::ThreadIsFree { host, lane });
    }

    pub(super) fn thread_is_free(&mut self, now: Time, host: HostId, lane: u8) {
        if self.hosts[host].line(lane).has_any() {
            self.hosts[host].fill(lane);
            let port = self.hosts[host].port;
            self.serve(now, port);
        }
    }

    /// An end whose packets take the way that a message is to take: that of the burst, which waits here; of other messages
    /// the latest that was heard of.
    fn way_of(&self, host: HostId, message: &ReserveMessage) -> Option<EndId> {
        let driver = &self.hosts[host].rack.as_ref()?.driver;
        let peer = HostId(message.about.peer.number() as u32);
        let own = match message.verb {
            ReserveVerb::Rsv | ReserveVerb::Release => driver.lanes.get(usize::from(message.about.id.context)),
            _ => None,
        };
        let routes = own.into_iter().flat_map(|lane| &lane.routes).chain(&driver.peers);
        let stands = |route: &&PeerRoute| {
            let connection = &self.flows.connections[route.end.connection()];
            route.peer == peer && connection.number == route.connection && !connection.vacated
        };
        routes.into_iter().find(stands).map(|route| route.end)
    }

    /// A packet has come to a host that reserves.
    pub(super) fn reach_rack(&mut self, now: Time, host: HostId, id: PacketId) {
        if matches!(self.packets.get(id).body, Body::Reservation) {
            return self.answer_comes(now, host, id);
        }
        let body = self.received_handle(host, id);
        let mark = match P::reserve_header(self.tags.get(id)) {
            Some(ReserveHeader::Mark(mark)) => Some(*mark),
            _ => None,
        };
        let frame = ReservePacket::Data { mark, body };
        self.with_rack(now, host, |machine, sink| machine.on_frame(now, HOST_WIRE, frame, sink));
        let Some(nic) = &mut self.hosts[host].rack else { return };
        let mut delivered = std::mem::take(&mut nic.driver.delivered);
        for id in delivered.drain(..) {
            self.pass_up(now, host, id);
        }
        if let Some(nic) = &mut self.hosts[host].rack {
            nic.driver.delivered = delivered;
        }
    }

    /// Remembers the way back to where a packet came from.
    fn hear_of(&mut self, host: HostId, id: PacketId, from: HostId) {
        let end = self.packets.get(id).to();
        let connection = self.flows.connections[end.connection()].number;
        if let Some(nic) = &mut self.hosts[host].rack {
            learn(&mut nic.driver.peers, PeerRoute { peer: from, end, connection });
        }
    }

    fn received_handle(&self, host: HostId, id: PacketId) -> RackHandle {
        let packet = self.packets.get(id);
        let from = self.hosts.ends[packet.route.from()].host;
        RackHandle { packet: id, len: packet.len, class: packet.class, from, to: host }
    }

    /// Takes a message at the interface; the thread that asked gets it a little later.
    fn answer_comes(&mut self, now: Time, host: HostId, id: PacketId) {
        let Some(nic) = &mut self.hosts[host].rack else { return };
        let driver = &mut nic.driver;
        let at = driver.last_answer.max(now + driver.answer.draw(&mut driver.random));
        if at == now {
            return self.rack_answers(now, host, id);
        }
        driver.last_answer = at;
        self.queue.schedule(at, NetworkEvent::RackAnswers { host, packet: id });
    }

    /// A thread has a message of the switch.
    pub(super) fn rack_answers(&mut self, now: Time, host: HostId, id: PacketId) {
        let message = match P::reserve_header(self.tags.get(id)) {
            Some(ReserveHeader::Message(message)) => Some(*message),
            _ => None,
        };
        if let Some(message) = message.filter(|_| !self.hosts[host].dead) {
            if let ReserveVerb::Copy(_) = message.verb {
                let from = self.received_handle(host, id).from;
                self.hear_of(host, id, from);
            }
            let frame = ReservePacket::Message(message);
            self.with_rack(now, host, |machine, sink| machine.on_frame(now, HOST_WIRE, frame, sink));
        }
        self.discard(id);
        let port = self.hosts[host].port;
        self.serve(now, port);
    }

    pub(super) fn rack_timer(&mut self, now: Time, host: HostId, slot: u8) {
        let Some(nic) = &mut self.hosts[host].rack else { return };
        match nic.driver.timers.ring(now, slot) {
            TimerFiring::Nothing => {}
            TimerFiring::Later(at) => self.queue.schedule(at, NetworkEvent::RackTimer { host, slot }),
            TimerFiring::Now(key) => {
                self.with_rack(now, host, |machine, sink| machine.on_timer(now, key, sink));
                let port = self.hosts[host].port;
                self.serve(now, port);
            }
        }
    }
}

/// The world of a host's machine. The caller serves the port afterwards.
struct RackSink<'a, 'p, P: NetworkProgram> {
    network: &'a mut Network<'p, P>,
    driver: &'a mut RackDriver,
    now: Time,
    host: HostId,
    staged: Option<ReservePacket<RackHandle>>,
}

impl<P: NetworkProgram> RackSink<'_, '_, P> {
    fn is_free(&self, lane: QueueId) -> bool {
        self.driver.lanes.get(usize::from(lane.0)).is_some_and(|lane| lane.ready_at <= self.now)
    }
}

impl<P: NetworkProgram> Out<ReservingHost<RackHandle>> for RackSink<'_, '_, P> {
    #[inline]
    fn transmit(&mut self, _port: Port, frame: ReservePacket<RackHandle>) {
        self.staged = Some(frame);
    }

    fn wake(&mut self, _port: Port) {}

    #[inline]
    fn waiting(&self, lane: QueueId) -> bool {
        self.is_free(lane) && self.network.hosts[self.host].line(lane.0).has_any()
    }

    fn take(&mut self, lane: QueueId) -> Option<RackHandle> {
        if !self.is_free(lane) {
            return None;
        }
        let packet = self.network.next_of_host(self.now, self.host, lane.0)?;
        // The machine is at this lane already, and asks for more when it has sent what it takes now.
        self.network.hosts[self.host].filled.retain(|filled| *filled != lane.0);
        let SimPacket { route, len, class, .. } = *self.network.packets.get(packet);
        let (end, to) = (route.from(), self.network.hosts.ends[route.to()].host);
        let connection = self.network.flows.connections[end.connection()].number;
        learn(&mut self.driver.lanes[usize::from(lane.0)].routes, PeerRoute { peer: to, end, connection });
        Some(RackHandle { packet, len, class, from: self.host, to })
    }

    fn keep(&mut self, inner: &RackHandle) -> RackHandle {
        let copy = *self.network.packets.get(inner.packet);
        self.network.hosts.ends[copy.to()].made += 1;
        let packet = self.network.packets.insert(copy);
        self.network.tags.copy(inner.packet, packet);
        RackHandle { packet, ..*inner }
    }

    fn release(&mut self, inner: RackHandle) {
        self.network.discard(inner.packet);
    }

    fn deliver(&mut self, _lane: QueueId, inner: RackHandle) {
        self.driver.delivered.push(inner.packet);
    }

    fn arm(&mut self, key: HostTimer, at: Time) {
        if let Some(slot) = self.driver.timers.arm(key, at) {
            self.network.queue.schedule(at, NetworkEvent::RackTimer { host: self.host, slot });
        }
    }

    fn disarm(&mut self, key: HostTimer) {
        self.driver.timers.disarm(key);
    }

    fn complete(&mut self, (): ()) {}

    fn note(&mut self, (): ()) {}
}

//! Interfaces of hosts, where packets begin and end.

use machine::{Conversation, Pull};
use units::Time;

use roce::Telemetry;

use super::end::{ArrivedSegment, Effects, EndContext, OutgoingSegment};
use super::events::NetworkEvent;
use super::host::SimHost;
use super::index::{EndId, HostId, PacketId};
use super::packet::{RoutePosition, SimPacket};
use super::programs::{EndCall, NetworkProgram};
use super::setup::IntCharge;
use super::transports::Body;
use super::world::Network;
use crate::topology::DirectedLink;

impl<P: NetworkProgram> Network<'_, P> {
    /// A packet has come to the host that it is for.
    pub(super) fn reach_host(&mut self, now: Time, host: HostId, id: PacketId) {
        if self.hosts[host].dead {
            return self.discard(id);
        }
        if self.program.watches_hosts() {
            let packet = self.packets.get_mut(id);
            self.program.on_host_receives(now, packet.came_by.0, packet, self.tags.get_mut(id));
        }
        if P::REPLAYS {
            return self.discard(id);
        }
        if self.hosts[host].reserves {
            return self.reach_rack(now, host, id);
        }
        self.pass_up(now, host, id);
    }

    /// A packet goes up from the interface of a host.
    #[inline]
    pub(super) fn pass_up(&mut self, now: Time, host: HostId, id: PacketId) {
        if self.hosts[host].is_immediate() {
            return self.receive_one(now, host, id);
        }
        if self.hosts[host].processor.is_some() && !self.packets.get(id).body.is_rdma() {
            self.pass_to_processor(now, host, id);
            return;
        }
        if self.packets.get(id).body.is_rdma() {
            let at = if self.flows.has_jobs { self.pipe_of_job(now, host, id) } else { None };
            let at = at.unwrap_or_else(|| self.hosts[host].pipe(now));
            return self.queue.schedule(at, NetworkEvent::PipeEnds { host, packet: id });
        }
        if let Some(at) = self.hosts[host].receive(now, id) {
            self.queue.schedule(at, NetworkEvent::Interrupt { host });
        }
    }

    pub(super) fn receive_one(&mut self, now: Time, host: HostId, id: PacketId) {
        self.hand_over(now, id);
        let port = self.hosts[host].port;
        self.serve(now, port);
    }

    /// A host has processed what its interface received. Segments of a flow that follow each other are processed as one, as
    /// receive offload does, and one acknowledgement is enough for them; what one that does not follow makes its
    /// receiver say is said after what those before it did.
    pub(super) fn host_receives(&mut self, now: Time, host: HostId) {
        let mut received = self.hosts[host].processed();
        let batch = self.hosts[host].batches;
        for id in received.drain(..) {
            let packet = self.packets.get(id);
            let to = packet.to();
            if let Some((seq, len)) = packet.body.in_stream()
                && self.hosts.ends[to].run.takes(batch, seq, len)
            {
                self.answer(now, host, to);
            }
            self.hand_over(now, id);
        }
        self.hosts[host].put_back(received);
        let port = self.hosts[host].port;
        self.serve(now, port);
    }

    /// A packet is handed to the end that it is for.
    #[inline]
    pub(super) fn hand_over(&mut self, now: Time, id: PacketId) {
        let packet = self.packets.remove(id);
        let at = packet.to();
        let end = &mut self.hosts.ends[at];
        if end.over {
            return self.packet_ends(at);
        }
        end.ended += 1;
        let SimPacket { body, ecn, .. } = packet;
        if let Body::Handshake(step) = body {
            self.program.on_call(now, at, EndCall::Shaken, Some(self.tags.get(id)));
            return self.shaken(now, at, step);
        }
        let telemetry = match (body.telemetry(), &self.int) {
            (Telemetry::None, _) | (_, None) => None,
            (what, Some((charge, room))) => {
                let (tag, collects) = (self.tags.get(id), what == Telemetry::Collects);
                let sample = P::telemetry(tag);
                self.observed.outcome.int_bytes += u64::from(charge.bytes(*room, collects, sample));
                if collects {
                    self.echoes.put(at, *tag);
                }
                sample.filter(|_| !collects)
            }
        };
        let arrived = ArrivedSegment { body, ecn, telemetry };
        let around = EndContext { id: at, queue: &mut self.queue, program: &mut *self.program };
        let effects = end.receive(now, arrived, self.tags.get(id), around);
        if let Some(round_trip) = effects.round_trip {
            self.observed.round_trip(round_trip);
        }
        self.follow(now, at, effects);
    }

    /// Carries out the effects of a call to an end; true if the end wants to send. Its host must be served afterwards.
    #[inline]
    pub(super) fn follow(&mut self, now: Time, at: EndId, effects: Effects) -> bool {
        if effects.progress.is_some() {
            self.progress(now, at, effects.progress);
        }
        if effects.others {
            self.hosts.line_up_granted(at);
        }
        let wakes = effects.woken && !self.hosts.ends[at].over;
        if wakes {
            self.hosts.line_up(at, effects.urgent);
        }
        wakes
    }

    pub(super) fn end_timer(&mut self, now: Time, at: EndId, slot: u8) {
        let end = &mut self.hosts.ends[at];
        if end.over {
            return;
        }
        let around = EndContext { id: at, queue: &mut self.queue, program: &mut *self.program };
        let effects = end.ring(now, slot, around);
        let port = self.hosts.port_of(at);
        if self.follow(now, at, effects) {
            self.serve(now, port);
        }
    }

    /// Ends of a host that paced may send again.
    pub(super) fn host_wakes(&mut self, now: Time, host: HostId) {
        if self.hosts[host].wakes_at > now {
            return;
        }
        while let Some(end) = self.hosts.next_woken(now, host) {
            self.hosts.line_up(end, false);
        }
        if let Some(at) = self.hosts.wakes_next(host) {
            self.queue.schedule(at, NetworkEvent::HostWakes { host });
        }
        let port = self.hosts[host].port;
        self.serve(now, port);
    }

    /// Lets an end say what it has to say now, behind what the interface is sending.
    fn answer(&mut self, now: Time, host: HostId, id: EndId) {
        let at = self.hosts[host].port;
        let reserves = self.hosts[host].reserves || self.hosts[host].dead;
        if reserves || self.hosts.is_held(id) || self.fabric.ports[at].protected {
            return;
        }
        let around = EndContext { id, queue: &mut self.queue, program: &mut *self.program };
        let (_, segment) = self.hosts.ends[id].pull(now, around);
        let Some(segment) = segment else { return };
        let packet = self.packet(now, id, segment);
        self.send_behind(now, at, packet);
    }

    /// A packet leaves a host behind what its interface is sending.
    pub(super) fn send_behind(&mut self, now: Time, at: DirectedLink, id: PacketId) {
        let port = &mut self.fabric.ports[at];
        let begin = port.busy_until.max(now);
        port.busy_until = begin + port.sending_time(self.packets.get(id).len);
        self.transmit(begin, at, id);
    }

    /// A packet of a program that replays leaves the host that it is from.
    pub(super) fn send_from_host(&mut self, now: Time, id: PacketId) {
        let from = self.packets.get(id).route.from();
        self.show_sent(now, from, id);
        self.send_behind(now, self.hosts.port_of(from), id);
    }

    /// A packet of an end's segment.
    pub(super) fn packet(&mut self, now: Time, id: EndId, segment: OutgoingSegment) -> PacketId {
        let end = &mut self.hosts.ends[id];
        end.made += 1;
        let packet = self.packets.insert(SimPacket {
            route: RoutePosition::of(id),
            came_by: SimPacket::NOWHERE,
            next: PacketId::NONE,
            len: segment.len,
            class: end.class_of(segment.control, segment.level),
            ecn: segment.ecn,
            body: segment.body,
        });
        match (segment.body.telemetry(), &self.int) {
            (Telemetry::Returns, Some((charge, _))) => {
                let tag = *self.echoes.get(id);
                self.tags.put(packet, tag);
                if *charge == IntCharge::Filled {
                    let hops = P::telemetry(&tag).map_or(0, |sample| sample.hops.len() as u16);
                    self.packets.get_mut(packet).len += IntCharge::HOP * hops;
                }
            }
            _ => self.tags.begin(packet, P::clear),
        }
        if self.program.watches_hosts() {
            self.show_sent(now, id, packet);
        }
        packet
    }

    /// Shows the program a packet that an end has made.
    fn show_sent(&mut self, now: Time, end: EndId, id: PacketId) {
        let connection = &self.flows.connections[end.connection()];
        let (src, dst, flow) = (connection.row.src, connection.row.dst, connection.number);
        let forward = end.is_source();
        let (from, to) = if forward { (src.0, dst.0) } else { (dst.0, src.0) };
        let (who, link) = (Conversation { from, to, flow, forward }, self.hosts.port_of(end));
        self.program.on_host_sends(now, link.0, who, self.packets.get_mut(id), self.tags.get_mut(id));
    }

    /// The next packet of a line of a host that has any, by turns.
    pub(super) fn next_of_host(&mut self, now: Time, host: HostId, lane: u8) -> Option<PacketId> {
        loop {
            let id = self.hosts.next_end(host, lane)?;
            let end = &mut self.hosts.ends[id];
            if end.over {
                self.vacate(id.connection());
                continue;
            }
            let around = EndContext { id, queue: &mut self.queue, program: &mut *self.program };
            let (pull, segment) = end.pull(now, around);
            match pull {
                // It may owe more than one acknowledgement or the like, which all go before data.
                Pull::Sent => {
                    let urgent = segment.is_some_and(|segment| segment.control) && end.owes_control();
                    self.hosts.line_up(id, urgent);
                }
                Pull::Last | Pull::Idle => {}
                Pull::NotBefore(at) => {
                    if let Some(at) = self.hosts.wait_until(id, at) {
                        self.queue.schedule(at, NetworkEvent::HostWakes { host });
                    }
                }
            }
            let Some(segment) = segment else { continue };
            return Some(self.packet(now, id, segment));
        }
    }

    pub(super) fn serve_host(&mut self, now: Time, host: HostId) {
        if self.hosts[host].dead {
            return;
        }
        if self.hosts[host].reserves {
            return self.serve_rack(now, host);
        }
        let at = self.hosts[host].port;
        if let Some(when) = self.hosts[host].holds_data(now) {
            return self.look(now, at, when);
        }
        let Some(id) = self.next_of_host(now, host, 0) else { return self.hosts[host].sent(0) };
        self.hosts[host].sent(self.packets.get(id).len);
        let port = &mut self.fabric.ports[at];
        port.busy_until = now + port.sending_time(self.packets.get(id).len);
        let when = port.busy_until;
        self.transmit(now, at, id);
        if self.hosts.has_any(host) {
            self.look(now, at, when);
        }
    }

    /// A link protocol takes packets from a queue: keeps one there for it.
    pub(super) fn offer(&mut self, now: Time, host: HostId) {
        let at = self.hosts[host].port;
        if self.fabric.ports[at].queues.as_ref().is_some_and(|queues| queues.has_any()) {
            return;
        }
        let SimHost { dead, reserves, .. } = self.hosts[host];
        let next = match (dead, reserves) {
            (true, _) => None,
            (false, true) => self.next_of_rack(now, host),
            (false, false) => self.next_of_host(now, host, 0),
        };
        let Some(id) = next else { return };
        let port = &mut self.fabric.ports[at];
        let time = port.time_of(self.packets.get(id).len);
        if let Some(queues) = &mut port.queues {
            queues.push(&mut self.packets, id, time);
        }
    }

    /// A packet for this end has ended.
    pub(super) fn packet_ends(&mut self, at: EndId) {
        let end = &mut self.hosts.ends[at];
        end.ended += 1;
        if end.over {
            self.vacate(at.connection());
        }
    }
}

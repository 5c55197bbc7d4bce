//! Flows from their start to their end.

use units::{Span, Time};

use super::end::{EndContext, FlowCounters, FlowEnd, FlowProgress};
use super::events::NetworkEvent;
use super::flows::{ConnectionState, SharedQp, row};
use super::handshake::SYN_LEN;
use super::host::SimHost;
use super::index::{ConnectionId, EndId, TrafficId};
use super::outcome::FlowRow;
use super::profile::NetworkProfile;
use super::programs::{BegunConnection, NetworkProgram};
use super::transports::{Handshake, Site};
use super::world::Network;
use crate::topology::{NodeId, Unreachable};
use crate::workload::WorkloadFlow;

impl<P: NetworkProgram> Network<'_, P> {
    pub(super) fn schedule_next_flow(&mut self, traffic: TrafficId, now: Time) {
        if let Some(at) = self.flows.sources[traffic].prepare(now) {
            self.queue.schedule(at, NetworkEvent::FlowStarts { traffic });
        }
    }

    pub(super) fn flow_starts(&mut self, now: Time, traffic: TrafficId) -> Result<(), Unreachable> {
        let source = &mut self.flows.sources[traffic];
        if source.job.is_some() {
            return self.start_transfers(now, traffic);
        }
        let Some(flow) = source.take_next() else { return Ok(()) };
        let is_series = source.is_series();
        let shared = source.shared(&flow, traffic, 0);
        let shakes = self.flows.handshakes && source.traffic.transport.shakes_hands();
        let standing = shared.and_then(|shared| self.flows.standing.get(&shared).copied());
        let connection = match standing {
            Some(connection) => {
                self.join(now, connection, &flow);
                connection
            }
            None => {
                let connection = self.connect(now, traffic, &flow, shared, None)?;
                self.flows.standing.extend(shared.map(|shared| (shared, connection)));
                connection
            }
        };
        self.flows.active += 1;
        if !is_series {
            self.schedule_next_flow(traffic, now);
        }
        if shakes && standing.is_none() {
            self.shake(now, connection);
        } else {
            self.first_bytes(now, connection, flow.bytes);
        }
        Ok(())
    }

    /// A connection stands, and its flow begins to send.
    pub(super) fn first_bytes(&mut self, now: Time, connection: ConnectionId, bytes: u64) {
        let end = connection.source();
        let flow = &mut self.flows.connections[connection];
        if flow.acknowledged {
            flow.row.start = now;
        }
        let (mut left, message) = (bytes, self.flows.connections[connection].message);
        loop {
            let around = EndContext { id: end, queue: &mut self.queue, program: &mut *self.program };
            let effects = self.hosts.ends[end].send(now, left.min(message), around);
            self.follow(now, end, effects);
            left = left.saturating_sub(message);
            if left == 0 {
                break;
            }
        }
        let port = self.hosts.port_of(end);
        self.serve(now, port);
    }

    /// Lets a flow share a connection that stands.
    pub(super) fn join(&mut self, now: Time, id: ConnectionId, flow: &WorkloadFlow) {
        let [there, back] = id.ends().map(|end| self.fabric.route(end, self.hosts.port_of(end)));
        let connection = &self.flows.connections[id];
        let (source, reply) = (connection.source, connection.reply);
        let transport = &self.flows.sources[source].traffic.transport;
        let ideal = self.fabric.ideal_flow([&there, &back], transport, flow.bytes, reply);
        let is_cut = self.fabric.profile == NetworkProfile::HpccNs3;
        self.flows.join(id, FlowRow { ideal, is_cut, ..row(now, source, flow) });
    }

    /// A connection begins, with both its ends and the routes between them. What chooses its path and seeds its machines may be
    /// `drawn` already.
    pub(super) fn connect(
        &mut self,
        now: Time,
        source: TrafficId,
        flow: &WorkloadFlow,
        shared: Option<SharedQp>,
        drawn: Option<(u64, u32)>,
    ) -> Result<ConnectionId, Unreachable> {
        let (id, drawn, seed) = self.flows.draw(drawn);
        let hashes = self.flows.hashes(self.fabric.profile, drawn, flow);
        let [from, to] = id.ends();
        let nodes = [flow.src, flow.dst];
        let hosts = nodes.map(|node| self.hosts.at(node));
        let there = self.fabric.write_route(from, nodes, hosts[1], hashes[0])?;
        let back = self.fabric.write_route(to, [flow.dst, flow.src], hosts[0], hashes[1])?;
        let traffic = &self.flows.sources[source].traffic;
        let transport = &traffic.transport;
        let round_trip = self.fabric.ideal(&there, transport, 1) + self.fabric.ideal(&back, transport, 1);
        let round_trip = round_trip + self.typical_latency(flow.src) + self.typical_latency(flow.dst);
        for ((end, host), peer) in id.ends().into_iter().zip(hosts).zip([flow.dst, flow.src]) {
            let port = self.hosts[host].port;
            let SimHost { nic, grants, .. } = &mut self.hosts[host];
            let mut site = Site {
                now,
                round_trip,
                base_rtt: self.base_rtt.unwrap_or(round_trip),
                line_rate: self.fabric.ports[port].rate(),
                hops: there.len() as u32 - 1,
                seed,
                nic,
                grants,
                end: end.0,
                peer: peer.0,
            };
            let machine = transport.connect(&mut site);
            let ack_class = traffic.ack_class.unwrap_or(traffic.class);
            let lane = match &mut self.hosts[host].rack {
                None => 0,
                Some(rack) if end == from => rack.deal(hosts[1], 0),
                Some(rack) => rack.deal(hosts[0], 1),
            };
            self.hosts.ends.put(end, FlowEnd { lane, ..FlowEnd::new(machine, host, traffic.class, ack_class) });
        }
        let shaking = if self.flows.handshakes && transport.shakes_hands() && !traffic.acknowledged {
            self.fabric.trip(&there, SYN_LEN) + self.fabric.trip(&back, SYN_LEN)
        } else {
            Span::ZERO
        };
        let ideal = self.fabric.ideal_flow([&there, &back], transport, flow.bytes, traffic.reply) + shaking;
        let is_cut = self.fabric.profile == NetworkProfile::HpccNs3;
        let row = FlowRow { ideal, is_cut, ..row(now, source, flow) };
        let state = ConnectionState::new(row, source, shared, traffic, hashes);
        let number = self.flows.begin(id, state);
        let transport = &self.flows.sources[source].traffic.transport;
        let hosts = [flow.src, flow.dst];
        self.program.on_connect(now, &BegunConnection { id, number, hosts, transport, round_trip, seed });
        Ok(id)
    }

    /// Typical time that a host adds to a round trip.
    pub(super) fn typical_latency(&self, node: NodeId) -> Span {
        self.hosts[self.hosts.at(node)].typical_latency()
    }

    /// An end's machine has reported something.
    pub(super) fn progress(&mut self, now: Time, at: EndId, progress: FlowProgress) {
        let (id, starts) = (at.connection(), at.is_source());
        if progress.failed {
            return self.connection_fails(now, id);
        }
        if let Some(bytes) = progress.received
            && !starts
        {
            self.count_received(id, bytes);
        }
        if let Some(placed) = progress.placed.filter(|_| !starts && self.flows.connections[id].lane.is_some()) {
            self.transfers_arrive(now, id, placed);
        }
        loop {
            let flow = &self.flows.connections[id];
            let all_there = flow.row.received >= flow.row.bytes;
            let done = match (starts, flow.reply) {
                (true, _) if flow.acknowledged => {
                    progress.acknowledged.filter(|bytes| *bytes >= flow.row.bytes).map(|_| 1)
                }
                (false, _) if flow.acknowledged => None,
                // The sender knows what has arrived, and the reply that came back.
                (true, 0) => progress.completed,
                (true, _) => progress.placed.or(progress.received.filter(|bytes| *bytes >= flow.reply).map(|_| 1)),
                // A stream may have the next flow's first bytes, too.
                (false, 0) => all_there.then_some(flow.done + 1),
                (false, _) => {
                    let placed = progress.placed.unwrap_or(u64::from(all_there));
                    return self.answer_flows(now, at, placed);
                }
            };
            let is_done = done.is_some_and(|done| flow.done + flow.messages() <= done);
            if !is_done || !flow.under_way {
                return;
            }
            self.flow_ends(now, id);
            if let Some(bytes) = progress.received
                && !starts
            {
                self.count_received(id, bytes);
            }
        }
    }

    /// Counts what has arrived in order at connections whose transport does not report it.
    pub(super) fn count_arrived(&mut self) {
        for id in self.flows.connections.numbers() {
            if !self.flows.connections[id].over {
                self.count_arrived_at(id);
            }
        }
    }

    fn count_arrived_at(&mut self, id: ConnectionId) {
        let end = &mut self.hosts.ends[id.destination()];
        let Some(bytes) = end.received_bytes() else { return };
        self.observed.received[self.flows.connections[id].source] += bytes - end.counted;
        end.counted = bytes;
    }

    /// These bytes of a stream have arrived, of flows before included: those of the flow under way count.
    fn count_received(&mut self, id: ConnectionId, bytes: u64) {
        let flow = &mut self.flows.connections[id];
        if !flow.under_way {
            return;
        }
        let of_flow = bytes.saturating_sub(flow.before);
        let bytes = if flow.shared.is_some() { of_flow.min(flow.row.bytes) } else { of_flow };
        self.observed.received[flow.source] += bytes.saturating_sub(flow.row.received);
        flow.row.received = bytes;
    }

    /// The receiver has `placed` messages in all: answers those that are new.
    fn answer_flows(&mut self, now: Time, at: EndId, placed: u64) {
        let flow = &mut self.flows.connections[at.connection()];
        let (new, reply) = (placed.saturating_sub(flow.answered), flow.reply);
        flow.answered += new;
        for _ in 0..new {
            let around = EndContext { id: at, queue: &mut self.queue, program: &mut *self.program };
            let effects = self.hosts.ends[at].send(now, reply, around);
            self.follow(now, at, effects);
        }
    }

    /// The flow under way is over; the next one that shares its connection is under way.
    fn flow_ends(&mut self, now: Time, id: ConnectionId) {
        let flow = &mut self.flows.connections[id];
        flow.done += flow.messages();
        flow.row.finish = (!flow.row.failed).then_some(now);
        let source = flow.source;
        let bytes = flow.row.bytes;
        let finished = flow.row.finish.is_some();
        if self.hosts.ends[id.destination()].received_bytes().is_some() {
            self.count_arrived_at(id);
        } else if finished {
            let all = self.flows.connections[id].before + bytes;
            self.count_received(id, all);
        }
        if finished {
            self.flows.connections[id].row.received = bytes;
        }
        self.write_row(id);
        self.flows.active -= 1;
        if self.flows.connections[id].lane.is_some() {
            if finished {
                self.transfer_ends(now, id);
            }
        } else if self.flows.sources[source].is_series() {
            self.schedule_next_flow(source, now);
        }
        let flow = &mut self.flows.connections[id];
        if !flow.next_flow() && flow.shared.is_none() {
            self.close(now, id);
        }
    }

    /// All flows that a connection carries have failed; the next to come begins another.
    pub(super) fn connection_fails(&mut self, now: Time, id: ConnectionId) {
        self.fail_job(now, id);
        if let Some(shared) = self.flows.connections[id].shared.take() {
            self.flows.standing.remove(&shared);
        }
        while self.flows.connections[id].under_way {
            self.flows.connections[id].row.failed = true;
            self.flow_ends(now, id);
        }
        // Nobody may have been using it, when dummies or the last answer failed.
        if !self.flows.connections[id].over {
            self.close(now, id);
        }
    }

    /// Records the progress of the flow under way.
    fn write_row(&mut self, id: ConnectionId) {
        let mut counters = FlowCounters::default();
        for end in id.ends() {
            counters += self.hosts.ends[end].counters;
        }
        let arrived = self.hosts.ends[id.destination()].received_bytes();
        let flow = &mut self.flows.connections[id];
        flow.under_way = false;
        if let Some(arrived) = arrived {
            flow.row.received = arrived.saturating_sub(flow.before).min(flow.row.bytes);
        }
        flow.before += flow.row.bytes;
        if flow.lane.as_ref().is_none_or(|lane| lane.has_flows) {
            self.observed.outcome.flows.push(FlowRow { tally: counters.since(&flow.reported), ..flow.row });
        }
        flow.reported = counters;
    }

    /// Ends a connection.
    fn close(&mut self, now: Time, id: ConnectionId) {
        let connection = &mut self.flows.connections[id];
        connection.over = true;
        self.program.on_close(id);
        let source = connection.source;
        self.observed.connection_ended(&connection.reported);
        if self.flows.fins && self.flows.sources[source].traffic.transport.shakes_hands() {
            id.ends().into_iter().for_each(|end| self.say(now, end, Handshake::Fin));
        }
        self.count_resets(id);
        for (side, end) in id.ends().into_iter().enumerate() {
            let FlowEnd { host, lane, .. } = self.hosts.ends[end];
            self.hosts.ends[end].close();
            self.hosts.line_up_granted(end);
            if let Some(rack) = &mut self.hosts[host].rack {
                rack.leave(lane, side);
            }
        }
        self.vacate(id);
    }

    fn count_resets(&mut self, id: ConnectionId) {
        let resets = id.ends().map(|end| self.hosts.ends[end].telemetry_resets());
        self.observed.outcome.int_resets += resets.iter().sum::<u64>();
    }

    /// Writes down all flows that are not over.
    pub(super) fn end_all_flows(&mut self) {
        for id in self.flows.connections.numbers() {
            if !self.flows.connections[id].over {
                self.count_resets(id);
            }
            while self.flows.connections[id].under_way {
                self.write_row(id);
                self.flows.connections[id].next_flow();
            }
        }
    }

    /// Frees the number of a connection if its last packet has ended.
    pub(super) fn vacate(&mut self, id: ConnectionId) {
        if self.hosts.is_vacant(id) {
            self.flows.vacate(id);
        }
    }
}

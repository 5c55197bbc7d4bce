//! Flows, from their start to their end.
//!
//! A flow takes a place with two ends, the even one where it starts. The place is used again when the flow is over and
//! the last of its packets has come to an end, so that no packet ever meets another flow's connection or route.

use machine::SwitchProgram;
use transport::{roce, tcp};
use units::{Span, Time};
use wire::ethernet::on_wire;

use super::end::{After, End, Progress, Tally, Transport};
use super::events::Event;
use super::forwarding::TO_HOST;
use super::outcome::FlowRow;
use super::packet::{MOST_HOPS, Packet};
use super::raw;
use super::setup::{Traffic, TransportSetup};
use super::world::Network;
use crate::topology::{DirectedLink, NodeId, Unreachable};
use crate::workload::{Flow, Series, Workload};

/// Hops of both ways of a flow.
const HOPS: usize = 2 * MOST_HOPS as usize;

/// Where flows of one kind come from.
#[derive(Debug)]
pub struct Source {
    pub traffic: Traffic,
    begun: u64,
    next: Option<Flow>,
    exhausted: bool,
}

impl Source {
    pub fn new(traffic: Traffic) -> Self {
        Self { traffic, begun: 0, next: None, exhausted: false }
    }

    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Finds the next flow; when it begins, if there is one.
    fn prepare(&mut self, now: Time) -> Option<Time> {
        let next = match &mut self.traffic.work {
            Workload::Open(flows) => flows.next(),
            Workload::Series(series) => next_of(series, self.begun, now),
        };
        self.exhausted = next.is_none();
        self.next = next;
        self.next.as_ref().map(|flow| flow.start.max(now))
    }

    fn is_series(&self) -> bool {
        matches!(self.traffic.work, Workload::Series(_))
    }
}

fn next_of(series: &Series, begun: u64, now: Time) -> Option<Flow> {
    let start = if begun == 0 { now } else { now + series.gap };
    let Series { src, dst, bytes, count, group, .. } = *series;
    (begun < count).then_some(Flow { start, src, dst, bytes, group })
}

/// A flow that has begun.
#[derive(Debug)]
pub struct FlowState {
    row: FlowRow,
    source: u32,
    reply: u64,
    answered: bool,
    over: bool,
    /// In the order of starts.
    number: u32,
}

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    pub(super) fn schedule_next_flow(&mut self, traffic: u32, now: Time) {
        if let Some(at) = self.sources[traffic as usize].prepare(now) {
            self.queue.schedule(at, Event::FlowStarts { traffic });
        }
    }

    pub(super) fn flow_starts(&mut self, now: Time, traffic: u32) -> Result<(), Unreachable> {
        let source = &mut self.sources[traffic as usize];
        let Some(flow) = source.next.take() else { return Ok(()) };
        source.begun += 1;
        let is_series = source.is_series();
        let place = self.place(now, traffic, &flow)?;
        self.active += 1;
        if !is_series {
            self.schedule_next_flow(traffic, now);
        }
        let end = place * 2;
        let after = self.ends[end as usize].send(now, end, flow.bytes, &mut self.queue);
        self.after(now, end, after);
        let port = self.hosts[self.ends[end as usize].host as usize].port;
        self.serve(now, port);
        Ok(())
    }

    /// Gives a flow a place, with both its ends and the routes between them.
    fn place(&mut self, now: Time, traffic: u32, flow: &Flow) -> Result<u32, Unreachable> {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.hops.resize(self.hops.len() + HOPS, 0);
            (self.hops.len() / HOPS) as u32 - 1
        });
        let (hash, seed) = (self.flow_random.below(u64::MAX), self.flow_random.below(u64::from(u32::MAX)) as u32);
        let at = place as usize * HOPS;
        let there = self.write_route(flow.src, flow.dst, hash, at)?;
        let back = self.write_route(flow.dst, flow.src, hash, at + HOPS / 2)?;
        let Traffic { transport, reply, class, .. } = &self.sources[traffic as usize].traffic;
        let (transport, reply, class) = (transport.clone(), *reply, *class);
        let round_trip = self.ideal(&there, &transport, 1) + self.ideal(&back, &transport, 1);
        let handshake = round_trip + self.host_round_trip(flow);
        for (side, from) in [flow.src, flow.dst].into_iter().enumerate() {
            let machine = machine(&transport, now, handshake, seed);
            let end = End::new(machine, self.numbers[from.index()], (at + side * HOPS / 2) as u32, place, class);
            put(&mut self.ends, place as usize * 2 + side, end);
        }
        let ideal = self.ideal(&there, &transport, flow.bytes) + self.ideal_answer(&back, &transport, reply);
        let row = FlowRow {
            traffic: traffic as u16,
            group: flow.group,
            src: flow.src,
            dst: flow.dst,
            bytes: flow.bytes,
            start: now,
            finish: None,
            ideal,
            received: 0,
            failed: false,
            tally: Tally::default(),
        };
        let state = FlowState { row, source: traffic, reply, answered: false, over: false, number: self.begun };
        self.begun += 1;
        put(&mut self.flows, place as usize, state);
        Ok(place)
    }

    /// What the hosts add to a round trip, typically.
    fn host_round_trip(&self, flow: &Flow) -> Span {
        let latency = |node: NodeId| self.hosts[self.numbers[node.index()] as usize].typical_latency();
        latency(flow.src) + latency(flow.dst)
    }

    /// Writes a route where its packets will look for it: the hops behind the first port, then the host.
    fn write_route(
        &mut self,
        from: NodeId,
        to: NodeId,
        hash: u64,
        at: usize,
    ) -> Result<Vec<DirectedLink>, Unreachable> {
        let mut path = Vec::new();
        self.routes.path(from, to, hash, &mut path)?;
        assert!(path.len() < HOPS / 2 && !path.is_empty(), "a route of {} hops", path.len());
        for (slot, hop) in self.hops[at..].iter_mut().zip(path.iter().skip(1)) {
            *slot = hop.0;
        }
        self.hops[at + path.len() - 1] = TO_HOST | self.numbers[to.index()];
        Ok(path)
    }

    /// What so many bytes take along a path that is theirs alone: the first packet hop by hop, the rest behind it at the
    /// slowest hop's rate.
    fn ideal(&self, path: &[DirectedLink], transport: &TransportSetup, bytes: u64) -> Span {
        let (payload, full) = transport.packet();
        let (headers, extra) = (full - payload, transport.longest_frame() - full);
        let packets = bytes.div_ceil(u64::from(payload)).max(1);
        let last = (bytes - (packets - 1) * u64::from(payload)) as u32;
        let (first, rest) = match packets {
            1 => (last + headers, 0),
            _ => {
                let between = (packets - 2).saturating_mul(u64::from(on_wire(full)));
                (full, between.saturating_add(u64::from(on_wire(last + headers))))
            }
        };
        let mut slowest = Span::ZERO;
        let mut sum = Span::ZERO;
        for hop in path {
            let port = &self.ports[hop.index()];
            sum += port.flight + port.time_of((first + extra) as u16);
            slowest = slowest.max(port.time_of_bytes(rest));
        }
        sum + slowest
    }

    /// What the sender waits for besides: an answer, or of RDMA an acknowledgement.
    fn ideal_answer(&self, path: &[DirectedLink], transport: &TransportSetup, reply: u64) -> Span {
        match (transport, reply) {
            (TransportSetup::Roce(_), _) => {
                let hop = |hop: &DirectedLink| {
                    let port = &self.ports[hop.index()];
                    port.flight + port.time_of(roce::ACK_LEN as u16)
                };
                path.iter().map(hop).fold(Span::ZERO, |sum, span| sum + span)
            }
            (_, 0) => Span::ZERO,
            (_, reply) => self.ideal(path, transport, reply),
        }
    }

    /// A packet is handed to the end that it is for.
    #[inline]
    pub(super) fn hand_over(&mut self, now: Time, id: u32) {
        let packet = self.packets.remove(id);
        let at = packet.to();
        let end = &mut self.ends[at as usize];
        if end.over {
            return self.packet_ends(at);
        }
        end.ended += 1;
        let after = end.receive(now, at, packet.body, packet.ecn, &mut self.queue);
        self.after(now, at, after);
    }

    pub(super) fn end_timer(&mut self, now: Time, at: u32, slot: u8) {
        let end = &mut self.ends[at as usize];
        if end.over {
            return;
        }
        let after = end.ring(now, at, slot, &mut self.queue);
        let host = end.host;
        if self.after(now, at, after) {
            let port = self.hosts[host as usize].port;
            self.serve(now, port);
        }
    }

    pub(super) fn end_wakes(&mut self, now: Time, at: u32) {
        let end = &mut self.ends[at as usize];
        if end.wake_at <= now {
            end.wake_at = Time::NEVER;
        }
        let host = end.host;
        if self.after(now, at, After { woken: true, ..After::default() }) {
            let port = self.hosts[host as usize].port;
            self.serve(now, port);
        }
    }

    /// What a call to an end leads to; true if it wants to send. Its host is to be served afterwards.
    #[inline]
    fn after(&mut self, now: Time, at: u32, after: After) -> bool {
        if after.progress.is_some() {
            self.progress(now, at, after.progress);
        }
        let end = &mut self.ends[at as usize];
        let wakes = after.woken && !end.over;
        if wakes && !end.ready {
            end.ready = true;
            self.hosts[end.host as usize].ready.push_back(at);
        }
        wakes
    }

    fn progress(&mut self, now: Time, at: u32, progress: Progress) {
        let (end, starts) = (&mut self.ends[at as usize], at.is_multiple_of(2));
        let flow = &mut self.flows[end.flow as usize];
        if let Some(bytes) = progress.received
            && !starts
        {
            self.received[flow.source as usize] += bytes - flow.row.received;
            flow.row.received = bytes;
        }
        if progress.completed.is_some() {
            self.received[flow.source as usize] += flow.row.bytes;
            flow.row.received = flow.row.bytes;
        }
        let all_there = flow.row.received >= flow.row.bytes;
        let is_complete = match (starts, flow.reply) {
            (true, 0) => progress.completed.is_some(),
            (true, reply) => progress.received.is_some_and(|bytes| bytes >= reply),
            (false, 0) => all_there,
            (false, _) => false,
        };
        if is_complete || progress.failed {
            flow.row.failed = progress.failed;
            return self.flow_ends(now, at / 2);
        }
        if !starts && all_there && !flow.answered {
            flow.answered = true;
            let reply = flow.reply;
            let after = end.send(now, at, reply, &mut self.queue);
            self.after(now, at, after);
        }
    }

    fn flow_ends(&mut self, now: Time, place: u32) {
        let flow = &mut self.flows[place as usize];
        if flow.over {
            return;
        }
        flow.over = true;
        flow.row.finish = (!flow.row.failed).then_some(now);
        let source = flow.source;
        self.close(place);
        self.active -= 1;
        if self.sources[source as usize].is_series() {
            self.schedule_next_flow(source, now);
        }
        self.vacate(place);
    }

    /// Ends a flow's connections and writes its row.
    fn close(&mut self, place: u32) {
        let mut tally = Tally::default();
        for at in [place * 2, place * 2 + 1] {
            let end = &mut self.ends[at as usize];
            end.over = true;
            tally.add(&end.tally);
        }
        self.retransmitted += u64::from(tally.retransmitted);
        self.timeouts += u64::from(tally.timeouts);
        let row = FlowRow { tally, ..self.flows[place as usize].row };
        self.outcome.flows.push(row);
    }

    pub(super) fn end_all_flows(&mut self) {
        for place in 0..self.flows.len() {
            if !self.flows[place].over {
                self.flows[place].over = true;
                self.close(place as u32);
            }
        }
    }

    /// The hosts at which a flow begins and ends, and its number.
    pub(super) fn flow_of(&self, place: u32) -> (NodeId, NodeId, u32) {
        let flow = &self.flows[place as usize];
        (flow.row.src, flow.row.dst, flow.number)
    }

    /// A packet for this end came to its own.
    pub(super) fn packet_ends(&mut self, at: u32) {
        let end = &mut self.ends[at as usize];
        end.ended += 1;
        if end.over {
            self.vacate(at / 2);
        }
    }

    pub(super) fn vacate(&mut self, place: u32) {
        let [a, b] = [0, 1].map(|side| &self.ends[(place * 2 + side) as usize]);
        // An end that still waits for its turn is looked at once more.
        if a.made + b.made == a.ended + b.ended && !a.ready && !b.ready {
            self.vacant.push(place);
        }
    }
}

/// Into the place of a list, or behind its last.
fn put<T>(list: &mut Vec<T>, at: usize, item: T) {
    match list.get_mut(at) {
        Some(slot) => *slot = item,
        None => list.push(item),
    }
}

fn machine(setup: &TransportSetup, now: Time, round_trip: Span, seed: u32) -> Transport {
    match setup {
        TransportSetup::Tcp(config) => {
            let handshake_rtt = config.handshake_rtt.or(Some(round_trip));
            Transport::tcp(tcp::Connection::new(&tcp::Config { seed, handshake_rtt, ..*config }, now))
        }
        TransportSetup::Roce(config) => Transport::roce(roce::Qp::new(*config)),
        TransportSetup::Raw(config) => Transport::raw(raw::Generator::new(*config)),
    }
}

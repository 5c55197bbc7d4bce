//! Flows begin: where they come from, the connections that carry them, their routes.
//!
//! A connection takes a place with two ends, the even one where its flows start. Most carry one flow. The place is used
//! again when that is over and the last of its packets has come to an end, so that no packet ever meets another
//! connection or route. Flows may also share queue pairs; such a pair keeps its place, and carries its flows in turn.

use std::collections::{BTreeMap, VecDeque};

use machine::SwitchProgram;
use transport::roce::melo::Nic;
use transport::roce::selective::{self, Connection};
use transport::{roce, tcp};
use units::{Span, Time};
use wire::ethernet::on_wire;

use super::end::{End, Tally, Transport};
use super::events::Event;
use super::forwarding::TO_HOST;
use super::handshake::SYN_LEN;
use super::outcome::FlowRow;
use super::packet::{MOST_HOPS, Packet};
use super::raw;
use super::setup::{Memory, Traffic, TransportSetup};
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
    begun_bytes: u64,
    next: Option<Flow>,
    exhausted: bool,
    /// Which queue pair the next flow between two hosts takes, where flows share them.
    turns: BTreeMap<(u32, u32), u32>,
}

impl Source {
    pub fn new(traffic: Traffic) -> Self {
        Self { traffic, begun: 0, begun_bytes: 0, next: None, exhausted: false, turns: BTreeMap::new() }
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

    /// How many bytes all of its flows will have, going by those that have begun; `None` if that cannot be known yet.
    pub fn expected_bytes(&self) -> Option<f64> {
        let left = match &self.traffic.work {
            Workload::Open(flows) => flows.expected_left()? + f64::from(u8::from(self.next.is_some())),
            Workload::Series(series) => series.count.saturating_sub(self.begun) as f64,
        };
        let begun = (self.begun > 0).then_some(self.begun as f64)?;
        Some(self.begun_bytes as f64 * (1.0 + left / begun))
    }

    pub fn is_series(&self) -> bool {
        matches!(self.traffic.work, Workload::Series(_))
    }

    /// The queue pair that a flow is to share with others, if any: those between two hosts take turns.
    fn shared(&mut self, flow: &Flow, traffic: u32) -> Option<Shared> {
        let pairs = self.traffic.queue_pairs?;
        let turn = self.turns.entry((flow.src.0, flow.dst.0)).or_default();
        let pair = *turn % pairs.max(1);
        *turn = pair + 1;
        Some(Shared { traffic, src: flow.src.0, dst: flow.dst.0, pair })
    }
}

fn next_of(series: &Series, begun: u64, now: Time) -> Option<Flow> {
    let start = if begun == 0 { now } else { now + series.gap };
    let Series { src, dst, bytes, count, group, .. } = *series;
    (begun < count).then_some(Flow { start, src, dst, bytes, group })
}

/// What a connection carries.
#[derive(Debug)]
pub struct FlowState {
    /// The flow that is under way, or was.
    pub row: FlowRow,
    pub under_way: bool,
    /// Flows that share the connection and wait for their turn.
    pub behind: VecDeque<FlowRow>,
    /// Where to find the connection if others are to share it.
    pub shared: Option<Shared>,
    pub source: u32,
    pub reply: u64,
    /// The most bytes of one message; a flow with more is several.
    pub message: u64,
    /// Messages that have been answered, and such as are done with.
    pub answered: u64,
    pub done: u64,
    /// What had happened at both ends when the last flow ended.
    pub told: Tally,
    pub over: bool,
    /// The place is free.
    pub vacated: bool,
    /// In the order of starts.
    pub number: u32,
    /// If its handshake is under way: when it is tried again, and how long was waited for this time.
    pub handshake: Option<(Time, Span)>,
    /// What equal paths are chosen by.
    pub hash: u64,
}

impl FlowState {
    /// As many as the flow under way is made of.
    pub fn messages(&self) -> u64 {
        self.row.bytes.div_ceil(self.message).max(1)
    }
}

/// A queue pair that flows share: which traffic's, between which hosts, which of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shared {
    traffic: u32,
    src: u32,
    dst: u32,
    pair: u32,
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
        source.begun_bytes = source.begun_bytes.saturating_add(flow.bytes);
        let is_series = source.is_series();
        let shared = source.shared(&flow, traffic);
        let standing = shared.and_then(|shared| self.standing.get(&shared).copied());
        let place = match standing {
            Some(place) => {
                self.join(now, place, &flow);
                place
            }
            None => {
                let place = self.place(now, traffic, &flow, shared)?;
                self.standing.extend(shared.map(|shared| (shared, place)));
                place
            }
        };
        self.active += 1;
        if !is_series {
            self.schedule_next_flow(traffic, now);
        }
        if self.shakes(&self.sources[traffic as usize].traffic.transport) {
            self.shake(now, place);
        } else {
            self.first_bytes(now, place, flow.bytes);
        }
        Ok(())
    }

    /// A connection stands, and its flow begins to send.
    pub(super) fn first_bytes(&mut self, now: Time, place: u32, bytes: u64) {
        let end = place * 2;
        let (mut left, message) = (bytes, self.flows[place as usize].message);
        loop {
            let after = self.ends[end as usize].send(now, end, left.min(message), &mut self.queue);
            self.after(now, end, after);
            left = left.saturating_sub(message);
            if left == 0 {
                break;
            }
        }
        let port = self.hosts[self.ends[end as usize].host as usize].port;
        self.serve(now, port);
    }

    /// Lets a flow share a connection that stands.
    fn join(&mut self, now: Time, place: u32, flow: &Flow) {
        let at = place as usize * HOPS;
        let path = |from: NodeId, at: usize| {
            let first = self.hosts[self.numbers[from.index()] as usize].port;
            let hops = self.hops[at..].iter().take_while(|hop| **hop & TO_HOST == 0);
            std::iter::once(first).chain(hops.copied()).map(DirectedLink).collect::<Vec<_>>()
        };
        let (there, back) = (path(flow.src, at), path(flow.dst, at + HOPS / 2));
        let state = &self.flows[place as usize];
        let transport = self.sources[state.source as usize].traffic.transport.clone();
        let ideal = self.ideal(&there, &transport, flow.bytes) + self.ideal_answer(&back, &transport, state.reply);
        let row = FlowRow { ideal, ..row(now, state.source, flow) };
        let state = &mut self.flows[place as usize];
        if state.under_way {
            state.behind.push_back(row);
        } else {
            (state.row, state.under_way) = (row, true);
        }
    }

    /// Gives a connection a place, with both its ends and the routes between them.
    fn place(&mut self, now: Time, traffic: u32, flow: &Flow, shared: Option<Shared>) -> Result<u32, Unreachable> {
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
            let host = self.numbers[from.index()];
            let nic = &mut self.hosts[host as usize].nic;
            let machine = machine(&transport, nic, now, handshake, seed);
            let end = End::new(machine, host, (at + side * HOPS / 2) as u32, place, class);
            put(&mut self.ends, place as usize * 2 + side, end);
        }
        let shaking =
            if self.shakes(&transport) { self.trip(&there, SYN_LEN) + self.trip(&back, SYN_LEN) } else { Span::ZERO };
        let ideal = self.ideal(&there, &transport, flow.bytes) + self.ideal_answer(&back, &transport, reply);
        let ideal = ideal + shaking;
        let state = FlowState {
            row: FlowRow { ideal, ..row(now, traffic, flow) },
            under_way: true,
            behind: VecDeque::new(),
            shared,
            source: traffic,
            reply,
            message: transport.largest_message(),
            answered: 0,
            done: 0,
            told: Tally::default(),
            over: false,
            vacated: false,
            number: self.begun,
            handshake: None,
            hash,
        };
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

    /// What a frame of this length takes along a path that is its alone.
    fn trip(&self, path: &[DirectedLink], len: u32) -> Span {
        let hop = |hop: &DirectedLink| {
            let port = &self.ports[hop.index()];
            port.flight + port.time_of(len as u16)
        };
        path.iter().map(hop).fold(Span::ZERO, |sum, span| sum + span)
    }

    /// Whether connections of a transport begin with a handshake.
    fn shakes(&self, transport: &TransportSetup) -> bool {
        self.handshakes && matches!(transport, TransportSetup::Tcp(_))
    }

    /// What the sender waits for besides: an answer, or of RDMA an acknowledgement.
    fn ideal_answer(&self, path: &[DirectedLink], transport: &TransportSetup, reply: u64) -> Span {
        match (transport, reply) {
            (transport, 0) if transport.is_rdma() => self.trip(path, roce::ACK_LEN),
            (_, 0) => Span::ZERO,
            (_, reply) => self.ideal(path, transport, reply),
        }
    }
}

/// A flow that begins now, all but what it would take alone.
fn row(now: Time, traffic: u32, flow: &Flow) -> FlowRow {
    FlowRow {
        traffic: traffic as u16,
        group: flow.group,
        src: flow.src,
        dst: flow.dst,
        bytes: flow.bytes,
        start: now,
        finish: None,
        ideal: Span::ZERO,
        received: 0,
        failed: false,
        tally: Tally::default(),
    }
}

/// Into the place of a list, or behind its last.
fn put<T>(list: &mut Vec<T>, at: usize, item: T) {
    match list.get_mut(at) {
        Some(slot) => *slot = item,
        None => list.push(item),
    }
}

/// A connection's machine at a host; the first that shares bits there brings the pool along.
fn machine(setup: &TransportSetup, nic: &mut Option<Nic<u16>>, now: Time, round_trip: Span, seed: u32) -> Transport {
    // As NICs do: connections that begin alike would be taken for each other by a switch that knows only PSNs.
    let first_psn = roce::Psn::new(seed);
    match setup {
        TransportSetup::Tcp(config) => {
            let handshake_rtt = config.handshake_rtt.or(Some(round_trip));
            Transport::tcp(tcp::Connection::new(&tcp::Config { seed, handshake_rtt, ..*config }, now))
        }
        TransportSetup::Roce(config) => Transport::roce(roce::Qp::new(roce::Config { first_psn, ..*config })),
        TransportSetup::Selective(config, Memory::Own(timeouts)) => {
            Transport::irn(Connection::irn(selective::Config { first_psn, ..*config }, *timeouts))
        }
        TransportSetup::Selective(config, Memory::Shared(pool)) => {
            let nic = nic.get_or_insert_with(|| Nic::new(*pool).expect("checked when the setup was made"));
            Transport::melo(Connection::melo(selective::Config { first_psn, ..*config }, nic))
        }
        TransportSetup::Raw(config) => Transport::raw(raw::Generator::new(*config)),
    }
}

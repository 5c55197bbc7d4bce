//! Flows and the connections that carry them: where flows come from, which connection each takes, what is known of it.
//!
//! Most connections carry one flow. A connection's number is used again when its flow is over and the last of its packets
//! has ended, so that no packet ever meets another connection or route. Flows may also share queue pairs; such a pair
//! keeps its number, and carries its flows in turn.

use std::collections::{BTreeMap, VecDeque};

use collective::{RowChoice, RunLengths};
use faults::Random;
use units::{Span, Time};

use super::end::FlowCounters;
use super::index::{ConnectionId, IndexVec, Number, TrafficId};
use super::jobs::{IterationShortcut, RunningJob, TransferLane};
use super::outcome::FlowRow;
use super::profile::NetworkProfile;
use super::setup::{NetworkSetup, TrafficSetup};
use crate::topology::NodeId;
use crate::workload::{FlowSeries, Workload, WorkloadFlow};

/// All flows of a network.
#[derive(Debug)]
pub(super) struct Flows {
    pub sources: IndexVec<TrafficId, TrafficSource>,
    pub connections: IndexVec<ConnectionId, ConnectionState>,
    /// Queue pairs that flows share.
    pub standing: BTreeMap<SharedQp, ConnectionId>,
    /// Flows that have not ended, those still to begin not counted.
    pub active: usize,
    /// Begins connections with a handshake where their transport has one.
    pub handshakes: bool,
    /// Ends such connections with a FIN from either end.
    pub fins: bool,
    /// Some of the traffic is a job.
    pub has_jobs: bool,
    pub seed: u64,
    /// Connections that are over and whose last packet has ended.
    vacant: Vec<ConnectionId>,
    /// Connections that have begun.
    begun: u32,
    /// Connections that have begun between two hosts, where paths depend on them.
    of_pair: BTreeMap<(NodeId, NodeId), u16>,
    random: Random,
}

impl Flows {
    pub(super) fn new(setup: NetworkSetup, random: Random) -> Self {
        let mut shortcut = IterationShortcut::of(&setup);
        let NetworkSetup { traffic, handshakes, fins, seed, rows, mut baselines, .. } = setup;
        baselines.resize(traffic.len(), None);
        let source = |(traffic, baseline)| TrafficSource::new(traffic, baseline, rows, shortcut.take());
        let sources: IndexVec<TrafficId, TrafficSource> = traffic.into_iter().zip(baselines).map(source).collect();
        Self {
            has_jobs: sources.iter().any(|source| source.job.is_some()),
            sources,
            seed,
            connections: IndexVec::new(),
            standing: BTreeMap::new(),
            active: 0,
            handshakes,
            fins,
            vacant: Vec::new(),
            begun: 0,
            of_pair: BTreeMap::new(),
            random,
        }
    }

    /// True if no flow is under way and none is to come.
    pub(super) fn are_over(&self) -> bool {
        self.active == 0 && self.sources.iter().all(TrafficSource::is_exhausted)
    }

    /// Bytes that all flows will have, going by those that have begun; `None` if that cannot be known yet.
    pub(super) fn expected_bytes(&self) -> Option<f64> {
        self.sources.iter().map(TrafficSource::expected_bytes).sum()
    }

    /// A connection's number, what equal paths are chosen by, and what its machines are seeded with, if that is not `drawn`
    /// already.
    pub(super) fn draw(&mut self, drawn: Option<(u64, u32)>) -> (ConnectionId, u64, u32) {
        let id = self.vacant.pop().unwrap_or_else(|| ConnectionId::at(self.connections.len()));
        if let Some((path, seed)) = drawn {
            return (id, path, seed);
        }
        (id, self.random.below(u64::MAX), self.random.below(u64::from(u32::MAX)) as u32)
    }

    /// Hashes that choose the paths of a new connection, there and back.
    pub(super) fn hashes(&mut self, profile: NetworkProfile, drawn: u64, flow: &WorkloadFlow) -> [u64; 2] {
        if profile == NetworkProfile::Ethernet {
            return [drawn; 2];
        }
        let before = self.of_pair.entry((flow.src, flow.dst)).or_default();
        let hashes = profile.hashes(drawn, flow, *before);
        *before = before.wrapping_add(1);
        hashes
    }

    /// A connection begins; its number in the order of starts.
    pub(super) fn begin(&mut self, id: ConnectionId, state: ConnectionState) -> u32 {
        let number = self.begun;
        self.connections.put(id, ConnectionState { number, ..state });
        self.begun += 1;
        number
    }

    /// Frees the number of a connection that has no packets left.
    pub(super) fn vacate(&mut self, id: ConnectionId) {
        let connection = &mut self.connections[id];
        assert!(!std::mem::replace(&mut connection.vacated, true), "a packet outlived its connection");
        self.vacant.push(id);
    }

    /// Adds a flow to an established connection.
    pub(super) fn join(&mut self, id: ConnectionId, row: FlowRow) {
        let connection = &mut self.connections[id];
        if connection.under_way {
            connection.behind.push_back(row);
        } else {
            (connection.row, connection.under_way) = (row, true);
        }
    }
}

/// Source of the flows of one kind.
#[derive(Debug)]
pub(super) struct TrafficSource {
    pub traffic: TrafficSetup,
    begun: u64,
    begun_bytes: u64,
    next: Option<WorkloadFlow>,
    /// The job that it is.
    pub job: Option<Box<RunningJob>>,
    exhausted: bool,
    /// Queue pair of the next flow between two hosts, where flows share queue pairs.
    turns: BTreeMap<(u32, u32, u16), u32>,
}

impl TrafficSource {
    pub(super) fn new(
        traffic: TrafficSetup,
        baseline: Option<RunLengths>,
        rows: RowChoice,
        shortcut: Option<Box<IterationShortcut>>,
    ) -> Self {
        let job = match &traffic.work {
            Workload::Job(work) => Some(Box::new(RunningJob::new(work, baseline, rows, shortcut))),
            Workload::Open(_) | Workload::Series(_) => None,
        };
        Self { traffic, begun: 0, begun_bytes: 0, next: None, job, exhausted: false, turns: BTreeMap::new() }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.job.as_ref().map_or(self.exhausted, |job| job.run.is_over())
    }

    /// Finds the next flow; when it begins, if there is one.
    pub(super) fn prepare(&mut self, now: Time) -> Option<Time> {
        if let Some(job) = &mut self.job {
            return job.next_event().map(|at| at.max(now));
        }
        let next = match &mut self.traffic.work {
            Workload::Open(flows) => flows.next(),
            Workload::Series(series) => next_of(series, self.begun, now),
            Workload::Job(_) => return None,
        };
        self.exhausted = next.is_none();
        self.next = next;
        self.next.as_ref().map(|flow| flow.start.max(now))
    }

    /// Bytes of all its flows, estimated from those that have begun; `None` if that cannot be known yet.
    pub(super) fn expected_bytes(&self) -> Option<f64> {
        let left = match &self.traffic.work {
            Workload::Open(flows) => flows.expected_left()? + f64::from(u8::from(self.next.is_some())),
            Workload::Series(series) => series.count.saturating_sub(self.begun) as f64,
            Workload::Job(_) => return self.job.as_ref().map(|job| job.total_bytes),
        };
        let begun = (self.begun > 0).then_some(self.begun as f64)?;
        Some(self.begun_bytes as f64 * (1.0 + left / begun))
    }

    /// The next flow begins.
    pub(super) fn take_next(&mut self) -> Option<WorkloadFlow> {
        let flow = self.next.take()?;
        self.begun += 1;
        self.begun_bytes = self.begun_bytes.saturating_add(flow.bytes);
        Some(flow)
    }

    pub(super) fn is_series(&self) -> bool {
        matches!(self.traffic.work, Workload::Series(_))
    }

    /// The queue pair that a flow of a lane is to share with others, if any: those between two hosts take turns.
    pub(super) fn shared(&mut self, flow: &WorkloadFlow, traffic: TrafficId, lane: u16) -> Option<SharedQp> {
        let pairs = self.traffic.queue_pairs?.max(1);
        let (src, dst, first) = (flow.src.0, flow.dst.0, u32::from(lane).saturating_mul(pairs));
        if pairs == 1 {
            return Some(SharedQp { traffic, src, dst, pair: first });
        }
        let turn = self.turns.entry((src, dst, lane)).or_default();
        let pair = *turn % pairs;
        *turn = pair + 1;
        Some(SharedQp { traffic, src, dst, pair: first + pair })
    }
}

fn next_of(series: &FlowSeries, begun: u64, now: Time) -> Option<WorkloadFlow> {
    let start = if begun == 0 { now } else { now + series.gap };
    let FlowSeries { src, dst, bytes, count, group, .. } = *series;
    (begun < count).then_some(WorkloadFlow { start, src, dst, bytes, group })
}

/// State of a connection and of the flow that it carries.
#[derive(Debug)]
pub(super) struct ConnectionState {
    /// The flow that is under way, or was.
    pub row: FlowRow,
    pub under_way: bool,
    /// Flows that share the connection and wait for their turn.
    pub behind: VecDeque<FlowRow>,
    /// Key of the connection among those that are shared, if others may use it.
    pub shared: Option<SharedQp>,
    /// Transfers that it carries, if it is a job's.
    pub lane: Option<Box<TransferLane>>,
    pub source: TrafficId,
    pub reply: u64,
    /// Its flows' time is the sender's.
    pub acknowledged: bool,
    /// The most bytes of one message; a flow with more is several.
    pub message: u64,
    /// Messages that have been answered, and such as are done with.
    /// Bytes of flows that the connection has carried before.
    pub before: u64,
    pub answered: u64,
    pub done: u64,
    /// Counters of both ends when the last flow ended.
    pub reported: FlowCounters,
    pub over: bool,
    /// The number is free.
    pub vacated: bool,
    /// Number of the flow, in the order of starts.
    pub number: u32,
    /// Time of the next try of a handshake under way, and the wait before it.
    pub handshake: Option<(Time, Span)>,
    /// Hashes that choose among equal paths, there and back.
    pub hashes: [u64; 2],
}

impl ConnectionState {
    /// One that carries a flow of `traffic`, the first of perhaps several.
    pub(super) fn new(
        row: FlowRow,
        source: TrafficId,
        shared: Option<SharedQp>,
        traffic: &TrafficSetup,
        hashes: [u64; 2],
    ) -> Self {
        Self {
            row,
            under_way: true,
            behind: VecDeque::new(),
            shared,
            lane: None,
            source,
            reply: traffic.reply,
            acknowledged: traffic.acknowledged,
            message: traffic.transport.largest_message(),
            before: 0,
            answered: 0,
            done: 0,
            reported: FlowCounters::default(),
            over: false,
            vacated: false,
            number: 0,
            handshake: None,
            hashes,
        }
    }

    /// The flow under way is over: the next one that shares the connection is, if there is one.
    pub(super) fn next_flow(&mut self) -> bool {
        let next = self.behind.pop_front();
        self.under_way = next.is_some();
        self.row = next.unwrap_or(self.row);
        self.under_way
    }

    /// Number of messages of the flow under way.
    pub(super) fn messages(&self) -> u64 {
        self.row.bytes.div_ceil(self.message).max(1)
    }
}

/// A queue pair that flows share: which traffic's, between which hosts, which of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SharedQp {
    pub traffic: TrafficId,
    pub src: u32,
    pub dst: u32,
    /// Number among the pairs between the two, those of the first lane first.
    pub pair: u32,
}

/// A flow that begins now, all but what it would take alone.
pub(super) fn row(now: Time, traffic: TrafficId, flow: &WorkloadFlow) -> FlowRow {
    FlowRow {
        traffic: traffic.0 as u16,
        group: flow.group,
        src: flow.src,
        dst: flow.dst,
        bytes: flow.bytes,
        start: now,
        finish: None,
        ideal: Span::ZERO,
        is_cut: false,
        received: 0,
        failed: false,
        tally: FlowCounters::default(),
    }
}

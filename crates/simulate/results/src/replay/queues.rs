//! Queues of switches, from the logs of all connections: li-thesis §6.3.4.
//!
//! Logs say when packets left and how long they were; the same network, run again with the same seed, says what its queues really
//! held and what they dropped. That run is the truth: it takes the bytes of a scenario instead of those of every queue at every
//! moment, and logs that do not belong to it are refused.

mod rows;
mod text;

use std::fmt;
use std::fs;
use std::path::PathBuf;

use deter::{ConnectionLog, ReplayObserver, ReplayedFrame};
use scenario::{Scenario, SweepPoint};
use sim::net::NetworkSetup;
use sim::net::queue_replay::{
    self, DropDifference, FlowBytes, QueueDifference, QueueQuestion, QueueRecording, QueueReplay, RecordedConnection,
    ReplayOptions, ReplayTags,
};
use sim::net::recording::capture_of;
use sim::topology::{DirectedLink, Topology};
use units::{Progress, Span, Time};

use super::sampled::{SampleCost, draw_clocks, sampled};
pub use rows::{
    DifferenceOfDrops, DifferenceOfQueues, QueueAnswer, QueueFlowRow, QueuePortRow, QueueReport, QueueRunRow,
};
pub use text::queues_text;

/// Approximate number of packets that are asked for their view; more would take memory and add nothing.
const ASKED: u64 = 1_000_000;

/// Options for replaying queues.
#[derive(Clone, Debug)]
pub struct QueueChoice {
    /// Times of packets are sampled, and at most this far off.
    pub threshold: Span,
    /// Clocks of hosts are up to this far apart.
    pub clocks: Span,
    /// Use of drop tags in the replay.
    pub tags: ReplayTags,
    /// Time and port (`A-B`: from A to B) whose queue content is asked for.
    pub question: Option<(Time, String)>,
    /// Logs, and runs, at the same time.
    pub jobs: usize,
}

/// Why queues were not replayed.
#[derive(Debug)]
pub enum QueueReplayError {
    /// The logs, the scenario, or what was asked: what is wrong, and what was expected.
    Refused(String),
    /// It was stopped.
    Interrupted,
}

impl fmt::Display for QueueReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(what) => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

fn refused(what: impl fmt::Display) -> QueueReplayError {
    QueueReplayError::Refused(what.to_string())
}

/// Replays the queues of every run that there are logs of.
pub fn replay_queues(
    logs: &[PathBuf],
    scenario: &Scenario,
    choice: &QueueChoice,
    progress: &(dyn Progress + Sync),
) -> Result<QueueReport, QueueReplayError> {
    let mut flows = Vec::new();
    for log in parallel::map(logs, choice.jobs, |path| if progress.go_on(0) { read(path).map(Some) } else { Ok(None) })
    {
        flows.push(log?.ok_or(QueueReplayError::Interrupted)?);
    }
    flows.sort_by_key(LoggedPackets::key);
    if let Some([twice, _]) = flows.array_windows().find(|[one, other]| one.key() == other.key()) {
        let (point, seed, flow) = twice.key();
        return Err(refused(format_args!("two logs of flow {flow} of point {point}, seed {seed}: expected one")));
    }
    let of_runs = flows.chunk_by(|one, next| (one.point, one.seed) == (next.point, next.seed));
    let runs: Vec<QueueRun<'_>> =
        of_runs.map(|flows| QueueRun::new(flows, scenario, choice)).collect::<Result<_, _>>()?;
    progress.expect_parts(runs.len() * 2);
    let rows = parallel::map(&runs, choice.jobs, |run| run.replay(choice, progress));
    Ok(QueueReport {
        threshold_ns: nanoseconds(choice.threshold),
        clocks_ns: nanoseconds(choice.clocks),
        tags: choice.tags == ReplayTags::Used,
        runs: rows.into_iter().collect::<Result<_, _>>()?,
    })
}

fn nanoseconds(span: Span) -> f64 {
    span.as_ps() as f64 / 1e3
}

/// The packets of a connection as its log has them.
#[derive(Debug)]
struct LoggedPackets {
    path: PathBuf,
    point: u32,
    seed: u64,
    flow: u32,
    hosts: [u32; 2],
    /// Packets of the client and of the server: the time at which each left, and its length.
    packets: [Vec<(Time, u16)>; 2],
}

impl LoggedPackets {
    fn key(&self) -> (u32, u64, u32) {
        (self.point, self.seed, self.flow)
    }

    /// The connection of the run at the times of its log; nothing if it is another one.
    fn retime(&self, truth: &RecordedConnection) -> Option<RecordedConnection> {
        let mut connection = truth.clone();
        let same_hosts = self.hosts == [truth.src.0, truth.dst.0];
        let same_packets = self.packets.iter().zip(&truth.packets).all(|(logged, sent)| {
            logged.len() == sent.len() && logged.iter().zip(sent).all(|((_, len), packet)| *len == packet.len)
        });
        for (logged, sent) in self.packets.iter().zip(&mut connection.packets) {
            logged.iter().zip(sent).for_each(|((at, _), packet)| packet.at = *at);
        }
        (same_hosts && same_packets).then_some(connection)
    }
}

/// Keeps what leaves.
struct DepartureList<'a> {
    log: &'a ConnectionLog<'a>,
    packets: [Vec<(Time, u16)>; 2],
}

impl ReplayObserver for DepartureList<'_> {
    fn sent(&mut self, frame: ReplayedFrame) {
        let len = capture_of(self.log.header(), &frame).packet.len;
        self.packets[frame.side as usize].push((frame.at, len));
    }
}

/// Runs both ends of a connection again, as only that says what left.
fn read(path: &PathBuf) -> Result<LoggedPackets, QueueReplayError> {
    let wrong = |what: &dyn fmt::Display| refused(format_args!("{}: {what}", path.display()));
    let bytes = fs::read(path).map_err(|error| wrong(&error))?;
    let log = ConnectionLog::read(&bytes).map_err(|error| wrong(&error))?;
    let mut departures = DepartureList { log: &log, packets: Default::default() };
    let result = deter::replay(&log, &mut departures).map_err(|error| wrong(&error))?;
    if !result.is_exact() {
        return Err(wrong(&"not replayed exactly, so its packets are not known; hitless replay says where it differs"));
    }
    let DepartureList { packets, .. } = departures;
    let header = log.header();
    let (point, seed, flow, hosts) = (header.point, header.seed, header.flow, header.hosts);
    Ok(LoggedPackets { path: path.clone(), point, seed, flow, hosts, packets })
}

/// The logs of one run.
struct QueueRun<'a> {
    flows: &'a [LoggedPackets],
    point: &'a SweepPoint,
    setup: NetworkSetup,
    question: Option<QueueQuestion>,
    one_in: u32,
}

impl<'a> QueueRun<'a> {
    fn new(flows: &'a [LoggedPackets], scenario: &'a Scenario, choice: &QueueChoice) -> Result<Self, QueueReplayError> {
        let LoggedPackets { path, point, seed, .. } = &flows[0];
        let of_log = |found: &&SweepPoint| found.number == *point as usize;
        let found = scenario.points.iter().find(of_log).ok_or_else(|| {
            let points = scenario.points.len();
            refused(format_args!(
                "{}: of point {point} of a sweep, and the scenario has {points}: expected the file, and what was --set, of the \
                 recorded run",
                path.display()
            ))
        })?;
        let setup = found.setup(*seed);
        let question = choice.question.as_ref().map(|(at, port)| ask(&setup, *at, port)).transpose()?;
        let packets: usize = flows.iter().flat_map(|flow| &flow.packets).map(Vec::len).sum();
        let one_in = (packets as u64 / ASKED + 1) as u32;
        Ok(Self { flows, point: found, setup, question, one_in })
    }

    /// The run itself, its packets at the times of the logs, and the replay of these.
    fn replay(&self, choice: &QueueChoice, progress: &dyn Progress) -> Result<QueueRunRow, QueueReplayError> {
        let Self { setup, question, one_in, .. } = self;
        let truth = queue_replay::record_asked(setup.clone(), *one_in, *question, progress).map_err(refused)?;
        let (outcome, truth) = truth;
        if outcome.interrupted {
            return Err(QueueReplayError::Interrupted);
        }
        if let Some(question) = question.filter(|question| question.at > outcome.ended) {
            return Err(outside(question.at, outcome.ended));
        }
        progress.part_done();
        let connections = self.logged(&truth)?;
        let clocks = draw_clocks(setup, choice.clocks);
        let (connections, cost) = sampled(&connections, choice.threshold, &clocks).map_err(refused)?;
        let options = ReplayOptions { tags: choice.tags, one_in: *one_in, question: *question };
        let replay = queue_replay::replay(setup, &connections, options, progress).map_err(refused)?;
        if replay.interrupted {
            return Err(QueueReplayError::Interrupted);
        }
        progress.part_done();
        Ok(self.row(&truth, &replay, cost))
    }

    /// All connections of the run, with the packets of those that have logs, at their times.
    fn logged(&self, truth: &QueueRecording) -> Result<Vec<RecordedConnection>, QueueReplayError> {
        let silent =
            |connection: &RecordedConnection| RecordedConnection { packets: Default::default(), ..*connection };
        let mut connections: Vec<RecordedConnection> = truth.connections.iter().map(silent).collect();
        for flow in self.flows {
            let of_truth = truth.connections.get(flow.flow as usize);
            let retimed = of_truth.and_then(|of_truth| flow.retime(of_truth));
            connections[flow.flow as usize] = retimed.ok_or_else(|| self.stranger(flow, of_truth))?;
        }
        Ok(connections)
    }

    fn stranger(&self, flow: &LoggedPackets, truth: Option<&RecordedConnection>) -> QueueReplayError {
        let topology = &self.setup.topology;
        let name = |node: u32| topology.nodes.get(node as usize).map_or("a host it does not have", |node| &node.name);
        let [from, to] = flow.hosts.map(name);
        let count = |packets: [usize; 2]| format!("{} packets there and {} back", packets[0], packets[1]);
        let logged = count([0, 1].map(|at| flow.packets[at].len()));
        let run = truth.map_or("no such connection".to_owned(), |truth| {
            let [from, to] = [truth.src, truth.dst].map(|node| topology.name(node));
            format!("from {from} to {to} with {}", count([0, 1].map(|at| truth.packets[at].len())))
        });
        refused(format_args!(
            "{}: flow {} from {from} to {to} with {logged}, and in the run of the scenario with seed {} {run}: expected the \
             file, and what was --set, of the recorded run, which was not interrupted",
            flow.path.display(),
            flow.flow,
            flow.seed
        ))
    }

    fn row(&self, truth: &QueueRecording, replay: &QueueReplay, cost: SampleCost) -> QueueRunRow {
        let comparison = queue_replay::compare(truth, replay, Time::ZERO);
        let topology = &self.setup.topology;
        let port = |(port, queues, drops): &(DirectedLink, QueueDifference, DropDifference)| QueuePortRow {
            port: name(topology, *port),
            queues: (*queues).into(),
            drops: (*drops).into(),
        };
        let sent = truth.packets().count() as u64;
        QueueRunRow {
            point: self.point.number as u32,
            label: self.point.label.clone(),
            seed: self.setup.seed,
            connections: truth.connections.len() as u64,
            logs: self.flows.len() as u64,
            packets: cost.packets,
            packets_missing: sent - cost.packets,
            samples: cost.samples,
            sample_bytes: cost.bytes,
            one_in: self.one_in,
            queues: comparison.queues.into(),
            drops: comparison.drops.into(),
            overflows: replay.overflows,
            ports: comparison.ports.iter().map(port).collect(),
            at: self.question.map(|question| answer(topology, question, truth, replay)),
        }
    }
}

fn name(topology: &Topology, port: DirectedLink) -> String {
    format!("{}-{}", topology.name(topology.from(port)), topology.name(topology.to(port)))
}

/// The port that `A-B` means; names of nodes may have a `-` in them.
fn ask(setup: &NetworkSetup, at: Time, port: &str) -> Result<QueueQuestion, QueueReplayError> {
    let topology = &setup.topology;
    let wrong = |what: &dyn fmt::Display| refused(format_args!("--port {port}: {what}"));
    let mut error = None;
    let splits = port.match_indices('-').map(|(at, _)| (&port[..at], &port[at + 1..]));
    let mut links = splits.filter_map(|(from, to)| {
        let known = topology.node(from).is_ok() && topology.node(to).is_ok();
        let link = topology.link_between(from, to);
        link.map_err(|found| error = error.take().filter(|_| !known).or(Some(found))).ok()
    });
    let found = links.next();
    let Some(port) = found else {
        return Err(error.map_or_else(|| wrong(&"expected two nodes, as in sw0-h1"), |error| wrong(&error)));
    };
    if topology.is_host(topology.from(port)) {
        return Err(wrong(
            &"its queue is that of a host; expected a port of a switch, such as that in the other direction",
        ));
    }
    if at > setup.until {
        return Err(outside(at, setup.until));
    }
    Ok(QueueQuestion { at, port })
}

fn outside(at: Time, end: Time) -> QueueReplayError {
    let [at, end] = [at, end].map(|time| time.since(Time::ZERO));
    refused(format_args!("--at {at}: expected a time within the run, which ended at {end}"))
}

fn answer(topology: &Topology, question: QueueQuestion, truth: &QueueRecording, replay: &QueueReplay) -> QueueAnswer {
    let sum = |flows: &[FlowBytes]| flows.iter().map(|flow| u64::from(flow.bytes)).sum();
    let of = |flows: &[FlowBytes], stream| flows.iter().find(|flow| flow.stream == stream).map_or(0, |flow| flow.bytes);
    let only_replayed = replay.answer.iter().filter(|flow| of(&truth.answer, flow.stream) == 0);
    let row = |flow: &FlowBytes| {
        let (flow, stream) = (flow.stream.place(), flow.stream);
        let RecordedConnection { src, dst, .. } = &truth.connections[flow.0];
        let [from, to] =
            if flow.1 == 0 { [*src, *dst] } else { [*dst, *src] }.map(|node| topology.name(node).to_owned());
        let (run_bytes, replay_bytes) = (of(&truth.answer, stream), of(&replay.answer, stream));
        QueueFlowRow { flow: flow.0 as u32, from, to, run_bytes, replay_bytes }
    };
    QueueAnswer {
        time_ns: nanoseconds(question.at.since(Time::ZERO)),
        port: name(topology, question.port),
        run_bytes: sum(&truth.answer),
        replay_bytes: sum(&replay.answer),
        flows: truth.answer.iter().chain(only_replayed).map(row).collect(),
    }
}

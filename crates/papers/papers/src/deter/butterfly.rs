//! det.butterfly: a rare flow, replays with the same socket calls, and of its log (§6.2.1, §6.2.2).

mod reasons;

use std::collections::HashMap;

use ::deter::{ConnectionLog, LogLevel, LogSide, ReplayJitter, ReplayObserver, ReplayedFrame, replay_jittered};
use chart::{Axis, Chart, Line, LinesChart};
use faults::Random;
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use sim::net::queue_replay::{self, MTU_FRAME, PacketFate, QueueView, QueueViews, RecordedConnection};
use sim::net::{HostLatency, NetworkSetup, TransportSetup};
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use tcp::{LossDetection, TcpNote};
use units::{Span, Time};

use super::{logs, runs};
use reasons::LongFlows;

/// Standard deviations of what a host takes, in ns.
const DEVIATIONS: [u64; 5] = [0, 1, 10, 100, 1_000];
/// Mean of the same.
const MEAN: Span = Span::from_us(10);
/// Long flows start within this time.
const STARTS: Span = Span::from_us(2);
const START_STREAM: u64 = 23;
/// Seeds that are tried at once, and at most.
const TRIED_AT_ONCE: usize = 16;
const MOST_TRIED: usize = 1_000;
/// Replays for each deviation.
const REPLAYS: u64 = 100;
/// Gap between packets from which it counts as the first timeout: the shortest one, less the time that precedes the tick.
const FIRST_TIMEOUT: Span = Span::from_ms(12);
const SECOND_TIMEOUT: Span = Span::from_ms(27);
/// Tolerance in ms within which a replay that takes as long as the run has its problem.
const ALIKE_MS: f64 = 4.0;

/// Result of the short flow in one run.
#[derive(Debug)]
struct ShortFlow {
    /// Flow completion time in ms; none if the flow did not end.
    fct: Option<f64>,
    /// Two timeouts, the copy between them having arrived.
    correlated: bool,
    long: LongFlows,
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let Some((seed, run)) = search(effort)? else { return Ok(None) };
    let tasks: Vec<(u64, u64)> =
        DEVIATIONS.into_iter().flat_map(|ns| (0..REPLAYS).map(move |number| (ns, number))).collect();
    effort.progress.expect_parts(tasks.len());
    let results = parallel::map(&tasks, effort.jobs, |(ns, number)| {
        let flow = short_flow(&replay_setup(seed, *ns, *number)?, effort);
        effort.progress.part_done();
        flow
    });
    let flows: Option<Vec<ShortFlow>> = results.into_iter().collect::<Result<_, ClaimError>>()?;
    let Some(flows) = flows else { return Ok(None) };
    let mut computed = ComputedValues::default();
    let tried = seed - first_seed(effort) + 1;
    computed.values.push(("fct".into(), run.fct.map(|fct| MeasuredValue::exact(fct, 1))));
    computed.value("tried", MeasuredValue::exact(tried as f64, tried));
    let Some(log) = short_log(seed, effort)? else { return Ok(None) };
    for ns in DEVIATIONS {
        let same = replays_of_log(&log, ns, &run, effort)?;
        computed.value(format!("deter.{ns}ns"), MeasuredValue::share(same, REPLAYS));
    }
    for (ns, flows) in DEVIATIONS.iter().zip(flows.chunks(REPLAYS as usize)) {
        let same = flows.iter().filter(|flow| reproduces(flow, &run)).count();
        computed.value(format!("calls.{ns}ns"), MeasuredValue::share(same as u64, REPLAYS));
        if *ns == 1 {
            reasons::of_replays(&run, flows, &mut computed);
        }
    }
    if !reasons::of_others(seed, effort, &mut computed)? {
        return Ok(None);
    }
    let Some(differs) = differs_from(&run_setup(seed)?, &replay_setup(seed, 1, 0)?, effort)? else { return Ok(None) };
    computed.values.push(("differs.1ns".into(), differs.0.map(|ms| MeasuredValue::exact(ms, 1))));
    computed.charts.push(differs.1);
    Ok(Some(computed))
}

fn first_seed(effort: &Effort<'_>) -> u64 {
    effort.seed.wrapping_mul(100_000)
}

/// The first seed whose short flow has the problem, and that flow.
fn search(effort: &Effort<'_>) -> Result<Option<(u64, ShortFlow)>, ClaimError> {
    let seeds: Vec<u64> = (first_seed(effort)..).take(MOST_TRIED).collect();
    for some in seeds.chunks(TRIED_AT_ONCE) {
        let results = parallel::map(some, effort.jobs, |seed| short_flow(&run_setup(*seed)?, effort));
        let flows: Option<Vec<ShortFlow>> = results.into_iter().collect::<Result<_, ClaimError>>()?;
        let Some(flows) = flows else { return Ok(None) };
        let found = some.iter().copied().zip(flows).find(|(_, flow)| flow.correlated);
        if found.is_some() {
            return Ok(found);
        }
    }
    Err(ClaimError::new(format_args!("none of {MOST_TRIED} seeds has a flow with both timeouts")))
}

/// The run of a seed: the short flow, and long ones that begin at times drawn from it.
fn run_setup(seed: u64) -> Result<NetworkSetup, ClaimError> {
    let mut setup = runs::setup("butterfly-network.toml", &[], seed)?;
    let mut random = Random::new(seed, START_STREAM);
    let mut later =
        |flow: WorkloadFlow| WorkloadFlow { start: flow.start + Span::from_ps(random.below(STARTS.as_ps())), ..flow };
    for traffic in &mut setup.traffic {
        if let TransportSetup::Tcp(config) = &mut traffic.transport {
            config.detection = LossDetection::DUPACKS;
        }
        if let Workload::Open(flows) = &traffic.work {
            traffic.work = Workload::Open(FlowSchedule::list(flows.clone().map(&mut later).collect()));
        }
    }
    Ok(setup)
}

/// A replay of the run of a seed: the same flows at the same times, and hosts that vary.
fn replay_setup(seed: u64, ns: u64, number: u64) -> Result<NetworkSetup, ClaimError> {
    let mut setup = run_setup(seed)?;
    setup.host_latency = HostLatency::Normal { mean: MEAN, deviation: Span::from_ns(ns) };
    setup.seed = seed.wrapping_mul(1_000).wrapping_add(number + 1);
    Ok(setup)
}

/// `None` if it was stopped early.
fn short_flow(setup: &NetworkSetup, effort: &Effort<'_>) -> Result<Option<ShortFlow>, ClaimError> {
    let recorded = queue_replay::record(setup.clone(), u32::MAX, effort.progress);
    let (outcome, recording) = recorded.map_err(ClaimError::new)?;
    if outcome.interrupted {
        return Ok(None);
    }
    let row = outcome.flows.iter().find(|row| row.traffic == 1).ok_or_else(|| ClaimError::new("no short flow"))?;
    let connection = recording.connections.last().ok_or_else(|| ClaimError::new("no connection"))?;
    let correlated = row.tally.timeouts >= 2 && is_correlated(connection);
    let long = LongFlows::at(&recording, row.start);
    Ok(Some(ShortFlow { fct: row.fct().map(|fct| fct.as_us() / 1e3), correlated, long }))
}

/// True if a copy after a timeout arrived, and the next one followed without an acknowledgement in between.
fn is_correlated(connection: &RecordedConnection) -> bool {
    let [there, back] = &connection.packets;
    let mut waits = there.windows(3).filter(|packets| {
        packets[1].at.since(packets[0].at) >= FIRST_TIMEOUT && packets[2].at.since(packets[1].at) >= SECOND_TIMEOUT
    });
    waits.any(|packets| {
        let answered = back.iter().any(|ack| ack.at > packets[1].at && ack.at < packets[2].at);
        packets[1].fate == PacketFate::Delivered && !answered
    })
}

/// True if a replay has the problem of the run.
fn reproduces(replay: &ShortFlow, run: &ShortFlow) -> bool {
    let apart = replay.fct.zip(run.fct).map(|(replay, run)| (replay - run).abs());
    replay.correlated && apart.is_some_and(|apart| apart <= ALIKE_MS)
}

/// The log of the short flow, which begins last; `None` if the run was stopped early.
fn short_log(seed: u64, effort: &Effort<'_>) -> Result<Option<Vec<u8>>, ClaimError> {
    let Some((_, logs)) = logs::record(&run_setup(seed)?, LogLevel::Decisions, effort)? else { return Ok(None) };
    logs.0.into_values().next_back().map(Some).ok_or_else(|| ClaimError::new("no log"))
}

/// Number of replays of a log that have the problem of the run, if the time that a host takes for each call varies.
fn replays_of_log(log: &[u8], ns: u64, run: &ShortFlow, effort: &Effort<'_>) -> Result<u64, ClaimError> {
    let log = ConnectionLog::read(log).map_err(ClaimError::new)?;
    let numbers: Vec<u64> = (0..REPLAYS).collect();
    let results = parallel::map(&numbers, effort.jobs, |number| {
        let jitter =
            ReplayJitter { seed: Some(*number), deviation: Some(Span::from_ns(ns)), ..ReplayJitter::default() };
        let mut seen = ReplayedShortFlow::default();
        let result = replay_jittered(&log, jitter, &mut seen).map_err(ClaimError::new)?;
        Ok(result.is_exact() && seen.has_problem(run))
    });
    let same: Result<Vec<bool>, ClaimError> = results.into_iter().collect();
    Ok(same?.into_iter().filter(|same| *same).count() as u64)
}

/// The short flow of a replay by its log.
#[derive(Debug, Default)]
struct ReplayedShortFlow {
    timeouts: u32,
    /// Times at which the first packet left, and the last one.
    first: Option<Time>,
    last: Time,
}

impl ReplayedShortFlow {
    fn has_problem(&self, run: &ShortFlow) -> bool {
        let ms = self.first.map(|first| self.last.since(first).as_us() / 1e3);
        let apart = ms.zip(run.fct).map(|(ms, fct)| (ms - fct).abs());
        self.timeouts >= 2 && apart.is_some_and(|apart| apart <= ALIKE_MS)
    }
}

impl ReplayObserver for ReplayedShortFlow {
    fn sent(&mut self, frame: ReplayedFrame) {
        self.first = Some(self.first.map_or(frame.at, |first| first.min(frame.at)));
        self.last = self.last.max(frame.at);
    }

    fn note(&mut self, side: LogSide, _now: Time, note: TcpNote) {
        self.timeouts += u32::from(side == LogSide::Client && note == TcpNote::Timeout);
    }
}

/// Time in ms at which the queues of a replay, as packets see them, first differ from those of the run; and a chart of the
/// difference over time (Fig. 6.4).
fn differs_from(
    run: &NetworkSetup,
    replay: &NetworkSetup,
    effort: &Effort<'_>,
) -> Result<Option<(Option<f64>, Chart)>, ClaimError> {
    let Some(run) = runs::record(run, 1, effort)? else { return Ok(None) };
    let Some(replay) = runs::record(replay, 1, effort)? else { return Ok(None) };
    let length = |views: &QueueViews, view: &QueueView| {
        f64::from(views.content(view).iter().map(|flow| flow.bytes).sum::<u32>()) / f64::from(MTU_FRAME)
    };
    let key = |view: &QueueView| (view.stream, view.number, view.hop);
    let lengths: HashMap<_, f64> =
        replay.views.views.iter().map(|view| (key(view), length(&replay.views, view))).collect();
    let difference = |view: &QueueView| {
        let replayed = lengths.get(&key(view))?;
        Some((view.at.since(Time::ZERO).as_us() / 1e3, (length(&run.views, view) - replayed).abs()))
    };
    let differences: Vec<(f64, f64)> = run.views.views.iter().filter_map(difference).collect();
    let first = differences.iter().find(|(_, difference)| *difference > 0.0).map(|(at, _)| *at);
    let largest = |some: &[(f64, f64)]| (some[0].0, some.iter().fold(0.0, |most, (_, mtu)| mtu.max(most)));
    let chart = Chart::Lines(LinesChart {
        title: "Queue length difference of a replay with 1 ns of variation".into(),
        caption: "What each packet sees, run and replay with the same socket calls; the largest of every 100 packets."
            .into(),
        x: Axis::linear("ms"),
        y: Axis::linear("MTU"),
        lines: vec![Line::new("1 ns", differences.chunks(100).map(largest).collect())],
    });
    Ok(Some((first, chart)))
}

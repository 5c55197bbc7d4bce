//! det.replay: how many connections are replayed exactly, at both levels and by wrong clocks (§6.5.4.1).

use ::deter::{ConnectionLog, LogLevel, LogSide, ReplayJitter, Sent, record_trial, replay_jittered};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use sim::net::Body;
use units::Time;

use super::logs::{self, ReplayedLog};
use super::size;

/// Connections that are drawn.
const TRIALS: u64 = 3_000;
const FULL_TRIALS: u64 = 1_000_000;
/// Trials between two looks at whether to go on.
const AT_ONCE: u64 = 1_000;
/// The host whose port is captured.
const HOST: &str = "h0";

/// Number of exact replays, and of all.
#[derive(Clone, Copy, Debug, Default)]
struct ExactCount {
    exact: u64,
    all: u64,
}

impl ExactCount {
    fn add(&mut self, exact: bool) {
        self.exact += u64::from(exact);
        self.all += 1;
    }

    fn share(self) -> Option<MeasuredValue> {
        MeasuredValue::share(self.exact, self.all)
    }
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let trials = if effort.scale == RunScale::Full { FULL_TRIALS } else { TRIALS };
    effort.progress.expect_parts(trials.div_ceil(AT_ONCE) as usize + 1);
    let mut counts = [ExactCount::default(); 3];
    let first = effort.seed << 32;
    for from in (first..first + trials).step_by(AT_ONCE as usize) {
        if !effort.progress.go_on(from - first) {
            return Ok(None);
        }
        let seeds: Vec<u64> = (from..(first + trials).min(from + AT_ONCE)).collect();
        for result in parallel::map(&seeds, effort.jobs, |seed| trial(*seed)) {
            for (count, exact) in counts.iter_mut().zip(result?) {
                exact.into_iter().for_each(|exact| count.add(exact));
            }
        }
        effort.progress.part_done();
    }
    let Some((network, largest, packets)) = network(effort)? else { return Ok(None) };
    effort.progress.part_done();
    let mut computed = ComputedValues::default();
    for (name, count) in ["times", "decisions", "jittered"].into_iter().zip(counts) {
        computed.value(name, count.share());
    }
    computed.value("network", network.share());
    computed.value("capture", MeasuredValue::exact(largest, packets));
    Ok(Some(computed))
}

/// Tests if the connection of a seed is exact at level times, at level decisions, and there by a clock that is wrong;
/// `None` for BBR at level decisions.
fn trial(seed: u64) -> Result<[Option<bool>; 3], ClaimError> {
    let exact = |level, jitter| -> Result<Option<bool>, ClaimError> {
        let Some(log) = record_trial(seed, level) else { return Ok(None) };
        let log = ConnectionLog::read(&log).map_err(ClaimError::new)?;
        let result = replay_jittered(&log, jitter, &mut ()).map_err(ClaimError::new)?;
        Ok(Some(result.is_exact()))
    };
    let wrong = ReplayJitter { seed: Some(seed), ..ReplayJitter::default() };
    let right = ReplayJitter::default();
    Ok([exact(LogLevel::Times, right)?, exact(LogLevel::Decisions, right)?, exact(LogLevel::Decisions, wrong)?])
}

/// Connections of the network of det.size; and at one host's port, by how much a packet of the replay is off at most, in µs.
fn network(effort: &Effort<'_>) -> Result<Option<(ExactCount, f64, u64)>, ClaimError> {
    let mut setup = size::setup(effort)?;
    let port = setup.topology.link_between(HOST, "sw0").map_err(ClaimError::new)?;
    let host = setup.topology.node(HOST).map_err(ClaimError::new)?;
    setup.capture = vec![port];
    let Some((outcome, logs)) = logs::record(&setup, LogLevel::Decisions, effort)? else { return Ok(None) };
    let mut count = ExactCount::default();
    let mut replayed = Vec::new();
    for log in logs.0.values() {
        let log = logs::replay_log(log)?;
        count.add(log.exact);
        replayed.extend(left_host(&log, host.0));
    }
    let mut captured: Vec<(u32, bool, Time, Option<Sent>)> = Vec::new();
    for packet in &outcome.captured {
        let sent = match packet.packet.body {
            Body::Tcp(segment) => Some(without_timestamps(Sent::Segment(segment))),
            _ => None,
        };
        captured.push((packet.flow, packet.forward, packet.at, sent));
    }
    captured.sort_by_key(|(flow, forward, ..)| (*flow, *forward));
    replayed.sort_by_key(|(flow, forward, ..)| (*flow, *forward));
    if captured.len() != replayed.len() {
        let (there, here) = (captured.len(), replayed.len());
        return Err(ClaimError::new(format_args!("{here} packets replayed, {there} captured")));
    }
    let mut largest = 0.0_f64;
    for ((flow, forward, at, sent), (.., about, again)) in captured.iter().zip(&replayed) {
        if sent.is_some() && sent != again {
            return Err(ClaimError::new(format_args!("flow {flow}, forward {forward}: another packet at {at:?}")));
        }
        largest = largest.max(at.since(*about).max(about.since(*at)).as_us());
    }
    Ok(Some((count, largest, captured.len() as u64)))
}

/// Frames that left a host, by connection and direction in its order.
fn left_host(log: &ReplayedLog, host: u32) -> Vec<(u32, bool, Time, Option<Sent>)> {
    let mine = |side: LogSide| log.header.hosts[usize::from(side == LogSide::Server)] == host;
    let of = |frame: &::deter::ReplayedFrame| {
        (log.header.flow, frame.side == LogSide::Client, frame.at, Some(without_timestamps(frame.sent)))
    };
    log.frames.iter().filter(|frame| mine(frame.side)).map(of).collect()
}

/// Timestamps are those of the run only where its times are.
fn without_timestamps(sent: Sent) -> Sent {
    match sent {
        Sent::Segment(segment) => Sent::Segment(tcp::TcpSegment { timestamp: 0, echo: 0, ..segment }),
        handshake => handshake,
    }
}

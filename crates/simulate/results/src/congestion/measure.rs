//! Makes a row of a run.

use scenario::SweepPoint;
use serde::Serialize;
use sim::net::{FlowRow, NetworkOutcome, PortCounters};
use sim::topology::DirectedLink;
use units::{Progress, Time};

use super::{CongestionSettings, fairness};
use crate::flows::{Percentiles, QueuePercentiles, RttPercentiles};

/// One controller. What does not apply is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct CongestionRow {
    /// The controller, by the word of a scenario.
    pub cc: &'static str,
    pub traffic: &'static str,
    pub recovery: &'static str,
    pub pfc: bool,
    pub loss: f64,
    pub protect: String,
    pub flows: u64,
    pub complete: u64,
    /// Slowdowns and completion times of complete flows; of mice alone where there are mice.
    pub slowdown: FlowPercentiles,
    pub fct_us: FlowPercentiles,
    /// Payload that arrived in order at all hosts, over the time of the run.
    pub goodput_gbps: f64,
    /// Jain's index of the goodputs of long flows while all of them are active.
    pub fairness: Option<f64>,
    /// Weighted by time; of the bottleneck's port, or of all switch ports where flows arrive at random.
    pub queue_bytes: Option<QueuePercentiles>,
    /// Round-trip times of data packets.
    pub rtt_us: Option<RttPercentiles>,
    pub pauses: Option<u64>,
    /// Over all ports.
    pub paused_seconds: Option<f64>,
    /// Packets dropped at full buffers.
    pub dropped: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
}

/// Percentiles over flows; a percentile that too few values lie beyond is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowPercentiles {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

impl FlowPercentiles {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let Percentiles { mean, p50, p95, p99, max, .. } = Percentiles::of(values.collect());
        Self { mean, p50, p95, p99, max }
    }
}

/// Runs one controller; none if `progress` ended it early.
pub(super) fn row(
    settings: &CongestionSettings,
    controller: &'static str,
    point: &SweepPoint,
    progress: &dyn Progress,
) -> Result<Option<CongestionRow>, String> {
    let outcome = sim::net::run(point.setup(settings.seed), progress).map_err(|error| error.to_string())?;
    if outcome.interrupted {
        return Ok(None);
    }
    let fairness = match settings.traffic.is_open() {
        true => None,
        false => fairness::of_long_flows(point, settings.seed, &outcome.flows, progress)?,
    };
    Ok(Some(CongestionRow { fairness, ..of_outcome(settings, controller, point, &outcome)? }))
}

fn of_outcome(
    settings: &CongestionSettings,
    cc: &'static str,
    point: &SweepPoint,
    outcome: &NetworkOutcome,
) -> Result<CongestionRow, String> {
    let flows = &outcome.flows;
    let measured = |flow: &&FlowRow| settings.traffic.measured().is_none_or(|traffic| flow.traffic == traffic);
    let ports = match settings.traffic.bottleneck() {
        Some([from, to]) => vec![port(point, from, to)?],
        None => Vec::new(),
    };
    let queues = outcome.queue_lengths(&ports);
    let sum = |count: fn(&PortCounters) -> u64| outcome.ports.iter().map(count).sum();
    let seconds = outcome.ended.since(Time::ZERO).as_secs();
    let received: u64 = flows.iter().map(|flow| flow.received).sum();
    Ok(CongestionRow {
        cc,
        traffic: settings.traffic.name(),
        recovery: settings.recovery,
        pfc: settings.pfc,
        loss: settings.loss.get(),
        protect: settings.protect.clone(),
        flows: flows.len() as u64,
        complete: flows.iter().filter(|flow| flow.finish.is_some()).count() as u64,
        slowdown: FlowPercentiles::of(flows.iter().filter(measured).filter_map(FlowRow::slowdown)),
        fct_us: FlowPercentiles::of(flows.iter().filter(measured).filter_map(|flow| Some(flow.fct()?.as_us()))),
        goodput_gbps: if seconds > 0.0 { received as f64 * 8.0 / seconds / 1e9 } else { 0.0 },
        fairness: None,
        queue_bytes: queues.max().map(|_| QueuePercentiles::of(&queues)),
        rtt_us: outcome.round_trips.as_deref().map(RttPercentiles::of),
        pauses: outcome.pfc.map(|pfc| pfc.pauses),
        paused_seconds: outcome.pfc.map(|pfc| pfc.paused_seconds),
        dropped: sum(|port| port.dropped),
        retransmitted: flows.iter().map(|flow| u64::from(flow.tally.retransmitted)).sum(),
        timeouts: flows.iter().map(|flow| u64::from(flow.tally.timeouts)).sum(),
    })
}

fn port(point: &SweepPoint, from: &str, to: &str) -> Result<DirectedLink, String> {
    point.topology().link_between(from, to).map_err(|error| error.to_string())
}

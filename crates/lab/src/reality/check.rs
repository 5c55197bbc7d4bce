//! The same flows over the same wire, in reality and simulated.

use std::time::Duration;

use chart::table::{Align, Table, micros as us};
use faults::{FaultSchedule, LossModel};
use linux::LinkError;
use serde::Serialize;
use sim::net::{
    HostLatency, LinkSetup, NetworkOutcome, NetworkSetup, Protection, SwitchSettings, TrafficSetup, TransportSetup,
};
use sim::topology::{NodeId, NodeKind, Topology, TopologyLink, TopologyNode};
use sim::workload::{FlowSchedule, FlowSeries, Workload, WorkloadFlow};
use tcp::{self, TimerProfile, cc::Algorithm};
use units::{Prob, Rate, Span, StopFlag, Time};

use super::{SimCheckCase, SimCheckMeasurement};
use load::KernelCongestion;

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct CheckPlan {
    pub rate: Rate,
    /// In each direction.
    pub losses: Vec<Prob>,
    /// Of each case and round.
    pub bulk: Duration,
    pub requests: u32,
    pub rounds: u32,
    /// Ticks a second of this machine's kernel.
    pub hz: u32,
}

/// One wire and one congestion control, in reality and simulated.
#[derive(Debug, Serialize)]
struct SimCheckRow {
    congestion: &'static str,
    loss: f64,
    live: SimCheckFigures,
    simulated: SimCheckFigures,
    /// Simulated over live.
    throughput_ratio: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct SimCheckFigures {
    throughput_gbps: f64,
    request_p50_us: f64,
    request_p99_us: f64,
    request_p999_us: f64,
}

#[derive(Debug, Serialize)]
pub struct SimCheckReport {
    rate_gbps: f64,
    /// What a host takes to deal with a packet, from the round trips over a clean wire.
    host_latency_us: f64,
    rounds: u32,
    rows: Vec<SimCheckRow>,
}

/// Of the simulated flow: long enough for its throughput to settle.
const SIMULATED: Span = Span::from_ms(20_000);
const SIMULATED_REQUESTS: u64 = 50_000;

/// `None` if it was stopped.
pub fn check(plan: &CheckPlan, stop: &StopFlag, say: &dyn Fn(&str)) -> Result<Option<SimCheckReport>, LinkError> {
    say("a clean wire, to see what the hosts take");
    let Some(clean) = live(plan, Prob::literal(0.0), KernelCongestion::Cubic, stop)? else { return Ok(None) };
    let latency = host_latency(plan.rate, clean.request_p50_us);
    let mut rows = Vec::new();
    for congestion in [KernelCongestion::Cubic, KernelCongestion::Bbr] {
        for loss in &plan.losses {
            say(&format!("{}, loss {loss}", congestion.name()));
            let Some(live) = live(plan, *loss, congestion, stop)? else { return Ok(None) };
            let Some(simulated) = simulated(plan, *loss, congestion, latency, stop)? else { return Ok(None) };
            let throughput_ratio = simulated.throughput_gbps / live.throughput_gbps;
            rows.push(SimCheckRow {
                congestion: congestion.name(),
                loss: loss.get(),
                live,
                simulated,
                throughput_ratio,
            });
        }
    }
    let rate_gbps = plan.rate.bits_per_second() as f64 / 1e9;
    Ok(Some(SimCheckReport { rate_gbps, host_latency_us: latency.as_us(), rounds: plan.rounds, rows }))
}

/// Medians over the rounds; the round trips of all of them together.
fn live(
    plan: &CheckPlan,
    loss: Prob,
    congestion: KernelCongestion,
    stop: &StopFlag,
) -> Result<Option<SimCheckFigures>, LinkError> {
    let bulk = plan.bulk;
    let requests = plan.requests;
    let case = SimCheckCase { rate: plan.rate, loss, congestion, bulk, requests };
    let mut rounds: Vec<SimCheckMeasurement> = Vec::new();
    for _ in 0..plan.rounds {
        let seen = super::run(&case, stop)?;
        let Some(seen) = seen else { return Ok(None) };
        rounds.push(seen);
    }
    let throughput_gbps = crate::demo::median(rounds.iter().map(|round| round.gbps).collect());
    let mut trips = load::RoundTrips::default();
    rounds.iter().for_each(|round| trips.merge(&round.round_trips));
    let at = |share| trips.quantile(share).as_nanos() as f64 / 1e3;
    Ok(Some(SimCheckFigures {
        throughput_gbps,
        request_p50_us: at(0.5),
        request_p99_us: at(0.99),
        request_p999_us: at(0.999),
    }))
}

/// Half of what a round trip takes besides the wire.
fn host_latency(rate: Rate, round_trip_us: f64) -> Span {
    let wire = rate.span_of(units::Bytes::new(2 * u64::from(wire::ethernet::on_wire(64 + sim::net::TCP_HEADERS))));
    Span::from_ps((round_trip_us * 1e6) as u64).saturating_sub(wire) / 2
}

fn simulated(
    plan: &CheckPlan,
    loss: Prob,
    congestion: KernelCongestion,
    latency: Span,
    stop: &StopFlag,
) -> Result<Option<SimCheckFigures>, LinkError> {
    let run = |work, reply, until| {
        let outcome = sim::net::run(setup(plan, loss, congestion, latency, work, reply, until), stop);
        outcome.map_err(|error| LinkError(error.to_string()))
    };
    let (src, dst) = (NodeId(0), NodeId(1));
    let flow = WorkloadFlow { start: Time::ZERO, src, dst, bytes: plan.rate.bytes_in(SIMULATED).get(), group: 0 };
    let bulk = run(Workload::Open(FlowSchedule::list(vec![flow])), 0, Time::ZERO + SIMULATED)?;
    let series = FlowSeries { src, dst, bytes: 64, count: SIMULATED_REQUESTS, gap: Span::ZERO, group: 0 };
    let requests = run(Workload::Series(series), 64, Time::NEVER)?;
    Ok((!stop.is_stopped()).then(|| figures(&bulk, &requests)))
}

fn figures(bulk: &NetworkOutcome, requests: &NetworkOutcome) -> SimCheckFigures {
    let mut times: Vec<f64> = requests.flows.iter().filter_map(|flow| flow.fct()).map(|fct| fct.as_us()).collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
    let bits: u64 = bulk.flows.iter().map(|flow| flow.received * 8).sum();
    SimCheckFigures {
        throughput_gbps: bits as f64 / SIMULATED.as_secs() / 1e9,
        request_p50_us: at(0.5),
        request_p99_us: at(0.99),
        request_p999_us: at(0.999),
    }
}

/// Two hosts, and a wire with the queue that the live one has before it.
fn setup(
    plan: &CheckPlan,
    loss: Prob,
    congestion: KernelCongestion,
    latency: Span,
    work: Workload,
    reply: u64,
    until: Time,
) -> NetworkSetup {
    let node = |name: &str, kind| TopologyNode { name: name.into(), kind };
    let link = |a, b, rate| TopologyLink { a: NodeId(a), b: NodeId(b), rate, delay: Span::ZERO };
    let nodes = vec![node("left", NodeKind::Host), node("right", NodeKind::Host), node("wire", NodeKind::Switch)];
    let links = vec![link(0, 2, Rate::gbps(1_000)), link(2, 1, plan.rate)];
    let faults = || FaultSchedule::always(LossModel::PerFrame(loss));
    let algorithm = match congestion {
        KernelCongestion::Cubic => Algorithm::Cubic,
        KernelCongestion::Bbr => Algorithm::Bbr,
        KernelCongestion::Reno => Algorithm::Reno,
    };
    let profile = TimerProfile::Linux { hz: plan.hz, rto_min: Span::from_ms(200), phase: Span::ZERO };
    let transport = TransportSetup::Tcp(tcp::TcpConfig { algorithm, profile, ..tcp::TcpConfig::default() });
    NetworkSetup {
        switches: SwitchSettings { port_limit: Some(crate::stage::queue_of(plan.rate)), ..SwitchSettings::default() },
        host_latency: HostLatency::LogNormal { median: latency, sigma: 0.3 },
        links: vec![LinkSetup {
            link: sim::topology::TopologyLinkId(1),
            forward: faults(),
            reverse: faults(),
            protection: Protection::None,
            activate_at: None,
        }],
        traffic: vec![TrafficSetup {
            name: "check".into(),
            transport,
            work,
            reply,
            acknowledged: false,
            class: 0,
            ack_class: None,
            queue_pairs: None,
        }],
        until,
        ..NetworkSetup::new(Topology { nodes, links })
    }
}

impl SimCheckReport {
    pub fn text(&self) -> String {
        let mut table = Table::new(&[
            ("", Align::Left),
            ("live Gb/s", Align::Right),
            ("simulated", Align::Right),
            ("ratio", Align::Right),
            ("live p50", Align::Right),
            ("p99", Align::Right),
            ("p99.9", Align::Right),
            ("simulated p50", Align::Right),
            ("p99", Align::Right),
            ("p99.9", Align::Right),
        ]);
        for row in &self.rows {
            let tail = |figures: &SimCheckFigures| {
                [figures.request_p50_us, figures.request_p99_us, figures.request_p999_us].map(us)
            };
            let head = vec![
                format!("{}, loss {}", row.congestion, Prob::literal(row.loss)),
                format!("{:.3}", row.live.throughput_gbps),
                format!("{:.3}", row.simulated.throughput_gbps),
                format!("{:.2}", row.throughput_ratio),
            ];
            table.row([head, tail(&row.live).into(), tail(&row.simulated).into()].concat());
        }
        format!(
            "a wire of {} Gb/s, {} rounds; hosts take {:.0} µs, as over a clean wire\n\n{table}",
            self.rate_gbps, self.rounds, self.host_latency_us
        )
    }
}

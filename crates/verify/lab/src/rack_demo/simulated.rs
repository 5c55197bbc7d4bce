//! The same rack where namespaces are forbidden: in the network simulator, with TCP as a kernel has it.
//!
//! Hosts there have no stand-ins without reservations (`shim` is `plain`), senders wait for their host and are not refused, and
//! neither a ring nor the switch's loop can be too slow.

use std::time::Duration;

use reserve::host::WaitRule;
use reserve::{RackParamError, RackParams, SchedulerKind};
use sim::net::{
    DatagramConfig, DatagramGaps, HostLatency, NetworkOutcome, NetworkSetup, RackSetup, SwitchSettings, TrafficSetup,
    TransportSetup,
};
use sim::topology::{DirectedLink, NodeId, Topology};
use sim::workload::{FlowSchedule, FlowSeries, Workload, WorkloadFlow};
use tcp::TcpConfig;
use units::{Rate, Span, StopFlag, Time};
use wire::ethernet::{MIN_FRAME, on_wire};

use super::RackDemoObserver;
use super::rows::{RackBackground, RackCase, RackDemoPlan, RackDemoResult, RackRound, RackRow, RackWay};
use crate::demo::LINUX;
use load::RoundTrips;

/// The client, its server, and the first of those that send beside them.
const CLIENT: NodeId = NodeId(0);
const SERVER: NodeId = NodeId(1);
const FIRST_SENDER: u32 = 2;
/// Bytes of a GET and of its answer.
const REQUEST: u64 = 96;
const REPLY: u64 = 4_096;
/// Payload of a datagram that makes a full frame.
const DATAGRAM: u32 = 1_472;
const FULL_FRAME: u64 = 1_538;
/// A host's way through its stack, each time; a cable and a switch are fast beside it.
const STACK: HostLatency = HostLatency::LogNormal { median: Span::from_us(10), sigma: 0.3 };
const CABLE: Span = Span::from_us(1);
/// A GET that has not been answered for this long at the end has failed.
const FAILED_AFTER: Duration = Duration::from_millis(100);

/// `None` if it was stopped before one round was complete.
pub fn run(plan: &RackDemoPlan, stop: &StopFlag, watch: &dyn RackDemoObserver) -> Option<RackDemoResult> {
    let cases = plan.cases();
    let steps = plan.rounds * (cases.len() * RackWay::ALL.len()) as u32;
    let (mut rounds, mut step) = (Vec::new(), 0);
    for round in 1..=plan.rounds {
        let mut measured: Vec<RackRound> = Vec::new();
        for case in &cases {
            for way in RackWay::ALL {
                watch.begin(round, &format!("{}, {case}", way.name()), step, steps);
                step += 1;
                let row = match measured.last().filter(|_| way == RackWay::Shim) {
                    Some(plain) => Some(RackRow { way: way.name(), ..plain.clone() }),
                    None => simulate(plan, way, *case, u64::from(round), stop),
                };
                match row {
                    Some(row) => measured.push(row),
                    None => return (!rounds.is_empty()).then(|| RackDemoResult::simulated(plan, &rounds)),
                }
            }
        }
        rounds.push(measured);
    }
    Some(RackDemoResult::simulated(plan, &rounds))
}

/// One measurement; `None` if it was stopped.
fn simulate(plan: &RackDemoPlan, way: RackWay, case: RackCase, seed: u64, stop: &StopFlag) -> Option<RackRow> {
    let hosts = plan.hosts as u32;
    // A plan has at least three hosts.
    let topology = Topology::single_switch(hosts, plan.rate, CABLE).ok()?;
    let until = Time::ZERO + Span::from_us(plan.measure.as_micros() as u64);
    let setup = NetworkSetup {
        switches: SwitchSettings { port_limit: Some(plan.buffer), ..SwitchSettings::default() },
        rack: rack(plan, way).ok()?,
        host_latency: STACK,
        traffic: [gets()].into_iter().chain(background(plan, case)).collect(),
        queues: true,
        until,
        seed,
        ..NetworkSetup::new(topology.clone())
    };
    let outcome = sim::net::run(setup, stop).ok()?;
    (!stop.is_stopped()).then(|| row(plan, way, case, &topology, &outcome))
}

/// Settings with which hosts reserve; none if they do not in this way.
fn rack(plan: &RackDemoPlan, way: RackWay) -> Result<Option<RackSetup>, RackParamError> {
    let Some(agreement) = plan.agreement(way) else { return Ok(None) };
    let hosts = plan.hosts as u16;
    let params = RackParams { contexts: hosts, ..agreement.at_switch(hosts, plan.buffer)? };
    Ok(Some(RackSetup {
        params,
        per_destination: true,
        wait: if params.scheduler == SchedulerKind::Paper { WaitRule::Printed } else { WaitRule::NeverEarly },
        too_early: Span::ZERO,
        software: Span::ZERO,
        answer: STACK,
        recent: params.horizon,
        resets: false,
        restarts: Vec::new(),
    }))
}

fn traffic(name: &str, work: Workload, reply: u64) -> TrafficSetup {
    let transport = TransportSetup::Tcp(TcpConfig { profile: LINUX, ..TcpConfig::default() });
    TrafficSetup { reply, ..TrafficSetup::new(name, transport, work) }
}

fn gets() -> TrafficSetup {
    let series = FlowSeries { src: CLIENT, dst: SERVER, bytes: REQUEST, count: u64::MAX, gap: Span::ZERO, group: 0 };
    traffic("GETs", Workload::Series(series), REPLY)
}

fn background(plan: &RackDemoPlan, case: RackCase) -> Option<TrafficSetup> {
    let flow = |sender: usize| WorkloadFlow {
        start: Time::ZERO,
        src: NodeId(FIRST_SENDER + sender as u32),
        dst: CLIENT,
        bytes: u64::from(DATAGRAM) << 30,
        group: 0,
    };
    let work = Workload::Open(FlowSchedule::list((0..case.senders).map(flow).collect()));
    let name = case.background.name();
    match case.background {
        RackBackground::None => None,
        RackBackground::Tcp => Some(traffic(name, work, 0)),
        RackBackground::Udp => {
            // The rest of the port's rate is for payload.
            let bits_per_second = plan.rate.bits_per_second() * u64::from(DATAGRAM) / FULL_FRAME;
            let rate = Rate::from_bits_per_second(bits_per_second);
            let config = DatagramConfig { payload: DATAGRAM, rate: Some(rate), gaps: DatagramGaps::Drawn };
            Some(TrafficSetup::new(name, TransportSetup::Datagrams(config), work))
        }
    }
}

fn row(plan: &RackDemoPlan, way: RackWay, case: RackCase, topology: &Topology, outcome: &NetworkOutcome) -> RackRow {
    let (trips, gets, failed) = round_trips(outcome);
    let us = |delay: Duration| (gets + failed > 0).then_some(delay.as_nanos() as f64 / 1e3);
    let seconds = outcome.ended.since(Time::ZERO).as_secs();
    let to_client = topology.directed().find(|link| topology.to(*link) == CLIENT);
    let counters = to_client.map(|link| outcome.ports[link.index()]).unwrap_or_default();
    let received: u64 = outcome.flows.iter().filter(|flow| flow.traffic == 1).map(|flow| flow.received).sum();
    let is_udp = case.background == RackBackground::Udp;
    let peak = match &outcome.rack {
        Some(rack) => rack.peaks.iter().find(|(link, _)| Some(*link) == to_client).map(|(_, peak)| peak.get()),
        None => outcome.queues.iter().find(|(link, _)| Some(*link) == to_client).and_then(|(_, queue)| queue.max()),
    };
    RackRow {
        way: way.name(),
        background: case.background.name(),
        senders: case.senders,
        gets,
        failed,
        get_p50_us: us(trips.p50()),
        get_p99_us: us(trips.p99()),
        get_p999_us: us(trips.p999()),
        over_100ms: trips.over(FAILED_AFTER),
        background_mbps: received as f64 * 8.0 / seconds / 1e6,
        port_utilisation: counters.wire_bytes as f64 * 8.0 / seconds / plan.rate.bits_per_second() as f64,
        offered_frames: counters.frames + counters.dropped,
        switch_dropped: outcome.ports.iter().map(|port| port.dropped).sum(),
        ring_overflow: 0,
        port_peak_bytes: peak.unwrap_or(0),
        refused_by_hosts: 0,
        planned: 0,
        sent: if is_udp { datagrams_sent(topology, outcome) } else { 0 },
        delivered: if is_udp { received / u64::from(DATAGRAM) } else { 0 },
        duplicates: outcome.rack_hosts.duplicates,
        reordered: 0,
        switch_busy: 0.0,
    }
}

/// Number of datagrams that senders sent. They put full frames and messages of one size on their wires, so the frames and
/// bytes tell how many there are of each.
fn datagrams_sent(topology: &Topology, outcome: &NetworkOutcome) -> u64 {
    let message = u64::from(on_wire(MIN_FRAME));
    let by_sender = |link: &DirectedLink| {
        let from = topology.from(*link);
        topology.is_host(from) && from.0 >= FIRST_SENDER
    };
    let ports = topology.directed().filter(by_sender).map(|link| outcome.ports[link.index()]);
    ports.map(|port| (port.wire_bytes - message * port.frames) / (FULL_FRAME - message)).sum()
}

/// Times that GETs took, those that failed included, and the numbers of GETs and of those that failed.
fn round_trips(outcome: &NetworkOutcome) -> (RoundTrips, u64, u64) {
    let (mut trips, mut gets, mut failed) = (RoundTrips::default(), 0, 0);
    for flow in outcome.flows.iter().filter(|flow| flow.traffic == 0) {
        let waited = Duration::from_nanos(flow.finish.unwrap_or(outcome.ended).since(flow.start).as_ps() / 1_000);
        if flow.finish.is_some() {
            gets += 1;
        } else if waited > FAILED_AFTER {
            failed += 1;
        } else {
            continue;
        }
        trips.record(waited);
    }
    (trips, gets, failed)
}

#[cfg(test)]
mod tests {
    use standin::HostBackend;
    use units::Bytes;

    use super::*;

    struct NobodyWatches;

    impl RackDemoObserver for NobodyWatches {
        fn begin(&self, _: u32, _: &str, _: u32, _: u32) {}
        fn remark(&self, _: &str) {}
    }

    #[test]
    fn the_simulated_rack_ends_as_the_real_one_does() {
        let plan = RackDemoPlan {
            rate: Rate::from_bits_per_second(500_000_000),
            buffer: Bytes::new(128_000),
            hosts: 6,
            rounds: 1,
            measure: Duration::from_millis(300),
            host: HostBackend::Auto,
            scheduler: SchedulerKind::Late,
        };
        let result = run(&plan, &StopFlag::new(), &NobodyWatches).unwrap();
        assert!(result.simulated && result.valid && result.rows.len() == 4 * 9);
        let row = |way: &str, background: &str, senders: usize| {
            let is_it = |row: &&RackRow| row.way == way && row.background == background && row.senders == senders;
            result.rows.iter().find(is_it).unwrap()
        };
        let (plain, pl2) = (row("plain", "udp", 4), row("pl2", "udp", 4));
        assert!(plain.switch_dropped > 10_000 && plain.failed + plain.over_100ms > 0, "{plain:?}");
        assert!(plain.sent >= plain.delivered + plain.switch_dropped - 10, "{plain:?}");
        assert!(pl2.switch_dropped == 0 && pl2.port_peak_bytes <= result.bound_bytes.unwrap(), "{pl2:?}");
        assert!(pl2.port_utilisation > 0.9 && pl2.get_p99_us.unwrap() < 10_000.0, "{pl2:?}");
        assert!((pl2.delivered..pl2.delivered + 200).contains(&pl2.sent), "what is under way aside: {pl2:?}");
        assert!(row("shim", "tcp", 2).gets > 0 && row("paper", "none", 0).gets > 100);
    }
}

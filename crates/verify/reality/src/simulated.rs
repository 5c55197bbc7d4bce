//! The same flows over the same wire in the simulator.

use faults::FaultSchedule;
use linux::SystemError;
use load::KernelCongestion;
use sim::net::{
    HostLatency, LinkSetup, NetworkOutcome, NetworkSetup, PortCapture, Protection, Sampling, SwitchSettings,
    TrafficSetup, TransportSetup,
};
use sim::topology::{NodeId, NodeKind, Topology, TopologyLink, TopologyLinkId, TopologyNode};
use sim::workload::{FlowSchedule, FlowSeries, Workload, WorkloadFlow};
use tcp::cc::Algorithm;
use tcp::{LinuxVersion, TcpConfig, TimerProfile};
use units::{Rate, Span, StopFlag, Time};

use super::plan::{CheckCase, CheckPlan, span};

const SENDER: NodeId = NodeId(0);
const RECEIVER: NodeId = NodeId(1);
/// Rate between a host and the wire's queue, so high that nothing waits there.
const AT_ONCE: Rate = Rate::gbps(1_000);
/// The sender's own link, and the wire.
const ACCESS: TopologyLinkId = TopologyLinkId(0);
const WIRE: TopologyLinkId = TopologyLinkId(1);

/// Rate of a simulated bulk flow in Gb/s, over the time that is measured live; `None` if it was stopped.
pub(super) fn bulk(
    case: &CheckCase,
    plan: &CheckPlan,
    hosts: HostLatency,
    round: u32,
    stop: &StopFlag,
) -> Result<Option<f64>, SystemError> {
    let mut setup = setup(case, plan, hosts, case.bulk_faults(plan.whole(case), round));
    setup.traffic[0].work = flow(case, plan.whole(case));
    setup.until = Time::ZERO + plan.whole(case);
    setup.sampling = Some(Sampling { every: Span::from_ms(10), ports: Vec::new() });
    let outcome = run(setup, stop)?;
    let from = Time::ZERO + span(plan.warmup(case));
    let measured = outcome.samples.iter().filter(|sample| sample.at > from);
    let bytes: u64 = measured.flat_map(|sample| &sample.received).sum();
    Ok((!stop.is_stopped()).then(|| bytes as f64 * 8.0 / plan.measured(case).as_secs_f64() / 1e9))
}

/// Round trips in µs, in order; `None` if they were stopped.
pub(super) fn requests(
    case: &CheckCase,
    plan: &CheckPlan,
    hosts: HostLatency,
    round: u32,
    stop: &StopFlag,
) -> Result<Option<Vec<f64>>, SystemError> {
    let mut setup = setup(case, plan, hosts, case.request_faults(plan.requests, round));
    let count = plan.requests.into();
    let series = FlowSeries { src: SENDER, dst: RECEIVER, bytes: 64, count, gap: Span::ZERO, group: 0 };
    setup.traffic[0].work = Workload::Series(series);
    setup.traffic[0].reply = 64;
    let outcome = run(setup, stop)?;
    let mut trips: Vec<f64> = outcome.flows.iter().filter_map(|flow| flow.fct()).map(|fct| fct.as_us()).collect();
    trips.sort_by(f64::total_cmp);
    Ok((!stop.is_stopped()).then_some(trips))
}

/// Capture of the frames that a bulk flow's sender sends and receives; `None` if it was stopped.
pub(super) fn capture(
    case: &CheckCase,
    plan: &CheckPlan,
    hosts: HostLatency,
    round: u32,
    stop: &StopFlag,
) -> Result<Option<Vec<PortCapture>>, SystemError> {
    let mut setup = setup(case, plan, hosts, case.bulk_faults(plan.whole(case), round));
    let lasts = span(plan.measured(case));
    setup.traffic[0].work = flow(case, lasts);
    setup.until = Time::ZERO + lasts;
    setup.capture = vec![ACCESS.forward(), ACCESS.forward().reversed()];
    let outcome = run(setup, stop)?;
    Ok((!stop.is_stopped()).then_some(outcome.captured))
}

fn run(setup: NetworkSetup, stop: &StopFlag) -> Result<NetworkOutcome, SystemError> {
    sim::net::run(setup, stop).map_err(|error| SystemError(error.to_string()))
}

/// One that does not end before.
fn flow(case: &CheckCase, lasts: Span) -> Workload {
    let bytes = case.rate.bytes_in(lasts).get() * 2;
    let flow = WorkloadFlow { start: Time::ZERO, src: SENDER, dst: RECEIVER, bytes, group: 0 };
    Workload::Open(FlowSchedule::list(vec![flow]))
}

/// Two hosts, and a wire with the queue that the live one has before it.
fn setup(case: &CheckCase, plan: &CheckPlan, hosts: HostLatency, faults: [FaultSchedule; 2]) -> NetworkSetup {
    let node = |name: &str, kind| TopologyNode { name: name.into(), kind };
    let link = |a, b, rate, delay| TopologyLink { a, b, rate, delay };
    let nodes = vec![node("sender", NodeKind::Host), node("receiver", NodeKind::Host), node("wire", NodeKind::Switch)];
    let links = vec![link(SENDER, NodeId(2), AT_ONCE, Span::ZERO), link(NodeId(2), RECEIVER, case.rate, case.delay)];
    let [forward, reverse] = faults;
    let wire = LinkSetup { link: WIRE, forward, reverse, protection: Protection::None, activate_at: None };
    let transport = TransportSetup::Tcp(transport(case.congestion, plan.hz));
    let nothing = Workload::Open(FlowSchedule::list(Vec::new()));
    NetworkSetup {
        switches: SwitchSettings { port_limit: Some(lab::stage::queue_of(case.rate)), ..SwitchSettings::default() },
        switch_latency: Span::ZERO,
        host_latency: hosts,
        links: vec![wire],
        traffic: vec![TrafficSetup::new("check", transport, nothing)],
        ..NetworkSetup::new(Topology { nodes, links })
    }
}

/// This kernel's TCP.
fn transport(congestion: KernelCongestion, hz: u32) -> TcpConfig {
    let algorithm = match congestion {
        KernelCongestion::Cubic => Algorithm::Cubic,
        KernelCongestion::Bbr => Algorithm::Bbr,
        KernelCongestion::Reno => Algorithm::Reno,
    };
    let profile = TimerProfile::Linux { hz, rto_min: Span::from_ms(200), phase: Span::ZERO };
    TcpConfig { algorithm, profile, ..TcpConfig::linux(LinuxVersion::Current) }.reading()
}

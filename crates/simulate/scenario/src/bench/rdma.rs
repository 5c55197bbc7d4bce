//! Congestion control of RDMA on the fabric of HPCC's paper: 320 hosts at 100G, 400G between switches, PFC on.

use congestion::{ControllerConfig, DcqcnConfig, HpccConfig};
use faults::Random;
use roce::{RdmaFraming, RoceConfig};
use units::{Bytes, Rate, Span, Time};
use wire::ip::Ecn;

use super::SimBenchError;
use sim::net::{
    IntCharge, IntSettings, Marking, MarkingPoint, NetworkSetup, Pfc, PfcHeadroom, SwitchSettings, TrafficSetup,
    TransportSetup,
};
use sim::topology::{NodeId, Topology};
use sim::workload::{ArrivalStop, BurstPace, FlowSchedule, Incast, Poisson, SizeTrace, Workload};

const RATE: Rate = Rate::gbps(100);
/// Base round trip and a little more, as the thesis has it.
const T: Span = Span::from_us(13);
/// Time during which flows arrive.
const ARRIVALS: Span = Span::from_ms(1);
/// Packets of a base round trip: what a queue pair without a controller may have outstanding.
const WINDOW: u32 = 163;

/// Traffic, and the control of its congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RdmaCase {
    /// Flows of this trace at 30 % load, under HPCC.
    Hpcc(SizeTrace),
    /// 60 hosts at a time send 500 KB to one, under DCQCN.
    DcqcnIncast,
}

/// The network with a share of 1 / `shrink` of the traffic. Without a controller, the rest stays as it is.
pub(super) fn setup(case: RdmaCase, shrink: u64, controlled: bool) -> Result<NetworkSetup, SimBenchError> {
    let topology = Topology::hpcc();
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let mut setup = NetworkSetup::new(topology);
    let pfc = Pfc { alpha: 0.125, per_rate: true, headroom: PfcHeadroom::Auto, hysteresis: Bytes::new(3_000) };
    setup.switches = SwitchSettings { pfc: Some(pfc), ..SwitchSettings::default() };
    setup.base_rtt = Some(T);
    let stop = ArrivalStop::At(Time::ZERO + ARRIVALS / shrink);
    let (flows, congestion) = match case {
        RdmaCase::Hpcc(trace) => {
            let (senders, receivers) = (hosts.clone(), hosts);
            let sizes = trace.sizes();
            let poisson = Poisson { load: 0.3, rate: RATE, sizes, senders, receivers, matched: false, stop };
            let hpcc = HpccConfig { w_ai: Some(80.0), ..HpccConfig::default() };
            (FlowSchedule::poisson(poisson, Random::new(1, 0))?, ControllerConfig::Hpcc(hpcc))
        }
        RdmaCase::DcqcnIncast => {
            let pace = BurstPace::Every(Span::from_us(100));
            let incast = Incast { fan_in: 60, bytes: 500_000, hosts, receiver: None, pace, stop };
            (FlowSchedule::incast(incast, Random::new(1, 0))?, ControllerConfig::Dcqcn(DcqcnConfig::VENDOR))
        }
    };
    if controlled {
        support(&mut setup, &congestion);
    }
    let congestion = if controlled { congestion } else { ControllerConfig::None };
    let ecn = if congestion.wants_marks() { Ecn::Capable } else { Ecn::NotCapable };
    let config =
        RoceConfig { mtu: 1_000, ack_every: 1, max_outstanding: WINDOW, congestion, ecn, ..RoceConfig::default() };
    setup.traffic.push(TrafficSetup::new("flows", TransportSetup::Roce(config), Workload::Open(flows)));
    Ok(setup)
}

/// Sets the functions of switches that a controller needs.
fn support(setup: &mut NetworkSetup, congestion: &ControllerConfig) {
    if congestion.wants_telemetry() {
        let room = RdmaFraming::ROCE.telemetry;
        setup.int = Some(IntSettings { charge: IntCharge::Room, rates: Vec::new(), most_hops: 5, room });
    }
    if congestion.wants_marks() {
        let step = Marking::step(Bytes::new(100_000));
        setup.marking = Some(Marking {
            all: Bytes::new(400_000),
            most: 0.2,
            at: MarkingPoint::Departure,
            per: Some(Rate::gbps(25)),
            ..step
        });
    }
}

//! Whole networks: what goes in comes out, queues behave, protocols on links do what they promise.

use faults::{FaultSchedule, FaultStep, LossModel, Random};
use machine::{Forward, SwitchPort, SwitchProgram, Visit};
use sim::link::{self, HardwareProfile, LinkSimMode};
use sim::net::{
    self, DatagramConfig, DatagramGaps, HostLatency, LinkSetup, Marking, NetworkOutcome, NetworkSetup, Pfc, Protection,
    Sampling, SimPacket, SwitchSettings, TrafficSetup, TransportSetup,
};
use sim::topology::{NodeId, Topology};
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use tcp::{self, cc::Algorithm};
use units::{Bytes, Prob, Rate, Span, Time, Unwatched};

const PAYLOAD: u32 = 1_472;

fn datagrams(rate: Option<Rate>) -> TransportSetup {
    TransportSetup::Datagrams(DatagramConfig { payload: PAYLOAD, rate, gaps: DatagramGaps::Even })
}

fn dctcp() -> TransportSetup {
    // Without ticks, at which timers of all hosts go off at once.
    let profile = tcp::TimerProfile::Rfc { rto_min: Span::from_ms(5), max_ack_delay: Span::from_ms(1) };
    TransportSetup::Tcp(tcp::TcpConfig { algorithm: Algorithm::Dctcp, profile, ..tcp::TcpConfig::default() })
}

fn traffic(transport: TransportSetup, flows: Vec<WorkloadFlow>) -> TrafficSetup {
    let work = Workload::Open(FlowSchedule::list(flows));
    TrafficSetup::new("t", transport, work)
}

fn flow(topology: &Topology, from: &str, to: &str, bytes: u64) -> WorkloadFlow {
    let [src, dst] = [from, to].map(|name| topology.node(name).unwrap());
    WorkloadFlow { start: Time::ZERO, src, dst, bytes, group: 0 }
}

/// So many hosts at one switch that all send to the first.
fn many_to_one(senders: u32, bytes: u64) -> NetworkSetup {
    let topology = Topology::single_switch(senders + 1, Rate::gbps(100), Span::from_us(1)).unwrap();
    let flows = (1..=senders).map(|n| flow(&topology, &format!("h{n}"), "h0", bytes)).collect();
    let mut setup = NetworkSetup::new(topology);
    setup.traffic.push(traffic(datagrams(None), flows));
    setup
}

fn run(setup: NetworkSetup) -> NetworkOutcome {
    net::run(setup, &Unwatched).unwrap()
}

fn total(outcome: &NetworkOutcome, what: impl Fn(&net::PortCounters) -> u64) -> u64 {
    outcome.ports.iter().map(what).sum()
}

#[test]
fn a_flow_alone_takes_its_ideal_time() {
    let topology = Topology::fat_tree(4, Rate::gbps(100), Span::from_us(1)).unwrap();
    let hosts: Vec<NodeId> = topology.hosts().collect();
    for (dst, hops) in [(hosts[1], 2), (hosts[2], 4), (hosts[15], 6)] {
        let mut setup = NetworkSetup::new(topology.clone());
        let flow = WorkloadFlow { start: Time::ZERO, src: hosts[0], dst, bytes: 1_000_000, group: 0 };
        setup.traffic.push(traffic(datagrams(None), vec![flow]));
        let outcome = run(setup);
        let row = outcome.flows[0];
        assert_eq!(row.fct(), Some(row.ideal));
        assert_eq!(row.slowdown(), Some(1.0));
        assert_eq!(outcome.packet_hops, hops * 1_000_000u64.div_ceil(u64::from(PAYLOAD)));
    }
}

#[test]
fn a_full_buffer_drops_and_every_packet_is_accounted_for() {
    let mut setup = many_to_one(4, 1_000_000);
    setup.switches = SwitchSettings { buffer: Bytes::new(200_000), ..SwitchSettings::default() };
    setup.until = Time::ZERO + Span::from_ms(10);
    let outcome = run(setup);
    let packets = 4 * 1_000_000u64.div_ceil(u64::from(PAYLOAD));
    let dropped = total(&outcome, |port| port.dropped);
    let arrived: u64 = outcome.flows.iter().map(|flow| flow.received.div_ceil(u64::from(PAYLOAD))).sum();
    assert!(dropped > packets / 2, "{dropped} of {packets}");
    assert_eq!(arrived + dropped, packets);
    assert_eq!(outcome.packet_hops, packets + arrived);
}

#[test]
fn pfc_loses_nothing() {
    let mut setup = many_to_one(4, 1_000_000);
    let pfc = Pfc::new(0.125, Bytes::new(60_000), Bytes::new(3_000));
    setup.switches = SwitchSettings { buffer: Bytes::new(500_000), pfc: Some(pfc), ..SwitchSettings::default() };
    let outcome = run(setup);
    assert_eq!(total(&outcome, |port| port.dropped), 0);
    assert!(outcome.pfc_pauses > 10, "{}", outcome.pfc_pauses);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
    assert!(total(&outcome, |port| port.paused) == outcome.pfc_pauses);
}

#[test]
fn a_higher_class_waits_for_no_lower_one() {
    let mut setup = many_to_one(3, 3_000_000);
    let urgent = flow(&setup.topology, "h3", "h0", 100_000);
    let bulk = setup.traffic.remove(0);
    let Workload::Open(flows) = bulk.work else { unreachable!() };
    let flows: Vec<WorkloadFlow> = flows.filter(|flow| flow.src != urgent.src).collect();
    setup.traffic.push(TrafficSetup { class: 5, ..traffic(datagrams(None), flows) });
    setup.traffic.push(traffic(datagrams(None), vec![urgent]));
    let outcome = run(setup);
    let urgent = outcome.flows.iter().find(|flow| flow.traffic == 1).unwrap();
    assert!(urgent.slowdown().unwrap() < 1.1, "{:?}", urgent.slowdown());
    let bulk = outcome.flows.iter().filter(|flow| flow.traffic == 0);
    assert!(bulk.map(|flow| flow.slowdown().unwrap()).all(|slowdown| slowdown > 1.9));
}

/// A port that looks ahead and one that keeps its queue must come to the same.
#[test]
fn express_ports_change_nothing() {
    let outcomes = [false, true].map(|no_express| {
        let mut topology = Topology::leaf_spine(4, 2, 4, Rate::gbps(100), Rate::gbps(100), Span::from_ns(700)).unwrap();
        let hosts: Vec<NodeId> = topology.hosts().collect();
        let mut random = Random::new(3, 0);
        // Odd delays, starts and sizes: no two packets come to a queue at the same picosecond.
        topology.links.iter_mut().for_each(|link| link.delay += Span::from_ps(random.below(10_000)));
        let flows = (0..300).map(|_| {
            let [src, dst] = [0; 2].map(|_| hosts[random.below(16) as usize]);
            let start = Time::from_ps(random.below(50_000_000));
            WorkloadFlow { start, src, dst, bytes: 1 + random.below(60_000), group: 0 }
        });
        let flows: Vec<WorkloadFlow> = flows.filter(|flow| flow.src != flow.dst).collect();
        let mut setup = NetworkSetup::new(topology);
        setup.traffic.push(traffic(dctcp(), flows));
        setup.switches = SwitchSettings { buffer: Bytes::new(60_000), ..SwitchSettings::default() };
        setup.marking = Some(Marking::step(Bytes::new(20_000)));
        setup.no_express = no_express;
        run(setup)
    });
    let [express, queued] = &outcomes;
    assert!(total(express, |port| port.dropped) > 100);
    assert!(total(express, |port| port.marked) > 100);
    assert!(express.events < queued.events);
    // Nobody waits for the last acknowledgements: one counts when it joins the queue, the other when it leaves.
    let seen =
        |outcome: &NetworkOutcome| outcome.ports.iter().map(|port| (port.dropped, port.marked)).collect::<Vec<_>>();
    assert_eq!(seen(express), seen(queued));
    let rows = |outcome: &NetworkOutcome| {
        let mut rows: Vec<_> = outcome.flows.iter().map(|flow| (flow.start, flow.finish, flow.received)).collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(rows(express), rows(queued));
}

fn corrupting(protection: Protection, loss: f64) -> NetworkSetup {
    let topology = Topology::testbed(Rate::gbps(100));
    let flow = flow(&topology, "h4", "h8", 30_000_000);
    let link = topology.link_between("sw2", "sw6").unwrap().link();
    let mut setup = NetworkSetup::new(topology);
    setup.switch_latency = Span::from_ns(400);
    setup.traffic.push(traffic(datagrams(Some(Rate::gbps(80))), vec![flow]));
    let forward = FaultSchedule::always(LossModel::PerFrame(Prob::literal(loss)));
    setup.links.push(LinkSetup { link, forward, reverse: FaultSchedule::default(), protection, activate_at: None });
    setup.until = Time::ZERO + Span::from_ms(20);
    setup
}

fn protection(mode: LinkSimMode, profile: HardwareProfile) -> Protection {
    let forward = FaultSchedule::always(LossModel::PerFrame(Prob::literal(1e-3)));
    Protection::of(link::LinkSimConfig { mode, profile, forward, ..link::LinkSimConfig::default() })
}

#[test]
fn what_a_corrupting_link_loses_every_protocol_recovers() {
    let bare = run(corrupting(Protection::None, 1e-3));
    let lost = total(&bare, |port| port.corrupted);
    assert!((5..50).contains(&lost), "{lost}");
    assert_eq!(bare.flows[0].finish, None);
    for protection in [
        protection(LinkSimMode::Ordered, HardwareProfile::Tofino),
        protection(LinkSimMode::Ordered, HardwareProfile::Ideal),
        protection(LinkSimMode::NonBlocking, HardwareProfile::Tofino),
        protection(LinkSimMode::UecLlr, HardwareProfile::Ideal),
    ] {
        let outcome = run(corrupting(protection.clone(), 1e-3));
        assert!(outcome.flows[0].finish.is_some(), "{protection:?}");
        assert!(total(&outcome, |port| port.corrupted) > 0);
    }
}

#[test]
fn protection_begins_when_it_is_told_to() {
    let mut setup = corrupting(protection(LinkSimMode::Ordered, HardwareProfile::Tofino), 1e-2);
    setup.links[0].activate_at = Some(Span::from_ms(1));
    let watched = setup.topology.link_between("sw2", "sw6").unwrap();
    setup.sampling = Some(Sampling { every: Span::from_us(500), ports: vec![watched] });
    let outcome = run(setup);
    let missing = outcome.flows[0].bytes - outcome.flows[0].received;
    let packets = missing / u64::from(PAYLOAD);
    // A millisecond at 80G is 6,500 packets.
    assert!((30..110).contains(&packets), "{packets}");
    let (_, tally) = &outcome.links[0];
    assert!(tally.counters[1].recovered > 100 && tally.recovery.len() > 100);
    let most = outcome.samples.iter().map(|sample| sample.ports[0].rx_buffer).max().unwrap();
    assert!(most > 0 && most <= 200_000, "{most}");
}

#[test]
fn an_rdma_write_alone_takes_its_ideal_time_and_counts_as_received() {
    let topology = Topology::testbed(Rate::gbps(100));
    for bytes in [100, 1_024, 24_387] {
        let mut setup = NetworkSetup::new(topology.clone());
        let flow = flow(&topology, "h4", "h8", bytes);
        setup.traffic.push(traffic(TransportSetup::Roce(roce::RoceConfig::default()), vec![flow]));
        let row = run(setup).flows[0];
        assert_eq!(row.received, bytes);
        let slowdown = row.slowdown().unwrap();
        assert!((0.99..1.01).contains(&slowdown), "{bytes} B: {slowdown}");
    }
}

#[test]
fn tcp_gets_everything_across_whatever_the_link_does() {
    for protection in [
        Protection::None,
        protection(LinkSimMode::NonBlocking, HardwareProfile::Tofino),
        protection(LinkSimMode::Ordered, HardwareProfile::Ideal),
    ] {
        let mut setup = corrupting(protection, 1e-2);
        setup.until = Time::NEVER;
        let flows = (0..20).map(|_| flow(&setup.topology, "h4", "h8", 300_000)).collect();
        setup.traffic = vec![TrafficSetup { reply: 1_000, ..traffic(dctcp(), flows) }];
        setup.host_latency = HostLatency::LogNormal { median: Span::from_us(10), sigma: 0.5 };
        let outcome = run(setup);
        assert_eq!(outcome.flows.len(), 20);
        assert!(outcome.flows.iter().all(|flow| flow.finish.is_some() && flow.received == 300_000));
    }
}

#[test]
fn packets_of_a_protected_link_are_captured_in_the_order_of_their_departure() {
    let mut setup = corrupting(protection(LinkSimMode::Ordered, HardwareProfile::Tofino), 1e-2);
    let port = setup.topology.link_between("sw2", "sw6").unwrap();
    setup.capture = vec![port, port.reversed()];
    setup.until = Time::ZERO + Span::from_us(200);
    let outcome = run(setup);
    assert!(outcome.captured.len() > 500, "{}", outcome.captured.len());
    assert!(outcome.captured.is_sorted_by_key(|captured| captured.at));
    assert!(outcome.captured.iter().any(|captured| captured.corrupted));
}

#[test]
fn several_corrupting_links_on_one_path_are_each_made_whole() {
    let topology = Topology::chain(4, Rate::gbps(100), Span::from_ns(50)).unwrap();
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let mut setup = NetworkSetup::new(topology);
    for link in setup.topology.link_ids() {
        let forward = FaultSchedule::always(LossModel::PerFrame(Prob::literal(1e-2)));
        let protection = protection(LinkSimMode::Ordered, HardwareProfile::Ideal);
        setup.links.push(LinkSetup { link, forward, reverse: FaultSchedule::default(), protection, activate_at: None });
    }
    let flow = WorkloadFlow { start: Time::ZERO, src: hosts[0], dst: hosts[1], bytes: 10_000_000, group: 0 };
    setup.traffic.push(traffic(datagrams(Some(Rate::gbps(50))), vec![flow]));
    setup.until = Time::ZERO + Span::from_ms(20);
    let outcome = run(setup);
    assert!(total(&outcome, |port| port.corrupted) > 200);
    assert!(outcome.flows[0].received as f64 > 0.999 * 1e7, "{:?}", outcome.flows[0]);
}

#[test]
fn hosts_take_their_time() {
    let topology = Topology::pair(Rate::gbps(100), Span::from_us(1));
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let mut setup = NetworkSetup::new(topology);
    setup.host_latency = HostLatency::Fixed(Span::from_us(20));
    let flow = WorkloadFlow { start: Time::ZERO, src: hosts[0], dst: hosts[1], bytes: 1_000, group: 0 };
    setup.traffic.push(traffic(datagrams(None), vec![flow]));
    let row = run(setup).flows[0];
    assert_eq!(row.fct(), Some(row.ideal + Span::from_us(20)));
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let fct = |seed| {
        let mut setup = corrupting(protection(LinkSimMode::Ordered, HardwareProfile::Tofino), 1e-3);
        setup.seed = seed;
        let outcome = run(setup);
        (outcome.flows[0].fct(), outcome.events)
    };
    assert_eq!(fct(1), fct(1));
    assert_ne!(fct(1), fct(2));
}

/// Counts what passes, and drops every tenth packet.
struct Tenth {
    routed: u64,
    departed: u64,
}

impl net::NetworkProgram for Tenth {}

impl SwitchProgram for Tenth {
    type Frame = SimPacket;
    type Tag = ();

    fn watches_departures(&self) -> bool {
        true
    }

    fn on_route(&mut self, _now: Time, _at: Visit, _frame: &mut SimPacket, _tag: &mut ()) -> Forward {
        self.routed += 1;
        if self.routed.is_multiple_of(10) { Forward::Drop } else { Forward::Pass }
    }

    fn on_departure(&mut self, _now: Time, _at: SwitchPort, _left: u64, _frame: &mut SimPacket, _tag: &mut ()) {
        self.departed += 1;
    }
}

#[test]
fn a_switch_program_sees_every_packet_and_may_drop_it() {
    let mut setup = many_to_one(2, 147_200);
    setup.until = Time::ZERO + Span::from_ms(1);
    let mut program = Tenth { routed: 0, departed: 0 };
    let outcome = net::run_with(setup, &mut program, &Unwatched).unwrap();
    assert_eq!((program.routed, program.departed), (200, 180));
    assert_eq!(outcome.flows.iter().map(|flow| flow.received).sum::<u64>(), 180 * u64::from(PAYLOAD));
}

#[test]
fn a_handshake_takes_a_round_trip_and_a_syn_that_is_lost_a_second() {
    let fct = |handshakes, lost: Vec<u64>| {
        let mut setup = corrupting(Protection::None, 0.0);
        setup.links[0].forward =
            FaultSchedule::from_steps(&[FaultStep { frames: Some(lost), ..FaultStep::default() }]).unwrap();
        setup.until = Time::NEVER;
        setup.handshakes = handshakes;
        setup.traffic = vec![traffic(dctcp(), vec![flow(&setup.topology, "h4", "h8", 1_000)])];
        let row = run(setup).flows[0];
        (row.fct().unwrap(), row.ideal)
    };
    let ((bare, _), (shaken, ideal)) = (fct(false, vec![9]), fct(true, vec![9]));
    assert_eq!(shaken, ideal);
    assert!(shaken > bare && shaken < bare * 3, "{bare} and {shaken}");
    assert_eq!(fct(true, vec![0]).0, shaken + Span::from_ms(1_000));
    assert_eq!(fct(true, vec![0, 1]).0, shaken + Span::from_ms(3_000));
}

#[test]
fn flows_on_persistent_connections_complete_in_turn_and_each_once() {
    let mut setup = many_to_one(4, 1);
    setup.switches.port_limit = Some(Bytes::new(60_000));
    let topology = setup.topology.clone();
    let begin = |n: u64| Time::ZERO + Span::from_us(n);
    let flows: Vec<WorkloadFlow> = (0..300)
        .flat_map(|n| (1..=4).map(move |host| (n, host)))
        .map(|(n, host)| WorkloadFlow { start: begin(n), ..flow(&topology, &format!("h{host}"), "h0", 1 + n * 37) })
        .collect();
    setup.traffic = vec![TrafficSetup { queue_pairs: Some(1), ..traffic(dctcp(), flows) }];
    let outcome = run(setup);
    let mut sizes: Vec<u64> = outcome.flows.iter().map(|flow| flow.bytes).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, (0..300).flat_map(|n| [1 + n * 37; 4]).collect::<Vec<u64>>());
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some() && flow.received == flow.bytes));
    assert!(total(&outcome, |port| port.dropped) > 0);
}

//! Connections of whole networks, recorded and replayed.

use std::collections::BTreeMap;

use deter::{ConnectionLog, LogLevel, LogSide, LoggedHandshake, ReplayObserver, ReplayedFrame, Sent, replay};
use faults::{FaultSchedule, LossModel};
use sim::link::{HardwareProfile, LinkSimConfig, LinkSimMode};
use sim::net::recording::{LogStore, Recording, has_tcp, refused_control};
use sim::net::{
    self, Body, Handshake, HostLatency, LinkSetup, Marking, NetworkOutcome, NetworkSetup, PortCapture, Protection,
    SwitchSettings, TrafficSetup, TransportSetup,
};
use sim::topology::{Topology, TopologyLinkId};
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use tcp::cc::Algorithm;
use tcp::{LinuxVersion, TcpConfig, TcpSegment, TimerProfile};
use units::{Bytes, Prob, Rate, Span, Time, Unwatched};

#[derive(Default)]
struct Logs(BTreeMap<u32, Vec<u8>>);

impl LogStore for Logs {
    fn append(&mut self, flow: u32, blocks: &[u8]) {
        self.0.entry(flow).or_default().extend(blocks);
    }
}

/// Six hosts send to two behind a switch with a small buffer, some of it over a link that loses.
fn incast(algorithm: Algorithm, seed: u64) -> NetworkSetup {
    let topology = Topology::single_switch(8, Rate::gbps(10), Span::from_us(1)).unwrap();
    let node = |number: u64| topology.node(&format!("h{number}")).unwrap();
    let flows = (0..30).map(|n| WorkloadFlow {
        start: Time::ZERO + Span::from_us(n * 7),
        src: node(2 + n % 6),
        dst: node(n % 2),
        bytes: 1 + n * n * 1_500,
        group: 0,
    });
    let profile = TimerProfile::Linux { hz: 1_000, rto_min: Span::from_ms(5), phase: Span::ZERO };
    let config = TcpConfig { algorithm, profile, ..TcpConfig::default() };
    let work = Workload::Open(FlowSchedule::list(flows.collect()));
    let traffic = TrafficSetup { reply: 3_000, ..TrafficSetup::new("t", TransportSetup::Tcp(config), work) };
    let mut setup = NetworkSetup::new(topology);
    setup.traffic.push(traffic);
    setup.switches = SwitchSettings { buffer: Bytes::new(100_000), ..SwitchSettings::default() };
    setup.seed = seed;
    let lossy = FaultSchedule::always(LossModel::PerFrame(Prob::literal(0.01)));
    setup.links.push(LinkSetup {
        link: TopologyLinkId(0),
        forward: lossy.clone(),
        reverse: lossy,
        protection: Protection::None,
        activate_at: None,
    });
    setup.until = Time::ZERO + Span::from_ms(2_000);
    setup
}

fn record(setup: NetworkSetup, level: LogLevel) -> (NetworkOutcome, Logs) {
    let mut logs = Logs::default();
    let mut recording = Recording::new(&setup, 1, level, &mut logs);
    let outcome = net::run_recorded(setup, &mut recording, &Unwatched).unwrap();
    (outcome, logs)
}

/// Frames that left both hosts of a connection.
#[derive(Default)]
struct Frames(Vec<ReplayedFrame>);

impl ReplayObserver for Frames {
    fn sent(&mut self, frame: ReplayedFrame) {
        self.0.push(frame);
    }
}

fn replayed(flow: u32, log: &[u8]) -> Vec<ReplayedFrame> {
    let log = ConnectionLog::read(log).unwrap_or_else(|error| panic!("flow {flow}: {error}"));
    assert_eq!(log.header().flow, flow);
    let mut frames = Frames::default();
    let result = replay(&log, &mut frames).unwrap_or_else(|error| panic!("flow {flow}: {error}"));
    assert!(result.is_exact(), "flow {flow}: {:?}", result.difference);
    assert_eq!(result.segments, frames.0.len() as u64);
    frames.0
}

fn setups() -> Vec<NetworkSetup> {
    let mut setups = Vec::new();
    for algorithm in Algorithm::ALL {
        let bare = incast(algorithm, 1);
        let marking = Some(Marking::step(Bytes::new(30_000)));
        let latency = HostLatency::LogNormal { median: Span::from_us(10), sigma: 0.5 };
        let marked = NetworkSetup { marking, handshakes: true, host_latency: latency, ..incast(algorithm, 2) };
        let mut guarded = incast(algorithm, 3);
        let (mode, profile) = (LinkSimMode::NonBlocking, HardwareProfile::Ideal);
        let forward = guarded.links[0].forward.clone();
        let config = LinkSimConfig { mode, profile, forward, rate: Rate::gbps(10), ..LinkSimConfig::default() };
        guarded.links[0].protection = Protection::of(config);
        let mut kernel = incast(algorithm, 4);
        for traffic in &mut kernel.traffic {
            let profile = TimerProfile::Linux { hz: 1_000, rto_min: Span::from_ms(5), phase: Span::ZERO };
            let config = TcpConfig { algorithm, profile, ..TcpConfig::linux(LinuxVersion::Current) };
            traffic.transport = TransportSetup::Tcp(config.reading());
        }
        setups.extend([bare, marked, guarded, kernel]);
    }
    setups
}

#[test]
fn every_connection_of_a_network_is_replayed_exactly_and_recording_changes_nothing() {
    for setup in setups() {
        let bare = net::run(setup.clone(), &Unwatched).unwrap();
        for level in LogLevel::ALL.into_iter().filter(|level| refused_control(&setup, *level).is_none()) {
            let (outcome, logs) = record(setup.clone(), level);
            assert_eq!(format!("{:?}", bare.flows), format!("{:?}", outcome.flows));
            assert_eq!(logs.0.len(), 30);
            let sent: u64 = logs.0.iter().map(|(flow, log)| replayed(*flow, log).len() as u64).sum();
            assert!(sent > 5_000, "{sent}");
            assert!(outcome.flows.iter().any(|flow| flow.tally.retransmitted > 0));
        }
    }
}

/// Fields of a packet that a capture shows: all but its class, which is no field.
fn seen(capture: &PortCapture) -> (u32, Time, Sent) {
    let sent = match capture.packet.body {
        Body::Tcp(segment) => Sent::Segment(segment),
        Body::Handshake(Handshake::Syn) => Sent::Handshake(LoggedHandshake::Syn),
        Body::Handshake(Handshake::SynAck) => Sent::Handshake(LoggedHandshake::SynAck),
        other => panic!("{other:?}"),
    };
    (capture.flow, capture.at, sent)
}

/// Timestamps are those of the run only where its times are.
fn without_timestamps(sent: Sent) -> Sent {
    match sent {
        Sent::Segment(segment) => Sent::Segment(TcpSegment { timestamp: 0, echo: 0, ..segment }),
        handshake => handshake,
    }
}

/// Frames that left a host by its port, and frames that the replay of all connections says left it, each in the order in
/// which they left.
fn left_host(host: u32, level: LogLevel) -> [Vec<(u32, Time, Sent)>; 2] {
    let mut setup = NetworkSetup {
        handshakes: true,
        host_latency: HostLatency::Fixed(Span::from_us(5)),
        ..incast(Algorithm::Cubic, 4)
    };
    let node = setup.topology.node(&format!("h{host}")).unwrap();
    setup.capture = vec![setup.topology.link_between(&format!("h{host}"), "sw0").unwrap()];
    let (outcome, logs) = record(setup, level);
    let mut captured: Vec<_> = outcome.captured.iter().map(seen).collect();
    let mut sent = Vec::new();
    for (flow, log) in &logs.0 {
        let hosts = ConnectionLog::read(log).unwrap().header().hosts;
        let mine = |frame: &&ReplayedFrame| hosts[usize::from(frame.side == LogSide::Server)] == node.0;
        sent.extend(replayed(*flow, log).iter().filter(mine).map(|frame| (*flow, frame.at, frame.sent)));
    }
    captured.sort_by_key(|(flow, ..)| *flow);
    sent.sort_by_key(|(flow, ..)| *flow);
    [captured, sent]
}

#[test]
fn a_replay_sends_what_was_captured_at_the_hosts_ports_at_the_same_times() {
    for host in [0, 1, 5] {
        let [captured, sent] = left_host(host, LogLevel::Times);
        assert!(captured.len() > 100, "{}", captured.len());
        assert_eq!(captured, sent);
    }
}

#[test]
fn what_time_decided_is_enough_for_the_same_packets_within_five_microseconds() {
    for host in [0, 1, 5] {
        let [captured, sent] = left_host(host, LogLevel::Decisions);
        assert!(captured.len() > 100 && captured.len() == sent.len(), "{} {}", captured.len(), sent.len());
        for ((flow, at, packet), (other, about, replayed)) in captured.into_iter().zip(sent) {
            assert_eq!((flow, without_timestamps(packet)), (other, without_timestamps(replayed)));
            let off = at.since(about).max(about.since(at));
            assert!(off <= Span::from_us(5), "flow {flow}: {off} off at {at:?}");
        }
    }
}

#[test]
fn a_setup_without_tcp_has_nothing_to_record() {
    let mut setup = incast(Algorithm::Bbr, 1);
    assert!(has_tcp(&setup));
    assert_eq!(refused_control(&setup, LogLevel::Decisions), Some(Algorithm::Bbr));
    setup.traffic.clear();
    assert!(!has_tcp(&setup));
}

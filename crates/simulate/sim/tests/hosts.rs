//! Hosts whose processors take time, connections of one flow each, TCP without timestamps, and a kernel's TCP with its
//! socket.

use faults::{FaultSchedule, LossModel};
use sim::link::{HardwareProfile, LinkSimConfig, LinkSimMode};
use sim::net::{
    self, FlowRow, HostLatency, HostProcessor, LinkSetup, NetworkSetup, Protection, TrafficSetup, TransportSetup,
};
use sim::topology::{NodeId, Topology, TopologyLinkId};
use sim::workload::{FlowSeries, Workload};
use tcp::{LinuxVersion, TcpConfig, TimerProfile};
use units::{Rate, Span, Time, Unwatched};

const PROCESSOR: HostProcessor = HostProcessor {
    per_packet: Span::from_us(1),
    per_call: Span::from_us(2),
    per_burst: Span::from_us(4),
    burst: 65_536,
};

fn config() -> TcpConfig {
    let profile = TimerProfile::Linux { hz: 1_000, rto_min: Span::from_ms(1), phase: Span::ZERO };
    TcpConfig { profile, ..TcpConfig::default() }
}

/// Flows one after the other between two hosts, whose times are the sender's.
fn series(config: TcpConfig, bytes: u64, count: u64) -> NetworkSetup {
    let topology = Topology::pair(Rate::gbps(100), Span::from_us(1));
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let work = FlowSeries { src: hosts[0], dst: hosts[1], bytes, count, gap: Span::from_us(500), group: 0 };
    let traffic = TrafficSetup::new("t", TransportSetup::Tcp(config), Workload::Series(work));
    NetworkSetup {
        traffic: vec![TrafficSetup { acknowledged: true, ..traffic }],
        host_latency: HostLatency::Fixed(Span::from_us(10)),
        handshakes: true,
        fins: true,
        ..NetworkSetup::new(topology)
    }
}

fn flows(setup: NetworkSetup) -> Vec<FlowRow> {
    net::run(setup, &Unwatched).unwrap().flows
}

fn fct(setup: NetworkSetup) -> f64 {
    flows(setup)[0].fct().unwrap().as_us()
}

#[test]
fn a_flow_lasts_from_its_first_data_to_its_last_acknowledgement() {
    let rows = flows(series(config(), 143, 3));
    assert_eq!(rows.len(), 3);
    // Two hosts of 10 µs, two wires of 1 µs and a few nanoseconds of frames; the handshake took as long before that.
    let times: Vec<f64> = rows.iter().map(|row| row.fct().unwrap().as_us()).collect();
    assert!(times.iter().all(|us| (22.0..22.2).contains(us)), "{times:?}");
    assert!(rows[0].start.since(Time::ZERO).as_us() > 22.0, "{:?}", rows[0].start);
    let shared = NetworkSetup { handshakes: false, fins: false, ..series(config(), 143, 1) };
    assert_eq!(fct(shared), times[0], "the handshake is not part of it");
}

#[test]
fn a_processor_takes_time_for_bursts_packets_and_calls() {
    let busy = |bytes| NetworkSetup { processor: Some(PROCESSOR), ..series(config(), bytes, 1) };
    // At either host a burst or an acknowledgement, an interrupt, a packet and a call; two wires.
    let one = fct(busy(143));
    assert!((36.0..36.3).contains(&one), "{one}");
    // Nine more packets of the same run: 9 µs more, and a microsecond on the wire.
    let ten = fct(busy(1_448 * 10));
    assert!((9.0..10.5).contains(&(ten - one)), "{one} {ten}");
}

#[test]
fn a_busy_processor_limits_the_rate() {
    let processor = Some(HostProcessor { per_packet: Span::from_us(2), ..PROCESSOR });
    let us = fct(NetworkSetup { processor, ..series(config(), 20_000_000, 1) });
    let gbps = 20e6 * 8.0 / us / 1e3;
    // One packet of 1,448 B in 2 µs and a bit.
    assert!((4.0..5.8).contains(&gbps), "{gbps}");
}

#[test]
fn a_run_that_a_gap_ends_is_acknowledged_before_what_fills_the_gap() {
    let mut setup = series(config(), 1_448 * 10, 1_000);
    let forward = FaultSchedule::always(LossModel::PerFrame("5e-3".parse().unwrap()));
    let (mode, profile) = (LinkSimMode::NonBlocking, HardwareProfile::Tofino);
    let protection =
        Protection::of(LinkSimConfig { mode, profile, forward: forward.clone(), ..LinkSimConfig::default() });
    let reverse = FaultSchedule::default();
    setup.links.push(LinkSetup { link: TopologyLinkId(0), forward, reverse, protection, activate_at: None });
    setup.processor = Some(PROCESSOR);
    // The link fills each gap before the interrupt comes. Of about 50 flows nine in ten have something behind it.
    let sacked = flows(setup).iter().filter(|row| row.tally.most_sacked > 0).count();
    assert!(sacked > 20, "{sacked}");
}

#[test]
fn timers_that_are_late_by_a_tick_repair_a_tick_later() {
    let lossy = |late_ticks| {
        let config = TcpConfig { late_ticks, timestamps: false, mss: 1_460, ..config() };
        let mut setup = series(config, 143, 2_000);
        let forward = FaultSchedule::always(LossModel::PerFrame("2e-2".parse().unwrap()));
        let (reverse, protection) = (FaultSchedule::default(), Protection::None);
        setup.handshakes = false;
        setup.fins = false;
        setup.links.push(LinkSetup { link: TopologyLinkId(0), forward, reverse, protection, activate_at: None });
        let mut times: Vec<f64> = flows(setup).iter().map(|row| row.fct().unwrap().as_us()).collect();
        times.sort_by(f64::total_cmp);
        // Times of the flows that lost one packet and nothing after it.
        let lost: Vec<f64> = times.into_iter().filter(|us| (500.0..4_900.0).contains(us)).collect();
        assert!(lost.len() > 15, "{lost:?}");
        (lost[0], lost[lost.len() - 1])
    };
    // 1 ms and a round trip are two ticks, and the third is waited for: 2 to 3 ms. One more if it is late.
    let ((least, most), (late_least, late_most)) = (lossy(0), lossy(1));
    assert!(least > 2_000.0 && most < 3_100.0, "{least} {most}");
    assert!(late_least > 3_000.0 && late_most < 4_100.0, "{late_least} {late_most}");
}

#[test]
fn without_timestamps_a_frame_carries_twelve_bytes_more() {
    let goodput = |config: TcpConfig| {
        let us = fct(series(config, 100_000_000, 1));
        1e8 * 8.0 / us / 1e5
    };
    let timed = goodput(config());
    let untimed = goodput(TcpConfig { timestamps: false, mss: 1_460, ..config() });
    assert!((1.0075..1.009).contains(&(untimed / timed)), "{untimed} over {timed}");
}

/// A flow over a wire of 1G and 1 ms that loses one frame in a thousand, in Gb/s.
fn over_a_lossy_wire(config: TcpConfig) -> f64 {
    const BYTES: u64 = 100_000_000;
    let mut setup = series(config, BYTES, 1);
    setup.topology = Topology::pair(Rate::gbps(1), Span::from_us(500));
    let forward = FaultSchedule::always(LossModel::PerFrame("1e-3".parse().unwrap()));
    let (reverse, protection) = (FaultSchedule::default(), Protection::None);
    setup.links.push(LinkSetup { link: TopologyLinkId(0), forward, reverse, protection, activate_at: None });
    BYTES as f64 * 8.0 / fct(setup) / 1e3
}

#[test]
fn super_frames_that_wait_for_more_of_the_window_slow_a_flow_down() {
    let kernel = TcpConfig { profile: config().profile, ..TcpConfig::linux(LinuxVersion::Current) }.reading();
    let mut eager = kernel;
    if let Some(socket) = &mut eager.socket {
        socket.tso.window_divisor = 0;
    }
    let [kernel, eager] = [kernel, eager].map(over_a_lossy_wire);
    assert!((0.7..0.97).contains(&(kernel / eager)), "{kernel} and {eager}");
}

#[test]
fn a_kernel_gives_up_after_fifteen_timeouts_in_a_row() {
    let fails = |config: TcpConfig| {
        let mut setup = series(config, 1_000, 1);
        let forward = FaultSchedule::always(LossModel::PerFrame("1".parse().unwrap()));
        let (reverse, protection) = (FaultSchedule::default(), Protection::None);
        setup.links.push(LinkSetup { link: TopologyLinkId(0), forward, reverse, protection, activate_at: None });
        setup.handshakes = false;
        setup.until = Time::ZERO + Span::from_ms(2_000_000);
        let row = flows(setup)[0];
        (row.failed, row.tally.timeouts)
    };
    assert_eq!(fails(TcpConfig::linux(LinuxVersion::Current).reading()), (true, 15));
    let (failed, timeouts) = fails(TcpConfig::default());
    assert!(!failed && timeouts > 15, "{timeouts}");
}

//! Switches and their queues: marks, pauses, queue lengths.

use faults::{FaultSchedule, FaultStep};
use sim::link::{self, LinkSimMode};
use sim::net::{
    self, LinkSetup, Marking, MarkingPoint, NetworkOutcome, NetworkSetup, Pfc, PfcHeadroom, PortCapture, Protection,
    SwitchSettings, TrafficSetup, TransportSetup,
};
use sim::topology::{DirectedLink, Topology};
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use units::{Bytes, Rate, Span, Time, Unwatched};
use wire::ip::Ecn;

const PAYLOAD: u64 = 1_024;

/// A packet of RDMA on the wire: 62 bytes of headers and check, 20 of preamble and gap.
const WIRE: u64 = PAYLOAD + 82;

fn run(setup: NetworkSetup) -> NetworkOutcome {
    net::run(setup, &Unwatched).unwrap()
}

fn rdma(topology: &Topology, flows: &[(&str, &str, u64)]) -> TrafficSetup {
    let flow = |(from, to, bytes): &(&str, &str, u64)| {
        let [src, dst] = [from, to].map(|name| topology.node(name).unwrap());
        WorkloadFlow { start: Time::ZERO, src, dst, bytes: *bytes, group: 0 }
    };
    let config = roce::RoceConfig { max_outstanding: 4_096, ecn: Ecn::Capable, ..roce::RoceConfig::default() };
    let work = Workload::Open(FlowSchedule::list(flows.iter().map(flow).collect()));
    let transport = TransportSetup::Roce(config);
    TrafficSetup::new("t", transport, work)
}

/// Ten packets at 100G come to a port of 30G: one every time unit, and one leaves every 10/3 of them.
fn ten_packets(at: MarkingPoint, frames: u64) -> (NetworkSetup, DirectedLink) {
    let mut topology = Topology::testbed(Rate::gbps(100));
    let slow = topology.link_between("sw2", "sw6").unwrap();
    topology.links[slow.link().index()].rate = Rate::gbps(30);
    let last = topology.link_between("sw6", "h8").unwrap();
    let mut setup = NetworkSetup::new(topology);
    // A third of a packet more: times are rounded up to picoseconds.
    setup.marking = Some(Marking { at, ..Marking::step(Bytes::new(frames * WIRE + WIRE / 3)) });
    setup.traffic.push(rdma(&setup.topology, &[("h4", "h8", 10 * PAYLOAD)]));
    setup.capture = vec![last];
    (setup, slow)
}

/// Numbers of the data packets that were marked, from 1, in the order in which they came.
fn marked(outcome: &NetworkOutcome) -> Vec<usize> {
    let data = outcome.captured.iter().filter(|captured| captured.forward);
    let is_marked = |captured: &PortCapture| captured.packet.ecn == Ecn::Experienced;
    (1..).zip(data).filter(|(_, captured)| is_marked(captured)).map(|(number, _)| number).collect()
}

/// The k-th packet finds (k-1)·0.7 packets, what is being sent included: 2.8 and 3.5 are the fifth and the sixth.
#[test]
fn at_arrival_the_packets_that_find_a_long_queue_are_marked() {
    let (setup, slow) = ten_packets(MarkingPoint::Arrival, 3);
    let outcome = run(setup);
    assert_eq!(marked(&outcome), [6, 7, 8, 9, 10]);
    assert_eq!(outcome.ports[slow.index()].marked, 5);
}

/// The packets leave at 0, 3.3, 6.7, 10, … with 0, 2, 4, 6, 5, 4, 3, 2, 1, 0 others waiting.
#[test]
fn at_departure_the_packets_that_leave_a_long_queue_behind_are_marked() {
    for (frames, expected) in [(3, vec![3, 4, 5, 6]), (5, vec![4]), (6, vec![])] {
        let (setup, slow) = ten_packets(MarkingPoint::Departure, frames);
        let outcome = run(setup);
        assert_eq!(marked(&outcome), expected, "{frames}");
        assert_eq!(outcome.ports[slow.index()].marked, expected.len() as u64);
    }
}

#[test]
fn a_packet_that_a_link_protocol_sends_again_keeps_its_mark() {
    for lost in [vec![], vec![2], vec![3, 5]] {
        let (mut setup, slow) = ten_packets(MarkingPoint::Departure, 3);
        let mode = LinkSimMode::Ordered;
        let protection = Protection::of(link::LinkSimConfig { mode, ..link::LinkSimConfig::default() });
        let step = FaultStep { frames: Some(lost.clone()), ..FaultStep::default() };
        let forward = FaultSchedule::from_steps(&[step]).unwrap();
        let reverse = FaultSchedule::default();
        setup.links.push(LinkSetup { link: slow.link(), forward, reverse, protection, activate_at: None });
        let outcome = run(setup);
        let (_, tally) = &outcome.links[0];
        assert_eq!(tally.counters[1].recovered, lost.len() as u64);
        let marked = marked(&outcome);
        assert_eq!(marked, [3, 4, 5, 6], "{lost:?}");
        assert_eq!(outcome.ports[slow.index()].marked, marked.len() as u64, "no mark is lost with its frame");
    }
}

fn with_pfc(setup: &mut NetworkSetup, buffer: u64, pfc: Pfc) {
    setup.switches = SwitchSettings { buffer: Bytes::new(buffer), pfc: Some(pfc), ..SwitchSettings::default() };
}

fn dropped(outcome: &NetworkOutcome) -> u64 {
    outcome.ports.iter().map(|port| port.dropped).sum()
}

/// h0 - sw0 - sw1 - sw2 - h1, where the last link has only a tenth of the rate: sw2 pauses sw1, which fills and pauses
/// sw0, which fills and pauses the host. (Li's thesis, fig. 2.1, counts such hops.)
#[test]
fn a_pause_spreads_hop_by_hop_to_the_sender() {
    let mut topology = Topology::chain(3, Rate::gbps(100), Span::from_us(1)).unwrap();
    let ports = [("h0", "sw0"), ("sw0", "sw1"), ("sw1", "sw2"), ("sw2", "h1")];
    let ports = ports.map(|(from, to)| topology.link_between(from, to).unwrap());
    topology.links[ports[3].link().index()].rate = Rate::gbps(10);
    let mut setup = NetworkSetup::new(topology);
    with_pfc(&mut setup, 500_000, Pfc::new(0.125, Bytes::new(60_000), Bytes::new(3_000)));
    setup.traffic.push(rdma(&setup.topology, &[("h0", "h1", 2_000_000)]));
    let outcome = run(setup);
    let pfc = outcome.pfc.unwrap();
    assert_eq!((pfc.most_hops, dropped(&outcome)), (3, 0));
    assert_eq!(pfc.pauses, outcome.pfc_pauses);
    let paused = ports.map(|port| outcome.ports[port.index()].paused);
    assert!(paused[..3].iter().all(|paused| *paused > 0) && paused[3] == 0, "{paused:?}");
    // Three ports of 100G have to wait for one of 10G nine tenths of the time, but for the beginning and the end.
    let seconds = outcome.ended.since(Time::ZERO).as_secs();
    assert!((1.8..2.7).contains(&(pfc.paused_seconds / seconds)), "{pfc:?} in {seconds} s");
    let share = pfc.paused_seconds / seconds * 100.0 / (2.0 * 310.0);
    assert!((pfc.silenced_share() - share).abs() < 1e-9, "{pfc:?}");
}

/// One switch, where the cause is: the pause goes no farther than to its hosts.
#[test]
fn a_pause_of_hosts_spreads_one_hop() {
    let outcome = run(incast(8, 2_000_000, Pfc::new(0.125, Bytes::new(60_000), Bytes::new(3_000))));
    assert_eq!(outcome.pfc.unwrap().most_hops, 1);
}

/// All hosts but the first send to it, at once and as fast as they can.
fn incast(senders: u64, buffer: u64, pfc: Pfc) -> NetworkSetup {
    let topology = Topology::single_switch(senders as u32 + 1, Rate::gbps(100), Span::from_us(1)).unwrap();
    let names: Vec<String> = (1..=senders).map(|n| format!("h{n}")).collect();
    let flows: Vec<(&str, &str, u64)> = names.iter().map(|name| (name.as_str(), "h0", 300_000)).collect();
    let mut setup = NetworkSetup::new(topology);
    with_pfc(&mut setup, buffer, pfc);
    setup.traffic.push(rdma(&setup.topology, &flows));
    setup
}

/// Simulators are known that pause and drop nevertheless when the buffer is small and the incast is wide: what is on its
/// way when a pause is sent needs room that nobody else may take.
#[test]
fn pfc_never_drops_with_headroom() {
    let auto = Pfc { headroom: PfcHeadroom::Auto, ..Pfc::new(0.125, Bytes::ZERO, Bytes::new(3_000)) };
    for (senders, buffer) in [(60, 2_600_000), (30, 1_300_000), (8, 380_000)] {
        let outcome = run(incast(senders, buffer, auto));
        assert_eq!(dropped(&outcome), 0, "{senders} to one, {buffer} B");
        assert!(outcome.pfc_pauses >= senders, "{}", outcome.pfc_pauses);
        assert!(outcome.flows.iter().all(|flow| flow.finish.is_some() && flow.tally.retransmitted == 0));
    }
    let bare = incast(60, 1_000_000, Pfc::new(8.0, Bytes::ZERO, Bytes::new(3_000)));
    assert!(dropped(&run(bare)) > 0, "without headroom they do");
}

#[test]
fn faster_ingress_ports_are_paused_later_if_alpha_goes_by_the_rate() {
    let pauses = |per_rate| {
        let mut topology = Topology::dumbbell(4, Rate::gbps(25), Rate::gbps(100), Span::from_us(1)).unwrap();
        let slow = topology.link_between("right", "h4").unwrap();
        topology.links[slow.link().index()].rate = Rate::gbps(25);
        let mut setup = NetworkSetup::new(topology);
        let pfc = Pfc { per_rate, ..Pfc::new(0.125, Bytes::new(60_000), Bytes::new(3_000)) };
        with_pfc(&mut setup, 2_000_000, pfc);
        let flows = ["h0", "h1", "h2", "h3"].map(|from| (from, "h4", 150_000));
        setup.traffic.push(rdma(&setup.topology, &flows));
        run(setup).pfc_pauses
    };
    // 4 × 150 KB, of which a quarter leaves meanwhile: beyond (2 MB - 5 × 60 KB) / 9, and below a third of it.
    assert_eq!((pauses(false) > 0, pauses(true)), (true, 0));
}

/// Ten packets come from 0 on, one every time unit, and one leaves every 10/3 units from 0 on. Seven wait from 9 to 10,
/// six from 8 to 9 and from 10 to 13.3, five from 6 to 6.7, from 7 to 8 and from 13.3 to 16.7.
#[test]
fn queues_are_measured_over_time() {
    let (mut setup, slow) = ten_packets(MarkingPoint::Arrival, 100);
    setup.queues = true;
    setup.capture.clear();
    let outcome = run(setup);
    let lengths = outcome.queue_lengths(&[slow]);
    assert_eq!(lengths.max().map(|bytes| bytes / WIRE), Some(7));
    let times = |packets: u64| {
        let of = lengths.shares().filter(|(bytes, _)| (bytes + WIRE / 2) / WIRE == packets);
        of.map(|(_, share)| share).sum::<f64>() * outcome.ended.as_ps() as f64
    };
    // Time of a packet at 100G, in picoseconds.
    let unit = WIRE as f64 * 80.0;
    for (packets, expected) in [(7, 1.0), (6, 13.0 / 3.0), (5, 5.0), (4, 14.0 / 3.0)] {
        assert!((times(packets) / unit - expected).abs() < 0.1, "{packets}: {}", times(packets) / unit);
    }
    let all = outcome.queue_lengths(&[]);
    assert_eq!((all.quantile(0.5), all.max()), (Some(0), lengths.max()));
    assert_eq!(outcome.queues.len(), 4, "the ports of two switches");
}

#[test]
fn measuring_queues_changes_nothing_else() {
    let outcomes = [false, true].map(|queues| {
        let mut setup = incast(8, 2_000_000, Pfc::new(0.125, Bytes::new(60_000), Bytes::new(3_000)));
        setup.queues = queues;
        run(setup)
    });
    let [plain, measured] = outcomes;
    assert_eq!((plain.flows, plain.ports, plain.events), (measured.flows, measured.ports, measured.events));
    assert!(plain.queues.is_empty() && measured.queues.len() == 9);
}

//! Queues replayed from recorded packets: what a replay gives back, and what it says where it cannot.

use faults::{FaultSchedule, LossModel, Random};
use sim::net::queue_replay::{
    MTU_FRAME, PacketFate, QueueComparison, QueueQuestion, QueueRecording, RecordedConnection, ReplayError,
    ReplayOptions, ReplayTags, compare, record, record_asked, replay,
};
use sim::net::{LinkSetup, NetworkSetup, Protection, SwitchSettings, TrafficSetup, TransportSetup};
use sim::topology::{NodeId, Topology};
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use units::{Bytes, Prob, Rate, Span, Time, Unwatched};

/// Two racks in which 40 flows overflow the buffers; no two packets come to a queue at the same picosecond.
fn overloaded() -> NetworkSetup {
    let mut topology = Topology::leaf_spine(2, 2, 8, Rate::gbps(10), Rate::gbps(10), Span::from_ns(700)).unwrap();
    let mut random = Random::new(3, 0);
    topology.links.iter_mut().for_each(|link| link.delay += Span::from_ps(random.below(10_000)));
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let flow = |number: usize| {
        let (src, dst) = (hosts[number % 16], hosts[(number * 5 + 3) % 4]);
        let start = Time::ZERO + Span::from_ps(number as u64 * 1_234_567);
        WorkloadFlow { start, src, dst, bytes: 200_000, group: 0 }
    };
    let flows: Vec<WorkloadFlow> = (0..40).map(flow).filter(|flow| flow.src != flow.dst).collect();
    let mut setup = NetworkSetup::new(topology);
    setup.switches = SwitchSettings { buffer: Bytes::new(200_000), alpha: 1.0, ..SwitchSettings::default() };
    let work = Workload::Open(FlowSchedule::list(flows));
    setup.traffic.push(TrafficSetup::new("t", TransportSetup::Tcp(tcp::TcpConfig::default()), work));
    setup.until = Time::ZERO + Span::from_ms(20);
    setup
}

fn recorded(setup: &NetworkSetup) -> QueueRecording {
    record(setup.clone(), 1, &Unwatched).unwrap().1
}

fn replayed(
    setup: &NetworkSetup,
    recording: &QueueRecording,
    connections: &[RecordedConnection],
    tags: ReplayTags,
) -> (QueueComparison, u64) {
    let options = ReplayOptions { tags, one_in: 1, question: None };
    let replay = replay(setup, connections, options, &Unwatched).unwrap();
    (compare(recording, &replay, Time::ZERO), replay.overflows)
}

#[test]
fn recording_changes_nothing_and_counts_every_packet() {
    let setup = overloaded();
    let (outcome, recording) = record(setup.clone(), 1, &Unwatched).unwrap();
    let plain = sim::net::run(setup, &Unwatched).unwrap();
    assert_eq!(outcome.flows, plain.flows);
    assert_eq!(outcome.ports, plain.ports);
    let dropped =
        recording.packets().filter(|(.., packet)| matches!(packet.fate, PacketFate::Dropped(_))).count() as u64;
    assert_eq!(dropped, plain.ports.iter().map(|port| port.dropped).sum::<u64>());
    assert!(dropped > 500, "{dropped}");
}

#[test]
fn packets_at_their_own_times_find_the_very_same_queues() {
    let setup = overloaded();
    let recording = recorded(&setup);
    let (comparison, _) = replayed(&setup, &recording, &recording.connections, ReplayTags::Ignored);
    assert_eq!(comparison.queues.views, recording.views.views.len() as u64);
    assert_eq!((comparison.queues.mean, comparison.queues.p99), (0.0, 0.0));
    assert_eq!(comparison.drops.error(), Some(0.0), "{:?}", comparison.drops);
    let options = ReplayOptions { tags: ReplayTags::Ignored, one_in: 1, question: None };
    let again = replay(&setup, &recording.connections, options, &Unwatched).unwrap();
    let late = compare(&recording, &again, Time::ZERO + Span::from_ms(1)).queues.views;
    assert!(late > 0 && late < comparison.queues.views, "{late}");
    assert!(comparison.queues.mean_length > 5.0, "the test is about queues: {:?}", comparison.queues);
}

#[test]
fn packets_at_other_times_find_other_queues_and_tags_keep_their_drops() {
    let setup = overloaded();
    let recording = recorded(&setup);
    let mut random = Random::new(7, 0);
    let clocks: Vec<Span> = (0..64).map(|_| Span::from_ps(random.below(5_000_000))).collect();
    let clock = |node: NodeId| clocks[node.index()];
    let late = |connection: &RecordedConnection| {
        connection.retimed(<[Time]>::to_vec, [clock(connection.src), clock(connection.dst)])
    };
    let connections: Vec<RecordedConnection> = recording.connections.iter().map(late).collect();
    let [tagged, plain] =
        [ReplayTags::Used, ReplayTags::Ignored].map(|tags| replayed(&setup, &recording, &connections, tags));
    let (with, without) = (tagged.0.drops, plain.0.drops);
    assert_eq!(with.false_drops, 0, "{with:?}");
    assert!(without.false_drops > 0 && without.false_accepts > 0, "{without:?}");
    assert!(with.error().unwrap() < without.error().unwrap() / 3.0, "{with:?} {without:?}");
    let queues = tagged.0.queues;
    assert!(queues.mean > 0.0 && queues.mean < queues.mean_length / 2.0, "{queues:?}");
    assert!(queues.mean_of_lengths <= queues.mean && queues.p99_of_lengths <= queues.p99, "{queues:?}");
    let of_ports: u64 = tagged.0.ports.iter().map(|(_, queues, _)| queues.views).sum();
    assert_eq!(of_ports, queues.views);
}

#[test]
fn what_was_corrupted_is_no_false_accept() {
    let mut setup = overloaded();
    let link = setup.topology.link_between("h0", "leaf0").unwrap().link();
    let forward = FaultSchedule::always(LossModel::PerFrame(Prob::literal(0.05)));
    let reverse = FaultSchedule::default();
    setup.links.push(LinkSetup { link, forward, reverse, protection: Protection::None, activate_at: None });
    let recording = recorded(&setup);
    let corrupted = recording.packets().filter(|(.., packet)| matches!(packet.fate, PacketFate::Corrupted(_))).count();
    assert!(corrupted > 5, "{corrupted}");
    let (comparison, _) = replayed(&setup, &recording, &recording.connections, ReplayTags::Ignored);
    assert_eq!((comparison.queues.mean, comparison.drops.error()), (0.0, Some(0.0)));
    let (comparison, _) = replayed(&setup, &recording, &recording.connections, ReplayTags::Used);
    assert_eq!(comparison.drops.false_accepts, 0, "{:?}", comparison.drops);
}

#[test]
fn who_was_in_a_queue_at_a_time() {
    let setup = overloaded();
    let recording = recorded(&setup);
    let longest = recording.views.views.iter().max_by_key(|view| recording.views.content(view).len()).unwrap();
    let question = Some(QueueQuestion { at: longest.at, port: longest.port });
    let options = ReplayOptions { tags: ReplayTags::Ignored, one_in: 1, question };
    let answer = replay(&setup, &recording.connections, options, &Unwatched).unwrap().answer;
    let mut seen = recording.views.content(longest).to_vec();
    seen.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes), flow.stream));
    assert_eq!(answer, seen);
    let (outcome, asked) = record_asked(setup.clone(), 1, question, &Unwatched).unwrap();
    assert_eq!(asked.answer, seen, "the run knows it as well");
    let (unasked, _) = record(setup.clone(), 1, &Unwatched).unwrap();
    assert_eq!((outcome.flows, outcome.events), (unasked.flows, unasked.events), "to ask changes nothing");
    let question = Some(QueueQuestion { at: Time::ZERO + Span::from_ms(19), port: longest.port });
    let (_, late) = record_asked(setup, 1, question, &Unwatched).unwrap();
    assert!(late.answer.is_empty(), "all has left: {:?}", late.answer);
    assert!(answer.len() > 3 && answer[0].bytes >= MTU_FRAME, "{answer:?}");
}

#[test]
fn what_changes_packets_on_their_way_is_refused() {
    let mut setup = overloaded();
    setup.rtt = true;
    setup.repeat = Some(roce::repeat::RepeaterConfig::new(2, 2));
    let error = record(setup, 1, &Unwatched).unwrap_err();
    assert!(matches!(error, ReplayError::Unsupported(_)));
    assert_eq!(error.to_string(), "queues of a network with switches that repeat packets cannot be replayed");
}

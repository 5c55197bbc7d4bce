//! RDMA over networks that corrupt: mechanisms against timeouts, shared queue pairs, answers.

use faults::{FaultSchedule, LossModel};
use roce::{self, irn, melo, repeat, selective};
use sim::net::{
    IrnSetup, LinkSetup, MeloSetup, NetworkOutcome, NetworkSetup, Protection, TrafficSetup, TransportSetup,
};
use sim::topology::{Topology, TopologyLinkId};
use sim::workload::{FlowSchedule, FlowSeries, Workload, WorkloadFlow};
use units::{Prob, Rate, Span, Time, Unwatched};

const RTO: Span = Span::from_ms(1);

/// h0 and h1 at two switches with one link between them.
fn two_switches(faults: [LossModel; 2]) -> NetworkSetup {
    let topology = Topology::leaf_spine(2, 1, 1, Rate::gbps(100), Rate::gbps(100), Span::from_ns(500)).unwrap();
    let mut setup = NetworkSetup::new(topology);
    let between =
        setup.topology.links.iter().position(|link| !setup.topology.is_host(link.a) && !setup.topology.is_host(link.b));
    let [forward, reverse] = faults.map(FaultSchedule::always);
    let link = TopologyLinkId(between.unwrap() as u32);
    setup.links.push(LinkSetup { link, forward, reverse, protection: Protection::None, activate_at: None });
    setup
}

fn traffic(setup: &NetworkSetup, config: roce::RoceConfig, work: impl Fn(&Topology) -> Workload) -> TrafficSetup {
    let transport = TransportSetup::Roce(roce::RoceConfig { timeout: RTO, ..config });
    TrafficSetup {
        name: "t".into(),
        transport,
        work: work(&setup.topology),
        reply: 0,
        acknowledged: false,
        class: 0,
        ack_class: None,
        queue_pairs: None,
    }
}

fn series(topology: &Topology, bytes: u64, count: u64) -> Workload {
    let mut hosts = topology.hosts();
    let (src, dst) = (hosts.next().unwrap(), hosts.next().unwrap());
    Workload::Series(FlowSeries { src, dst, bytes, count, gap: Span::ZERO, group: 0 })
}

fn run(setup: NetworkSetup) -> NetworkOutcome {
    sim::net::run(setup, &Unwatched).unwrap()
}

fn timeouts(outcome: &NetworkOutcome) -> u32 {
    outcome.flows.iter().map(|flow| flow.tally.timeouts).sum()
}

fn one_in(frames: u32) -> LossModel {
    LossModel::PerFrame(Prob::literal(1.0 / f64::from(frames)))
}

#[test]
fn a_switch_repeats_naks_and_what_they_ask_for() {
    let config = roce::RoceConfig { dummies: 2, ..roce::RoceConfig::default() };
    let outcomes = [None, Some(repeat::RepeaterConfig::new(1, 2))].map(|repeat| {
        let mut setup = two_switches([one_in(20), one_in(20)]);
        setup.repeat = repeat;
        setup.traffic.push(traffic(&setup, config, |topology| series(topology, 10_000, 4_000)));
        run(setup)
    });
    let [plain, repeating] = &outcomes;
    assert_eq!((plain.repeated, plain.repeated_bytes), Default::default());
    let copies = repeating.repeated;
    assert!(copies.naks > 500 && copies.naked > copies.naks, "{copies:?}");
    let (least, most) = (copies.naks * (68 + 20) + copies.naked * 84, copies.naks * (68 + 20) + copies.naked * 1_122);
    assert!((least..=most).contains(&repeating.repeated_bytes), "{}", repeating.repeated_bytes);
    assert!(timeouts(repeating) * 5 < timeouts(plain), "{} of {}", timeouts(repeating), timeouts(plain));
    assert!(outcomes.iter().all(|outcome| outcome.flows.iter().all(|flow| flow.finish.is_some())));
}

#[test]
fn dummies_find_lost_tails() {
    let [without, with] = [0, 1].map(|dummies| {
        let mut setup = two_switches([one_in(10), LossModel::None]);
        let config = roce::RoceConfig { dummies, ..roce::RoceConfig::default() };
        setup.traffic.push(traffic(&setup, config, |topology| series(topology, 1_000, 2_000)));
        run(setup)
    });
    assert!((150..260).contains(&timeouts(&without)), "one in ten: {}", timeouts(&without));
    assert!((20..80).contains(&timeouts(&with)), "tail and dummy, or twice: {}", timeouts(&with));
    assert_eq!(with.flows.iter().map(|flow| flow.tally.dummies).sum::<u32>() / 2_000, 1);
}

#[test]
fn on_a_shared_queue_pair_the_next_flow_finds_a_lost_tail_long_before_the_timeout() {
    let gap = Span::from_us(40);
    let outcomes = [None, Some(1)].map(|queue_pairs| {
        let mut setup = two_switches([LossModel::Script(vec![5]), LossModel::None]);
        let flows = |topology: &Topology| {
            let mut hosts = topology.hosts();
            let (src, dst) = (hosts.next().unwrap(), hosts.next().unwrap());
            let flow = |n: u64| WorkloadFlow { start: Time::ZERO + gap * n, src, dst, bytes: 1_000, group: 0 };
            Workload::Open(FlowSchedule::list((0..10).map(flow).collect()))
        };
        setup.traffic.push(TrafficSetup { queue_pairs, ..traffic(&setup, roce::RoceConfig::default(), flows) });
        run(setup)
    });
    let slowest = outcomes.each_ref().map(|outcome| outcome.flows.iter().filter_map(|flow| flow.fct()).max().unwrap());
    assert!(slowest[0] > RTO, "{}", slowest[0]);
    assert!(slowest[1] > gap && slowest[1] < gap * 2, "{}", slowest[1]);
    assert_eq!(outcomes.each_ref().map(timeouts), [1, 0]);
    assert!(outcomes.iter().all(|outcome| outcome.flows.len() == 10));
}

#[test]
fn flows_that_share_a_queue_pair_complete_in_turn_and_each_once() {
    let mut setup = two_switches([one_in(50), one_in(50)]);
    let flows = |topology: &Topology| {
        let mut hosts = topology.hosts();
        let (src, dst) = (hosts.next().unwrap(), hosts.next().unwrap());
        let flow =
            |n: u64| WorkloadFlow { start: Time::ZERO + Span::from_us(n), src, dst, bytes: 1 + n * 37, group: 0 };
        Workload::Open(FlowSchedule::list((0..500).map(flow).collect()))
    };
    setup.traffic.push(TrafficSetup { queue_pairs: Some(3), ..traffic(&setup, roce::RoceConfig::default(), flows) });
    let outcome = run(setup);
    let mut sizes: Vec<u64> = outcome.flows.iter().map(|flow| flow.bytes).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, (0..500).map(|n| 1 + n * 37).collect::<Vec<u64>>());
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some() && flow.received == flow.bytes));
}

#[test]
fn a_ping_pong_is_over_when_the_answer_is_there() {
    let rounds = |reply, queue_pairs| {
        let mut setup = two_switches([LossModel::None, LossModel::None]);
        let work = |topology: &Topology| series(topology, 1_024, 100);
        setup.traffic.push(TrafficSetup { reply, queue_pairs, ..traffic(&setup, roce::RoceConfig::default(), work) });
        let outcome = run(setup);
        assert_eq!(outcome.flows.len(), 100);
        outcome.flows[50].fct().unwrap()
    };
    let (acknowledged, answered) = (rounds(0, None), rounds(1_024, None));
    assert!(answered > acknowledged, "a long answer takes longer than a short one: {answered} {acknowledged}");
    assert!(answered < acknowledged + Span::from_us(1));
    let on_one = rounds(1_024, Some(1));
    assert!(
        on_one >= answered && on_one < answered + Span::from_ns(20),
        "but for an acknowledgement: {on_one} {answered}"
    );
}

#[test]
fn a_queue_pair_that_fails_takes_its_flows_along_and_the_next_begins_anew() {
    let mut setup = two_switches([LossModel::Script((0..60).collect()), LossModel::None]);
    let config = roce::RoceConfig { retry_count: 1, ..roce::RoceConfig::default() };
    let flows = |topology: &Topology| {
        let mut hosts = topology.hosts();
        let (src, dst) = (hosts.next().unwrap(), hosts.next().unwrap());
        let starts = [0, 1, 2, 300_000, 300_001].map(Span::from_us);
        let flow = |start: Span| WorkloadFlow { start: Time::ZERO + start, src, dst, bytes: 10_000, group: 0 };
        Workload::Open(FlowSchedule::list(starts.map(flow).to_vec()))
    };
    setup.traffic.push(TrafficSetup { queue_pairs: Some(1), ..traffic(&setup, config, flows) });
    let outcome = run(setup);
    let failed: Vec<bool> = outcome.flows.iter().map(|flow| flow.failed).collect();
    assert_eq!(failed, [true, true, true, false, false]);
}

fn melo(memory: melo::PoolConfig) -> TransportSetup {
    TransportSetup::Melo(MeloSetup { config: selective_config(), memory })
}

fn selective_config() -> selective::SelectiveConfig {
    selective::SelectiveConfig { timeout: Span::from_us(30), ..selective::SelectiveConfig::default() }
}

fn selective(setup: &NetworkSetup, transport: TransportSetup, work: impl Fn(&Topology) -> Workload) -> TrafficSetup {
    TrafficSetup { transport, ..traffic(setup, roce::RoceConfig::default(), work) }
}

#[test]
fn selective_retransmission_sends_again_what_was_lost_and_little_else() {
    let irn = IrnSetup { config: selective_config(), memory: irn::Timeouts::default() };
    let transports = [(melo(melo::PoolConfig::default()), true), (TransportSetup::Irn(irn), false)];
    let work = |topology: &Topology| series(topology, 10_000_000, 1);
    for (transport, shared) in transports {
        let mut setup = two_switches([one_in(1_000), LossModel::None]);
        setup.traffic.push(selective(&setup, transport, work));
        let outcome = run(setup);
        let (flow, lost) = (outcome.flows[0], outcome.ports.iter().map(|port| port.corrupted).sum::<u64>());
        assert!(lost > 3 && flow.finish.is_some(), "{lost} {flow:?}");
        assert!(u64::from(flow.tally.retransmitted) < lost * 3, "{lost} {:?}", flow.tally);
        assert!(flow.slowdown().unwrap() < 1.2, "{:?}", flow.slowdown());
        assert_eq!(outcome.pools.iter().any(|used| used.receive_peak > 0 && used.size == 1_024), shared);
    }
    let mut setup = two_switches([one_in(1_000), LossModel::None]);
    setup.traffic.push(traffic(&setup, roce::RoceConfig::default(), work));
    let outcome = run(setup);
    assert!(outcome.flows[0].tally.retransmitted > 200, "go-back-N: {:?}", outcome.flows[0].tally);
}

#[test]
fn a_connection_that_is_over_gives_its_bits_back() {
    let mut setup = two_switches([one_in(20), one_in(20)]);
    let pool = melo::PoolConfig { bits: 256, block: 8 };
    setup.traffic.push(selective(&setup, melo(pool), |topology| series(topology, 100_000, 300)));
    let outcome = run(setup);
    assert_eq!(outcome.flows.len(), 300);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
    // With blocks left behind by hundreds of flows, later ones would find none.
    let (early, late) = outcome.flows.split_at(150);
    let sent_again = |flows: &[sim::net::FlowRow]| flows.iter().map(|flow| flow.tally.retransmitted).sum::<u32>();
    assert!(sent_again(late) < sent_again(early) * 3 / 2, "{} {}", sent_again(late), sent_again(early));
}

//! Meters in a network find what the network lost, where it lost it, and nothing else.

use std::collections::BTreeMap;

use faults::{FaultSchedule, LossModel, Random};
use machine::DropReason;
use radar::causes::CauseThresholds;
use radar::flowset::{FlowKey, Flowset, FlowsetShape};
use radar::loss::LossCause;
use sim::link::{self, LinkSimMode};
use sim::net::counting::{self, CountingProgram};
use sim::net::metering::{MeteringConfig, MeteringResult, TrueDrop};
use sim::net::{
    self, DatagramConfig, DatagramGaps, FaultyAction, FaultyRule, LinkSetup, Marking, NetworkOutcome, NetworkSetup,
    Pfc, Protection, SwitchSettings, TrafficSetup, TransportSetup,
};
use sim::topology::{NodeId, Topology};
use sim::workload::{ArrivalStop, BurstPace, FlowSchedule, Incast, Poisson, SizeTrace, Workload, WorkloadFlow};
use tcp::{self, cc::Algorithm};
use units::{Bytes, Prob, Rate, Span, Time, Unwatched};

const MS: Span = Span::from_ms(1);

fn dctcp() -> TransportSetup {
    tcp_with(Span::from_ms(2))
}

fn tcp_with(rto_min: Span) -> TransportSetup {
    let profile = tcp::TimerProfile::Rfc { rto_min, max_ack_delay: MS };
    TransportSetup::Tcp(tcp::TcpConfig { algorithm: Algorithm::Dctcp, profile, ..tcp::TcpConfig::default() })
}

fn traffic(transport: TransportSetup, flows: FlowSchedule) -> TrafficSetup {
    TrafficSetup {
        name: "t".into(),
        transport,
        work: Workload::Open(flows),
        reply: 0,
        acknowledged: false,
        class: 0,
        ack_class: None,
        queue_pairs: None,
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + MS * ms
}

/// A fat-tree of 16 hosts in which everybody sends to somebody for 20 ms, with meters everywhere.
fn fat_tree() -> NetworkSetup {
    let topology = Topology::fat_tree(4, Rate::gbps(10), Span::from_us(1)).unwrap();
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let flows = FlowSchedule::permutation(&hosts, 50_000_000, Time::ZERO, &mut Random::new(5, 0)).unwrap();
    let mut setup = NetworkSetup::new(topology);
    setup.traffic.push(traffic(dctcp(), flows));
    setup.marking = Some(Marking::step(Bytes::new(60_000)));
    setup.until = at(20);
    setup.radar = Some(meters());
    setup
}

fn meters() -> MeteringConfig {
    MeteringConfig { batch: Span::from_ms(2), timeout: MS, cells: 1_200, keep_truth: true, ..MeteringConfig::default() }
}

/// A link that loses this share of packets both ways.
fn lossy(setup: &mut NetworkSetup, between: [&str; 2], share: f64) -> [u32; 2] {
    let link = setup.topology.link_between(between[0], between[1]).unwrap();
    let schedule = || FaultSchedule::always(LossModel::PerFrame(Prob::literal(share)));
    setup.links.push(LinkSetup {
        link: link.link(),
        forward: schedule(),
        reverse: schedule(),
        protection: Protection::None,
        activate_at: None,
    });
    [link.0, link.reversed().0]
}

fn rule(setup: &mut NetworkSetup, switch: &str, to: &str, from: Time, action: FaultyAction) {
    let [switch, to] = [switch, to].map(|name| setup.topology.node(name).unwrap());
    setup.rules.push(FaultyRule { switch, to, from, until: Time::NEVER, action });
}

fn run(setup: NetworkSetup) -> (NetworkOutcome, MeteringResult) {
    let mut outcome = net::run(setup, &Unwatched).unwrap();
    let found = outcome.radar.take().unwrap();
    (outcome, found)
}

/// Packets that the network lost, in the batches that were looked at.
fn looked_at(found: &MeteringResult) -> impl Iterator<Item = &TrueDrop> {
    found.truth.dropped.iter().filter(|dropped| dropped.signature.loss(None).at.0 * 1_000 < found.until.as_ps())
}

/// Asserts that the meters found exactly what was lost in the batches that they looked at; returns how much that was.
fn assert_exact(found: &MeteringResult) -> usize {
    let mut said: Vec<String> = found.losses.iter().map(|lost| format!("{lost:?}")).collect();
    let mut true_losses: Vec<String> = looked_at(found)
        .map(|dropped| {
            let (segment, batch, loss) = (dropped.segment, dropped.batch, dropped.signature.loss(None));
            format!("{:?}", net::metering::SegmentLoss { segment, batch, loss, is_untimed: false })
        })
        .collect();
    said.sort_unstable();
    true_losses.sort_unstable();
    assert_eq!(said, true_losses);
    assert_eq!((found.unnamed.len(), found.extra, found.late), (0, 0, 0));
    said.len()
}

fn segments(found: &MeteringResult) -> Vec<u32> {
    let mut segments: Vec<u32> = found.losses.iter().map(|lost| lost.segment).collect();
    segments.sort_unstable();
    segments.dedup();
    segments
}

#[test]
fn random_losses_are_found_on_their_links() {
    let mut setup = fat_tree();
    let mut links =
        [lossy(&mut setup, ["h0", "edge0-0"], 0.002), lossy(&mut setup, ["agg3-0", "core0"], 0.002)].concat();
    links.sort_unstable();
    let (outcome, found) = run(setup);
    assert!(assert_exact(&found) > 50);
    assert_eq!(segments(&found), links);
    assert!(found.truth.counts().all(|(_, why, _)| why == DropReason::Corrupted));
    let corrupted: u64 = outcome.ports.iter().map(|port| port.corrupted).sum();
    assert_eq!(found.truth.lost(), corrupted);
}

/// Without tags: what was lost and what is named, each with its segment, its batch and its identification.
fn by_clock(found: &MeteringResult, batch: Span) -> [Vec<String>; 2] {
    let row = |segment: u32, batch: u64, loss: &radar::loss::Loss| {
        format!("{segment} {batch} {:?} {:?}", loss.flow, loss.ip_id)
    };
    let until = found.until.as_ps() / batch.as_ps();
    let truth = found.truth.dropped.iter().filter(|dropped| dropped.batch < until);
    let mut lost: Vec<String> =
        truth.map(|dropped| row(dropped.segment, dropped.batch, &dropped.signature.loss(None))).collect();
    let mut named: Vec<String> = found.losses.iter().map(|lost| row(lost.segment, lost.batch, &lost.loss)).collect();
    lost.sort_unstable();
    named.sort_unstable();
    [lost, named]
}

fn without_tags(error: Span, cells: usize) -> MeteringResult {
    let mut setup = fat_tree();
    lossy(&mut setup, ["h0", "edge0-0"], 0.002);
    lossy(&mut setup, ["agg3-0", "core0"], 0.002);
    setup.radar = Some(MeteringConfig { clock_error: Some(error), cells, ..meters() });
    run(setup).1
}

#[test]
fn without_tags_batches_that_clocks_cut_name_what_was_lost_and_nothing_else() {
    for error in [Span::ZERO, Span::from_us(2), Span::from_us(100), Span::from_us(500)] {
        let found = without_tags(error, 4_000);
        let [lost, named] = by_clock(&found, Span::from_ms(2));
        assert_eq!(named, lost, "clocks within {error}");
        assert!(lost.len() > 40, "{} losses", lost.len());
        assert_eq!((found.unnamed.len(), found.extra, found.late), (0, 0, 0), "clocks within {error}");
        // Meters recall when a lost packet passed, by clocks that are wrong by no more than that.
        assert!(found.losses.iter().all(|lost| !lost.is_untimed && lost.loss.at.0 / 2_000_000 == lost.batch));
    }
}

/// §5.8: digests need room for what passes within 2ε and the way.
#[test]
fn the_worse_the_clocks_the_more_cells_it_takes() {
    let [good, bad] = [Span::from_us(2), Span::from_us(500)].map(|error| without_tags(error, 400));
    assert_eq!(good.unnamed.len(), 0, "{:?}", good.unnamed);
    assert!(!bad.unnamed.is_empty(), "hundreds of packets are in another batch there, in 400 cells");
}

#[test]
fn what_a_full_buffer_drops_is_lost_on_the_segment_that_begins_there() {
    let mut setup = fat_tree();
    let hosts: Vec<NodeId> = setup.topology.hosts().collect();
    let to_one =
        hosts[1..].iter().map(|src| WorkloadFlow { start: at(3), src: *src, dst: hosts[0], bytes: 200_000, group: 0 });
    setup.traffic.push(traffic(dctcp(), FlowSchedule::list(to_one.collect())));
    setup.switches.port_limit = Some(Bytes::new(100_000));
    let last_hop = setup.topology.link_between("edge0-0", "h0").unwrap().0;
    let (outcome, found) = run(setup);
    assert!(assert_exact(&found) > 50);
    assert!(found.truth.counts().all(|(_, why, _)| why == DropReason::Full));
    assert_eq!(found.truth.lost(), outcome.ports.iter().map(|port| port.dropped).sum::<u64>());
    let counted = |link: u32| found.truth.dropped.iter().filter(|dropped| dropped.segment == link).count() as u64;
    assert!(outcome.ports.iter().enumerate().all(|(link, port)| counted(link as u32) == port.dropped));
    assert!(segments(&found).contains(&last_hop));
}

#[test]
fn a_blackhole_is_found_on_the_segments_that_lead_into_its_switch() {
    let mut setup = fat_tree();
    rule(&mut setup, "agg0-1", "h1", at(4), FaultyAction::Drop);
    rule(&mut setup, "edge2-0", "h9", at(4), FaultyAction::Drop);
    let holes = ["agg0-1", "edge2-0"].map(|name| setup.topology.node(name).unwrap());
    let topology = setup.topology.clone();
    let (outcome, found) = run(setup);
    assert!(assert_exact(&found) > 10);
    assert_eq!(found.truth.lost(), outcome.ruled.iter().sum::<u64>());
    assert!(outcome.ruled[1] > 0, "{:?}", outcome.ruled);
    for lost in &found.losses {
        assert!(holes.contains(&topology.to(sim::topology::DirectedLink(lost.segment))), "{lost:?}");
        let to = net::address::host_of(lost.loss.flow.dst).map(|host| topology.name(host).to_owned());
        assert!(to == Some("h1".into()) || to == Some("h9".into()), "{to:?}");
    }
}

#[test]
fn what_a_switch_is_told_to_drop_is_nobodys_loss() {
    let mut setup = fat_tree();
    let [_, back] = lossy(&mut setup, ["h3", "edge0-1"], 0.002);
    rule(&mut setup, "edge2-0", "h9", at(4), FaultyAction::Filter);
    let (outcome, found) = run(setup);
    assert!(outcome.ruled[0] > 0);
    assert!(assert_exact(&found) > 10);
    assert!(segments(&found).contains(&back) && segments(&found).len() == 2);
}

#[test]
fn meters_change_nothing() {
    let setup = |radar| {
        let mut setup = fat_tree();
        lossy(&mut setup, ["agg1-0", "core1"], 0.002);
        setup.radar = radar;
        setup
    };
    let [plain, metered] = [None, Some(meters())].map(|radar| net::run(setup(radar), &Unwatched).unwrap());
    assert_eq!(plain.flows, metered.flows);
    assert_eq!((plain.events, plain.ports), (metered.events, metered.ports));
}

#[test]
fn priorities_and_pauses_do_not_confuse_meters() {
    let mut setup = fat_tree();
    let hosts: Vec<NodeId> = setup.topology.hosts().collect();
    let to_one =
        hosts[1..8].iter().map(|src| WorkloadFlow { start: at(3), src: *src, dst: hosts[0], bytes: 300_000, group: 0 });
    let rdma = TransportSetup::Roce(roce::RoceConfig::default());
    setup.traffic[0].class = 3;
    setup.traffic.push(traffic(rdma, FlowSchedule::list(to_one.collect())));
    let pfc = Pfc::new(0.125, Bytes::new(60_000), Bytes::new(3_000));
    setup.switches = SwitchSettings { buffer: Bytes::new(1_000_000), pfc: Some(pfc), ..SwitchSettings::default() };
    let mut links = lossy(&mut setup, ["edge0-0", "agg0-0"], 0.002).to_vec();
    links.extend(lossy(&mut setup, ["edge0-0", "agg0-1"], 0.002));
    // Packets that are paused or not urgent wait longer.
    setup.radar = Some(MeteringConfig { batch: Span::from_ms(4), timeout: Span::from_ms(4), ..meters() });
    let (outcome, found) = run(setup);
    assert!(outcome.pfc_pauses > 0);
    assert_eq!(found.late, 0);
    assert!(assert_exact(&found) > 50);
    assert!(segments(&found).iter().all(|segment| links.contains(segment)));
    assert!(
        found.losses.iter().any(|lost| lost.loss.tcp.is_none())
            && found.losses.iter().any(|lost| lost.loss.tcp.is_some())
    );
}

/// One flow of datagrams at half of the rate, over a link that loses one frame in a hundred.
fn over_one_link(protection: impl FnOnce(FaultSchedule) -> Protection) -> (NetworkOutcome, MeteringResult) {
    let topology = Topology::testbed(Rate::gbps(10));
    let link = topology.link_between("sw2", "sw6").unwrap().link();
    let [src, dst] = ["h4", "h8"].map(|name| topology.node(name).unwrap());
    let mut setup = NetworkSetup::new(topology);
    let config = DatagramConfig { payload: 1_472, rate: Some(Rate::gbps(5)), gaps: DatagramGaps::Even };
    let flow = WorkloadFlow { start: Time::ZERO, src, dst, bytes: 8_000_000, group: 0 };
    setup.traffic.push(traffic(TransportSetup::Datagrams(config), FlowSchedule::list(vec![flow])));
    let forward = FaultSchedule::always(LossModel::PerFrame(Prob::literal(0.01)));
    let protection = protection(forward.clone());
    setup.links.push(LinkSetup { link, forward, reverse: FaultSchedule::default(), protection, activate_at: None });
    setup.until = at(20);
    setup.radar = Some(meters());
    run(setup)
}

#[test]
fn what_a_protected_link_recovers_is_not_lost_and_what_it_gives_up_is() {
    let guarded = |mode, copies| {
        move |forward| {
            let config = link::LinkSimConfig { mode, copies, forward, ..link::LinkSimConfig::default() };
            Protection::of(config)
        }
    };
    for mode in [LinkSimMode::Ordered, LinkSimMode::NonBlocking, LinkSimMode::UecLlr] {
        let (outcome, found) = over_one_link(guarded(mode, None));
        assert!(outcome.ports.iter().map(|port| port.corrupted).sum::<u64>() > 40);
        let given_up: u64 = outcome.links[0].1.counters.iter().map(|counters| counters.given_up).sum();
        assert_eq!((found.losses.len() as u64, found.extra, found.late), (given_up, 0, 0), "{mode:?}");
    }
    let (outcome, found) = over_one_link(guarded(LinkSimMode::Ordered, Some(1)));
    let given_up: u64 = outcome.links[0].1.counters.iter().map(|counters| counters.given_up).sum();
    assert_eq!((found.losses.len() as u64, found.extra), (given_up, 0));
}

#[test]
fn behind_a_black_box_losses_are_found_where_they_entered_it() {
    let mut setup = fat_tree();
    let black: Vec<NodeId> =
        setup.topology.switches().filter(|node| setup.topology.name(*node).starts_with("agg")).collect();
    setup.radar = Some(MeteringConfig { black_boxes: black.clone(), ..meters() });
    lossy(&mut setup, ["agg1-0", "core1"], 0.002);
    rule(&mut setup, "agg0-1", "h1", at(4), FaultyAction::Drop);
    let topology = setup.topology.clone();
    let (_, found) = run(setup);
    assert!(assert_exact(&found) > 20);
    for dropped in &found.truth.dropped {
        let entered = sim::topology::DirectedLink(dropped.segment);
        let [from, to] = [topology.from(entered), topology.to(entered)];
        assert!(!black.contains(&from), "a meter at a black box");
        // On its way to the core it entered by a ToR; from the core it is lost before it enters.
        assert!(black.contains(&to), "{dropped:?}");
    }
}

#[test]
fn a_loop_ends_where_packets_have_lived_too_long_and_says_so() {
    let mut setup = fat_tree();
    let up = setup.topology.link_between("edge0-0", "agg0-0").unwrap();
    rule(&mut setup, "edge0-0", "h0", at(4), FaultyAction::Send(up));
    let ends = [up.0, up.reversed().0];
    let (outcome, found) = run(setup);
    assert!(
        outcome.expired > 0 && outcome.expired < outcome.ruled[0] / 10,
        "{} of {}",
        outcome.expired,
        outcome.ruled[0]
    );
    assert!(assert_exact(&found) > 0);
    let looped: Vec<_> = found.losses.iter().filter(|lost| lost.loss.expired).collect();
    assert!(!looped.is_empty() && looped.iter().all(|lost| ends.contains(&lost.segment)), "{looped:?}");
}

#[test]
fn a_digest_that_is_too_small_still_counts() {
    let mut setup = fat_tree();
    let links = lossy(&mut setup, ["agg1-0", "core1"], 0.05);
    setup.radar = Some(MeteringConfig { cells: 12, ..meters() });
    let (_, found) = run(setup);
    assert!(!found.unnamed.is_empty());
    for link in links {
        let named = found.losses.iter().filter(|lost| lost.segment == link).count() as i64;
        let unnamed: i64 = found.unnamed.iter().filter(|left| left.segment == link).map(|left| left.left.net).sum();
        let lost = looked_at(&found).filter(|dropped| dropped.link == link).count();
        assert_eq!(named + unnamed, lost as i64);
    }
}

/// Three links that drop at random, three switches that drop all for a host, and congestion beside them.
fn six_problems() -> NetworkSetup {
    let topology = Topology::fat_tree(4, Rate::gbps(10), Span::from_us(1)).unwrap();
    let hosts: Vec<NodeId> = topology.hosts().collect();
    let mut setup = NetworkSetup::new(topology);
    let stop = ArrivalStop::At(at(500));
    let poisson = Poisson {
        load: 0.4,
        rate: Rate::gbps(10),
        sizes: SizeTrace::WebSearch.sizes(),
        senders: hosts.clone(),
        receivers: hosts.clone(),
        matched: false,
        stop,
    };
    let pace = BurstPace::Every(Span::from_ms(8));
    let incast = Incast { fan_in: 10, bytes: 50_000, hosts, receiver: None, pace, stop };
    // Linux's value; more frequent retransmissions look like random losses.
    let transport = tcp_with(Span::from_ms(200));
    setup.traffic.push(traffic(transport.clone(), FlowSchedule::poisson(poisson, Random::new(1, 0)).unwrap()));
    setup.traffic.push(traffic(transport, FlowSchedule::incast(incast, Random::new(2, 0)).unwrap()));
    setup.marking = Some(Marking::step(Bytes::new(97_500)));
    setup.switches.port_limit = Some(Bytes::new(150_000));
    setup.switch_latency = Span::from_us(5);
    setup.handshakes = true;
    setup.until = at(500);
    setup.radar = Some(MeteringConfig { keep_truth: true, ..MeteringConfig::default() });
    for between in [["h5", "edge1-0"], ["edge2-1", "agg2-0"], ["agg3-1", "core2"]] {
        lossy(&mut setup, between, 0.01);
    }
    for (switch, to) in [("edge0-0", "h1"), ("agg1-1", "h7"), ("core1", "h13")] {
        rule(&mut setup, switch, to, at(100), FaultyAction::Drop);
    }
    setup
}

#[test]
fn three_lossy_links_and_three_blackholes_are_found_and_nobody_else_is_accused() {
    let setup = six_problems();
    let topology = setup.topology.clone();
    let (_, found) = run(setup);
    let verdict = found.judge(&topology, &CauseThresholds::default());
    let congested = verdict.causes.iter().filter(|cause| **cause == LossCause::Congestion).count();
    assert!(congested > 100, "{congested}");
    let mut accused: Vec<String> = verdict
        .accused
        .into_iter()
        .map(|culprit| {
            let link = sim::topology::DirectedLink(culprit.segment);
            let [from, to] = [topology.from(link), topology.to(link)].map(|node| topology.name(node));
            match culprit.cause {
                LossCause::Random => format!(
                    "{} {}",
                    culprit.cause,
                    if from < to { format!("{from}-{to}") } else { format!("{to}-{from}") }
                ),
                cause => format!("{cause} {to}"),
            }
        })
        .collect();
    accused.sort_unstable();
    accused.dedup();
    assert_eq!(
        accused,
        [
            "blackhole agg1-1",
            "blackhole core1",
            "blackhole edge0-0",
            "random agg2-0-edge2-1",
            "random agg3-1-core2",
            "random edge1-0-h5",
        ]
    );
}

/// Packets of each flow that each node counted in each slot.
type Counts = Vec<Vec<BTreeMap<FlowKey, u32>>>;

fn count(setup: NetworkSetup) -> (Counts, Vec<counting::DroppedPacket>) {
    let mut counts: Counts = Vec::new();
    let shape = FlowsetShape::new(3, 600, 7, 8_000, 1);
    let topology = setup.topology.clone();
    let of = |flowset: &Flowset| {
        let decoded = flowset.decode();
        assert!(decoded.is_complete());
        decoded.flows.into_iter().collect()
    };
    let mut program = CountingProgram::new(&topology, Span::from_ms(10), shape, |slot| {
        assert_eq!(slot.number as usize, counts.len());
        counts.push(slot.flowsets.iter().map(of).collect());
    });
    net::run_with(setup, &mut program, &Unwatched).unwrap();
    let dropped = program.finish();
    (counts, dropped)
}

/// Every host sends a packet to every other one every 5 ms, as in li-thesis §4.6.1.
fn persistent() -> NetworkSetup {
    let mut setup = fat_tree();
    setup.radar = None;
    setup.until = at(60);
    let hosts: Vec<NodeId> = setup.topology.hosts().collect();
    // 625 bytes on the wire, which take 5 ms at the lowest rate that there is.
    let payload = 559;
    let flow = |src: &NodeId, dst: &NodeId| WorkloadFlow {
        start: Time::ZERO,
        src: *src,
        dst: *dst,
        bytes: 559 * 12,
        group: 0,
    };
    let pairs = hosts.iter().flat_map(|src| hosts.iter().filter(move |dst| *dst != src).map(move |dst| flow(src, dst)));
    let transport = TransportSetup::Datagrams(DatagramConfig {
        payload,
        rate: Some("1M".parse().unwrap()),
        gaps: DatagramGaps::Even,
    });
    setup.traffic = vec![traffic(transport, FlowSchedule::list(pairs.collect()))];
    setup
}

#[test]
fn every_switch_on_its_way_counts_a_flow_and_where_it_goes_round_counts_it_again() {
    let mut setup = persistent();
    let topology = setup.topology.clone();
    let up = topology.link_between("edge0-0", "agg0-0").unwrap();
    rule(&mut setup, "edge0-0", "h0", at(10), FaultyAction::Send(up));
    rule(&mut setup, "edge3-0", "h13", at(20), FaultyAction::Drop);
    let (counts, dropped) = count(setup);
    let node = |name: &str| topology.node(name).unwrap();
    let to = |key: &FlowKey| net::address::host_of(key.flow().dst).unwrap();
    for (flow, packets) in &counts[0][node("h5").index()] {
        // Sent by it or for it: everybody on the way has the same count.
        let others = counts[0].iter().filter_map(|of| of.get(flow)).collect::<Vec<_>>();
        assert!(others.len() >= 3 && others.iter().all(|other| *other == packets), "{others:?}");
    }
    for (flow, packets) in counts[1][node("edge0-0").index()].iter().filter(|(flow, _)| to(flow) == node("h0")) {
        let entered = counts[1][net::address::host_of(flow.flow().src).unwrap().index()][flow];
        assert!(*packets > 5 * entered, "{packets} of {entered}");
        assert_eq!(counts[1][node("h0").index()].get(flow), None);
    }
    let hole = |slot: usize, name: &str| counts[slot][node(name).index()].keys().any(|flow| to(flow) == node("h13"));
    assert!(hole(1, "edge3-0") && hole(2, "agg3-0") && !hole(2, "edge3-0") && !hole(2, "h13"));
    let of = |why| dropped.iter().filter(|dropped| dropped.why == why).count();
    assert!(of(DropReason::Expired) > 0 && of(DropReason::Blackhole) > 0 && of(DropReason::Full) == 0);
}

#[test]
fn the_same_seed_finds_the_same() {
    let find = |seed| {
        let mut setup = fat_tree();
        lossy(&mut setup, ["agg1-0", "core1"], 0.002);
        setup.seed = seed;
        run(setup).1
    };
    let (first, again, other) = (find(1), find(1), find(2));
    assert_eq!(first, again);
    assert_ne!(first.losses, other.losses);
}

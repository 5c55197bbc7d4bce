use super::*;
use crate::digest::tests::packet;

fn flow(nth: u16) -> Flow {
    Flow { src_port: nth, ..packet(1).flow }
}

/// A loss at a place, of one of eight flows that take turns, a millisecond for ten packets.
fn loss(place: u64, waited: i64) -> LossEvidence {
    let nth = (place % 8) as u16;
    LossEvidence {
        flow: flow(nth),
        at: Some(Timestamp(place * 100_000)),
        ttl: Some(64),
        ip_id: None,
        tcp: None,
        place: Some(LossPlace { place, number: (place / 8) as u16, others: 14, tag: nth as u8 }),
        waited: Some(waited),
        is_told: false,
    }
}

fn samples(waited: impl Fn(u64) -> i64) -> Vec<SampledPacket> {
    let sample = |nth: u64| SampledPacket {
        at: Timestamp(nth * 97 * 100_000),
        tag: (nth * 97 % 8) as u8,
        waited: Some(waited(nth)),
    };
    (0..100).map(sample).collect()
}

fn judge(losses: Vec<LossEvidence>, waited: impl Fn(u64) -> i64) -> Vec<(LossCause, CauseReason, usize)> {
    let interval =
        IntervalEvidence { losses, samples: samples(waited), packets: 10_000, ..IntervalEvidence::default() };
    said(&EvidenceRule::default().judge(&interval))
}

fn said(groups: &[CauseGroup]) -> Vec<(LossCause, CauseReason, usize)> {
    groups.iter().map(|group| (group.cause, group.why, group.losses.len())).collect()
}

/// Places as chance has them, the same each time.
fn places(count: u64) -> impl Iterator<Item = u64> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut all: Vec<u64> = (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % 10_000
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

#[test]
fn losses_as_chance_has_them_at_any_queue_are_random() {
    let losses = places(40).map(|place| loss(place, (place % 50 * 1_000) as i64)).collect();
    let judged = judge(losses, |nth| (nth * 7 % 50 * 1_000) as i64);
    assert!(matches!(judged[..], [(LossCause::Random, CauseReason::Order, _)]), "{judged:?}");
}

#[test]
fn losses_at_a_long_queue_are_congestion_unless_it_always_stands() {
    let losses = || places(40).map(|place| loss(place, 900_000)).collect();
    let short = judge(losses(), |nth| if nth % 10 == 0 { 850_000 } else { 1_000 });
    assert!(matches!(short[..], [(LossCause::Congestion, CauseReason::Queue, _)]), "{short:?}");
    let standing = judge(losses(), |nth| if nth % 10 == 0 { 1_000 } else { 880_000 });
    assert!(matches!(standing[..], [(LossCause::Unknown, CauseReason::StandingQueue, _)]), "{standing:?}");
}

#[test]
fn losses_that_shun_a_short_queue_are_not_of_a_cable() {
    let losses = places(60).map(|place| loss(place, 50_000 + (place % 30 * 1_000) as i64)).collect();
    let judged = judge(losses, |nth| (nth * 7 % 100 * 1_000) as i64);
    assert!(matches!(judged[..], [(LossCause::Unknown, CauseReason::Queue, _)]), "{judged:?}");
}

#[test]
fn bursts_and_regular_gaps_without_a_queue_are_unknown() {
    let bursts = (0..10).flat_map(|nth| (0..4).map(move |at| loss(nth * 900 + at, 0))).collect();
    assert_eq!(judge(bursts, |_| 0), [(LossCause::Unknown, CauseReason::Bursts, 40)]);
    // One in a hundred, and never of the same flow again and again.
    let regular = (0..60).map(|nth| loss(nth * 101, 0)).collect();
    assert_eq!(judge(regular, |_| 0), [(LossCause::Unknown, CauseReason::Periodic, 60)]);
    let once = (0..12).map(|at| loss(5_000 + at, 0)).collect();
    assert_eq!(judge(once, |_| 0)[0].1, CauseReason::Bursts, "one burst in the interval");
}

#[test]
fn losses_of_one_flow_of_eight_are_unknown_and_all_of_them_in_a_row_are_a_blackhole() {
    let of_one: Vec<u64> = places(200).filter(|place| place % 8 == 3).collect();
    let judged = judge(of_one.iter().map(|place| loss(*place, 0)).collect(), |_| 0);
    assert_eq!(judged[0].1, CauseReason::OneFlow, "{judged:?}");
    let hole = |number: fn(u64) -> u64| (10..40).map(move |nth| loss(number(nth) * 8, 0)).collect::<Vec<_>>();
    assert_eq!(judge(hole(|nth| nth), |_| 0), [(LossCause::Blackhole, CauseReason::Flow, 30)]);
    let survived = judge(hole(|nth| if nth < 20 { nth } else { nth + 1 }), |_| 0);
    assert!(survived.iter().all(|(cause, ..)| *cause != LossCause::Blackhole), "{survived:?}");
}

#[test]
fn a_flow_in_a_burst_that_takes_all_is_in_no_blackhole() {
    let all = (800..860).map(|place| loss(place, 0)).collect::<Vec<_>>();
    let judged = judge(all, |_| 0);
    assert!(judged.iter().all(|(cause, ..)| *cause != LossCause::Blackhole), "{judged:?}");
}

#[test]
fn a_router_that_says_so_makes_a_blackhole_a_loop() {
    let hole = (10..40).map(|nth| LossEvidence { is_told: nth == 20, ..loss(nth * 8, 0) }).collect();
    assert_eq!(judge(hole, |_| 0), [(LossCause::Loop, CauseReason::Expired, 30)]);
    let apart = places(40).map(|place| LossEvidence { is_told: true, ..loss(place, 0) }).collect();
    assert_eq!(judge(apart, |_| 0)[0].0, LossCause::Random, "a flow that also arrives is in no loop");
}

#[test]
fn packets_that_could_not_survive_the_segment_are_a_loop_only_where_packets_come_round() {
    let losses: Vec<LossEvidence> =
        (0..30).map(|nth| LossEvidence { ttl: Some((nth % 3 + 1) as u8), ..loss(nth * 331, 0) }).collect();
    let interval = |rounds| IntervalEvidence { losses: losses.clone(), rounds, ..IntervalEvidence::default() };
    let rule = EvidenceRule { hops: 3, ..EvidenceRule::default() };
    assert_eq!(said(&rule.judge(&interval(0))), [(LossCause::Unknown, CauseReason::Expired, 30)]);
    assert_eq!(said(&rule.judge(&interval(5))), [(LossCause::Loop, CauseReason::Expired, 30)]);
    let cable = said(&EvidenceRule::default().judge(&interval(0)));
    assert!(cable.iter().all(|(_, why, _)| *why != CauseReason::Expired), "on a cable nothing expires: {cable:?}");
}

#[test]
fn counters_of_the_interface_go_before_any_pattern() {
    let losses: Vec<LossEvidence> = (0..20).map(|nth| loss(nth * 3, 0)).collect();
    let interval = |bad_frames, missed_frames| IntervalEvidence {
        losses: losses.clone(),
        samples: samples(|_| 0),
        bad_frames,
        missed_frames,
        ..IntervalEvidence::default()
    };
    let judged = |bad, missed| said(&EvidenceRule::default().judge(&interval(bad, missed)))[0];
    assert_eq!(judged(19, 0), (LossCause::Random, CauseReason::Counters, 20));
    assert_eq!(judged(1, 20), (LossCause::Congestion, CauseReason::Counters, 20));
    assert_eq!(judged(9, 9).0, LossCause::Unknown);
}

#[test]
fn without_evidence_or_with_few_losses_nothing_is_said() {
    let unknown = |nth: u64| LossEvidence { at: None, ttl: None, place: None, waited: None, ..loss(nth, 0) };
    assert_eq!(judge((0..30).map(unknown).collect(), |_| 0), [(LossCause::Unknown, CauseReason::NoEvidence, 30)]);
    assert_eq!(
        judge((0..9).map(|nth| loss(nth * 700, 0)).collect(), |_| 0),
        [(LossCause::Unknown, CauseReason::Few, 9)]
    );
    let no_neighbours = places(40).map(|place| LossEvidence { waited: None, ..loss(place, 0) }).collect();
    assert_eq!(judge(no_neighbours, |_| 0)[0].1, CauseReason::NoEvidence);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let rule = EvidenceRule::default();
    assert!(rule.checked().is_ok());
    for error in [0.0, -1.0, 0.5, f64::NAN] {
        let refused = EvidenceRule { error, ..rule }.checked().unwrap_err();
        assert_eq!((refused.name, refused.expected), ("error", "from 1e-9 to 0.05"));
    }
    assert!(EvidenceRule { hops: 255, ..rule }.checked().is_err());
    assert!(EvidenceRule { interval: Span::from_ms(1), ..rule }.checked().is_err());
    assert_eq!(CauseReason::ALL.map(CauseReason::name).len(), 12);
}

#[test]
fn the_rules_of_the_thesis_need_times_and_call_bursts_congestion() {
    let rule = CauseRule::Thesis(CauseThresholds::default(), 1);
    let burst = (0..12).map(|nth| LossEvidence { at: Some(Timestamp(nth * 1_000)), ..loss(nth * 5, 0) });
    let unknown = LossEvidence { at: None, ..loss(900, 0) };
    let interval = IntervalEvidence { losses: burst.chain([unknown]).collect(), ..IntervalEvidence::default() };
    let expected = [(LossCause::Congestion, CauseReason::Bursts, 12), (LossCause::Unknown, CauseReason::NoEvidence, 1)];
    assert_eq!(said(&rule.judge(&interval)), expected);
}

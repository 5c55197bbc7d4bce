use super::*;
use crate::packet::TcpFields;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn flow(nth: u32) -> Flow {
    Flow {
        src: [10, 0, (nth >> 8) as u8, nth as u8].into(),
        dst: [10, 9, 0, 1].into(),
        protocol: 17,
        src_port: 5_000,
        dst_port: 53,
    }
}

fn loss(at: u64, nth: u32, place: u64) -> Loss {
    Loss { at: Timestamp(at), flow: flow(nth), ip_id: Some(0), tcp: None, expired: false, place: Some(place) }
}

fn of(losses: &[Loss]) -> CauseCounts {
    let causes = classify(losses, &CauseThresholds::default());
    assert_eq!(causes.len(), losses.len());
    causes.into_iter().collect()
}

#[track_caller]
fn assert_all(losses: &[Loss], cause: LossCause) {
    let summary = of(losses);
    assert_eq!(summary.causes().collect::<Vec<_>>(), [(cause, losses.len() as u64)]);
}

/// A cheap hash, for losses at times without a pattern.
fn scattered(nth: u64) -> u64 {
    let mut x = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[test]
fn every_other_packet_of_a_queue_that_overflows_is_congestion() {
    let losses: Vec<Loss> = (0..40).map(|n| loss(n * 10 * US, n as u32 % 4, n / 4 * 3)).collect();
    assert_all(&losses, LossCause::Congestion);
}

#[test]
fn a_window_lost_in_one_go_is_a_blackhole_and_a_shorter_one_congestion() {
    let window = |packets| (0..packets).map(|n| loss(n * US, 1, 100 + n)).collect::<Vec<Loss>>();
    assert_all(&window(31), LossCause::Blackhole);
    assert_all(&window(30), LossCause::Congestion);
}

#[test]
fn a_window_lost_amid_congestion_is_called_congestion() {
    let mut losses: Vec<Loss> = (0..50).map(|n| loss(n * 2 * US, 1, n)).collect();
    losses.push(loss(51 * US, 2, 7));
    losses.push(loss(53 * US, 2, 9));
    assert_all(&losses, LossCause::Congestion);
}

#[test]
fn a_small_flow_of_which_nothing_arrives_is_in_a_blackhole_to_its_last_packet() {
    let losses: Vec<Loss> = (0..12).map(|n| loss(n * 170 * MS, 1, n)).collect();
    assert_all(&losses, LossCause::Blackhole);
}

#[test]
fn a_flow_in_a_blackhole_stays_there_when_a_few_of_its_packets_come_in_a_burst() {
    let mut losses: Vec<Loss> = (0..40).map(|n| loss(n * US, 1, n)).collect();
    losses.extend((40..48).map(|n| loss(30 * MS + n * US, 1, n)));
    losses.extend((48..50).map(|n| loss(90 * MS + n * MS, 1, n)));
    assert_all(&losses, LossCause::Blackhole);
    let after = |place| [&losses[..], &[loss(400 * MS, 1, place)]].concat();
    assert_eq!(classify(&after(50), &CauseThresholds::default())[50], LossCause::Blackhole);
    assert_eq!(classify(&after(60), &CauseThresholds::default())[50], LossCause::Unknown, "something got through");
}

#[test]
fn a_few_losses_in_a_long_capture_tell_nothing() {
    let losses = [loss(0, 1, 5), loss(4_000 * MS, 2, 60), loss(9_000 * MS, 1, 70)];
    assert_all(&losses, LossCause::Unknown);
}

#[test]
fn losses_spread_evenly_over_a_minute_are_random() {
    let losses: Vec<Loss> = (0..200).map(|n| loss(n * 300 * MS, n as u32, 7 * n)).collect();
    assert_all(&losses, LossCause::Random);
}

/// The share of losses at random times within a second that are called random.
fn share_of_random(seeds: std::ops::Range<u64>, count: u64) -> f64 {
    let mut all = CauseCounts::default();
    for seed in seeds.clone() {
        let mut times: Vec<u64> = (0..count).map(|n| scattered(seed << 32 | n) % (1_000 * MS)).collect();
        times.sort_unstable();
        let lost = times.iter().zip(0..).map(|(at, n)| loss(*at, n as u32 % 37, n * 90)).collect::<Vec<_>>();
        classify(&lost, &CauseThresholds::default()).into_iter().for_each(|cause| all.add(cause));
    }
    assert_eq!(all.of(LossCause::Blackhole) + all.of(LossCause::Congestion), 0, "{all:?}");
    all.of(LossCause::Random) as f64 / all.losses() as f64
}

#[test]
fn most_of_what_is_lost_at_random_times_is_random() {
    for (count, least) in [(15, 0.7), (40, 0.7), (300, 0.85), (2_000, 0.99)] {
        let share = share_of_random(0..50, count);
        assert!(share > least, "{count} in a second: {share}");
    }
}

#[test]
fn what_is_left_of_a_queue_that_often_overflows_is_not_called_random() {
    let small: Vec<Loss> = (0..20).map(|n| loss(n * 5 * MS, n as u32, 9 * n)).collect();
    assert_all(&small, LossCause::Random);
    let burst = |at: u64| (0..8).map(move |n| loss(at * MS + n * US, n as u32 % 2, 500 + at * 10 + 2 * n));
    let with_bursts = |bursts: &[u64]| {
        let mut losses: Vec<Loss> = small.iter().copied().chain(bursts.iter().flat_map(|at| burst(*at))).collect();
        losses.sort_by_key(|loss| loss.at);
        of(&losses)
    };
    assert_eq!(
        with_bursts(&[12, 57]).causes().collect::<Vec<_>>(),
        [(LossCause::Congestion, 16), (LossCause::Random, 20)]
    );
    let many = with_bursts(&[12, 57, 83]);
    assert_eq!(many.causes().collect::<Vec<_>>(), [(LossCause::Congestion, 24), (LossCause::Unknown, 20)]);
}

#[test]
fn losses_at_three_moments_of_a_second_are_not_random() {
    let losses: Vec<Loss> = (0..12).map(|n| loss(n % 3 * 300 * MS + n * 100 * US, n as u32, n)).collect();
    assert_all(&losses, LossCause::Unknown);
}

fn tcp(at: u64, nth: u32, seq: u32, len: u16, syn: bool) -> Loss {
    let tcp = Some(TcpFields { seq, len, syn });
    Loss { flow: Flow { protocol: 6, ..flow(nth) }, tcp, place: None, ..loss(at, nth, 0) }
}

#[test]
fn connections_that_are_never_opened_are_in_a_blackhole() {
    let mut losses: Vec<Loss> = (0..19).map(|n| tcp(n * MS, n as u32, 77, 1, true)).collect();
    assert_all(&losses, LossCause::Blackhole);
    losses.push(tcp(30 * MS, 99, 5, 1_000, false));
    assert_eq!(of(&losses).of(LossCause::Blackhole), 19);
    losses.push(tcp(31 * MS, 98, 5, 1_000, false));
    losses.push(tcp(32 * MS, 97, 5, 1_000, false));
    assert_eq!(of(&losses).of(LossCause::Blackhole), 0, "19 of 22 are too few");
}

#[test]
fn a_syn_sent_again_and_again_is_in_a_blackhole() {
    let losses: Vec<Loss> = [0, 1_000, 3_000, 7_000, 15_000].map(|at| tcp(at * MS, 1, 77, 1, true)).into();
    assert_all(&losses, LossCause::Blackhole);
}

#[test]
fn sequence_numbers_tell_of_a_blackhole_through_retransmissions_and_wrap_around() {
    let begin = u32::MAX - 1_500;
    let sent = [0, 1_000, 2_000, 0, 0, 0].map(|offset| begin.wrapping_add(offset));
    let losses: Vec<Loss> = (0..).zip(sent).map(|(n, seq)| tcp(n * 200 * MS, 1, seq, 1_000, false)).collect();
    assert_all(&losses, LossCause::Blackhole);
    let hole = [0, 1_000, 3_000, 0, 0, 0].map(|offset| begin.wrapping_add(offset));
    let losses: Vec<Loss> = (0..).zip(hole).map(|(n, seq)| tcp(n * 200 * MS, 1, seq, 1_000, false)).collect();
    assert_all(&losses, LossCause::Unknown);
}

#[test]
fn acknowledgements_without_data_prove_no_blackhole() {
    let ack = |n: u64, ip_id| Loss { ip_id: Some(ip_id), ..tcp(n * 20 * MS, 1, 500, 0, false) };
    let silent: Vec<Loss> = (0..8).map(|n| ack(n, 0)).collect();
    assert_all(&silent, LossCause::Unknown);
    let numbered: Vec<Loss> = (0..8).map(|n| ack(n, 65_533_u16.wrapping_add(n as u16))).collect();
    assert_all(&numbered, LossCause::Blackhole);
    let every_third: Vec<Loss> = (0..8).map(|n| ack(n, 3 * n as u16)).collect();
    assert_all(&every_third, LossCause::Unknown);
}

#[test]
fn datagrams_without_identification_are_never_called_a_blackhole() {
    let silent = |n: u64| Loss { place: None, ..loss(n * US, 1, 0) };
    assert_all(&(0..100).map(silent).collect::<Vec<_>>(), LossCause::Congestion);
    let slow: Vec<Loss> = (0..8).map(|n| Loss { at: Timestamp(n * 20 * MS), ..silent(n) }).collect();
    assert_all(&slow, LossCause::Unknown);
}

#[test]
fn what_outlived_its_time_was_in_a_loop_and_blurs_nothing() {
    let mut losses: Vec<Loss> = (0..20).map(|n| loss(n * 5 * MS, n as u32, 9 * n)).collect();
    losses.extend((0..90).map(|n| Loss { expired: true, ..loss(n * MS, 7, 2 * n) }));
    let summary = of(&losses);
    assert_eq!((summary.of(LossCause::Loop), summary.of(LossCause::Random), summary.losses()), (90, 20, 110));
}

#[test]
fn expected_losses_have_no_cause_and_no_part_in_the_pattern() {
    let mut losses: Vec<Loss> = (0..20).map(|n| loss(n * 5 * MS, n as u32, 9 * n)).collect();
    losses.extend((0..90).map(|n| loss(50 * MS + n * US, 200, 3 * n)));
    let causes = classify_unless(&losses, &CauseThresholds::default(), |loss| loss.flow == flow(200));
    assert_eq!(causes[..20], [Some(LossCause::Random); 20]);
    assert_eq!(causes[20..], [None; 90]);
}

#[test]
fn a_burst_is_told_with_its_batch_and_the_rest_with_its_interval() {
    let mut analyzer = CauseAnalyzer::new(CauseThresholds::default());
    let burst: Vec<Loss> = (0..6).map(|n| loss(n * US, n as u32, n)).collect();
    assert_eq!(analyzer.feed(&burst, Timestamp(10 * MS)).len(), 6);
    let slow: Vec<Loss> = (0..12).map(|n| loss((11 + 7 * n) * MS, n as u32, 50 * n)).collect();
    assert_eq!(analyzer.feed(&slow, Timestamp(99 * MS)), []);
    let judged = analyzer.feed(&[], Timestamp(100 * MS));
    assert_eq!(judged.iter().map(|judged| judged.cause).collect::<Vec<_>>(), [LossCause::Random; 12]);
    assert_eq!(judged[0].nth, 6);
    assert_eq!(analyzer.finish(), []);
}

/// Bursts, slow flows and random drops of different flows, at times that the seed says.
fn mixed(seed: u64) -> Vec<Loss> {
    let mut losses = Vec::new();
    for part in 0..40 {
        let draw = scattered(seed << 16 | part);
        let (at, nth, count) = (draw % (700 * MS), (draw >> 32) as u32 % 9, (draw >> 40) % 45);
        let (step, stride) = ([3 * US, 15 * US, 400 * US, 9 * MS][(draw >> 60) as usize % 4], 1 + (draw >> 50) % 2);
        losses.extend((0..count).map(|n| loss(at + n * step, nth, draw % 1_000 + n * stride)));
    }
    losses.sort_by_key(|loss| loss.at);
    losses
}

#[test]
fn how_losses_are_divided_into_batches_changes_nothing() {
    for seed in 0..20 {
        let losses = mixed(seed);
        let whole = classify(&losses, &CauseThresholds::default());
        for batch in [1, 10, 33] {
            let mut analyzer = CauseAnalyzer::new(CauseThresholds::default());
            let mut judged = Vec::new();
            for nth in 0..1_500 / batch {
                let (from, to) = (nth * batch * MS, (nth + 1) * batch * MS);
                let part: Vec<Loss> = losses.iter().filter(|loss| (from..to).contains(&loss.at.0)).copied().collect();
                judged.extend(analyzer.feed(&part, Timestamp(to)));
            }
            judged.extend(analyzer.finish());
            judged.sort_by_key(|judged| judged.nth);
            let causes: Vec<LossCause> = judged.iter().map(|judged| judged.cause).collect();
            assert_eq!(causes, whole, "seed {seed}, batches of {batch} ms");
        }
    }
}

#[test]
fn who_loses_again_and_again_is_accused_and_nobody_else() {
    let mut losses: Vec<(&str, Timestamp, LossCause)> = Vec::new();
    for at in [100, 300, 500] {
        losses.push(("a", Timestamp(at * MS), LossCause::Random));
        losses.push(("b", Timestamp(at * MS), LossCause::Congestion));
    }
    losses.push(("c", Timestamp(100 * MS), LossCause::Blackhole));
    losses.push(("c", Timestamp(101 * MS), LossCause::Blackhole));
    let found = culprits(losses, &CauseThresholds::default());
    let expected = Culprit {
        segment: "a",
        cause: LossCause::Random,
        losses: 3,
        intervals: 3,
        first: Timestamp(100 * MS),
        last: Timestamp(500 * MS),
    };
    assert_eq!(found, [expected]);
}

#[test]
fn thresholds_that_make_no_sense_are_refused_by_name() {
    let thesis = CauseThresholds::default();
    assert_eq!(thesis.checked(), Ok(thesis));
    let said = |thresholds: CauseThresholds| thresholds.checked().unwrap_err().to_string();
    assert_eq!(said(CauseThresholds { burst: 6, ..thesis }), "blackhole is 5, and must be no less than burst");
    assert!(said(CauseThresholds { interval: units::Span::from_ms(5), ..thesis }).starts_with("interval is 5000 us"));
    assert!(said(CauseThresholds { random: units::Prob::literal(0.7), ..thesis }).contains("below 0.63"));
}

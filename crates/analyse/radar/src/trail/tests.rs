use super::*;
use crate::digest::tests::packet;
use crate::packet::Packet;
use crate::signature::Fields;

const LENGTH: u64 = 10_000_000;
/// Beyond 32 bits of batches and of time.
const FIRST: u64 = (1 << 32) - 3;

/// Packet `nth` of one of `flows` flows.
fn of_flows(nth: u32, flows: u32) -> Packet {
    Packet { flow: packet(nth % flows).flow, ..packet(nth) }
}

fn hash(packet: &Packet) -> u64 {
    trail_hash(&Signature::new(packet, Fields::ALL))
}

fn name(nth: u32, flows: u32) -> TrailHash {
    TrailHash::new(hash(&of_flows(nth, flows)))
}

/// A trail of `packets` packets, 100 in each batch, one every 100 µs.
fn trail(bytes: usize, packets: u32, flows: u32) -> Trail {
    let mut trail = Trail::new(bytes);
    for nth in 0..packets {
        let batch = FIRST + u64::from(nth / 100);
        let packet = of_flows(nth, flows);
        trail.record(batch, time_of(nth), hash(&packet), &packet.flow, (nth % 64) as u8);
    }
    trail
}

fn time_of(nth: u32) -> u64 {
    FIRST * LENGTH + u64::from(nth) * 100_000
}

fn ask(trail: &Trail, batch: u64, batches: u8, hashes: Vec<TrailHash>) -> Vec<Option<LostAnswer>> {
    let question = TrailQuestion::Lost { batch: batch as u16, batches, hashes };
    let question = TrailQuestion::from_bytes(&question.to_bytes()).unwrap();
    let answer = trail.answer(&question, LENGTH, |_| false);
    let TrailAnswer::Lost(lost) = TrailAnswer::from_bytes(&question, &answer.to_bytes()).unwrap() else {
        panic!("another answer")
    };
    lost
}

#[test]
fn a_lost_packet_is_placed_in_time_in_order_and_in_its_flow() {
    let trail = trail(1 << 20, 1_000, 4);
    let lost = ask(&trail, FIRST + 4, 2, vec![name(512, 4), name(516, 4), name(99_999, 4)]);
    let [Some(one), Some(next), None] = lost[..] else { panic!("{lost:?}") };
    let at = (FIRST + 4) * LENGTH + u64::from(one.time) * TICK;
    assert!(at.abs_diff(time_of(512)) <= 2 * TICK, "{} ns away", at.abs_diff(time_of(512)));
    assert_eq!((one.ttl, next.ttl), (0, 4));
    assert_eq!((next.place - one.place, next.number - one.number), (4, 1));
    assert_eq!((one.others, one.tag), (12, next.tag), "a quarter of sixteen neighbours is of its flow");
    let (survivor, time) = next.survivor.unwrap();
    assert_eq!(survivor, name(515, 4));
    assert!(u64::from(next.time - time).abs_diff(100_000 / TICK) <= 1);
}

#[test]
fn the_nearest_survivor_is_none_of_those_that_are_asked_for_and_samples_are_of_all_that_passed() {
    let trail = trail(1 << 20, 1_000, 4);
    let lost = ask(&trail, FIRST + 4, 2, (500..510).map(|nth| name(nth, 4)).collect());
    let passed: Vec<TrailHash> = (0..600).map(|nth| name(nth, 4)).collect();
    let mut samples = Vec::new();
    for lost in lost.into_iter().flatten() {
        assert_eq!(lost.survivor.unwrap().0, name(499, 4));
        assert!(passed.contains(&lost.sample.0));
        samples.push(lost.sample.0);
    }
    assert!(samples.iter().any(|sample| passed[..500].contains(sample)), "of earlier batches, too");
}

#[test]
fn what_has_left_the_ring_or_is_there_twice_is_gone() {
    let mut trail = trail(200 * EACH, 1_000, 4);
    assert_eq!(ask(&trail, FIRST + 7, 2, vec![name(750, 4)]), [None]);
    assert!(ask(&trail, FIRST + 8, 1, vec![name(850, 4)])[0].is_some());
    let again = of_flows(850, 4);
    trail.record(FIRST + 9, time_of(999), hash(&again), &again.flow, 64);
    assert_eq!(ask(&trail, FIRST + 8, 1, vec![name(850, 4)]), [None]);
    assert_eq!(trail.ring.len(), 200);
    trail.forget();
    assert_eq!(ask(&trail, FIRST + 8, 1, vec![name(870, 4)]), [None]);
    let none = self::trail(0, 1_000, 4);
    assert_eq!((ask(&none, FIRST + 8, 1, vec![name(850, 4)]), none.is_kept()), (vec![None], false));
}

#[test]
fn arrivals_have_a_time_and_packets_that_did_not_arrive_have_none() {
    let trail = trail(1 << 20, 1_000, 4);
    let hashes = vec![name(301, 4), name(5_000, 4), name(301, 4)];
    let question = TrailQuestion::Arrivals { batch: (FIRST + 3) as u16, batches: 1, hashes };
    let answer = trail.answer(&question, LENGTH, |_| false);
    let TrailAnswer::Arrivals(times) = TrailAnswer::from_bytes(&question, &answer.to_bytes()).unwrap() else {
        panic!("another answer")
    };
    let ticks = times[0].0.unwrap();
    assert!((u64::from(ticks) * TICK).abs_diff(100_000) <= TICK && times[1].0.is_none(), "{times:?}");
    assert_eq!(times[2], times[0], "one survivor of several losses");
}

#[test]
fn a_flow_of_which_a_packet_expired_is_known_for_a_while() {
    let trail = trail(1 << 20, 1_000, 4);
    let mut expired = ExpiredFlows::default();
    expired.tell(&of_flows(2, 4).flow);
    let question =
        TrailQuestion::Lost { batch: (FIRST + 3) as u16, batches: 1, hashes: vec![name(302, 4), name(303, 4)] };
    let told = |expired: &ExpiredFlows| match trail.answer(&question, LENGTH, |flow| expired.has(flow)) {
        TrailAnswer::Lost(lost) => lost.into_iter().flatten().map(|lost| lost.is_told).collect::<Vec<_>>(),
        TrailAnswer::Arrivals(_) => panic!("another answer"),
    };
    assert_eq!(told(&expired), [true, false]);
    expired.age();
    assert_eq!(told(&expired), [false, false]);
}

#[test]
fn bytes_that_are_no_question_or_no_answer_to_it_are_refused() {
    let hashes: Vec<TrailHash> = (0..=MOST_HASHES as u32).map(|nth| name(nth, 1)).collect();
    let question = |hashes: &[TrailHash]| TrailQuestion::Lost { batch: 7, batches: 3, hashes: hashes.to_vec() };
    let good = question(&hashes[..3]);
    assert_eq!(TrailQuestion::from_bytes(&good.to_bytes()), Some(good.clone()));
    assert_eq!(TrailQuestion::from_bytes(&question(&hashes).to_bytes()), None, "more than may be asked");
    let mut wrong = good.to_bytes();
    wrong[0] = 9;
    assert_eq!(TrailQuestion::from_bytes(&wrong), None);
    let answer = trail(1 << 16, 100, 2).answer(&good, LENGTH, |_| false).to_bytes();
    assert!(TrailAnswer::from_bytes(&good, &answer).is_some());
    assert_eq!(TrailAnswer::from_bytes(&good, &[&answer[..], &[0]].concat()), None);
    assert_eq!(TrailAnswer::from_bytes(&question(&hashes[..4]), &answer), None);
}

//! Messages that their receivers schedule: stories, and properties over a wire that drops, repeats and reorders.

use homa::{
    GrantScheduler, MessageLevels, ReceiverDriven, ReceiverDrivenConfig, ReceiverDrivenNote, ReceiverDrivenPacket,
};
use proptest::prelude::*;
use testkit::{Duo, Fate, Side};
use units::{Span, Time};

const PAYLOAD: u32 = 1_000;

fn rds() -> ReceiverDrivenConfig {
    ReceiverDrivenConfig::rds(PAYLOAD, 10_000, 4)
}

fn homa() -> ReceiverDrivenConfig {
    let levels = MessageLevels::balanced(&[1_000, 5_000, 20_000, 100_000], 10_000, None);
    ReceiverDrivenConfig::homa(PAYLOAD, 10_000, 4, levels)
}

fn pair(config: ReceiverDrivenConfig) -> Duo<ReceiverDriven> {
    let end = |key| ReceiverDriven::new(config, &GrantScheduler::new(config.policy), key, 1 - key);
    Duo::new(end(0), end(1), Span::from_ns(100), Span::from_us(2))
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

#[test]
fn the_first_bytes_leave_unasked_and_a_grant_allows_four_packets() {
    let mut duo = pair(rds());
    duo.command(Side::Left, 40_000);
    let (mut sent, mut grants) = (Vec::new(), Vec::new());
    duo.run(at(900), &mut |_, frame: &ReceiverDrivenPacket| {
        match frame {
            ReceiverDrivenPacket::Data { offset, .. } => sent.push((*offset, grants.last().copied())),
            ReceiverDrivenPacket::Grant { until, .. } => grants.push(*until),
            ReceiverDrivenPacket::Resend { .. } => panic!("nothing was lost"),
            ReceiverDrivenPacket::Done { .. } => {}
        }
        Fate::Arrives
    });
    assert_eq!(duo.machine(Side::Right).received(), 40_000);
    assert!(sent.iter().all(|(offset, granted)| *offset < 10_000 || granted.is_some_and(|until| *offset < until)));
    assert!(grants.windows(2).all(|pair| pair[1] - pair[0] <= 4_000), "{grants:?}");
    assert_eq!((grants[0], grants.last()), (10_000, Some(&40_000)));
    assert!(duo.notes(Side::Left).is_empty() && duo.notes(Side::Right).is_empty());
}

#[test]
fn a_gap_is_reported_at_once_and_a_lost_tail_after_the_timeout() {
    for (lost, until) in [(3_000, 100), (9_000, 1_100)] {
        let mut duo = pair(rds());
        duo.command(Side::Left, 10_000);
        let mut left = 1;
        duo.run(at(until), &mut |_, frame: &ReceiverDrivenPacket| match frame {
            ReceiverDrivenPacket::Data { offset, .. } if *offset == lost && left > 0 => {
                left -= 1;
                Fate::Lost
            }
            _ => Fate::Arrives,
        });
        assert_eq!(duo.machine(Side::Right).received(), 10_000, "lost at {lost}");
    }
}

#[test]
fn a_sender_that_hears_nothing_sends_all_unasked_bytes_again_or_one_packet() {
    for (config, again) in [(rds(), 10), (homa(), 12)] {
        let mut duo = pair(config);
        duo.command(Side::Left, 10_000);
        let mut first = 10;
        let mut probes = 0;
        duo.run(at(3_000), &mut |_, frame: &ReceiverDrivenPacket| {
            let lost = first > 0;
            first -= i32::from(lost);
            let is_data = matches!(frame, ReceiverDrivenPacket::Data { .. });
            probes += i32::from(!lost && is_data);
            if lost { Fate::Lost } else { Fate::Arrives }
        });
        assert_eq!(duo.machine(Side::Right).received(), 10_000);
        assert!((10..=again).contains(&probes), "{probes}");
        let timeouts = duo.notes(Side::Left).iter().filter(|note| **note == ReceiverDrivenNote::SenderTimeout).count();
        assert!((1..=2).contains(&timeouts), "{timeouts}");
    }
}

#[test]
fn a_sender_that_repeats_its_last_packet_does_not_put_off_the_receivers_timer() {
    let mut duo = pair(rds());
    duo.command(Side::Right, 4_001);
    let mut number = 0;
    let lost = [0, 1, 4, 5, 6];
    duo.run(at(50_000), &mut |_, _| {
        number += 1;
        if lost.contains(&(number - 1)) { Fate::Lost } else { Fate::Arrives }
    });
    assert_eq!(duo.machine(Side::Left).received(), 4_001);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_message_arrives_whole_whatever_happens_to_packets(
        homa_like: bool,
        sizes in proptest::collection::vec(1u64..80_000, 1..4),
        reply in 1u64..40_000,
        fates in proptest::collection::vec(0u8..10, 0..300),
    ) {
        let mut duo = pair(if homa_like { homa() } else { rds() });
        for bytes in &sizes {
            duo.command(Side::Left, *bytes);
        }
        duo.command(Side::Right, reply);
        let mut fates = fates.into_iter();
        duo.run(at(1_000_000), &mut |_, _| match fates.next() {
            Some(0..=2) => Fate::Lost,
            Some(3) => Fate::Late(Span::from_us(7)),
            _ => Fate::Arrives,
        });
        prop_assert_eq!(duo.machine(Side::Right).received(), sizes.iter().sum::<u64>());
        prop_assert_eq!(duo.machine(Side::Left).received(), reply);
        let counts = duo.events(Side::Right);
        prop_assert!(counts.windows(2).all(|pair| pair[0] < pair[1]), "each byte once");
    }
}

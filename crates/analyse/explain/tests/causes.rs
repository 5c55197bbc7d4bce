//! One capture for each cause, seen next to the client, which sends: what cost most is named.

mod tape;

use explain::answer::ConnectionAnswer;
use explain::terms::{Certainty, EndSide, LossWitness, RepairKind, TimeCause, TimerReason};
use tape::{Client, MS, MSS, Server, Tape};

/// The cause of most of the time that is not idle.
fn dominant(connection: &ConnectionAnswer) -> (TimeCause, EndSide) {
    let part = connection.parts.iter().find(|part| part.cause != TimeCause::Idle).unwrap();
    (part.cause, part.side)
}

fn time_of(connection: &ConnectionAnswer, cause: TimeCause) -> u64 {
    connection.parts.iter().filter(|part| part.cause == cause).map(|part| part.ns).sum()
}

/// Reason why the first timer of a kind was necessary.
fn why(connection: &ConnectionAnswer, cause: TimeCause) -> Option<TimerReason> {
    connection.stalls.iter().find(|stall| stall.cause == cause).and_then(|stall| stall.why)
}

/// Ten segments, of which the first `arrived` are acknowledged after a round trip.
fn burst(arrived: u32) -> Tape {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 10);
    for number in 1..=arrived / 2 {
        tape.ack(41 * MS + u64::from(number) * 20_000, Server, number * 2 * MSS);
    }
    tape
}

#[test]
fn a_lost_tail_waits_for_a_probe() {
    let mut tape = burst(8);
    tape.data(90 * MS, Client, 9 * MSS, MSS);
    tape.sack(110 * MS, Server, 8 * MSS, &[(9 * MSS, 10 * MSS)]);
    tape.data(110 * MS + 100_000, Client, 8 * MSS, MSS);
    tape.ack(130 * MS + 100_000, Server, 10 * MSS);
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::Probe, EndSide::Client), "{connection:#?}");
    assert_eq!(why(&connection, TimeCause::Probe), Some(TimerReason::Tail));
    assert_eq!((connection.probes, connection.timeouts, connection.spurious), (1, 0, 0));
    let repairs: Vec<_> = connection.losses.iter().map(|loss| (loss.repaired_by, loss.len)).collect();
    assert_eq!(repairs, [(RepairKind::Fast, MSS), (RepairKind::Probe, MSS)]);
}

#[test]
fn a_lone_segment_waits_200_ms_longer() {
    let mut tape = Tape::new();
    tape.send_bytes(21 * MS, Client, 300);
    tape.data(241 * MS, Client, 0, 300);
    tape.ack(261 * MS, Server, 300);
    tape.send_bytes(262 * MS, Server, 500);
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::Probe, EndSide::Client), "{connection:#?}");
    assert_eq!(why(&connection, TimeCause::Probe), Some(TimerReason::LoneTail));
}

#[test]
fn a_whole_window_is_lost() {
    let mut tape = burst(0);
    tape.data(70 * MS, Client, 9 * MSS, MSS);
    tape.sack(90 * MS, Server, 0, &[(9 * MSS, 10 * MSS)]);
    for number in 0..9 {
        tape.data(90 * MS + 100_000 + u64::from(number) * 10_000, Client, number * MSS, MSS);
    }
    tape.ack(111 * MS, Server, 10 * MSS);
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::Probe, EndSide::Client), "{connection:#?}");
    assert_eq!(why(&connection, TimeCause::Probe), Some(TimerReason::WholeWindow));
    assert_eq!(connection.losses.len(), 10);
}

#[test]
fn a_copy_that_is_lost_waits_for_the_retransmission_timer() {
    let mut tape = Tape::new();
    tape.send_bytes(21 * MS, Client, 300);
    tape.data(241 * MS, Client, 0, 300);
    tape.data(465 * MS, Client, 0, 300);
    tape.ack(485 * MS, Server, 300);
    let connection = tape.explain();
    assert_eq!((connection.probes, connection.timeouts), (1, 1), "{connection:#?}");
    assert_eq!(why(&connection, TimeCause::Timeout), Some(TimerReason::CopyLost));
    assert_eq!(connection.losses.len(), 2);
}

/// Segments `lost` of ten are repaired after the SACKs of the others.
fn repaired(lost: &[u32]) -> ConnectionAnswer {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 10);
    let first = lost[0];
    tape.ack(41 * MS, Server, first * MSS);
    let mut at = 41 * MS;
    for number in (first + 1..10).filter(|number| !lost.contains(number)) {
        at += 20_000;
        let from = lost.iter().filter(|hole| **hole < number).max().unwrap() + 1;
        tape.sack(at, Server, first * MSS, &[(from * MSS, (number + 1) * MSS)]);
    }
    for (place, number) in lost.iter().enumerate() {
        tape.data(at + 60_000 + place as u64 * 10_000, Client, number * MSS, MSS);
    }
    tape.ack(at + 20 * MS, Server, 10 * MSS);
    tape.explain()
}

#[test]
fn a_loss_in_the_middle_is_repaired_by_later_arrivals() {
    let connection = repaired(&[4]);
    assert_eq!((connection.timeouts, connection.probes), (0, 0));
    assert!(time_of(&connection, TimeCause::Recovery) > 15 * MS, "{connection:#?}");
    let losses: Vec<_> = connection.losses.iter().map(|loss| (loss.repaired_by, loss.seen_by, loss.len)).collect();
    assert_eq!(losses, [(RepairKind::Fast, LossWitness::Sack, MSS)]);
}

#[test]
fn a_burst_is_repaired_at_once() {
    let connection = repaired(&[2, 3, 4]);
    assert_eq!((connection.timeouts, connection.probes, connection.losses.len()), (0, 0, 3));
    assert!(connection.losses.iter().all(|loss| loss.repaired_by == RepairKind::Fast));
}

#[test]
fn reordering_is_no_loss() {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 10);
    tape.ack(41 * MS, Server, 4 * MSS);
    for number in 6..10 {
        tape.sack(41 * MS + u64::from(number) * 10_000, Server, 4 * MSS, &[(5 * MSS, number * MSS)]);
    }
    tape.data(41 * MS + 120_000, Client, 4 * MSS, MSS);
    tape.ack(41 * MS + 300_000, Server, 10 * MSS);
    tape.sack(61 * MS + 200_000, Server, 10 * MSS, &[(4 * MSS, 5 * MSS)]);
    tape.send(62 * MS, Client, 1);
    let connection = tape.explain();
    assert_eq!((connection.spurious, connection.losses.len()), (1, 0), "{connection:#?}");
}

#[test]
fn lost_acknowledgements_show_in_identifications() {
    let mut tape = burst(2);
    (0..4).for_each(|_| {
        tape.lose(Server, 0);
    });
    tape.data(90 * MS, Client, 9 * MSS, MSS);
    tape.sack(110 * MS, Server, 10 * MSS, &[(9 * MSS, 10 * MSS)]);
    tape.send(111 * MS, Client, 2);
    tape.ack(131 * MS, Server, 12 * MSS);
    let connection = tape.explain();
    assert_eq!(why(&connection, TimeCause::Probe), Some(TimerReason::AcksLost), "{connection:#?}");
    assert_eq!(connection.spurious, 1);
    let acks: Vec<_> = connection.losses.iter().map(|loss| (loss.len, loss.seen_by)).collect();
    assert_eq!(acks, [(0, LossWitness::IpId); 4]);
}

#[test]
fn a_lost_syn_costs_a_second() {
    let mut tape = Tape::default();
    tape.syn(0).syn(1_030 * MS).syn_ack(1_050 * MS).ack(1_050 * MS + 50_000, Client, 0);
    tape.send_bytes(1_051 * MS, Client, 300).ack(1_071 * MS, Server, 300).send_bytes(1_072 * MS, Server, 500);
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::SynLost, EndSide::Client), "{connection:#?}");
    assert_eq!(time_of(&connection, TimeCause::SynLost), 1_030 * MS);
}

#[test]
fn a_shut_window_is_the_receivers() {
    let mut tape = burst(10);
    tape.window(Server, 0).ack(41 * MS + 500_000, Server, 10 * MSS);
    tape.window(Server, 512).ack(500 * MS, Server, 10 * MSS);
    tape.send(500 * MS + 80_000, Client, 4);
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::ReceiveWindow, EndSide::Client), "{connection:#?}");
    assert!(
        connection.stalls.iter().any(|stall| stall.cause == TimeCause::ReceiveWindow && stall.sure == Certainty::Seen)
    );
}

#[test]
fn a_probe_into_a_full_window_was_for_a_late_acknowledgement() {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 10);
    tape.window(Server, 67).ack(41 * MS, Server, 4 * MSS);
    tape.data(100 * MS, Client, 9 * MSS, MSS);
    tape.window(Server, 0).ack(105 * MS, Server, 10 * MSS);
    tape.sack(120 * MS, Server, 10 * MSS, &[(9 * MSS, 10 * MSS)]);
    tape.window(Server, 512).ack(500 * MS, Server, 10 * MSS);
    tape.send(500 * MS + 80_000, Client, 4);
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::ReceiveWindow, EndSide::Client), "{connection:#?}");
    assert_eq!(why(&connection, TimeCause::Probe), Some(TimerReason::AckDelayed));
    assert_eq!((connection.probes, connection.spurious, connection.losses.len()), (1, 1, 0));
}

#[test]
fn a_small_window_is_the_receivers() {
    let mut tape = Tape::default();
    tape.window(Server, 23).syn(0).syn_ack(20 * MS).ack(20 * MS + 50_000, Client, 0);
    tape.window(Server, 23);
    let mut at = 21 * MS;
    for round in 1..=10 {
        tape.send(at, Client, 2);
        tape.ack(at + 20 * MS, Server, round * 2 * MSS);
        at += 20 * MS + 50_000;
    }
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::ReceiveWindow, EndSide::Client), "{connection:#?}");
}

#[test]
fn nagle_waits_for_a_delayed_acknowledgement() {
    let mut tape = Tape::new();
    let mut at = 21 * MS;
    for round in 0..5 {
        tape.send_bytes(at, Client, 100);
        tape.ack(at + 62 * MS, Server, round * 200 + 100);
        tape.send_bytes(at + 62 * MS + 50_000, Client, 100);
        tape.ack(at + 83 * MS, Server, round * 200 + 200);
        tape.send_bytes(at + 83 * MS + 50_000, Server, 50);
        at += 90 * MS;
    }
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::DelayedAck, EndSide::Server), "{connection:#?}");
    assert!(time_of(&connection, TimeCause::Nagle) > 60 * MS, "{connection:#?}");
    assert_eq!((connection.timeouts, connection.probes), (0, 0));
}

#[test]
fn a_slow_application_is_named_at_either_end() {
    let mut tape = Tape::new();
    let mut at = 21 * MS;
    for round in 1..=5 {
        tape.send_bytes(at, Client, 1_000);
        tape.ack(at + 20 * MS, Server, round * 1_000);
        at += 150 * MS;
    }
    assert_eq!(dominant(&tape.explain()), (TimeCause::Application, EndSide::Client));
    let mut tape = Tape::new();
    let mut at = 21 * MS;
    for round in 1..=5 {
        tape.send_bytes(at, Client, 100);
        tape.ack(at + 60 * MS, Server, round * 100);
        tape.send_bytes(at + 200 * MS, Server, 3_000);
        tape.ack(at + 201 * MS, Client, round * 3_000);
        at += 202 * MS;
    }
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::PeerApplication, EndSide::Server), "{connection:#?}");
    assert_eq!(connection.requests.len(), 5);
    assert!(connection.requests.iter().all(|request| (request.bytes_up, request.bytes_down) == (100, 3_000)));
}

#[test]
fn slow_start_waits_for_the_congestion_window() {
    let mut tape = Tape::new();
    let (mut at, mut window, mut acked) = (21 * MS, 10, 0);
    for _ in 0..5 {
        tape.send(at, Client, window);
        for number in (2..=window).step_by(2) {
            let ack_at = at + 20 * MS + u64::from(number) * 10_000;
            tape.ack(ack_at, Server, (acked + number) * MSS);
        }
        acked += window;
        window *= 2;
        at += 20 * MS + 30_000;
    }
    let connection = tape.explain();
    assert_eq!(dominant(&connection), (TimeCause::CongestionWindow, EndSide::Client), "{connection:#?}");
}

#[test]
fn a_delayed_acknowledgement_after_a_repair_is_named() {
    let mut tape = burst(8);
    tape.data(90 * MS, Client, 9 * MSS, MSS);
    tape.data(330 * MS, Client, 8 * MSS, MSS);
    tape.ack(394 * MS, Server, 9 * MSS);
    tape.data(394 * MS + 50_000, Client, 9 * MSS, MSS);
    let connection = tape.explain();
    assert_eq!((connection.probes, connection.timeouts), (1, 1), "{connection:#?}");
    assert!(time_of(&connection, TimeCause::DelayedAck) > 40 * MS, "{connection:#?}");
}

/// Ten segments whose acknowledgement waited 42 ms beyond the round trip, with a window that moved or did not.
fn late_ack(window: u16) -> ConnectionAnswer {
    let mut tape = Tape::default();
    tape.window(Server, 700).syn(0).syn_ack(20 * MS).ack(20 * MS + 50_000, Client, 0);
    tape.send(21 * MS, Client, 2).ack(41 * MS, Server, 2 * MSS);
    tape.send(42 * MS, Client, 10);
    tape.window(Server, window).ack(104 * MS, Server, 12 * MSS);
    tape.send(104 * MS + 50_000, Client, 10);
    tape.explain()
}

#[test]
fn a_late_acknowledgement_of_many_segments_is_a_delayed_one_if_the_window_did_not_move() {
    let unread = 700 - (10 * MSS / 128) as u16;
    let delayed = |window| time_of(&late_ack(window), TimeCause::DelayedAck);
    assert!(delayed(unread) > 40 * MS, "{:#?}", late_ack(unread));
    assert_eq!(delayed(700), 0, "{:#?}", late_ack(700));
}

#[test]
fn a_short_retransmission_timer_is_one_all_the_same() {
    let mut tape = Tape::new();
    tape.send_bytes(21 * MS, Client, 300);
    tape.data(53 * MS, Client, 0, 300);
    tape.data(113 * MS, Client, 0, 300);
    tape.ack(133 * MS, Server, 300);
    let connection = tape.explain();
    assert_eq!((connection.timeouts, connection.probes), (2, 0), "{connection:#?}");
    assert_eq!(dominant(&connection), (TimeCause::Timeout, EndSide::Client));
}

#[test]
fn a_repeated_syn_is_a_timeout() {
    let mut tape = Tape::default();
    tape.syn(0);
    tape.syn(1_000 * MS);
    tape.syn_ack(1_020 * MS);
    tape.ack(1_020 * MS + 50_000, Client, 0);
    tape.send_bytes(1_021 * MS, Client, 300);
    let connection = tape.explain();
    assert_eq!((dominant(&connection).0, connection.timeouts), (TimeCause::SynLost, 1));
}

/// An acknowledgement of two copies brings back the timestamp of the first, which is older than the second.
#[test]
fn a_timestamp_says_nothing_of_the_second_segment_that_is_acknowledged_with_it() {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 10);
    tape.ack(41 * MS, Server, 2 * MSS);
    tape.sack(41 * MS + 20_000, Server, 2 * MSS, &[(4 * MSS, 10 * MSS)]);
    tape.data(42 * MS - 1, Client, 2 * MSS, MSS);
    let before = tape.clone();
    tape.data(42 * MS, Client, 3 * MSS, MSS);
    tape.echo_as(&before, Client);
    tape.ack(63 * MS, Server, 10 * MSS);
    let connection = tape.explain();
    assert_eq!((connection.spurious, connection.losses.len()), (0, 2), "{connection:#?}");
}

#[test]
fn the_wait_in_which_a_copy_is_acknowledged_belongs_to_the_repair() {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 10);
    tape.sack(41 * MS, Server, 0, &[(MSS, 10 * MSS)]);
    tape.data(41 * MS + 50_000, Client, 0, MSS);
    tape.ack(61 * MS + 50_000, Server, 10 * MSS);
    tape.send(61 * MS + 100_000, Client, 4);
    let connection = tape.explain();
    assert!(time_of(&connection, TimeCause::Recovery) > 38 * MS, "{connection:#?}");
}

/// An acknowledgement of a copy measures the round trip of the copy.
#[test]
fn after_many_repairs_a_probe_still_waits_for_two_round_trips() {
    let mut tape = Tape::new();
    let (mut at, mut first) = (21 * MS, 0);
    for _ in 0..3 {
        tape.send(at, Client, 4);
        tape.sack(at + 20 * MS, Server, first, &[(first + MSS, first + 4 * MSS)]);
        tape.data(at + 20 * MS + 50_000, Client, first, MSS);
        first += 4 * MSS;
        tape.ack(at + 40 * MS + 50_000, Server, first);
        at += 40 * MS + 100_000;
    }
    tape.send(at, Client, 2);
    // Its probe, with new data.
    tape.send(at + 49 * MS, Client, 1);
    tape.sack(at + 69 * MS, Server, first, &[(first + 2 * MSS, first + 3 * MSS)]);
    for number in 0..2 {
        tape.data(at + 69 * MS + 50_000, Client, first + number * MSS, MSS);
    }
    let connection = tape.explain();
    assert_eq!((connection.probes, connection.timeouts), (1, 0), "{connection:#?}");
}

/// Newer kernels add two milliseconds to two round trips, older ones two ticks.
#[test]
fn on_a_short_path_a_probe_of_a_newer_kernel_is_no_timeout() {
    let mut tape = Tape::default();
    tape.syn(0).syn_ack(5 * MS).ack(5 * MS + 50_000, Client, 0);
    tape.send(6 * MS, Client, 10);
    tape.ack(11 * MS + 100_000, Server, 8 * MSS);
    tape.data(23 * MS + 300_000, Client, 9 * MSS, MSS);
    tape.ack(28 * MS + 300_000, Server, 10 * MSS);
    let connection = tape.explain();
    assert_eq!((connection.probes, connection.timeouts), (1, 0), "{connection:#?}");
}

//! Senders at the other end of the path: what they lose never comes to the capture, which is next to the client.

mod tape;

use explain::answer::ConnectionAnswer;
use explain::terms::{EndSide, LossWitness, RepairKind, TimeCause, TimerReason};
use tape::{Client, MS, MSS, Server, Tape};

fn time_of(connection: &ConnectionAnswer, cause: TimeCause) -> u64 {
    connection.parts.iter().filter(|part| part.cause == cause).map(|part| part.ns).sum()
}

fn why(connection: &ConnectionAnswer, cause: TimeCause) -> Option<TimerReason> {
    connection.stalls.iter().find(|stall| stall.cause == cause).and_then(|stall| stall.why)
}

/// Position in the server's stream, and length.
fn losses(connection: &ConnectionAnswer) -> Vec<(u32, u32)> {
    connection.losses.iter().map(|loss| (loss.tcp_seq.wrapping_sub(7_001), loss.len)).collect()
}

/// A request of the client, which the server acknowledges at once.
fn asked() -> Tape {
    let mut tape = Tape::new();
    tape.send_bytes(21 * MS, Client, 100);
    tape.ack(41 * MS, Server, 100);
    tape
}

#[test]
fn the_first_answer_does_not_wait_for_a_window() {
    let mut tape = asked();
    tape.send(41 * MS + 50_000, Server, 3);
    assert_eq!(time_of(&tape.explain(), TimeCause::ReceiveWindow), 0);
}

#[test]
fn a_whole_window_that_never_came_is_shown_by_the_probe_behind_it() {
    let mut tape = asked();
    tape.lose(Server, MSS).lose(Server, MSS);
    tape.data(89 * MS, Server, MSS, MSS);
    tape.sack(89 * MS + 10_000, Client, 0, &[(MSS, 2 * MSS)]);
    tape.data(110 * MS, Server, 0, MSS);
    let connection = tape.explain();
    assert_eq!((connection.probes, connection.timeouts), (1, 0), "{connection:#?}");
    assert_eq!(why(&connection, TimeCause::Probe), Some(TimerReason::WholeWindow));
    assert_eq!(losses(&connection), [(MSS, MSS), (0, MSS)]);
}

#[test]
fn a_tail_that_never_came_is_no_whole_window() {
    let mut tape = asked();
    tape.send(41 * MS + 50_000, Server, 4);
    tape.ack(41 * MS + 90_000, Client, 4 * MSS);
    tape.lose(Server, MSS).lose(Server, MSS);
    tape.data(110 * MS, Server, 5 * MSS, MSS);
    tape.sack(110 * MS + 10_000, Client, 4 * MSS, &[(5 * MSS, 6 * MSS)]);
    tape.data(131 * MS, Server, 4 * MSS, MSS);
    let connection = tape.explain();
    assert_eq!(why(&connection, TimeCause::Probe), Some(TimerReason::Tail), "{connection:#?}");
}

#[test]
fn a_lone_segment_that_never_came_is_no_lost_acknowledgement() {
    let mut tape = asked();
    tape.send_bytes(42 * MS, Server, 200);
    tape.ack(82 * MS, Client, 200);
    tape.send_bytes(200 * MS, Client, 100);
    tape.ack(220 * MS, Server, 200);
    tape.lose(Server, 300);
    tape.data(480 * MS, Server, 200, 300);
    let connection = tape.explain();
    assert_eq!(why(&connection, TimeCause::Probe), Some(TimerReason::LoneTail), "{connection:#?}");
    assert_eq!(losses(&connection), [(200, 300)]);
    let probe = time_of(&connection, TimeCause::Probe);
    assert!((200 * MS..260 * MS).contains(&probe), "the time before the segment left is no wait for a probe: {probe}");
}

#[test]
fn a_copy_that_never_came_either_made_the_timeout_necessary() {
    let mut tape = asked();
    tape.send(41 * MS + 50_000, Server, 3);
    tape.lose(Server, MSS);
    tape.send(41 * MS + 90_000, Server, 6);
    tape.sack(41 * MS + 200_000, Client, 3 * MSS, &[(4 * MSS, 10 * MSS)]);
    // The copy of the fourth.
    tape.lose(Server, 0);
    tape.data(290 * MS, Server, 3 * MSS, MSS);
    let connection = tape.explain();
    assert_eq!((connection.timeouts, connection.probes), (1, 0), "{connection:#?}");
    assert_eq!(why(&connection, TimeCause::Timeout), Some(TimerReason::CopyLost));
    assert_eq!(losses(&connection), [(3 * MSS, MSS), (3 * MSS, MSS)]);
}

#[test]
fn new_data_that_was_lost_behind_a_copy_is_named_once_it_comes() {
    let mut tape = asked();
    tape.send(41 * MS + 50_000, Server, 3);
    tape.lose(Server, MSS);
    tape.send(41 * MS + 90_000, Server, 6);
    tape.sack(41 * MS + 200_000, Client, 3 * MSS, &[(4 * MSS, 10 * MSS)]);
    tape.send(61 * MS + 200_000, Server, 2);
    tape.lose(Server, MSS);
    tape.data(61 * MS + 230_000, Server, 3 * MSS, MSS);
    tape.ack(61 * MS + 240_000, Client, 12 * MSS);
    tape.data(81 * MS + 240_000, Server, 12 * MSS, MSS);
    let connection = tape.explain();
    assert_eq!(losses(&connection), [(3 * MSS, MSS), (12 * MSS, MSS)], "{connection:#?}");
    assert_eq!((connection.timeouts, connection.probes), (0, 0));
}

/// Two copies of the same data are a round trip apart: in less than that, only new data can have left.
#[test]
fn new_data_that_was_lost_less_than_a_round_trip_before_a_copy_is_no_earlier_copy() {
    let mut tape = asked();
    tape.send(41 * MS + 50_000, Server, 3);
    tape.lose(Server, MSS);
    tape.send(41 * MS + 90_000, Server, 6);
    tape.sack(41 * MS + 200_000, Client, 3 * MSS, &[(4 * MSS, 10 * MSS)]);
    tape.send(61 * MS + 200_000, Server, 2);
    tape.lose(Server, MSS).lose(Server, MSS);
    tape.data(75 * MS, Server, 3 * MSS, MSS);
    tape.ack(75 * MS + 10_000, Client, 12 * MSS);
    tape.data(95 * MS + 10_000, Server, 12 * MSS, MSS);
    tape.data(95 * MS + 20_000, Server, 13 * MSS, MSS);
    let connection = tape.explain();
    assert_eq!(losses(&connection), [(3 * MSS, MSS), (12 * MSS, MSS), (13 * MSS, MSS)], "{connection:#?}");
    assert_eq!((connection.timeouts, connection.probes), (0, 0));
}

/// A second and a third copy would have waited for longer.
#[test]
fn a_window_that_never_came_and_one_timeout_are_no_three_copies_of_a_segment() {
    let mut tape = asked();
    tape.send(41 * MS + 50_000, Server, 2);
    tape.ack(41 * MS + 70_000, Client, 2 * MSS);
    tape.lose(Server, MSS).lose(Server, MSS).lose(Server, MSS);
    tape.data(290 * MS, Server, 2 * MSS, MSS);
    tape.ack(290 * MS + 10_000, Client, 3 * MSS);
    tape.data(310 * MS + 20_000, Server, 3 * MSS, MSS);
    tape.data(310 * MS + 30_000, Server, 4 * MSS, MSS);
    tape.ack(310 * MS + 40_000, Client, 5 * MSS);
    let connection = tape.explain();
    assert_eq!(losses(&connection), [(2 * MSS, MSS), (3 * MSS, MSS), (4 * MSS, MSS)], "{connection:#?}");
    assert_eq!((connection.timeouts, connection.probes), (1, 0), "{connection:#?}");
    let repairs: Vec<_> = connection.losses.iter().map(|loss| loss.repaired_by).collect();
    assert_eq!(repairs, [RepairKind::Timeout; 3]);
}

#[test]
fn new_data_behind_a_window_that_never_came_is_a_probe_if_it_comes_when_one_is_due() {
    let probes_at = |at: u64| {
        let mut tape = asked();
        tape.send(41 * MS + 50_000, Server, 2);
        tape.ack(41 * MS + 70_000, Client, 2 * MSS);
        tape.lose(Server, MSS).lose(Server, MSS).lose(Server, MSS);
        tape.send(at, Server, 1);
        tape.sack(at + 10_000, Client, 2 * MSS, &[(5 * MSS, 6 * MSS)]);
        for number in 2..5 {
            tape.data(at + 20 * MS, Server, number * MSS, MSS);
        }
        let connection = tape.explain();
        assert_eq!(losses(&connection).len(), 3, "{connection:#?}");
        (connection.probes, why(&connection, TimeCause::Probe))
    };
    assert_eq!(probes_at(111 * MS), (1, Some(TimerReason::WholeWindow)));
    assert_eq!(probes_at(150 * MS), (0, None), "its application");
}

#[test]
fn an_original_that_comes_behind_its_copy_was_late_and_not_lost() {
    let mut tape = asked();
    tape.send(41 * MS + 50_000, Server, 3);
    // It leaves here, and comes later.
    tape.send_bytes(75 * MS, Server, MSS);
    tape.send(41 * MS + 90_000, Server, 6);
    tape.sack(41 * MS + 200_000, Client, 3 * MSS, &[(4 * MSS, 10 * MSS)]);
    tape.data(62 * MS, Server, 3 * MSS, MSS);
    tape.ack(62 * MS + 10_000, Client, 10 * MSS);
    tape.sack(75 * MS + 10_000, Client, 10 * MSS, &[(3 * MSS, 4 * MSS)]);
    tape.send(83 * MS, Server, 2);
    let connection = tape.explain();
    assert_eq!((connection.spurious, losses(&connection)), (1, vec![]), "{connection:#?}");
}

#[test]
fn a_copy_that_came_for_nothing_leaves_the_loss_of_the_original() {
    let mut tape = asked();
    tape.send_bytes(42 * MS, Server, 200);
    tape.ack(82 * MS, Client, 200);
    tape.lose(Server, 300);
    tape.data(310 * MS, Server, 200, 300);
    tape.data(535 * MS, Server, 200, 300);
    tape.sack(535 * MS + 10_000, Client, 500, &[(200, 500)]);
    tape.send_bytes(560 * MS, Server, 300);
    let connection = tape.explain();
    assert_eq!((connection.spurious, losses(&connection)), (1, vec![(200, 300)]), "{connection:#?}");
}

#[test]
fn numbers_go_on_at_zero() {
    let mut tape = Tape::new();
    tape.next_id(Server, u16::MAX - 2);
    tape.send_bytes(21 * MS, Client, 100);
    tape.ack(41 * MS, Server, 100);
    tape.send(41 * MS + 50_000, Server, 6);
    assert_eq!(losses(&tape.explain()), []);
}

#[test]
fn what_the_far_end_repeats_after_its_acknowledgements_were_lost_was_sent_by_its_probe() {
    let mut tape = asked();
    tape.send(41 * MS + 50_000, Server, 3);
    tape.ack(41 * MS + 80_000, Client, 2 * MSS);
    tape.data(97 * MS, Server, 2 * MSS, MSS);
    tape.sack(97 * MS + 10_000, Client, 3 * MSS, &[(2 * MSS, 3 * MSS)]);
    let connection = tape.explain();
    assert_eq!((connection.probes, connection.timeouts), (1, 0), "{connection:#?}");
    let part = connection.parts[0];
    assert_eq!((part.cause, part.side), (TimeCause::Probe, EndSide::Server));
}

#[test]
fn gaps_in_numbers_are_what_shows_it() {
    let mut tape = asked();
    tape.lose(Server, MSS);
    tape.send(41 * MS + 90_000, Server, 3);
    tape.sack(41 * MS + 200_000, Client, 0, &[(MSS, 4 * MSS)]);
    tape.data(62 * MS, Server, 0, MSS);
    let seen_by: Vec<_> = tape.explain().losses.iter().map(|loss| loss.seen_by).collect();
    assert_eq!(seen_by, [LossWitness::IpId]);
}

/// Ten segments into a window that then has room for one more, and the next segment at `at`, behind an acknowledgement.
fn held_by_the_window(at: u64) -> ConnectionAnswer {
    let mut tape = asked();
    tape.send(41 * MS, Server, 10);
    tape.window(Client, 120).ack(41 * MS + 100_000, Client, MSS);
    let before = tape.clone();
    tape.ack(84 * MS, Client, 10 * MSS);
    if at < 104 * MS {
        tape.echo_as(&before, Client);
    }
    tape.send(at, Server, 1);
    tape.window(Client, 512).ack(at + 40 * MS, Client, 11 * MSS);
    tape.send(at + 60 * MS, Server, 2);
    tape.explain()
}

#[test]
fn new_data_that_came_too_soon_for_an_answer_and_just_in_time_for_a_probe_was_one() {
    let connection = held_by_the_window(102 * MS);
    assert_eq!((connection.probes, connection.timeouts), (1, 0), "{connection:#?}");
    let connection = held_by_the_window(104 * MS);
    assert_eq!((connection.probes, connection.timeouts), (0, 0), "an answer: {connection:#?}");
}

/// An answer echoes the timestamp of what it answers, however soon it comes.
#[test]
fn new_data_with_an_earlier_echo_left_before_the_acknowledgement_was_heard() {
    let probes = |is_answer: bool| {
        let mut tape = asked();
        tape.send(41 * MS, Server, 10);
        tape.window(Client, 120).ack(41 * MS + 100_000, Client, MSS);
        let before = tape.clone();
        tape.ack(84 * MS, Client, 10 * MSS);
        if !is_answer {
            tape.echo_as(&before, Client);
        }
        tape.send(104 * MS - 200_000, Server, 1);
        tape.window(Client, 512).ack(144 * MS, Client, 11 * MSS);
        tape.send(164 * MS, Server, 2);
        tape.explain().probes
    };
    assert_eq!((probes(false), probes(true)), (1, 0));
}

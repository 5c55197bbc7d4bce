//! Reports of the kernel beside a capture make causes facts, or change them.

mod tape;

use explain::answer::ConnectionAnswer;
use explain::terms::{Certainty, TimeCause};
use tape::{Client, MS, MSS, Server, Tape};

fn time_of(connection: &ConnectionAnswer, cause: TimeCause) -> u64 {
    connection.parts.iter().filter(|part| part.cause == cause).map(|part| part.ns).sum()
}

/// A segment, its acknowledgement, and another segment 100 ms after the first.
fn pause() -> Tape {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 1).ack(41 * MS, Server, MSS).send(121 * MS, Client, 1).ack(141 * MS, Server, 2 * MSS);
    tape
}

#[test]
fn an_application_that_had_nothing_to_send_is_a_fact() {
    let events =
        [(20 * MS, "open CLIENT"), (21 * MS + 20_000, "send CLIENT 1448"), (121 * MS + 20_000, "send CLIENT 1448")];
    for (connection, sure) in
        [(pause().explain(), Certainty::Inferred), (pause().explain_with(&events), Certainty::Seen)]
    {
        assert!(time_of(&connection, TimeCause::Application) > 90 * MS, "{connection:#?}");
        let stall = connection.stalls.iter().find(|stall| stall.cause == TimeCause::Application).unwrap();
        assert_eq!(stall.sure, sure);
    }
}

#[test]
fn data_that_was_handed_over_long_before_did_not_wait_for_its_application() {
    let events = [(20 * MS, "open CLIENT"), (21 * MS + 20_000, "send CLIENT 2896")];
    let connection = pause().explain_with(&events);
    assert!(time_of(&connection, TimeCause::Application) < 2 * MS, "{connection:#?}");
    assert!(time_of(&connection, TimeCause::Unknown) > 90 * MS, "nothing of TCP explains it, and it says so");
}

#[test]
fn of_a_wait_the_application_has_what_came_before_the_call() {
    let events = [(20 * MS, "open CLIENT"), (21 * MS + 20_000, "send CLIENT 1448"), (81 * MS, "send CLIENT 1448")];
    let connection = pause().explain_with(&events);
    let application = time_of(&connection, TimeCause::Application);
    assert!((55 * MS..65 * MS).contains(&application), "{connection:#?}");
}

#[test]
fn without_the_beginning_or_after_a_gap_calls_prove_nothing() {
    let from_the_middle = [(21 * MS + 20_000, "send CLIENT 2896")];
    let with_a_gap = [(20 * MS, "open CLIENT"), (21 * MS + 20_000, "send CLIENT 2896"), (50 * MS, "missed 3")];
    for events in [&from_the_middle[..], &with_a_gap[..]] {
        let connection = pause().explain_with(events);
        assert!(time_of(&connection, TimeCause::Application) > 90 * MS, "{connection:#?}");
        assert!(connection.stalls.iter().all(|stall| stall.sure != Certainty::Seen));
    }
}

/// Five segments, and five more as each is acknowledged: whatever held the sender had room for five.
fn five_at_a_time() -> Tape {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 5);
    for number in 0..5 {
        tape.ack(41 * MS + number * 10_000, Server, (number as u32 + 1) * MSS);
        tape.send(41 * MS + number * 10_000 + 5_000, Client, 1);
    }
    tape.ack(62 * MS, Server, 10 * MSS);
    tape
}

#[test]
fn the_kernels_own_window_is_a_fact_where_the_shadow_guesses() {
    let guessed = five_at_a_time().explain();
    assert_eq!(time_of(&guessed, TimeCause::CongestionWindow), 0, "a shadow has ten segments: {guessed:#?}");
    let known = five_at_a_time().explain_with(&[
        (20 * MS, "open CLIENT"),
        (21 * MS + 20_000, "send CLIENT 14480"),
        (41 * MS + 1_000, "ack CLIENT 5 65536"),
    ]);
    assert!(time_of(&known, TimeCause::CongestionWindow) > 15 * MS, "{known:#?}");
}

#[test]
fn a_call_that_has_not_returned_waits_for_room_in_the_send_buffer() {
    let connection = five_at_a_time().explain_with(&[
        (20 * MS, "open CLIENT"),
        (41 * MS + 1_000, "ack CLIENT 100 65536"),
        (62 * MS, "send CLIENT 14480"),
    ]);
    assert!(time_of(&connection, TimeCause::SendBuffer) > 15 * MS, "{connection:#?}");
}

#[test]
fn a_window_that_its_reader_shut_is_a_fact_at_the_far_end() {
    let mut tape = Tape::new();
    tape.send_bytes(21 * MS, Client, 100);
    tape.window(Client, 16);
    tape.send(42 * MS, Server, 1);
    tape.window(Client, 0).ack(43 * MS, Client, MSS);
    tape.window(Client, 16).ack(300 * MS, Client, MSS);
    tape.send(320 * MS, Server, 1);
    let sure_of = |connection: &ConnectionAnswer| {
        let stall = connection.stalls.iter().find(|stall| stall.cause == TimeCause::ReceiveWindow);
        stall.unwrap_or_else(|| panic!("{connection:#?}")).sure
    };
    assert_eq!(sure_of(&tape.explain()), Certainty::Inferred);
    let events = [(20 * MS, "open CLIENT"), (299 * MS, "receive CLIENT 0")];
    assert_eq!(sure_of(&tape.explain_with(&events)), Certainty::Seen);
}

#[test]
fn a_timeout_that_the_kernel_saw_is_one() {
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 3);
    tape.sack(41 * MS, Server, 0, &[(MSS, 2 * MSS)]).sack(41 * MS + 10_000, Server, 0, &[(MSS, 3 * MSS)]);
    tape.data(42 * MS, Client, 0, MSS);
    tape.ack(62 * MS, Server, 3 * MSS);
    let events =
        [(20 * MS, "open CLIENT"), (21 * MS + 30_000, "send CLIENT 4344"), (42 * MS - 4_000, "phase CLIENT loss")];
    assert_eq!(tape.explain().timeouts, 0, "right behind an acknowledgement");
    assert_eq!(tape.explain_with(&events).timeouts, 1);
}

//! Captures that lack something: what is missing is said, and nothing is presented as seen that was not.

mod tape;

use explain::ExplainError;
use explain::terms::{Certainty, TimeCause};
use tape::{Client, MS, MSS, Server, Tape};

/// A connection with a loss that a probe repaired.
fn probed() -> Tape {
    let mut tape = Tape::new();
    lose_and_probe(&mut tape);
    tape
}

fn lose_and_probe(tape: &mut Tape) {
    tape.send(21 * MS, Client, 10);
    for number in 1..=4 {
        tape.ack(41 * MS + u64::from(number) * 20_000, Server, number * 2 * MSS);
    }
    tape.data(90 * MS, Client, 9 * MSS, MSS);
    tape.sack(110 * MS, Server, 8 * MSS, &[(9 * MSS, 10 * MSS)]);
    tape.data(110 * MS + 100_000, Client, 8 * MSS, MSS);
    tape.ack(130 * MS + 100_000, Server, 10 * MSS);
}

#[test]
fn without_a_syn_nothing_is_presented_as_seen() {
    let mut tape = probed();
    tape.keep(|place, _| place > 3);
    let connection = tape.explain();
    assert!(connection.verdict.contains("no SYN"), "{}", connection.verdict);
    assert!(!connection.stalls.is_empty());
    assert!(connection.stalls.iter().all(|stall| stall.sure != Certainty::Seen), "{connection:#?}");
}

#[test]
fn one_direction_is_said_to_be_one() {
    let mut tape = probed();
    tape.keep(|_, from| from == Client);
    let connection = tape.explain();
    assert!(connection.verdict.contains("one direction"), "{}", connection.verdict);
    assert!(connection.stalls.iter().all(|stall| stall.sure != Certainty::Seen), "{connection:#?}");
}

#[test]
fn options_that_are_cut_off_are_said_to_be_missing() {
    let mut tape = probed();
    tape.snap = 14 + 20 + 20;
    let connection = tape.explain();
    assert!(connection.verdict.contains("snap length"), "{}", connection.verdict);
}

#[test]
fn a_packet_that_is_there_twice_counts_once() {
    let (mut once, mut twice) = (Tape::new(), Tape::new());
    once.send_bytes(21 * MS, Client, 1_000).send_bytes(42 * MS, Server, 1_000);
    twice.send_bytes(21 * MS, Client, 1_000).repeat_last().send_bytes(42 * MS, Server, 1_000).repeat_last();
    let (one, two) = (once.explain(), twice.explain());
    assert_eq!((two.bytes_up, two.bytes_down, two.spurious, two.losses.len()), (1_000, 1_000, 0, 0));
    assert_eq!(one.duration_ns, two.duration_ns);
    assert_eq!(twice.answer().skipped, 2);
}

#[test]
fn a_capture_that_is_cut_short_is_read_as_far_as_it_goes() {
    let bytes = probed().pcap();
    for len in [bytes.len() - 1, bytes.len() / 2, 200] {
        let answer = tape::answer(bytes[..len].to_vec()).unwrap();
        answer.connections.iter().for_each(tape::assert_adds_up);
        assert!(answer.packets > 0);
    }
    assert!(matches!(tape::answer(bytes[..30].to_vec()), Err(ExplainError::Capture(_))));
    assert!(matches!(tape::answer(b"no capture".to_vec()), Err(ExplainError::Capture(_))));
}

#[test]
fn six_is_read_like_four() {
    let (four, mut six) = (probed(), Tape::default());
    (six.ip6, six.snap) = (true, 120);
    six.syn(0).syn_ack(20 * MS).ack(20 * MS + 50_000, Client, 0);
    lose_and_probe(&mut six);
    let (four, six) = (four.explain(), six.explain());
    assert_eq!(six.client, "[2001:db8::1]:40000");
    let parts = |connection: &explain::answer::ConnectionAnswer| -> Vec<(TimeCause, u64)> {
        connection.parts.iter().map(|part| (part.cause, part.ns)).collect()
    };
    assert_eq!(parts(&four), parts(&six));
}

#[test]
fn super_frames_are_cut_into_segments() {
    let mut tape = Tape::new();
    tape.send_bytes(21 * MS, Client, 10 * MSS);
    tape.sack(41 * MS, Server, 4 * MSS, &[(5 * MSS, 10 * MSS)]);
    tape.data(41 * MS + 100_000, Client, 4 * MSS, MSS);
    tape.ack(61 * MS, Server, 10 * MSS);
    let connection = tape.explain();
    let losses: Vec<_> = connection.losses.iter().map(|loss| loss.len).collect();
    assert_eq!((losses.as_slice(), connection.bytes_up), ([MSS].as_slice(), 10 * u64::from(MSS)));
    assert_eq!(connection.agreement, Some(1.0));
}

#[test]
fn a_segment_is_a_super_frame_only_where_the_handshake_told_how_long_one_is() {
    let super_frames = |mut tape: Tape| {
        tape.send_bytes(21 * MS, Client, MSS + 12);
        tape.ack(41 * MS, Server, MSS + 12);
        tape.answer().super_frames
    };
    assert_eq!([super_frames(Tape::new()), super_frames(Tape::without_options())], [1, 0]);
}

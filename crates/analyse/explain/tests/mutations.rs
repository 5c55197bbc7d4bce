//! Captures with bytes, times and records changed at random: they are explained, or refused, and nothing panics. Builds of tests
//! check every sum for overflow.

mod tape;
#[path = "targets/explain.rs"]
mod targets;

use tape::{Client, MS, MSS, Server, Tape};
use targets::read_all;
use testkit::{FuzzRandom, capture_records, changed_capture};

/// `HITLESS_FUZZ_ROUNDS=200000 cargo test -p hitless-explain --test mutations` goes on for longer.
const ROUNDS: u64 = 4_000;

/// A transfer with a loss, a probe, copies and super-frames, each way.
fn sample(six: bool) -> Tape {
    let mut tape = Tape::default();
    (tape.ip6, tape.snap) = (six, 120);
    tape.syn(0).syn(3 * MS).syn_ack(20 * MS).ack(20 * MS + 50_000, Client, 0);
    tape.send(21 * MS, Client, 10).send_bytes(23 * MS, Client, 7 * MSS);
    tape.ack(41 * MS, Server, 4 * MSS);
    tape.sack(42 * MS, Server, 8 * MSS, &[(9 * MSS, 10 * MSS), (12 * MSS, 13 * MSS)]);
    tape.data(90 * MS, Client, 8 * MSS, MSS);
    tape.lose(Server, MSS).send(95 * MS, Server, 6);
    tape.sack(96 * MS, Client, 0, &[(MSS, 6 * MSS)]);
    tape.data(320 * MS, Server, 0, MSS);
    tape.ack(340 * MS, Client, 7 * MSS);
    tape
}

#[test]
fn thousands_of_changed_captures_are_read_without_a_panic() {
    let samples = [sample(false).pcap(), sample(true).pcap()];
    let (mut round, mut read) = (0, 0);
    let change = |random: &mut FuzzRandom| {
        round += 1;
        changed_capture(random, &samples[round % 2])
    };
    testkit::fuzz_changes(ROUNDS, change, |mutated| {
        let answer = read_all(mutated, &samples[0]);
        for connection in answer.iter().flat_map(|answer| &answer.connections) {
            tape::assert_adds_up(connection);
        }
        read += u64::from(answer.is_some());
    });
    let rounds = testkit::fuzz_rounds(ROUNDS);
    assert!(read > rounds / 2, "most captures can still be read: {read} of {rounds}");
}

#[test]
fn times_of_neighbouring_packets_may_be_exchanged() {
    let bytes = sample(false).pcap();
    let all = capture_records(&bytes);
    for place in 1..all.len() {
        let mut records = all.clone();
        let (before, behind) = records.split_at_mut(place);
        before[place - 1][..8].swap_with_slice(&mut behind[0][..8]);
        let answer = tape::answer([bytes[..24].to_vec(), records.concat()].concat()).unwrap();
        answer.connections.iter().for_each(tape::assert_adds_up);
    }
}

/// A clock that was set, by more than the 213 days that 64 bits of picoseconds hold.
#[test]
fn packets_may_be_years_apart() {
    const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
    let mut tape = Tape::new();
    tape.send(21 * MS, Client, 3).ack(41 * MS, Server, 3 * MSS);
    tape.send(YEAR, Client, 3).ack(YEAR + 20 * MS, Server, 6 * MSS);
    tape.data(3 * YEAR, Client, 5 * MSS, MSS).ack(3 * YEAR + 20 * MS, Server, 6 * MSS);
    let connection = tape.explain();
    assert!(connection.duration_ns > 2 * YEAR, "{connection:#?}");
    let events = [(0, "open CLIENT"), (20 * YEAR, "send CLIENT 18446744073709551615"), (21 * YEAR, "send CLIENT 7")];
    tape.explain_with(&events);
}

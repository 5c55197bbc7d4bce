//! Captures with bytes, times and records changed at random: they are explained, or refused, and nothing panics. Builds of tests
//! check every sum for overflow.

mod tape;
#[path = "targets/explain.rs"]
mod targets;

use tape::{Client, MS, MSS, Server, Tape};
use targets::read_all;

/// `HITLESS_FUZZ_ROUNDS=200000 cargo test -p hitless-explain --test mutations` goes on for longer.
const ROUNDS: u64 = 4_000;

/// xorshift: the same captures in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

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

/// Records of a classic file: its header, then each with 16 bytes before it.
fn records(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut at, mut records) = (24, Vec::new());
    while let Some(head) = bytes.get(at..at + 16) {
        let kept = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let end = (at + 16 + kept).min(bytes.len());
        records.push(bytes[at..end].to_vec());
        at = end;
    }
    records
}

fn mutate(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    const EXTREMES: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
    let (header, mut records) = (bytes[..24].to_vec(), records(bytes));
    for _ in 0..=dice.roll(4) {
        let count = records.len();
        let one = dice.roll(count);
        match dice.roll(6) {
            // What several receive queues do.
            0 if one > 0 => {
                let (before, behind) = records.split_at_mut(one);
                before[one - 1][..8].swap_with_slice(&mut behind[0][..8]);
            }
            1 => records.swap(one, (one * 7 + 3) % count),
            2 => records[one][dice.roll(8)] = EXTREMES[dice.roll(EXTREMES.len())],
            3 => {
                let copy = records[one].clone();
                records.insert(dice.roll(count), copy);
            }
            _ => {
                let len = records[one].len();
                // Lengths of records are another test's.
                let at = 16 + dice.roll(len.saturating_sub(16));
                if at < len {
                    let value =
                        if dice.roll(2) == 0 { EXTREMES[dice.roll(EXTREMES.len())] } else { dice.roll(256) as u8 };
                    records[one][at] = value;
                }
            }
        }
    }
    [header, records.concat()].concat()
}

#[test]
fn thousands_of_changed_captures_are_read_without_a_panic() {
    let rounds = std::env::var("HITLESS_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let samples = [sample(false).pcap(), sample(true).pcap()];
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut read = 0;
    for round in 0..rounds {
        let sample = &samples[round as usize % 2];
        let mutated = mutate(sample, &mut dice);
        let answer = std::panic::catch_unwind(|| read_all(&mutated, sample));
        let answer = answer.unwrap_or_else(|_| panic!("round {round}"));
        for connection in answer.iter().flat_map(|answer| &answer.connections) {
            tape::assert_adds_up(connection);
        }
        read += u64::from(answer.is_some());
    }
    assert!(read > rounds / 2, "most captures can still be read: {read} of {rounds}");
}

#[test]
fn times_of_neighbouring_packets_may_be_exchanged() {
    let bytes = sample(false).pcap();
    let all = records(&bytes);
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

//! Arbitrary bytes: no panic, no unbounded memory, no stall.
//!
//! Two targets, each a function of bytes. Their corpora are replayed, and then changed at random for a
//! number of rounds; `HITLESS_FUZZ_ROUNDS=10000000 cargo test --release -p hitless-guard --test fuzz`
//! goes on for longer.

mod common;

use std::path::Path;

use common::*;
use guard::{Command, Endpoint, Packet};
use testkit::{Duo, Fate, Side};
use units::{Bytes, Span};
use wire::link::{Class, Header, MAX_HEADER};

/// What parses is what would be written; anything else is refused.
fn header(bytes: &[u8]) {
    if let Ok((header, len)) = Header::parse(bytes) {
        let mut again = [0; MAX_HEADER];
        assert_eq!(header.emit(&mut again), len);
        assert_eq!(again[..len], bytes[..len]);
    }
}

/// A pair of ends whose wire carries foreign bytes among their own frames. Whatever these claim, the ends
/// stay within their bounds, and once they are left alone everything waiting gets through.
fn pair(bytes: &[u8]) {
    let Some((&[setup, feed @ ..], mut rest)) = bytes.split_at_checked(4).map(|(head, rest)| {
        let head: &[u8; 4] = head.try_into().unwrap();
        (head, rest)
    }) else {
        return;
    };
    let class = Class::ALL[usize::from(setup & 1)];
    let mut params = params(class);
    params.patience = Span::from_us(30);
    params.window_frames = 64;
    if setup & 2 != 0 {
        params.classes = Class::ALL.to_vec();
    }
    let mut link: Link = if setup & 4 != 0 {
        established(&params)
    } else {
        Duo::new(Endpoint::new(params.clone(), 1), Endpoint::new(params.clone(), 2), SLOT, FLIGHT)
    };
    for (side, frames) in Side::BOTH.into_iter().zip(feed) {
        send(&mut link, side, class, 0..u32::from(frames % 32));
    }
    let mut arrives = |_: Side, _: &Packet<Numbered>| Fate::Arrives;
    while let Some((&op, tail)) = rest.split_first() {
        rest = tail;
        let side = Side::BOTH[usize::from(op & 1)];
        match op >> 1 & 7 {
            0 => link.command(side, Command::Activate),
            1 => link.command(side, Command::Deactivate),
            2 => send(&mut link, side, class, 100..100 + u32::from(op >> 4)),
            3 => (0..op >> 4).for_each(|_| {
                link.step(&mut |_, _| Fate::Lost);
            }),
            4 => (0..op >> 4).for_each(|_| {
                link.step(&mut arrives);
            }),
            7 => link.inject(side, Packet::bare(Numbered(8_888))),
            5 => {
                if let Ok((header, len)) = Header::parse(rest) {
                    rest = &rest[len..];
                    link.inject(side, Packet { header, body: (op & 0x80 != 0).then_some(Numbered(9_999)) });
                }
            }
            _ => {
                let len = rest.len().min(usize::from(op >> 4) * 2);
                let (bytes, tail) = rest.split_at(len);
                rest = tail;
                let bad = link.machine(side).counters().rx_bad;
                link.act(side, |machine, now, out| machine.on_bytes(now, bytes, |_| Numbered(7_777), out));
                if Header::parse(bytes).is_err() {
                    assert_eq!(link.machine(side).counters().rx_bad, bad + 1, "dropped, counted, nothing else");
                }
            }
        }
    }
    let deadline = link.now + Span::from_ms(5);
    link.run(deadline, &mut arrives);
    for side in Side::BOTH {
        assert_eq!(link.waiting(side), 0, "stalled in {:?}", link.machine(side).state());
        assert!(link.machine(side).rx_peak() <= params.ordering.limit);
        assert!(link.machine(side).tx_peak() <= params.window_bytes + params.window_bytes);
        assert_eq!(link.machine(side).tx_buffered(), Bytes::ZERO, "never acknowledged");
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus in {folder:?}");
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn change(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.next() % corpus.len()].clone();
    for _ in 0..1 + random.next() % 6 {
        let at = if bytes.is_empty() { 0 } else { random.next() % bytes.len() };
        match random.next() % 5 {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << (random.next() % 8),
            1 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            2 if !bytes.is_empty() => bytes.truncate(at),
            3 => bytes.insert(at, random.next() as u8),
            _ => {
                let other = &corpus[random.next() % corpus.len()];
                let from = if other.is_empty() { 0 } else { random.next() % other.len() };
                bytes.extend_from_slice(&other[from..]);
            }
        }
        bytes.truncate(600);
    }
    bytes
}

fn fuzz(name: &str, target: fn(&[u8]), rounds: u64) {
    let corpus = corpus(name);
    corpus.iter().for_each(|bytes| target(bytes));
    let rounds = std::env::var("HITLESS_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(rounds);
    let mut random = Random(rounds);
    for _ in 0..rounds {
        let bytes = change(&mut random, &corpus);
        if std::panic::catch_unwind(|| target(&bytes)).is_err() {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            panic!("{name} fails on {hex}");
        }
    }
}

#[test]
fn headers() {
    fuzz("header", header, 200_000);
}

#[test]
fn pairs() {
    fuzz("pair", pair, 10_000);
}

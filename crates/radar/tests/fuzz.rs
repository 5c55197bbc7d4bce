//! Arbitrary bytes as digests: no panic, no unbounded memory, no stall.
//!
//! Two targets, each a function of bytes. Their corpora are replayed, and then changed at random for a number of rounds;
//! `HITLESS_FUZZ_ROUNDS=10000000 cargo test --release -p hitless-radar --test fuzz` goes on for longer.

use std::path::Path;

use radar::digest::{Decoded, Digest};

/// What can be read is written so that it is the same again, and comes to an end when it is decoded.
fn form(bytes: &[u8]) {
    let Ok(digest) = Digest::from_bytes(bytes) else { return };
    assert_eq!(Digest::from_bytes(&digest.to_bytes()).as_ref(), Ok(&digest));
    decode(digest);
}

fn decode(mut digest: Digest) {
    let cells = digest.shape().cells();
    let estimate = digest.estimate();
    assert!(estimate.is_finite() && estimate >= 0.0, "{estimate}");
    let Decoded { lost, extra, left } = digest.decode();
    assert!(lost.len() + extra.len() <= cells);
    for (signature, _) in lost.iter().chain(&extra) {
        let loss = signature.loss(None);
        assert_eq!(loss.flow.src.is_ipv4(), loss.ip_id.is_some());
    }
    // A digest that nobody filled may be decoded to its end though its count of packets is wrong.
    assert!(left.is_none_or(|left| left.net == digest.packets()));
}

/// Cells that nobody filled in a digest that is well formed: fields, lanes and size, seed and count of packets, cells.
fn cells(bytes: &[u8]) {
    let Some((&[fields, lanes_low, lanes_high, size], rest)) = bytes.split_first_chunk() else { return };
    let (size, sparse) = (3 + size % 118, lanes_high & 0x80);
    let lanes = [lanes_low, lanes_high & 0b11 | sparse];
    let mut made = [b"HLRD", &[1, fields & 31][..], &lanes, &u32::from(size).to_le_bytes()].concat();
    let numbers = 16;
    made.extend(rest.iter().chain(std::iter::repeat(&0)).take(numbers));
    let body = rest.get(numbers..).unwrap_or_default();
    let cell =
        8 * (2 + usize::from(sparse != 0) + u16::from_le_bytes([lanes[0], lanes[1] & 0b11]).count_ones() as usize);
    let most = usize::from(size);
    let count = if sparse == 0 { most } else { most.min(body.len() / cell) };
    made.extend(body.iter().chain(std::iter::repeat(&0)).take(count * cell));
    made.extend(crc32fast::hash(&made).to_le_bytes());
    let read = Digest::from_bytes(&made);
    assert!(sparse != 0 || read.is_ok(), "{read:?}");
    form(&made);
    if let Ok(mut digest) = read {
        let other = digest.clone();
        digest.subtract(&other).unwrap();
        assert_eq!(digest.decode(), Decoded::default(), "less itself it is empty");
        decode(other);
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

/// Numbers at which sums and quotients may overflow.
const EDGES: [u64; 6] = [0, 1, u64::MAX, 1 << 63, (1 << 56) - 1, 127];

fn change(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.next() % corpus.len()].clone();
    for _ in 0..1 + random.next() % 6 {
        let at = if bytes.is_empty() { 0 } else { random.next() % bytes.len() };
        match random.next() % 6 {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << (random.next() % 8),
            1 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            2 if !bytes.is_empty() => bytes.truncate(at),
            3 => bytes.insert(at, random.next() as u8),
            4 => {
                let edge = EDGES[random.next() % EDGES.len()].to_le_bytes();
                // Where numbers begin, in both targets.
                let at = at / 8 * 8 + 4;
                bytes.iter_mut().skip(at).zip(edge).for_each(|(byte, edge)| *byte = edge);
            }
            _ => {
                let other = &corpus[random.next() % corpus.len()];
                let from = if other.is_empty() { 0 } else { random.next() % other.len() };
                bytes.extend_from_slice(&other[from..]);
            }
        }
        bytes.truncate(2_000);
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
fn forms() {
    fuzz("form", form, 100_000);
}

#[test]
fn digests_of_arbitrary_cells() {
    fuzz("cells", cells, 100_000);
}

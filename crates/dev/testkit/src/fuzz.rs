//! Arbitrary bytes for a function that must withstand them.
//!
//! A corpus is replayed, and then changed at random: bits and bytes, cuts, insertions, numbers at which sums overflow, and
//! ends of other files of the corpus. `HITLESS_FUZZ_ROUNDS` makes it go on for longer.

use std::path::Path;
use std::{env, fs, panic};

/// Numbers at which sums and quotients may overflow.
const EDGES: [u64; 6] = [0, 1, u64::MAX, 1 << 63, (1 << 56) - 1, 127];

/// Gives `target` every file of the folder `corpus`. After that, for `rounds` rounds, gives it
/// randomly changed files of up to `longest` bytes.
///
/// # Panics
/// With the bytes in hexadecimal if `target` panics.
pub fn fuzz(corpus: &Path, longest: usize, rounds: u64, target: fn(&[u8])) {
    let files = files(corpus);
    files.iter().for_each(|bytes| target(bytes));
    let rounds = env::var("HITLESS_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(rounds);
    let mut random = FuzzRandom(rounds);
    for _ in 0..rounds {
        let bytes = change(&mut random, &files, longest);
        if panic::catch_unwind(|| target(&bytes)).is_err() {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            panic!("{corpus:?} fails on {hex}");
        }
    }
}

fn files(corpus: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(corpus).expect("a corpus").flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no corpus in {corpus:?}");
    paths.iter().map(|path| fs::read(path).expect("a file of the corpus")).collect()
}

struct FuzzRandom(u64);

impl FuzzRandom {
    /// Zero if there is nothing to choose from.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn change(random: &mut FuzzRandom, files: &[Vec<u8>], longest: usize) -> Vec<u8> {
    let mut bytes = files[random.below(files.len())].clone();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.below(256) as u8),
            4 => {
                let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
                bytes.iter_mut().skip(at / 4 * 4).zip(edge).for_each(|(byte, edge)| *byte = edge);
            }
            _ => {
                let other = &files[random.below(files.len())];
                bytes.extend_from_slice(&other[random.below(other.len())..]);
            }
        }
        bytes.truncate(longest);
    }
    bytes
}

//! Arbitrary bytes for a function that must withstand them.
//!
//! A corpus is replayed, and then changed at random: bits and bytes, cuts, insertions, numbers at which sums overflow, and
//! ends of other files of the corpus. Texts and captures are changed by their words and records (see `change`), which comes past a
//! parser's first look more often. `HITLESS_FUZZ_ROUNDS` makes it go on for longer.

mod change;

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::{env, fs};

pub use change::{capture_records, changed_bytes, changed_capture, changed_text};

/// Memory that a test of small inputs never needs, in bytes.
const MOST_MEMORY: u64 = 1 << 30;

/// Gives `target` every file of the folder `corpus`. After that, for `rounds` rounds, gives it
/// randomly changed files of up to `longest` bytes.
///
/// # Panics
/// With the bytes in hexadecimal if `target` panics, and if it takes more than a gigabyte of memory.
pub fn fuzz(corpus: &Path, longest: usize, rounds: u64, target: fn(&[u8])) {
    let files = fuzz_corpus(corpus);
    files.iter().for_each(|bytes| target(bytes));
    fuzz_changes(rounds, |random| changed_bytes(random, &files, longest), target);
}

/// Gives `target` what `change` makes, for `rounds` rounds: the same in every run.
///
/// # Panics
/// With the bytes, as text where they are one, if `target` panics, and if it takes more than a gigabyte of memory.
pub fn fuzz_changes(rounds: u64, mut change: impl FnMut(&mut FuzzRandom) -> Vec<u8>, mut target: impl FnMut(&[u8])) {
    let rounds = fuzz_rounds(rounds);
    let mut random = FuzzRandom(rounds);
    for round in 0..rounds {
        let bytes = change(&mut random);
        if panic::catch_unwind(AssertUnwindSafe(|| target(&bytes))).is_err() {
            let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let found = str::from_utf8(&bytes).map_or_else(|_| hex(), str::to_owned);
            panic!("round {round} fails on {found}");
        }
    }
    let most = most_memory();
    assert!(most < MOST_MEMORY, "{most} B of memory");
}

/// `HITLESS_FUZZ_ROUNDS`, or as many as usual.
pub fn fuzz_rounds(usual: u64) -> u64 {
    env::var("HITLESS_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The files of a folder, in the order of their names.
///
/// # Panics
/// If there is none.
pub fn fuzz_corpus(corpus: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(corpus).expect("a corpus").flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no corpus in {corpus:?}");
    paths.iter().map(|path| fs::read(path).expect("a file of the corpus")).collect()
}

/// The most memory that this process had at a time.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1_024
}

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub struct FuzzRandom(u64);

impl FuzzRandom {
    /// A number below a bound; zero if there is nothing to choose from.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    /// One of several things, of which there is at least one.
    pub fn one_of<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }
}

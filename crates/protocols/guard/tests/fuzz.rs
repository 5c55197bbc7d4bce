//! Arbitrary bytes: no panic, no unbounded memory, no stall.
//!
//! Two targets, each a function of bytes that `fuzz/` calls, too. Their corpora are replayed, and then changed at random for a
//! number of rounds; `HITLESS_FUZZ_ROUNDS=10000000 cargo test --release -p hitless-guard --test fuzz` goes on for longer.

mod common;
#[path = "targets/header.rs"]
mod header;
#[path = "targets/pair.rs"]
mod pair;

use std::path::PathBuf;

use testkit::fuzz;

fn corpus(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/corpus", name].iter().collect()
}

#[test]
fn headers() {
    fuzz(&corpus("header"), 600, 200_000, header::header);
}

#[test]
fn pairs() {
    fuzz(&corpus("pair"), 600, 10_000, pair::pair);
}

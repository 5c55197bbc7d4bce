//! Any bytes, read as messages and marks, into a switch and into a host: nothing panics, and nothing grows without bound.
//!
//! `HITLESS_FUZZ_ROUNDS=1000000 cargo test -p hitless-reserve --test fuzz` goes on for longer.

mod common;
#[path = "targets/rack.rs"]
mod rack;

use std::path::PathBuf;

use testkit::fuzz;

fn corpus() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/corpus/headers"].iter().collect()
}

#[test]
fn the_corpus_is_made_of_headers() {
    for file in std::fs::read_dir(corpus()).expect("a corpus") {
        let path = file.expect("a file").path();
        let mut found = 0;
        rack::headers(&std::fs::read(&path).expect("its bytes"), |_, _| found += 1);
        assert!(found >= 4, "{found} in {path:?}");
    }
}

#[test]
fn any_bytes_into_the_switch() {
    fuzz(&corpus(), 800, 5_000, rack::switch);
}

#[test]
fn any_bytes_into_the_host() {
    fuzz(&corpus(), 800, 5_000, rack::host);
}

//! Arbitrary bytes as digests, reports, answers of trails and recordings of flows: no panic, no unbounded memory, no stall.
//!
//! Targets, each a function of bytes that `fuzz/` calls, too. Their corpora are replayed, and then changed at random for a number of rounds;
//! `HITLESS_FUZZ_ROUNDS=10000000 cargo test --release -p hitless-radar --test fuzz` goes on for longer.

#[path = "targets/digest.rs"]
mod digest;
#[path = "targets/flow_map.rs"]
mod flow_map;
#[path = "targets/report.rs"]
mod report;
#[path = "targets/trail.rs"]
mod trail;

use std::path::PathBuf;

use testkit::fuzz;

fn corpus(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/corpus", name].iter().collect()
}

#[test]
fn forms() {
    fuzz(&corpus("form"), 2_000, 100_000, digest::form);
}

#[test]
fn digests_of_arbitrary_cells() {
    fuzz(&corpus("cells"), 2_000, 100_000, digest::cells);
}

#[test]
fn reports() {
    fuzz(&corpus("report"), 2_000, 100_000, report::report);
}

#[test]
fn answers_of_trails() {
    fuzz(&corpus("trail"), 2_000, 100_000, trail::answer);
}

#[test]
fn reports_of_flow_meters() {
    fuzz(&corpus("flow_reports"), 2_000, 100_000, flow_map::report);
}

#[test]
fn recordings_of_flows() {
    fuzz(&corpus("flow_recordings"), 500, 100_000, flow_map::recording);
}

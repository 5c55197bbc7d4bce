//! Arbitrary bytes as files of other simulators: a graph, or one line that says what is wrong. `fuzz/` calls the same function.

#[path = "targets/imports.rs"]
mod targets;
mod trace_writer;

use std::path::Path;

#[test]
fn any_bytes_are_a_graph_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    testkit::fuzz(&corpus, 4_000, 20_000, targets::imports);
}

/// The trace of the corpus, which no editor writes.
#[test]
fn the_trace_of_the_corpus_is_read() {
    let send = [("comm_size", 9, 64), ("comm_type", 7, 0), ("comm_tag", 17, 6)];
    let trace = [
        trace_writer::metadata("1.0.0"),
        trace_writer::node(1, 4, &[], 5, &[]),
        trace_writer::node(2, 7, &[1], 0, &send),
    ];
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/all-reduce.et");
    assert_eq!(std::fs::read(file).unwrap(), trace.concat());
    targets::imports(&trace.concat());
}

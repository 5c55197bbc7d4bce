//! Arbitrary text as the file of a topology: a fabric, or one line that says what is wrong. `fuzz/` calls the same function.

#[path = "targets/fabric.rs"]
mod targets;

use std::path::Path;

#[test]
fn any_text_is_a_fabric_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/fabric");
    testkit::fuzz(&corpus, 2_000, 20_000, targets::fabric);
}

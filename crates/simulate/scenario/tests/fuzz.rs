//! Arbitrary text as a scenario: it is read, or refused with a reason. `fuzz/` calls the same function.

#[path = "targets/scenario.rs"]
mod targets;

use std::path::Path;

#[test]
fn any_text_is_a_scenario_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/scenarios");
    testkit::fuzz(&corpus, 4_000, 500, targets::scenario);
}

//! Scenarios with words and lines changed at random: they become setups, or are refused in one line.

use std::fs;
use std::path::Path;

use scenario::Scenario;
use testkit::{changed_text, fuzz_changes};

/// Scenarios of the documentation that are small networks.
const FILES: [&str; 4] = ["incast.toml", "losses.toml", "requests.toml", "rack-get.toml"];

#[test]
fn any_scenario_is_read_or_refused_without_a_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/scenarios");
    let texts = FILES.map(|file| fs::read_to_string(folder.join(file)).unwrap());
    let samples = texts.each_ref().map(String::as_str);
    let mut read = 0;
    fuzz_changes(
        5_000,
        |random| changed_text(random, &samples),
        |bytes| match Scenario::parse("it.toml", &String::from_utf8_lossy(bytes), &[]) {
            Ok(scenario) => read += usize::from(scenario.points.iter().all(|point| point.setup(2).seed == 2)),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        },
    );
    assert!(read > 0, "some can still be read");
}

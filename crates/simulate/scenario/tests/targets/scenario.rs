//! Arbitrary text as a scenario. `fuzz/` has this target, too.

use scenario::Scenario;

/// Reads a scenario, or gets one error.
pub(crate) fn scenario(bytes: &[u8]) {
    match Scenario::parse("fuzz.toml", &String::from_utf8_lossy(bytes), &[]) {
        Ok(scenario) => scenario.warnings().for_each(|warning| assert!(!warning.is_empty())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

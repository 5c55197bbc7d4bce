//! Files of scenarios.

#![no_main]

#[path = "../../crates/simulate/scenario/tests/targets/scenario.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::scenario(bytes));

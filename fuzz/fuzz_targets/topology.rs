//! Files of topologies, TOML and CSV.

#![no_main]

#[path = "../../crates/analyse/fleet/tests/targets/fabric.rs"]
mod fabric;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fabric::fabric(bytes));

//! Recordings of flow meters.

#![no_main]

#[path = "../../crates/analyse/radar/tests/targets/flow_map.rs"]
mod flow_map;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flow_map::recording(bytes));

//! Captures, explained alone and beside themselves.

#![no_main]

#[path = "../../crates/analyse/explain/tests/targets/explain.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = targets::read_all(bytes, bytes);
});

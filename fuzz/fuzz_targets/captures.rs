//! Captures, read and compared.

#![no_main]

#[path = "../../crates/analyse/radar/tests/targets/captures.rs"]
mod captures;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| captures::capture(bytes));

//! Digests of packets as meters send them.

#![no_main]

#[path = "../../crates/analyse/radar/tests/targets/digest.rs"]
mod digest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| digest::form(bytes));

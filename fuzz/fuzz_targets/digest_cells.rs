//! Digests that are well formed, with arbitrary cells.

#![no_main]

#[path = "../../crates/analyse/radar/tests/targets/digest.rs"]
mod digest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| digest::cells(bytes));

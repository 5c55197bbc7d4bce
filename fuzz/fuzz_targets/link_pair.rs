//! Foreign frames on the wire of two ends of a protected link.

#![no_main]

#[path = "../../crates/protocols/guard/tests/common/mod.rs"]
mod common;
#[path = "../../crates/protocols/guard/tests/targets/pair.rs"]
mod pair;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pair::pair(bytes));

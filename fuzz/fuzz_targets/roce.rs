//! RoCEv2 packets in frames.

#![no_main]

#[path = "../../crates/base/wire/tests/targets/roce.rs"]
mod roce;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| roce::holds(bytes));

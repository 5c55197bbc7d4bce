//! Waves and requests of clocks.

#![no_main]

#[path = "../../crates/base/wire/tests/targets/clock.rs"]
mod clock;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| clock::checked(bytes));

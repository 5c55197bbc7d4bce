//! Answers of meters about their latest packets.

#![no_main]

#[path = "../../crates/analyse/radar/tests/targets/trail.rs"]
mod trail;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trail::answer(bytes));

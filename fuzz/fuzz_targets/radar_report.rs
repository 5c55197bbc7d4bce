//! Reports of meters, their replies and the questions that they answer.

#![no_main]

#[path = "../../crates/analyse/radar/tests/targets/report.rs"]
mod report;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| report::report(bytes));

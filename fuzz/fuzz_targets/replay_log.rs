//! Logs of connections, read and replayed.

#![no_main]

#[path = "../../crates/protocols/deter/tests/targets/log.rs"]
mod log;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| log::log(bytes));

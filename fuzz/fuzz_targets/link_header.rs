//! Headers of the protected link.

#![no_main]

#[path = "../../crates/protocols/guard/tests/targets/header.rs"]
mod header;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| header::header(bytes));

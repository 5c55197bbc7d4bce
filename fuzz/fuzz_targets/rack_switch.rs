//! Messages and marks of a rack, at the switch.

#![no_main]

#[path = "../../crates/protocols/reserve/tests/common/mod.rs"]
mod common;
#[path = "../../crates/protocols/reserve/tests/targets/rack.rs"]
mod rack;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rack::switch(bytes));

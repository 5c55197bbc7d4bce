//! Layers of Ethernet frames: tags, IP, fragments.

#![no_main]

#[path = "../../crates/base/wire/tests/targets/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frames::frame(bytes));

//! Announcements and findings of collectors on the bus.

#![no_main]

#[path = "../../crates/base/bus/tests/targets/announcement.rs"]
mod announcement;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| announcement::announcement(bytes));

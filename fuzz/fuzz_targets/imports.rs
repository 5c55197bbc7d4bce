//! Files of other simulators, in every format.

#![no_main]

#[path = "../../crates/simulate/imports/tests/targets/imports.rs"]
mod imports_target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| imports_target::imports(bytes));

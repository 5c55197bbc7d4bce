//! A daemon whose clock is wrong, for the fault bench: nothing in the environment of a daemon changes its time, and no option does
//! but for a daemon that this program itself started.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::parent_id;

use crate::output::{CommandResult, Failure};

/// Sets the time of day of this process back, if the process that started it runs the same program.
pub(super) fn set(seconds: u64) -> CommandResult {
    let program = |pid: &str| fs::metadata(format!("/proc/{pid}/exe"));
    let is_same = |ours: Metadata, theirs: Metadata| (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino());
    let asked_by_us = || -> io::Result<bool> { Ok(is_same(program("self")?, program(&parent_id().to_string())?)) };
    if !asked_by_us().unwrap_or(false) {
        return Err(Failure::Usage("--test-clock-back: only `hitless soak --faults` may ask for it".to_owned()));
    }
    linux::clock::set_back(seconds);
    Ok(())
}

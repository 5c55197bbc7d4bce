//! Captures that commands read: from files, pipes or standard input, with their progress.

mod progress;
mod source;

use std::fs;
use std::path::Path;

pub(crate) use progress::ReadProgress;
pub(crate) use source::CaptureSource;

/// Whether two names lead to one file: results must not replace what they come from.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).ok().is_some_and(|one| fs::canonicalize(other).ok() == Some(one))
}

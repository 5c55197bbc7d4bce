//! Captures that commands read: from files, pipes or standard input, with their progress.

mod progress;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use progress::ReadProgress;
pub(crate) use source::CaptureSource;

use crate::output::Failure;

/// UP and DOWN, of which one may be standard input.
pub(crate) fn sources(paths: [&PathBuf; 2], progress: &ReadProgress) -> Result<[CaptureSource; 2], Failure> {
    if paths.iter().all(|path| path.as_os_str() == "-") {
        return Err(Failure::Usage("UP and DOWN cannot both be standard input".into()));
    }
    let [up, down] = paths;
    Ok([CaptureSource::new(up, progress)?, CaptureSource::new(down, progress)?])
}

/// True if two names lead to one file: results must not replace what they come from.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).ok().is_some_and(|one| fs::canonicalize(other).ok() == Some(one))
}

//! Files that commands write their results to.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use files::WholeFile;

use crate::output::{CommandResult, Failure};
use crate::terminal::end_on_ctrl_c;

/// Writes the file of an option: all of it, or nothing.
pub(crate) fn write_file(
    option: &str,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> CommandResult {
    end_on_ctrl_c();
    files::whole_file(path, write).map_err(|error| unwritten(option, &error))
}

/// Failure to write a file; the error has its name.
pub(crate) fn unwritten(option: &str, error: &io::Error) -> Failure {
    Failure::Outside(format!("{option} {error}"))
}

/// Refuses a path at which no file can be written: better at once than after an hour.
pub(crate) fn check_file(option: &str, path: &Path) -> CommandResult {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || !folder.is_dir() {
        let expected = "expected a file in a folder that exists";
        return Err(Failure::Usage(format!("{option} {}: {expected}", path.display())));
    }
    // A reader of a pipe would take this for all there is.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    // Dropped at once: what is there stays as it is.
    WholeFile::create(path).map(drop).map_err(|error| unwritten(option, &error))
}

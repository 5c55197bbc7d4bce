//! Files that a scenario names.

use std::fmt::Display;
use std::path::Path;

use settings::{ReadResult, SettingsReader};

/// Files of flows hold millions of lines, not billions.
const LONGEST_FILE: u64 = 1 << 30;

/// The text of the file that a key names, found from where the scenario's is.
pub(crate) fn contents(table: &SettingsReader<'_>, key: &str, folder: &Path, name: &str) -> ReadResult<String> {
    let path = folder.join(name);
    let wrong = |problem: &dyn Display| table.wrong(key, format_args!("{}: {problem}", path.display()));
    let about = std::fs::metadata(&path).map_err(|error| wrong(&error))?;
    if !about.is_file() || about.len() > LONGEST_FILE {
        return Err(wrong(&"expected a file of at most 1 GiB"));
    }
    std::fs::read_to_string(&path).map_err(|error| wrong(&error))
}

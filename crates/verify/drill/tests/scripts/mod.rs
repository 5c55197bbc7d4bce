//! The scripts in this folder.

use std::fs;
use std::path::{Path, PathBuf};

use drill::batch::ScriptText;

/// All of them, in the order of their names.
pub(crate) fn all() -> Vec<ScriptText> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    paths.sort();
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    paths.iter().map(|path| ScriptText { file: path.display().to_string(), text: text(path) }).collect()
}

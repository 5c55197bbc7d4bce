//! Lists the files under `experiments/` for `files`, so that a claim is added by adding a file.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // At run time: a build folder that was copied with its source lists the files of the copy.
    let here = env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| io::Error::other("no CARGO_MANIFEST_DIR"))?;
    let root = Path::new(&here).join("../../../experiments").canonicalize()?;
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    find(&root, &mut files)?;
    files.sort();
    let entry = |file: &PathBuf| {
        let below = file.strip_prefix(&root).unwrap_or(file);
        format!("({:?}, include_str!({file:?})),\n", below.display().to_string())
    };
    let list: String = files.iter().map(entry).collect();
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&out).join("experiments.rs"), format!("&[\n{list}]"))
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "toml") {
            files.push(path);
        }
    }
    Ok(())
}

//! Says which commit the program is built from, for results that are kept: `HITLESS_COMMIT`.

use std::fs;
use std::path::Path;

fn main() {
    let git = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.git");
    println!("cargo:rerun-if-changed=build.rs");
    // It grows with every commit and checkout.
    let log = git.join("logs/HEAD");
    if log.exists() {
        println!("cargo:rerun-if-changed={}", log.display());
    }
    println!("cargo:rustc-env=HITLESS_COMMIT={}", commit(&git).unwrap_or_else(|| "unknown".to_owned()));
}

/// Commit that is checked out, if the source is a clone.
fn commit(git: &Path) -> Option<String> {
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return Some(head.trim().to_owned()) };
    let loose = fs::read_to_string(git.join(name)).ok().map(|commit| commit.trim().to_owned());
    let packed = || {
        let packed = fs::read_to_string(git.join("packed-refs")).ok()?;
        let line = packed.lines().find_map(|line| line.strip_suffix(name))?;
        Some(line.trim().to_owned())
    };
    loose.or_else(packed)
}

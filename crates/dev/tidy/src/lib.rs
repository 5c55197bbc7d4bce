//! Measures the workspace's own source. `cargo run -p hitless-tidy` prints the table; `tests/tidy.rs` holds the limits.
//!
//! | file | what it is |
//! | --- | --- |
//! | `lexer` | words and marks, without strings and comments |
//! | [`source`] | files, what in them is a test, the items they define |
//! | [`measure`] | lines, lengths of functions, assertions, documentation |
//! | [`manifests`] | crates: dependencies that nothing uses, and who may use `unsafe` |
//! | [`names`] | type names used twice, public items that nobody uses |
//! | [`duplicates`] | equal lines in two places |
//! | [`docs`] | pages: links, tables, paths, commands |
//! | [`prose`] | comments and pages as prose |
//! | [`references`] | paths and names in pages that exist nowhere |
//! | [`walks`] | reading orders of ARCHITECTURE.md, and their jumps |

pub mod docs;
pub mod duplicates;
mod lexer;
pub mod manifests;
pub mod measure;
pub mod names;
pub mod prose;
pub mod references;
pub mod source;
pub mod walks;

use std::path::PathBuf;

/// The root of the workspace that this crate was built in.
pub fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", ".."].iter().collect()
}

//! Files of results, whole or absent: on a full disk, when the writer gives up, and after Ctrl-C.
//!
//! A file is written beside its place under another name, `NAME.PID.part`, and gets its own when all of it is there: [`whole_file`], or
//! [`WholeFile`] where rows come one by one. [`WholeFolder`] does the same for several files that only make sense together. What was
//! there before stays until then. Whatever is not finished is removed when it is dropped, and by [`without_unfinished`], which a
//! handler of signals calls before it ends the process: so only SIGKILL leaves a `.part`.
//!
//! | file | what it does |
//! | --- | --- |
//! | `file` | one file |
//! | `folder` | a folder of files |
//! | `unfinished` | what a signal must remove |

mod file;
mod folder;
mod unfinished;

pub use file::{WholeFile, whole_file};
pub use folder::WholeFolder;
pub use unfinished::without_unfinished;

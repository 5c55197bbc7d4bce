//! All that this process has begun to write and not finished.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Attempts to remove a folder: each file that another thread is creating in it makes one attempt fail.
const REMOVALS: u32 = 10;

static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes everything unfinished, then does something while nobody can begin or finish a file. For a handler of signals, on a
/// thread of its own, that ends the process.
pub fn without_unfinished<T>(then: impl FnOnce() -> T) -> T {
    let mut unfinished = all();
    unfinished.iter().for_each(|path| remove(path));
    unfinished.clear();
    then()
}

fn all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // A set of names is right whoever panicked beside it.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a file or folder. Errors are ignored: an earlier error is worth more than one from here.
fn remove(path: &Path) {
    if fs::remove_file(path).is_ok() || !path.is_dir() {
        return;
    }
    // Another thread may be filling it: under another name it cannot go on.
    let mut gone = path.as_os_str().to_owned();
    gone.push("-gone");
    let gone = if fs::rename(path, &gone).is_ok() { Path::new(&gone) } else { path };
    for _ in 0..REMOVALS {
        if fs::remove_dir_all(gone).is_ok() {
            break;
        }
    }
}

/// A name that a signal removes until it is finished or dropped.
#[derive(Debug)]
pub(crate) struct UnfinishedPath(PathBuf);

impl UnfinishedPath {
    /// Beside `path`, so that it can be renamed to it. `make` makes it, and must not replace what somebody else made.
    pub(crate) fn beside<T>(path: &Path, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<(Self, T)> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let name = PathBuf::from(name);
        let mut unfinished = all();
        if unfinished.contains(&name) {
            return Err(io::Error::other("is being written already"));
        }
        // Left by a process that was killed and had the same number.
        remove(&name);
        let made = make(&name)?;
        unfinished.insert(name.clone());
        Ok((Self(name), made))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Puts it in its place, undisturbed by signals. What fails leaves it unfinished.
    pub(crate) fn finish(self, place: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let mut unfinished = all();
        let placed = place(&self.0);
        if placed.is_ok() {
            unfinished.remove(&self.0);
        }
        drop(unfinished);
        placed
    }
}

impl Drop for UnfinishedPath {
    fn drop(&mut self) {
        if all().remove(&self.0) {
            remove(&self.0);
        }
    }
}

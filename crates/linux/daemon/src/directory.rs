//! The run directory: where a link keeps its socket, its lock, its log and the notes of what it changed.
//!
//! Each network namespace has a directory of its own, since interfaces of the same name in two of them are not the same.
//! The files of a link are removed when the link goes down. A daemon with capabilities trusts the files that it finds
//! there, so only root and its own user may write to it, and symbolic links in it are not followed.
//!
//! The directory is named by the number of the namespace, which the next one gets when it is gone. So it says which one it belongs to,
//! and so do the notes of each link: what another left is put aside and never applied ([`crate::identity`]).

mod earlier;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use linux::trust;

use crate::control;

/// The group may use the sockets.
const MODE: u32 = 0o750;
/// Directory of sockets and of notes about changes.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// True if no other program keeps anything there: the directory is removed when it is empty.
    is_own: bool,
}

impl RunDirectory {
    /// `HITLESS_RUN_DIR` if set, else where the system has such things, for each network namespace its own.
    pub fn of_this_system() -> Self {
        if let Some(path) = std::env::var_os("HITLESS_RUN_DIR") {
            return Self::at(path);
        }
        Self { path: own_path(namespace().as_deref().unwrap_or("unknown")), is_own: true }
    }

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), is_own: false }
    }

    /// Makes sure that it is there, and that its contents may be trusted. Files that were put aside because another
    /// namespace had left them are reported, a line each.
    pub fn make(&self) -> io::Result<Vec<String>> {
        if !self.path.exists() {
            fs::DirBuilder::new().recursive(true).mode(MODE).create(&self.path)?;
            // Also where the mask of the process leaves nothing for the group, whose are the sockets.
            fs::set_permissions(&self.path, fs::Permissions::from_mode(MODE))?;
        }
        self.check()?;
        if self.is_own { self.begin() } else { Ok(Vec::new()) }
    }

    /// True if somebody named it, as opposed to where the system has such things.
    pub fn is_given(&self) -> bool {
        !self.is_own
    }

    /// Fails if others could have put there what is in it. One that is not there yet will be ours.
    pub fn check(&self) -> io::Result<()> {
        let parent = self.path.parent().filter(|_| self.is_own);
        for path in parent.into_iter().chain([self.path()]) {
            match fs::metadata(path) {
                Ok(found) if found.is_dir() => trust::check_owner(path, &found)?,
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes the log of a link that ended and what was put aside for it, and sweeps.
    pub fn tidy(&self, name: &str) {
        let _ = fs::remove_file(self.log(name));
        let _ = fs::remove_file(self.aside(name));
        self.sweep();
    }

    /// Removes locks that nobody has, and the directory if nothing is left in it.
    pub fn sweep(&self) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "lock")) {
            // Left by a process that was killed; one that nobody has is removed when it is let go.
            drop(lock_file(path).ok().flatten().map(|file| Lock { files: vec![file] }));
        }
        if self.is_own && self.remove() {
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }

    /// Makes sure that nobody else has, or is about to have, a link of this name or on this interface. Held until dropped.
    /// Otherwise which of the two it is.
    pub fn lock<'a>(&self, name: &'a str, interface: &'a str) -> io::Result<Result<Lock, &'a str>> {
        let mut lock = Lock { files: Vec::new() };
        for (taken, file) in [(interface, format!("{interface}.wire.lock")), (name, format!("{name}.lock"))] {
            match lock_file(self.path.join(file))? {
                Some(locked) => lock.files.push(locked),
                None => return Ok(Err(taken)),
            }
        }
        Ok(Ok(lock))
    }

    /// Takes the lock of a name alone; `None` if another process has it.
    pub fn lock_name(&self, name: &str) -> io::Result<Option<Lock>> {
        Ok(lock_file(self.path.join(format!("{name}.lock")))?.map(|file| Lock { files: vec![file] }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn socket(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.sock"))
    }

    pub fn notes(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.json"))
    }

    /// Notes of another namespace, for people.
    fn aside(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.json.aside"))
    }

    /// Socket of a keeper that passes frames for a daemon that is gone; a successor relieves it there.
    pub fn keeper(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.keeper"))
    }

    /// Log of a daemon in the background.
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.log"))
    }

    /// The log, to be written on: another daemon may be writing there.
    pub fn open_log(&self, name: &str) -> io::Result<fs::File> {
        fs::File::options().create(true).append(true).mode(0o640).custom_flags(libc::O_NOFOLLOW).open(self.log(name))
    }

    /// Links that seem to be up, by their sockets.
    pub fn names(&self) -> io::Result<Vec<String>> {
        self.sockets(".sock")
    }

    /// Names of links that have a socket whose file's name ends with `end`.
    pub fn sockets(&self, end: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?.flatten(),
        };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(end).map(str::to_owned)).collect();
        names.sort();
        Ok(names)
    }

    /// Asks the daemon of this name. An error of kind `NotFound` or `ConnectionRefused` means there is none.
    pub fn ask<A: DeserializeOwned>(&self, name: &str, request: impl Serialize) -> io::Result<A> {
        control::ask(&self.socket(name), &request)
    }
}

/// The network namespace that this process is in, as the kernel names it: `net:[4026531840]`.
fn namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/net").ok()?.to_str().map(str::to_owned)
}

fn own_path(namespace: &str) -> PathBuf {
    let number: String = namespace.chars().filter(char::is_ascii_alphanumeric).collect();
    Path::new("/run/hitless").join(format!("netns-{}", number.trim_start_matches("net")))
}

/// Lock that keeps two daemons from the same link.
#[derive(Debug)]
pub struct Lock {
    files: Vec<(fs::File, PathBuf)>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While they are still locked: see `lock_file`.
        for (_, path) in &self.files {
            let _ = fs::remove_file(path);
        }
    }
}

/// The file, locked; none if another process has it.
fn lock_file(path: PathBuf) -> io::Result<Option<(fs::File, PathBuf)>> {
    loop {
        let mut options = fs::File::options();
        options.create(true).truncate(false).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // The former owner removed the file after this process opened it and before it locked it: that lock is void.
        let is_there =
            fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()));
        if is_there {
            return Ok(Some((file, path)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_namespace_has_a_directory_of_its_own() {
        assert_eq!(own_path("net:[4026531840]"), Path::new("/run/hitless/netns-4026531840"));
        assert_ne!(own_path("net:[4026531840]"), own_path("net:[4026532177]"));
    }

    #[test]
    fn a_lock_is_held_once_and_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("hitless-lock-{}", std::process::id()));
        let directory = RunDirectory::at(&folder);
        directory.make().unwrap();
        let lock = directory.lock("hit0", "eth1").unwrap().unwrap();
        assert_eq!(directory.lock("hit1", "eth1").unwrap().unwrap_err(), "eth1");
        assert_eq!(directory.lock("hit0", "eth2").unwrap().unwrap_err(), "hit0");
        drop(lock);
        drop(directory.lock("hit0", "eth1").unwrap().unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
    }
}

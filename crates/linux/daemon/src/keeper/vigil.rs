//! A keeper whose daemon is gone: it lets the link fail open, and gives what it holds to its successor.
//!
//! ```text
//!            ┌── closed without a word ──┐
//!            ▼                           │
//!   lock ─▶ fail open ─▶ asked: gives ─▶ waits ── "taken", and a daemon has the lock ─▶ ends
//! ```
//!
//! A successor that asks and says nothing more has crashed half way, or was no successor: the link fails open again, since
//! it may have taken the filters away. Several may ask at the same time.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use linux::SystemError;
use linux::poll::{self, Readiness};

use super::{FailsOpen, LAB, TAKEN, descriptor};
use crate::directory::RunDirectory;

/// Time between two looks whether there is still anything to keep.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time between two attempts to have the lock: a process that was killed takes its time to close what it had open.
const LOCK_EVERY: Duration = Duration::from_millis(2);
/// Attempts until the link is taken for the next daemon's.
const LOCK_ATTEMPTS: u32 = 500;
/// Successors that may be half way at a time.
const MOST: usize = 8;

struct KeeperVigil<'a> {
    directory: &'a RunDirectory,
    name: &'a str,
    interface: &'a dyn FailsOpen,
    listener: UnixListener,
    /// Number of the socket's file, which shows if another keeper has replaced it.
    inode: u64,
    /// Successors that have what this keeper holds, and have not said yet that they have taken over.
    asked: Vec<UnixStream>,
    fails_open: bool,
    attempts: u32,
}

/// Lets the link fail open until a successor has taken over, or nothing is left to keep.
pub(super) fn stand(directory: &RunDirectory, name: &str, interface: &dyn FailsOpen) -> Result<(), SystemError> {
    let path = directory.keeper(name);
    let failed = |error: io::Error| SystemError(format!("{}: {error}", path.display()));
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let inode = fs::symlink_metadata(&path).map_err(failed)?.ino();
    let (asked, fails_open, attempts) = (Vec::new(), false, 0);
    let mut vigil = KeeperVigil { directory, name, interface, listener, inode, asked, fails_open, attempts };
    let ended = vigil.run(failed);
    if vigil.is_ours() {
        let _ = fs::remove_file(&path);
    }
    ended
}

impl KeeperVigil<'_> {
    fn run(&mut self, failed: impl Fn(io::Error) -> SystemError) -> Result<(), SystemError> {
        // Otherwise somebody cleaned up by hand, or another keeper took over.
        while self.is_ours() && is_of_use() {
            let is_kept = if self.fails_open { Ok(true) } else { self.fail_open() };
            // An interface that is gone cannot be made again while its stand-in has its name: also if it went while the filters were
            // put on it, which is an error and ends this keeper. If that fails, it is tried again.
            let _ = self.interface.release_name(self.directory, self.name);
            if !is_kept.map_err(&failed)? {
                return Ok(());
            }
            let most = if self.fails_open { LOOK_EVERY } else { LOCK_EVERY };
            let sockets = self.asked.iter().map(AsRawFd::as_raw_fd).chain([self.listener.as_raw_fd()]);
            let sockets: Vec<_> = sockets.map(|socket| (socket, false)).collect();
            let ready = poll::wait_for_any(&sockets, most).map_err(&failed)?;
            if self.hear(&ready).map_err(&failed)? {
                return Ok(());
            }
            if ready.last() == Some(&Readiness::Ready) {
                self.give();
            }
        }
        Ok(())
    }

    /// False if there is nothing to keep: no such link, or the next daemon has it and does not ask for anything.
    fn fail_open(&mut self) -> io::Result<bool> {
        let Some(_lock) = self.directory.lock_name(self.name)? else {
            self.attempts += 1;
            return Ok(self.attempts < LOCK_ATTEMPTS || !self.asked.is_empty());
        };
        self.fails_open =
            self.interface.fail_open(self.directory, self.name).map_err(|error| io::Error::other(error.0))?;
        Ok(self.fails_open)
    }

    /// True if one of those who asked has taken over.
    fn hear(&mut self, ready: &[Readiness]) -> io::Result<bool> {
        let mut waiting = Vec::new();
        for (mut stream, ready) in std::mem::take(&mut self.asked).into_iter().zip(ready) {
            if *ready == Readiness::Nothing {
                waiting.push(stream);
                continue;
            }
            let mut word = [0; TAKEN.len()];
            // Only who has the lock is a successor.
            if stream.read(&mut word).is_ok_and(|len| word[..len] == *TAKEN)
                && self.directory.lock_name(self.name)?.is_none()
            {
                return Ok(true);
            }
            (self.fails_open, self.attempts) = (false, 0);
        }
        self.asked = waiting;
        Ok(false)
    }

    fn give(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        if self.asked.len() == MOST {
            // One that hangs must not keep a successor from taking over.
            self.asked.remove(0);
        }
        if descriptor::send(&stream, io::stdout().as_fd()).is_ok() {
            // An accepted socket waits, and what is read is there.
            self.asked.push(stream);
        }
    }

    fn is_ours(&self) -> bool {
        fs::symlink_metadata(self.directory.keeper(self.name)).is_ok_and(|found| found.ino() == self.inode)
    }
}

fn is_of_use() -> bool {
    std::env::var(LAB).map_or(true, |pid| fs::exists(format!("/proc/{pid}")).unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// An interface that goes while the filters are put on it.
    #[derive(Default)]
    struct VanishingInterface {
        releases: Cell<u32>,
    }

    impl FailsOpen for VanishingInterface {
        fn fail_open(&self, _directory: &RunDirectory, _name: &str) -> Result<bool, SystemError> {
            Err(SystemError("open egress: No such device".to_owned()))
        }

        fn release_name(&self, _directory: &RunDirectory, _name: &str) -> Result<(), SystemError> {
            self.releases.set(self.releases.get() + 1);
            Ok(())
        }
    }

    #[test]
    fn an_interface_that_goes_while_it_fails_open_gives_its_name_up() {
        let folder = std::env::temp_dir().join(format!("hitless-vigil-{}", std::process::id()));
        let directory = RunDirectory::at(&folder);
        directory.make().unwrap();
        let interface = VanishingInterface::default();
        let ended = stand(&directory, "hit0", &interface);
        assert!(ended.is_err_and(|error| error.0.contains("No such device")));
        assert_eq!(interface.releases.get(), 1);
        assert!(!directory.keeper("hit0").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}

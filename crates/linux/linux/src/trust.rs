//! Files that other users cannot have put there: what a daemon with capabilities reads and writes in its own directories.
//!
//! A symbolic link at the end of a path is never followed, neither to read nor to write.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bits of a mode that let the group or everybody write.
const OTHERS_WRITE: u32 = 0o022;

/// Fails if anybody but root and this user may have put there what is in a file or a directory; the error says what to do.
pub fn check_owner(path: &Path, found: &Metadata) -> io::Result<()> {
    let place = path.display();
    if found.uid() != 0 && found.uid() != effective_user() {
        return Err(io::Error::other(format!("it belongs to user {}: `chown root {place}`", found.uid())));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        let mode = found.mode() & 0o7777;
        return Err(io::Error::other(format!("others may write to it (mode {mode:04o}): `chmod go-w {place}`")));
    }
    Ok(())
}

fn effective_user() -> u32 {
    // SAFETY: no pointer is passed, and the call cannot fail.
    unsafe { libc::geteuid() }
}

/// The whole of a file; `None` if there is none. One that is a link or that others may write to is an error.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    check_owner(path, &found)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces a file in one step: a reader finds the old one or the new one, whole, and a failure leaves the old one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = next_to(path);
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&next)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&next, path));
    if written.is_err() {
        let _ = fs::remove_file(&next);
    }
    written
}

/// Path at which the next version of a file is written.
fn next_to(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".next");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("hitless-trust-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_that_others_may_write_to_is_not_read() {
        let folder = folder("mode");
        let path = folder.join("notes");
        assert_eq!(read(&path).unwrap(), None);
        replace(&path, b"ours").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"ours");
        for (mode, trusted) in [(0o644, true), (0o660, false), (0o606, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_ok(), trusted, "{mode:o}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn links_are_followed_neither_to_read_nor_to_write() {
        let folder = folder("links");
        let (path, victim) = (folder.join("notes"), folder.join("victim"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &path).unwrap();
        assert!(read(&path).is_err());
        symlink(&victim, next_to(&path)).unwrap();
        replace(&path, b"ours").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(read(&path).unwrap().unwrap(), b"ours");
        assert!(!next_to(&path).exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_cannot_be_replaced_stays_as_it_was() {
        let folder = folder("whole");
        // A directory cannot be replaced by a file.
        let path = folder.join("taken");
        fs::create_dir_all(&path).unwrap();
        assert!(replace(&path, b"ours").is_err());
        assert!(path.is_dir() && !next_to(&path).exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}

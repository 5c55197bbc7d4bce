//! Frames kept in a file that Wireshark opens (pcapng, nanoseconds).
//!
//! Frames have payload that is nobody else's business: files are their owner's alone, and what a name leads to through a
//! symbolic link is never touched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use wire::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};

/// Read and written by its owner.
const PRIVATE: u32 = 0o600;

/// A file that was not there before, for its owner alone. Fails if anything has the name, be it a dangling symbolic link.
pub fn new_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)
}

/// The same where a regular file of that name is replaced, as a whole; a pipe or a device is written to.
pub fn private_file(path: &Path) -> io::Result<File> {
    match new_private_file(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_file() {
        return replaced(path);
    }
    if kind.is_fifo() || kind.is_char_device() {
        return OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(path);
    }
    let found = if kind.is_symlink() { "a symbolic link" } else { "no regular file" };
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("{found}; expected a new file, or one to be replaced")))
}

/// Whoever has the earlier file open keeps that one.
fn replaced(path: &Path) -> io::Result<File> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part: PathBuf = path.with_file_name(name);
    let file = match new_private_file(&part) {
        // Of an earlier process with this number.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(&part)?;
            new_private_file(&part)?
        }
        made => made?,
    };
    if let Err(error) = fs::rename(&part, path) {
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    Ok(file)
}

#[derive(Debug)]
pub struct Capture {
    writer: PcapngWriter<BufWriter<File>>,
}

impl Capture {
    /// A file of its owner alone, with the interfaces that its frames belong to, by name. Replaces a regular file of that name.
    pub fn create(path: &Path, interfaces: &[&str]) -> io::Result<Self> {
        let mut writer = PcapngWriter::new(BufWriter::new(private_file(path)?))?;
        for name in interfaces {
            writer.interface(ETHERNET, 0, Some(name))?;
        }
        Ok(Self { writer })
    }

    /// A frame of the interface with this number, in the order given, at this time since 1970.
    pub fn write(&mut self, interface: u32, at: Duration, frame: &[u8]) -> io::Result<()> {
        let (at, len) = (at.as_nanos() as u64, frame.len() as u32);
        self.writer.packet(&EnhancedPacket { interface, at, len, bytes: frame, ..EnhancedPacket::default() })
    }

    /// Everything written so far reaches the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("hitless-capture-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn captures_are_their_owners_alone_also_where_an_earlier_file_was_everybodys() {
        let folder = folder("modes");
        let path = folder.join("frames.pcapng");
        Capture::create(&path, &["eth0"]).unwrap().flush().unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::write(&path, "earlier").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let mut earlier = OpenOptions::new().read(true).append(true).open(&path).unwrap();
        Capture::create(&path, &["eth0"]).unwrap().flush().unwrap();
        earlier.write_all(b"more").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(fs::read(&path).unwrap().starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn no_symbolic_link_is_followed_not_even_a_dangling_one() {
        let folder = folder("links");
        let (victim, absent) = (folder.join("victim"), folder.join("absent"));
        fs::write(&victim, "mine").unwrap();
        for target in [&victim, &absent] {
            let link = folder.join("link");
            symlink(target, &link).unwrap();
            for refused in [Capture::create(&link, &["eth0"]).map(drop), new_private_file(&link).map(drop)] {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::AlreadyExists);
            }
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert!(!absent.exists());
        assert!(Capture::create(&folder, &["eth0"]).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}

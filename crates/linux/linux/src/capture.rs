//! Frames kept in a file that Wireshark opens (pcapng, nanoseconds).
//!
//! Frames have payload that is nobody else's business: files are their owner's alone, and what a name leads to through a
//! symbolic link is never touched.
//!
//! A capture is written while frames come, so it cannot wait under another name until it is whole. Instead its file only ever ends
//! between two blocks: what the disk has no room for is taken back, counted, and tried again with the next frames.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};

/// Bytes of frames that are collected before they are written.
const ROOM: usize = 1 << 16;
/// Read and written by its owner.
const PRIVATE: u32 = 0o600;

/// A file that was not there before, for its owner alone. Fails if anything has the name, be it a dangling symbolic link.
pub fn new_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)
}

/// Opens a file for its owner alone. A regular file of that name is replaced as a whole; a pipe or a device is written to.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
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
        // Left by an earlier process with this number.
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
    writer: PcapngWriter<BlockFile>,
    /// Frames that wait to be written.
    waiting: u64,
    not_kept: u64,
}

impl Capture {
    /// A file of its owner alone, with the interfaces that its frames belong to, by name. Replaces a regular file of that name.
    pub fn create(path: &Path, interfaces: &[&str]) -> io::Result<Self> {
        let file = private_file(path)?;
        let mut writer = PcapngWriter::new(BlockFile { file, whole: 0, header: 0, blocks: Vec::new() })?;
        for name in interfaces {
            writer.interface(ETHERNET, 0, Some(name))?;
        }
        let blocks = writer.get_mut();
        blocks.header = blocks.blocks.len();
        Ok(Self { writer, waiting: 0, not_kept: 0 })
    }

    /// A frame of the interface with this number, in the order given, at this time since 1970.
    pub fn write(&mut self, interface: u32, at: Duration, frame: &[u8]) -> io::Result<()> {
        let (at, len) = (at.as_nanos() as u64, frame.len() as u32);
        self.writer.packet(&EnhancedPacket { interface, at, len, bytes: frame, ..EnhancedPacket::default() })?;
        self.waiting += 1;
        if self.writer.get_mut().blocks.len() < ROOM { Ok(()) } else { self.flush() }
    }

    /// Writes everything so far to the file. After an error none of it is there, and the next frames may be written.
    pub fn flush(&mut self) -> io::Result<()> {
        let flushed = self.writer.flush();
        let waited = std::mem::take(&mut self.waiting);
        self.not_kept += if flushed.is_err() { waited } else { 0 };
        flushed
    }

    /// Frames that could not be written.
    pub fn not_kept(&self) -> u64 {
        self.not_kept
    }
}

/// A file of blocks, which ends after a block whatever happens to it.
#[derive(Debug)]
struct BlockFile {
    file: File,
    /// Length up to the last whole block.
    whole: u64,
    /// Length of the blocks without which no other can be read: they are tried until they are there.
    header: usize,
    blocks: Vec<u8>,
}

impl Write for BlockFile {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.blocks.extend_from_slice(block);
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.blocks);
        match &written {
            Ok(()) => {
                self.whole += self.blocks.len() as u64;
                self.blocks.clear();
            }
            Err(_) => {
                // A pipe cannot take anything back; its reader sees the half block.
                let _ = self.file.set_len(self.whole).and_then(|()| self.file.seek(SeekFrom::Start(self.whole)));
                self.blocks.truncate(if self.whole == 0 { self.header } else { 0 });
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_full_disk_costs_whole_frames_and_is_tried_again() {
        let path = std::env::temp_dir().join(format!("hitless-capture-{}", std::process::id()));
        let mut capture = Capture::create(&path, &["w0"]).unwrap();
        let file = std::mem::replace(
            &mut capture.writer.get_mut().file,
            OpenOptions::new().write(true).open("/dev/full").unwrap(),
        );
        let frame = |capture: &mut Capture, byte: u8| capture.write(0, Duration::from_secs(1), &[byte; 60]);
        for byte in 0..3 {
            frame(&mut capture, byte).unwrap();
        }
        assert!(capture.flush().is_err() && capture.flush().is_err());
        assert_eq!((capture.not_kept(), std::fs::metadata(&path).unwrap().len()), (3, 0));
        capture.writer.get_mut().file = file;
        for byte in 3..5 {
            frame(&mut capture, byte).unwrap();
        }
        capture.flush().unwrap();
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(kept.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && capture.not_kept() == 3);
        let has = |byte: u8| kept.windows(60).any(|bytes| bytes == [byte; 60]);
        assert_eq!([0, 2, 3, 4].map(has), [false, false, true, true]);
    }
}

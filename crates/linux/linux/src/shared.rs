//! A file of numbers that one process writes and others have in their memory.
//!
//! A page is never made shorter, so a mapping of it stays readable, also after its writer has ended and its file is gone. A page
//! appears whole ([`SharedPage::put`]), and has one writer at a time: it is locked for as long as that has it.

#![expect(unsafe_code, reason = "maps memory that other processes share")]

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A page of memory, the least that can be shared.
const PAGE: usize = 4_096;
/// Numbers on it.
const SHARED_WORDS: usize = PAGE / size_of::<u64>();

/// A page of numbers of 64 bits that several processes share.
#[derive(Debug)]
pub struct SharedPage {
    words: NonNull<AtomicU64>,
    writable: bool,
    /// Locked, if it is written.
    file: File,
}

// SAFETY: the mapping belongs to no thread, and all access to it is atomic.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

/// Path of a page until it is put in its place.
fn draft_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    PathBuf::from(name)
}

fn locked(file: File) -> io::Result<File> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl SharedPage {
    /// Makes a page of zeros under a temporary name, for its writer. Readers find it only after [`Self::put`].
    pub fn draft(path: &Path) -> io::Result<Self> {
        let draft = draft_of(path);
        // Left by a process that was killed.
        let _ = fs::remove_file(&draft);
        let mut file = File::options().read(true).write(true).create_new(true).mode(0o644).open(&draft)?;
        // Not a hole: on a full disk the first store to one would be a SIGBUS.
        let page = file.write_all(&[0; PAGE]).and_then(|()| Self::map(locked(file)?, true));
        page.inspect_err(|_| drop(fs::remove_file(&draft)))
    }

    /// Puts a draft in its place, instead of what is there.
    pub fn put(&self, path: &Path) -> io::Result<()> {
        let draft = draft_of(path);
        fs::rename(&draft, path).inspect_err(|_| drop(fs::remove_file(&draft)))
    }

    /// Opens a page for another writer: its readers see what is new. An error of kind `WouldBlock` if somebody writes on
    /// it.
    pub fn reopen(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        Self::map(whole(locked(file)?)?, true)
    }

    /// Opens a page for a reader.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A pipe of this name would be waited for.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        Self::map(whole(file)?, false)
    }

    /// True if the file of this name is this page.
    pub fn is_at(&self, path: &Path) -> bool {
        let same = |there: &fs::Metadata, here: &fs::Metadata| (there.dev(), there.ino()) == (here.dev(), here.ino());
        fs::metadata(path).is_ok_and(|there| self.file.metadata().is_ok_and(|here| same(&there, &here)))
    }

    fn map(file: File, writable: bool) -> io::Result<Self> {
        let access = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at a place of the kernel's choice touches no other memory.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(mapped.cast()) {
            Some(words) if mapped != libc::MAP_FAILED => Ok(Self { words, writable, file }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < SHARED_WORDS, "the page ends before {at}");
        // SAFETY: the mapping has this many aligned words, lives as long as `self`, and is only ever accessed atomically.
        unsafe { self.words.add(at).as_ref() }
    }

    #[inline]
    pub fn load(&self, at: usize, ordering: Ordering) -> u64 {
        self.word(at).load(ordering)
    }

    /// Stores a value, for the writer.
    #[inline]
    pub fn store(&self, at: usize, value: u64, ordering: Ordering) {
        assert!(self.writable, "this page was opened to be read");
        self.word(at).store(value, ordering);
    }
}

/// Accepts a regular file of at least one page.
fn whole(file: File) -> io::Result<File> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() < PAGE as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("shorter than {PAGE} bytes")));
    }
    Ok(file)
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone and nothing refers to it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), PAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("hitless-shared-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_one_writes_the_other_reads_also_after_the_file_is_gone() {
        let path = path("both");
        let writer = SharedPage::draft(&path).unwrap();
        assert_eq!(SharedPage::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound, "it is not there yet");
        writer.put(&path).unwrap();
        let reader = SharedPage::open(&path).unwrap();
        writer.store(3, 7, Ordering::Release);
        assert_eq!(reader.load(3, Ordering::Acquire), 7);
        assert_eq!(SharedPage::reopen(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock, "it has a writer");
        drop(writer);
        let again = SharedPage::reopen(&path).unwrap();
        assert_eq!(again.load(3, Ordering::Acquire), 7);
        assert!(again.is_at(&path) && reader.is_at(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(!again.is_at(&path));
        again.store(3, 8, Ordering::Release);
        assert_eq!(reader.load(3, Ordering::Acquire), 8);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(SharedPage::open(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn who_reads_keeps_a_page_that_another_one_replaced() {
        let path = path("replaced");
        let (old, new) = (SharedPage::draft(&path).unwrap(), 9);
        old.store(5, 1, Ordering::Release);
        old.put(&path).unwrap();
        let reader = SharedPage::open(&path).unwrap();
        let next = SharedPage::draft(&path).unwrap();
        next.store(5, new, Ordering::Release);
        next.put(&path).unwrap();
        assert_eq!((reader.load(5, Ordering::Acquire), reader.is_at(&path)), (1, false));
        assert_eq!(SharedPage::open(&path).unwrap().load(5, Ordering::Acquire), new);
        std::fs::remove_file(&path).unwrap();
    }
}

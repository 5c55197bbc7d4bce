//! A file of numbers that one process writes and others have in their memory.
//!
//! A page is never made shorter, so a mapping of it stays readable, also after its writer has ended and its file is gone.

#![expect(unsafe_code, reason = "maps memory that other processes share")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
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
}

// SAFETY: the mapping belongs to no thread, and all access to it is atomic.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    /// For the one that writes. A page that is there already goes on to be used, so that those who read it see what is new.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o644).open(path)?;
        file.set_len(PAGE as u64)?;
        Self::map(&file, true)
    }

    /// For those who read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        if file.metadata()?.len() < PAGE as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("shorter than {PAGE} bytes")));
        }
        Self::map(&file, false)
    }

    fn map(file: &File, writable: bool) -> io::Result<Self> {
        let access = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at a place of the kernel's choice touches no other memory.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(mapped.cast()) {
            Some(words) if mapped != libc::MAP_FAILED => Ok(Self { words, writable }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < SHARED_WORDS, "the page ends before {at}");
        // SAFETY: the mapping has so many aligned words, lives as long as `self`, and is only ever accessed atomically.
        unsafe { self.words.add(at).as_ref() }
    }

    #[inline]
    pub fn load(&self, at: usize, ordering: Ordering) -> u64 {
        self.word(at).load(ordering)
    }

    /// For the one that writes.
    #[inline]
    pub fn store(&self, at: usize, value: u64, ordering: Ordering) {
        assert!(self.writable, "this page was opened to be read");
        self.word(at).store(value, ordering);
    }
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

    #[test]
    fn what_one_writes_the_other_reads_also_after_the_file_is_gone() {
        let path = std::env::temp_dir().join(format!("hitless-shared-{}", std::process::id()));
        let writer = SharedPage::create(&path).unwrap();
        let reader = SharedPage::open(&path).unwrap();
        writer.store(3, 7, Ordering::Release);
        assert_eq!(reader.load(3, Ordering::Acquire), 7);
        let again = SharedPage::create(&path).unwrap();
        assert_eq!(again.load(3, Ordering::Acquire), 7);
        std::fs::remove_file(&path).unwrap();
        writer.store(3, 8, Ordering::Release);
        assert_eq!(reader.load(3, Ordering::Acquire), 8);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(SharedPage::open(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_file(&path).unwrap();
    }
}

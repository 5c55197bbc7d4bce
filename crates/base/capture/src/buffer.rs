//! The one buffer that records are read into.

use std::io::{self, ErrorKind, Read};

/// Small enough to stay in a processor's cache.
const ROOM: usize = 1 << 17;

pub(crate) struct Buffer<'a> {
    source: Box<dyn Read + 'a>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Position of `start`, from the beginning of the stream.
    offset: u64,
}

impl<'a> Buffer<'a> {
    pub(crate) fn new(source: Box<dyn Read + 'a>) -> Self {
        Self { source, bytes: vec![0; ROOM], start: 0, end: 0, offset: 0 }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that were read from the file and not yet consumed.
    #[inline]
    pub(crate) fn ahead(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// True if `wanted` bytes are ahead; if false, the stream ends before.
    #[inline]
    pub(crate) fn has(&mut self, wanted: usize) -> io::Result<bool> {
        if self.end - self.start >= wanted { Ok(true) } else { self.fill(wanted) }
    }

    #[cold]
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted.next_power_of_two(), 0);
        }
        while self.end < wanted {
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Passes bytes that are ahead.
    #[inline]
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Passes bytes that need not fit; false if the stream ends before.
    pub(crate) fn skip(&mut self, mut bytes: u64) -> io::Result<bool> {
        while bytes > 0 {
            if !self.has(1)? {
                return Ok(false);
            }
            let part = (self.end - self.start).min(usize::try_from(bytes).unwrap_or(usize::MAX));
            self.pass(part);
            bytes -= part as u64;
        }
        Ok(true)
    }
}

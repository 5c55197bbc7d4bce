//! Lines of a file, FIFO or standard input, without ever waiting for one.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linux::poll::{self, Readiness};

/// Read at once.
pub(crate) const CHUNK: usize = 64 << 10;
/// Longer lines are not samples; their bytes are not kept.
const LONGEST: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    Bytes,
    /// The file has no further line yet; its writer may still add some.
    NothingYet,
    /// The end of the file, or nobody has the FIFO open for writing any more.
    End,
}

#[derive(Debug)]
pub(crate) struct LineReader {
    file: File,
    /// Path of the file, if another file can take its name.
    path: Option<PathBuf>,
    is_stream: bool,
    is_stdin: bool,
    /// Bytes taken from the file.
    position: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were given out, and the number behind them that are known to have no line end.
    given: usize,
    searched: usize,
    number: usize,
    /// Inside a line that is too long.
    overlong: bool,
}

impl LineReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // A FIFO that nobody writes into would otherwise be waited for.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        Self::over(file, Some(path))
    }

    pub(crate) fn stdin() -> io::Result<Self> {
        Self::over(File::from(io::stdin().as_fd().try_clone_to_owned()?), None)
    }

    fn over(file: File, path: Option<&Path>) -> io::Result<Self> {
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Ok(Self {
            path: path.filter(|_| kind.is_file()).map(Path::to_owned),
            is_stream: !kind.is_file(),
            is_stdin: path.is_none(),
            file,
            position: 0,
            buffer: Vec::new(),
            given: 0,
            searched: 0,
            number: 0,
            overlong: false,
        })
    }

    /// Standard input that is no file: nothing follows its end.
    pub(crate) fn is_unnamed_stream(&self) -> bool {
        self.is_stream && self.is_stdin
    }

    /// A FIFO, into which another process may write after the first.
    pub(crate) fn is_named_stream(&self) -> bool {
        self.is_stream && !self.is_stdin
    }

    /// Takes in what is there, up to a chunk.
    pub(crate) fn fill(&mut self) -> io::Result<LineRead> {
        if self.is_stream && poll::wait(&[(self.file.as_raw_fd(), false)], Duration::ZERO)? == [Readiness::Nothing] {
            return Ok(LineRead::NothingYet);
        }
        self.buffer.drain(..self.given);
        self.given = 0;
        let len = self.buffer.len();
        self.buffer.resize(len + CHUNK, 0);
        let read = self.file.read(&mut self.buffer[len..]);
        self.buffer.truncate(len + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => Ok(LineRead::End),
            Ok(read) => {
                self.position += read as u64;
                Ok(LineRead::Bytes)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(LineRead::NothingYet)
            }
            Err(error) => Err(error),
        }
    }

    /// The next line and its number, or what is wrong with it. The last one counts without an end only if nothing can
    /// follow.
    pub(crate) fn next(&mut self, to_the_end: bool) -> Option<(usize, Result<String, &'static str>)> {
        let left = &self.buffer[self.given..];
        let found = left[self.searched..].iter().position(|byte| *byte == b'\n').map(|at| self.searched + at);
        let is_last = to_the_end && (!left.is_empty() || self.overlong);
        let Some(end) = found.or(is_last.then_some(left.len())) else {
            self.searched = left.len();
            if left.len() > LONGEST {
                self.overlong = true;
                (self.given, self.searched) = (self.buffer.len(), 0);
            }
            return None;
        };
        let line = match str::from_utf8(&left[..end]) {
            _ if self.overlong || end > LONGEST => Err("longer than any sample"),
            Ok(line) => Ok(line.trim_start_matches('\u{feff}').trim().to_owned()),
            Err(_) => Err("not text"),
        };
        self.given = (self.given + end + 1).min(self.buffer.len());
        (self.searched, self.overlong) = (0, false);
        self.number += 1;
        Some((self.number, line))
    }

    /// Starts over at the end of a file if the file was replaced or is shorter than the part that was read.
    pub(crate) fn start_over(&mut self) -> io::Result<Option<&'static str>> {
        let Some(path) = self.path.clone() else { return Ok(None) };
        // Between two files there may be none.
        let Ok(there) = fs::metadata(&path) else { return Ok(None) };
        let here = self.file.metadata()?;
        if (there.dev(), there.ino()) != (here.dev(), here.ino()) {
            let Ok(lines) = Self::open(&path) else { return Ok(None) };
            *self = lines;
            return Ok(Some("replaced"));
        }
        if here.len() >= self.position {
            return Ok(None);
        }
        self.file.rewind()?;
        self.buffer.clear();
        (self.position, self.given, self.searched, self.number, self.overlong) = (0, 0, 0, 0, false);
        Ok(Some("cut short"))
    }
}

//! Captures to be read several times, from files, pipes or standard input.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use units::Progress;

use super::progress::{self, ReadProgress};
use crate::output::Failure;

#[derive(Debug)]
pub(crate) struct CaptureSource {
    file: Rc<File>,
    len: u64,
    read: progress::BytesRead,
}

impl CaptureSource {
    /// Opens a capture. Input that cannot be read twice is kept in a temporary file without a name, which vanishes with the
    /// program.
    pub(crate) fn new(path: &Path, progress: &ReadProgress) -> Result<Self, Failure> {
        let usage = |error: io::Error| Failure::Usage(format!("{}: {error}", path.display()));
        let file = if path.as_os_str() == "-" {
            spooled(&mut io::stdin().lock(), progress)?
        } else {
            let mut file = File::open(path).map_err(usage)?;
            let kind = file.metadata().map_err(usage)?;
            if kind.is_dir() {
                return Err(Failure::Usage(format!("{}: is a folder; expected a capture file", path.display())));
            }
            if kind.is_file() { file } else { spooled(&mut file, progress)? }
        };
        let len = file.metadata().map_err(usage)?.len();
        Ok(Self { file: Rc::new(file), len, read: progress.read() })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Opens the capture at its beginning.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(SharedFileReader { file: Rc::clone(&self.file), at: 0, read: Rc::clone(&self.read) }))
    }
}

/// A reader with a place of its own in a file that others read too.
struct SharedFileReader {
    file: Rc<File>,
    at: u64,
    read: progress::BytesRead,
}

impl Read for SharedFileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

fn spooled(from: &mut impl Read, progress: &ReadProgress) -> Result<File, Failure> {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("hitless-{}-{:x}", std::process::id(), progress.seconds().to_bits()));
    let outside = |error: io::Error| Failure::Outside(format!("{}: {error}", folder.display()));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).map_err(outside)?;
    fs::remove_file(&path).map_err(outside)?;
    let mut part = vec![0; 1 << 16];
    loop {
        if !progress.go_on(0) {
            return Err(Failure::Interrupted);
        }
        match from.read(&mut part) {
            Ok(0) => return Ok(file),
            Ok(read) => io::Write::write_all(&mut file, &part[..read]).map_err(outside)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::Outside(error.to_string())),
        }
    }
}

//! Files that a wire keeps. It carries frames whether they can be written or not.

use std::io;
use std::path::{Path, PathBuf};

use linux::capture::Capture;
use linux::clock::time_of_day;

/// Callback for a file that cannot be written, with the reason.
pub(super) type FileErrorHandler = Box<dyn FnMut(&str) + Send>;

/// A capture of corrupted frames. Its errors do not end the wire: frames that it cannot keep are counted.
pub(super) struct CorruptionLog {
    path: PathBuf,
    capture: Capture,
    failure: Option<io::Error>,
}

impl CorruptionLog {
    pub(super) fn create(path: &Path, names: &[String; 2]) -> io::Result<Self> {
        let capture = Capture::create(path, &[&names[0], &names[1]])
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(Self { path: path.to_owned(), capture, failure: None })
    }

    pub(super) fn write(&mut self, interface: u32, frame: &[u8]) {
        self.failure = self.capture.write(interface, time_of_day(), frame).err().or(self.failure.take());
    }

    /// Writes the capture out and returns the failure since the last call, with the file's name.
    pub(super) fn flush(&mut self) -> Option<String> {
        let failure = self.capture.flush().err().or(self.failure.take())?;
        Some(format!("{}: {failure}", self.path.display()))
    }

    pub(super) fn not_kept(&self) -> u64 {
        self.capture.not_kept()
    }
}

/// Reports each file that cannot be written once.
#[derive(Default)]
pub(super) struct ErrorReporter {
    pub(super) tell: Option<FileErrorHandler>,
    is_told: [bool; 2],
}

impl ErrorReporter {
    /// `file` is 0 for the log and 1 for the counters.
    pub(super) fn tell(&mut self, file: usize, text: Option<String>) {
        let Some(text) = text else { return };
        if let Some(tell) = self.tell.as_mut().filter(|_| !self.is_told[file]) {
            tell(&text);
        }
        self.is_told[file] = true;
    }
}

//! The log of corrupted frames. A wire carries frames whether they can be logged or not.

use std::io;
use std::path::Path;

use linux::capture::Capture;
use linux::clock::time_of_day;

/// Hears why frames are not logged.
pub(super) type LogTrouble = Box<dyn FnMut(&io::Error) + Send>;

/// A capture of corrupted frames whose troubles end nothing: they are told once, and frames that are not kept are counted.
pub(super) struct CorruptionLog {
    capture: Capture,
    pub(super) trouble: Option<LogTrouble>,
}

impl CorruptionLog {
    pub(super) fn create(path: &Path, names: &[String; 2]) -> io::Result<Self> {
        let capture = Capture::create(path, &[&names[0], &names[1]])
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(Self { capture, trouble: None })
    }

    pub(super) fn write(&mut self, interface: u32, frame: &[u8]) {
        let written = self.capture.write(interface, time_of_day(), frame);
        self.tell(written);
    }

    pub(super) fn flush(&mut self) {
        let flushed = self.capture.flush();
        self.tell(flushed);
    }

    pub(super) fn not_kept(&self) -> u64 {
        self.capture.not_kept()
    }

    fn tell(&mut self, done: io::Result<()>) {
        if let Err(error) = done
            && let Some(mut trouble) = self.trouble.take()
        {
            trouble(&error);
        }
    }
}

//! Frames kept in a file that Wireshark opens (pcapng, nanoseconds).

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;

use wire::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};

#[derive(Debug)]
pub struct Capture {
    writer: PcapngWriter<BufWriter<File>>,
}

impl Capture {
    /// A new file, with the interfaces that its frames belong to, by name.
    pub fn create(path: &Path, interfaces: &[&str]) -> io::Result<Self> {
        let mut writer = PcapngWriter::new(BufWriter::new(File::create(path)?))?;
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

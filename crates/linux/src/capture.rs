//! Frames kept in a file that Wireshark opens (pcapng, nanoseconds).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};

pub struct Capture {
    writer: PcapNgWriter<BufWriter<File>>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capture")
    }
}

impl Capture {
    /// A new file, with the interfaces that its frames belong to, by name.
    pub fn create(path: &Path, interfaces: &[&str]) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        let mut writer = PcapNgWriter::new(file).map_err(to_io)?;
        for name in interfaces {
            let options =
                vec![InterfaceDescriptionOption::IfName(Cow::Borrowed(name)), InterfaceDescriptionOption::IfTsResol(9)];
            let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
            writer.write_pcapng_block(block).map_err(to_io)?;
        }
        Ok(Self { writer })
    }

    /// A frame of the interface with this number, in the order given, at this time since 1970.
    pub fn write(&mut self, interface: u32, at: Duration, frame: &[u8]) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: at,
            original_len: frame.len() as u32,
            data: Cow::Borrowed(frame),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map(drop).map_err(to_io)
    }

    /// Everything written so far reaches the file.
    pub fn flush(&mut self) -> io::Result<()> {
        io::Write::flush(self.writer.get_mut())
    }
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error.to_string()),
    }
}

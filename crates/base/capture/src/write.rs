//! Frames written as pcapng, with the link types and times they came with.

use std::io::{self, Write};

use crate::pcapng::{EnhancedPacket, PcapngWriter};

use super::CaptureRecord;

/// Writes one section; an interface for each link type, described when its first frame comes.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    out: PcapngWriter<W>,
    links: Vec<u32>,
}

impl<W: Write> CaptureWriter<W> {
    pub fn new(out: W) -> io::Result<Self> {
        Ok(Self { out: PcapngWriter::new(out)?, links: Vec::new() })
    }

    pub fn write(&mut self, record: &CaptureRecord<'_>) -> io::Result<()> {
        let CaptureRecord { at, len, bytes, link_number, .. } = *record;
        let interface = match self.links.iter().position(|link| *link == link_number) {
            Some(interface) => interface as u32,
            None => {
                self.links.push(link_number);
                self.out.interface(link_number as u16, 0, None)?
            }
        };
        self.out.packet(&EnhancedPacket { interface, at: at.0, len, bytes, ..EnhancedPacket::default() })
    }

    pub fn into_inner(self) -> W {
        self.out.into_inner()
    }
}

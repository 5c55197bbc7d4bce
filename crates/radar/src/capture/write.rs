//! Frames written as pcapng, with the link types and times they came with.

use std::io::{self, Write};

use super::Record;

/// Writes one section; an interface for each link type, described when its first frame comes.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    links: Vec<u32>,
}

const NANOSECONDS: u32 = 9;

impl<W: Write> Writer<W> {
    pub fn new(mut out: W) -> io::Result<Self> {
        // Version 1.0, of unknown length.
        let section = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
        write_words(&mut out, &section)?;
        Ok(Self { out, links: Vec::new() })
    }

    pub fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let interface = match self.links.iter().position(|link| *link == record.link_number) {
            Some(interface) => interface,
            None => {
                self.describe(record.link_number)?;
                self.links.len() - 1
            }
        };
        let Record { at, len, bytes, .. } = record;
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        let total = (28 + bytes.len() + padding + 4) as u32;
        let [high, low] = [(at.0 >> 32) as u32, at.0 as u32];
        write_words(&mut self.out, &[6, total, interface as u32, high, low, bytes.len() as u32, *len])?;
        self.out.write_all(bytes)?;
        self.out.write_all(&[0; 3][..padding])?;
        write_words(&mut self.out, &[total])
    }

    fn describe(&mut self, link: u32) -> io::Result<()> {
        // if_tsresol, one byte long and padded to four, and the end of options.
        let block = [1, 32, link & 0xffff, 0, 9 | 1 << 16, NANOSECONDS, 0, 32];
        write_words(&mut self.out, &block)?;
        self.links.push(link);
        Ok(())
    }

    pub fn into_inner(self) -> W {
        self.out
    }
}

fn write_words(out: &mut impl Write, words: &[u32]) -> io::Result<()> {
    words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))
}

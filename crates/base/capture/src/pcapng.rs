//! Captures written as pcapng (draft-ietf-opsawg-pcapng): one section, its interfaces, their packets.
//!
//! Little-endian, of unknown length, so that a file can be read while it grows; times in nanoseconds. Every packet is an
//! enhanced packet block, written at once: what is interrupted ends between two blocks.

use std::io::{self, Write};

/// The number of Ethernet among link types.
pub const ETHERNET: u16 = 1;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const END_OF_OPTIONS: u32 = 0;
const COMMENT: u16 = 1;
const FLAGS: u16 = 2;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
/// 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// Writes a capture in the pcapng format.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    interfaces: u32,
    /// Room for a block, kept from one to the next.
    block: Vec<u8>,
}

/// A packet and what is noted about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnhancedPacket<'a> {
    /// Number of the interface, in the order of the descriptions.
    pub interface: u32,
    /// Nanoseconds since 1970.
    pub at: u64,
    /// Length on the wire.
    pub len: u32,
    /// Bytes of it that are kept.
    pub bytes: &'a [u8],
    /// A note for the reader of the capture.
    pub comment: Option<&'a str>,
    /// Link-layer information: direction, errors.
    pub flags: Option<u32>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins the section, version 1.0.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self { out, interfaces: 0, block: Vec::new() };
        writer.write_block(SECTION, |block| put_words(block, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]))?;
        Ok(writer)
    }

    /// Describes the next interface; its number. `snap` is how much of a packet is kept at most, zero for all of it.
    pub fn interface(&mut self, link_type: u16, snap: u32, name: Option<&str>) -> io::Result<u32> {
        self.write_block(INTERFACE, |block| {
            put_words(block, &[link_type.into(), snap]);
            put_option(block, NAME, name.map(str::as_bytes));
            put_option(block, RESOLUTION, Some(&[NANOSECONDS]));
            put_words(block, &[END_OF_OPTIONS]);
        })?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Appends a packet.
    pub fn packet(&mut self, packet: &EnhancedPacket<'_>) -> io::Result<()> {
        let EnhancedPacket { interface, at, len, bytes, comment, flags } = *packet;
        debug_assert!(interface < self.interfaces, "an interface that was not described");
        self.write_block(ENHANCED_PACKET, |block| {
            put_words(block, &[interface, (at >> 32) as u32, at as u32, bytes.len() as u32, len]);
            put_padded(block, bytes);
            put_option(block, COMMENT, comment.map(str::as_bytes));
            put_option(block, FLAGS, flags.map(u32::to_le_bytes).as_ref().map(<[u8; 4]>::as_slice));
            if comment.is_some() || flags.is_some() {
                put_words(block, &[END_OF_OPTIONS]);
            }
        })
    }

    /// Passes on everything written so far.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Output that it writes to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the output that it wrote to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// A block with this body, between its type and its length.
    fn write_block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        const LENGTH: usize = 4;
        let block = &mut self.block;
        block.clear();
        put_words(block, &[kind, 0]);
        body(block);
        let total = ((block.len() + LENGTH) as u32).to_le_bytes();
        block[LENGTH..2 * LENGTH].copy_from_slice(&total);
        block.extend(total);
        self.out.write_all(block)
    }
}

fn put_words(block: &mut Vec<u8>, words: &[u32]) {
    block.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// Fills up to whole words.
fn put_padded(block: &mut Vec<u8>, bytes: &[u8]) {
    block.extend(bytes);
    block.resize(block.len().next_multiple_of(4), 0);
}

fn put_option(block: &mut Vec<u8>, code: u16, value: Option<&[u8]>) {
    let Some(value) = value else { return };
    put_words(block, &[u32::from(code) | (value.len() as u32) << 16]);
    put_padded(block, value);
}

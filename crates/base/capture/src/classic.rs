//! Pcap: a header, then records with a header each (draft-ietf-opsawg-pcap).

use super::buffer::Buffer;
use super::{CaptureError, FrameSpan, LONGEST, ReadStop, stopped};
use crate::LinkType;
use units::Timestamp;

const HEADER: usize = 24;

/// Meaning of a file's first four bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PcapMagic {
    big: bool,
    /// Nanoseconds of one unit of the fraction.
    unit: u64,
    /// Bytes before each frame.
    head: usize,
}

impl PcapMagic {
    pub(crate) fn of(begins: [u8; 4]) -> Option<Self> {
        let [little, big] = [u32::from_le_bytes(begins), u32::from_be_bytes(begins)];
        let known = |magic| match magic {
            0xa1b2_c3d4 => Some((1_000, 16)),
            0xa1b2_3c4d => Some((1, 16)),
            // Records of the modified format also have an interface, a protocol and a type.
            0xa1b2_cd34 => Some((1_000, 24)),
            _ => None,
        };
        let kind = |big, (unit, head)| Self { big, unit, head };
        known(little).map(|of| kind(false, of)).or_else(|| known(big).map(|of| kind(true, of)))
    }
}

#[derive(Debug)]
pub(crate) struct Classic {
    kind: PcapMagic,
    link_number: u32,
    link: Option<LinkType>,
    /// Minor versions before 4 had the two lengths the other way round, more or less.
    minor: u16,
}

impl Classic {
    pub(crate) fn new(kind: PcapMagic, buffer: &mut Buffer<'_>) -> Result<Self, CaptureError> {
        match buffer.has(HEADER) {
            Ok(true) => {}
            Ok(false) => return Err(CaptureError::Truncated { byte: buffer.ahead().len() as u64, packets: 0 }),
            Err(error) => return Err(stopped(error, 0, 0)),
        }
        let head = buffer.ahead();
        let (version, network) = (word(head, 4, kind.big), word(head, 20, kind.big));
        let (major, minor) = if kind.big { (version >> 16, version) } else { (version & 0xffff, version >> 16) };
        if major != 2 {
            return Err(CaptureError::NoCapture(format!("it is pcap of version {major}, not 2")));
        }
        // The upper bits describe check sequences behind frames; those are outside of IP packets.
        let link_number = network & 0x03ff_ffff;
        let link = LinkType::from_number(link_number);
        if link.is_none() {
            return Err(CaptureError::LinkType(link_number));
        }
        buffer.pass(HEADER);
        Ok(Self { kind, link_number, link, minor: minor as u16 })
    }

    #[inline]
    pub(super) fn next(&mut self, buffer: &mut Buffer<'_>) -> Result<Option<FrameSpan>, ReadStop> {
        let PcapMagic { big, unit, head: before } = self.kind;
        if !buffer.has(before)? {
            return if buffer.ahead().is_empty() { Ok(None) } else { Err(ReadStop::Short) };
        }
        let head = buffer.ahead();
        let (seconds, fraction) = (u64::from(word(head, 0, big)), u64::from(word(head, 4, big)));
        let (mut kept, mut len) = (word(head, 8, big), word(head, 12, big));
        if self.minor < 3 || self.minor == 3 && kept > len {
            (kept, len) = (len, kept);
        }
        let record = before + kept as usize;
        if kept as usize > LONGEST {
            return Err(ReadStop::Damage(format!("a frame of {kept} bytes; none is longer than {LONGEST}")));
        }
        if !buffer.has(record)? {
            return Err(ReadStop::Short);
        }
        let at = Timestamp(seconds * 1_000_000_000 + fraction * unit);
        let Self { link_number, link, .. } = *self;
        Ok(Some(FrameSpan { at, len: len.max(kept), link_number, link, from: before, until: record, record }))
    }
}

#[inline]
fn word(bytes: &[u8], at: usize, big: bool) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

//! Pcapng: blocks of many types, in sections that each have a byte order and interfaces of their own
//! (draft-ietf-opsawg-pcapng).

use super::buffer::Buffer;
use super::{FrameSpan, LONGEST, ReadStop};
use crate::LinkType;
use units::Timestamp;

pub(crate) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;

/// Length of the type and length fields before a block's body.
const HEAD: usize = 8;
/// Length of the repeated length field behind the body.
const TAIL: usize = 4;
/// Bytes before the frame in enhanced and obsolete packet blocks, and in simple ones.
const BEFORE: usize = HEAD + 20;
const BEFORE_SIMPLE: usize = HEAD + 4;
/// Most interfaces of one section.
const MOST_INTERFACES: usize = 1 << 16;

/// Conversion from a block's own units to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Times(u64),
    Per(u64),
    /// One unit is two to the power of minus this many seconds.
    Binary(u32),
}

impl Unit {
    /// The option `if_tsresol`.
    fn of(resolution: u8) -> Self {
        let power = u32::from(resolution & 0x7f);
        if resolution & 0x80 != 0 {
            Self::Binary(power)
        } else if power <= 9 {
            Self::Times(10_u64.pow(9 - power))
        } else {
            Self::Per(10_u64.checked_pow(power - 9).unwrap_or(u64::MAX))
        }
    }

    #[inline]
    fn nanoseconds(self, units: u64) -> u64 {
        match self {
            Self::Times(by) => units.saturating_mul(by),
            Self::Per(by) => units / by,
            Self::Binary(power) => {
                let nanoseconds = u128::from(units) * 1_000_000_000;
                u64::try_from(nanoseconds.checked_shr(power).unwrap_or(0)).unwrap_or(u64::MAX)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_number: u32,
    link: Option<LinkType>,
    snap: u32,
    unit: Unit,
    /// Seconds to add.
    offset: i64,
}

impl Interface {
    #[inline]
    fn stamp(&self, units: u64) -> Timestamp {
        let nanoseconds = self.unit.nanoseconds(units);
        Timestamp(nanoseconds.saturating_add_signed(self.offset.saturating_mul(1_000_000_000)))
    }
}

/// The section that is being read.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    big: bool,
    interfaces: Vec<Interface>,
    /// Time of the last frame that had one: simple packet blocks do not.
    last: Timestamp,
}

impl Blocks {
    pub(super) fn next(&mut self, buffer: &mut Buffer<'_>) -> Result<Option<FrameSpan>, ReadStop> {
        loop {
            if !buffer.has(HEAD + TAIL)? {
                return if buffer.ahead().is_empty() { Ok(None) } else { Err(ReadStop::Short) };
            }
            let head = buffer.ahead();
            // A section's type reads the same in both byte orders; which one it has stands behind its length.
            let kind = self.word(head, 0);
            if head.starts_with(&MAGIC) {
                self.begin_section(head)?;
            }
            let len = self.word(buffer.ahead(), 4) as usize;
            if len < HEAD + TAIL || !len.is_multiple_of(4) {
                return Err(ReadStop::Damage(format!("a block of {len} bytes; expected a multiple of 4, at least 12")));
            }
            match kind {
                PACKET | SIMPLE | ENHANCED => return self.packet(kind, len, buffer).map(Some),
                INTERFACE => self.interface(len, buffer)?,
                _ => self.skip(len, buffer)?,
            }
        }
    }

    #[cold]
    fn begin_section(&mut self, head: &[u8]) -> Result<(), ReadStop> {
        const ORDER: u32 = 0x1a2b_3c4d;
        let order: [u8; 4] = head.get(8..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        self.big = match (u32::from_be_bytes(order), u32::from_le_bytes(order)) {
            (ORDER, _) => true,
            (_, ORDER) => false,
            (found, _) => return Err(ReadStop::Damage(format!("a section whose byte order is {found:#010x}"))),
        };
        self.interfaces.clear();
        Ok(())
    }

    /// The whole block is ahead, and ends with its length.
    #[inline]
    fn whole(&self, len: usize, buffer: &mut Buffer<'_>) -> Result<(), ReadStop> {
        if len > LONGEST + BEFORE + TAIL {
            return Err(ReadStop::Damage(format!("a block of {len} bytes; none is longer than {LONGEST}")));
        }
        if !buffer.has(len)? {
            return Err(ReadStop::Short);
        }
        self.ends_as_it_begins(len, buffer.ahead(), len - TAIL)
    }

    #[inline]
    fn ends_as_it_begins(&self, len: usize, bytes: &[u8], at: usize) -> Result<(), ReadStop> {
        match self.word(bytes, at) as usize {
            again if again == len => Ok(()),
            again => {
                Err(ReadStop::Damage(format!("a block that has {len} bytes at its beginning and {again} at its end")))
            }
        }
    }

    #[cold]
    fn skip(&self, len: usize, buffer: &mut Buffer<'_>) -> Result<(), ReadStop> {
        if !buffer.skip((len - TAIL) as u64)? || !buffer.has(TAIL)? {
            return Err(ReadStop::Short);
        }
        self.ends_as_it_begins(len, buffer.ahead(), 0)?;
        buffer.pass(TAIL);
        Ok(())
    }

    #[cold]
    fn interface(&mut self, len: usize, buffer: &mut Buffer<'_>) -> Result<(), ReadStop> {
        const FIXED: usize = HEAD + 8;
        self.whole(len, buffer)?;
        if len < FIXED + TAIL || self.interfaces.len() == MOST_INTERFACES {
            let what = format!("a description of {len} bytes, of interface {}", self.interfaces.len());
            return Err(ReadStop::Damage(what));
        }
        let block = &buffer.ahead()[..len - TAIL];
        let link_number = u32::from(self.half(block, 8));
        let snap = self.word(block, 12);
        let mut interface =
            Interface { link_number, link: LinkType::from_number(link_number), snap, unit: Unit::of(6), offset: 0 };
        self.read_options(&block[FIXED..], &mut interface);
        self.interfaces.push(interface);
        buffer.pass(len);
        Ok(())
    }

    /// Options that are cut off or of a wrong length are as good as none.
    fn read_options(&self, mut options: &[u8], interface: &mut Interface) {
        const END: u16 = 0;
        const RESOLUTION: u16 = 9;
        const OFFSET: u16 = 14;
        while options.len() >= 4 {
            let (code, len) = (self.half(options, 0), usize::from(self.half(options, 2)));
            let Some(value) = options.get(4..4 + len) else { return };
            match (code, value) {
                (END, _) => return,
                (RESOLUTION, [resolution]) => interface.unit = Unit::of(*resolution),
                (OFFSET, value) => {
                    if let Ok(value) = <[u8; 8]>::try_from(value) {
                        interface.offset = if self.big { i64::from_be_bytes(value) } else { i64::from_le_bytes(value) };
                    }
                }
                _ => {}
            }
            options = options.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
    }

    #[inline]
    fn packet(&mut self, kind: u32, len: usize, buffer: &mut Buffer<'_>) -> Result<FrameSpan, ReadStop> {
        self.whole(len, buffer)?;
        let block = buffer.ahead();
        let (number, from) = match kind {
            SIMPLE => (0, BEFORE_SIMPLE),
            PACKET => (usize::from(self.half(block, 8)), BEFORE),
            _ => (self.word(block, 8) as usize, BEFORE),
        };
        let room = len.saturating_sub(from + TAIL);
        let Some(interface) = self.interfaces.get(number) else {
            return Err(ReadStop::Damage(format!("a packet of interface {number}, which has not been described")));
        };
        let (at, kept, original) = if kind == SIMPLE {
            let original = self.word(block, 8);
            let snap = if interface.snap == 0 { u32::MAX } else { interface.snap };
            (self.last, (original.min(snap) as usize).min(room), original)
        } else {
            let units = u64::from(self.word(block, 12)) << 32 | u64::from(self.word(block, 16));
            (interface.stamp(units), self.word(block, 20) as usize, self.word(block, 24))
        };
        if kept > room || len < from + TAIL {
            return Err(ReadStop::Damage(format!("a frame of {kept} bytes in a block of {len}")));
        }
        self.last = at;
        let Interface { link_number, link, .. } = *interface;
        Ok(FrameSpan { at, len: original.max(kept as u32), link_number, link, from, until: from + kept, record: len })
    }

    #[inline]
    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    #[inline]
    fn half(&self, bytes: &[u8], at: usize) -> u16 {
        let half = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) }
    }
}

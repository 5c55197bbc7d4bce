//! A segment as it travels: numbers and no bytes.

use wire::ip::Ecn;

/// Blocks that fit beside timestamps.
pub const MAX_SACKS: usize = 3;

/// Header of TCP. Positions count bytes of the stream from 0 and never wrap; on a real wire they would be their lowest 32
/// bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSegment {
    /// Position of the first byte.
    pub seq: u64,
    /// The next byte expected the other way.
    pub ack: u64,
    /// Payload; 0 for a pure acknowledgement.
    pub len: u32,
    /// Bytes beyond `ack` that the receiver has room for.
    pub window: u32,
    /// RFC 7323: the sender's clock in microseconds, which wraps.
    pub timestamp: u32,
    /// The timestamp of the peer that is echoed (TSecr).
    pub echo: u32,
    /// SACK blocks, at most [`MAX_SACKS`].
    pub sack: Sack,
    /// Code point of the IP header.
    pub ecn: Ecn,
    /// ECN-echo: marks were seen.
    pub ece: bool,
    /// The sender has slowed down because of an echo.
    pub cwr: bool,
    /// PSH, FIN, RST and what is missing.
    pub flags: SegmentFlags,
}

/// Flags of a segment that only sockets use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentFlags(u8);

impl SegmentFlags {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// The receiver should hand this up without waiting for more.
    pub const PSH: Self = Self(1);
    /// The stream ends behind the payload; the FIN has a position of its own, which `len` does not count.
    pub const FIN: Self = Self(2);
    /// The connection is over.
    pub const RST: Self = Self(4);
    /// The header has no ACK flag: `ack` says nothing.
    pub const NO_ACK: Self = Self(8);
    /// There is no timestamp option: `timestamp` and `echo` say nothing.
    pub const NO_TIMESTAMP: Self = Self(16);

    /// All of them, one bit each.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// True if all of `other` are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if none is set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Flags of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Blocks received, the latest first (RFC 2018), as offsets from `ack`: 24 bytes instead of 48. A first block that
/// lies below `ack`, or within the second, reports a duplicate (RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    blocks: [(i32, i32); MAX_SACKS],
    len: u8,
}

impl Sack {
    /// False if there is no more room.
    pub fn push(&mut self, from: i32, to: i32) -> bool {
        debug_assert!(from < to, "a block holds something");
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = (from, to);
        self.len += 1;
        true
    }

    /// True if there is no block.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Blocks, each with its first byte and the one behind its last.
    pub fn blocks(&self) -> &[(i32, i32)] {
        &self.blocks[..usize::from(self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_a_cache_line() {
        assert!(size_of::<TcpSegment>() <= 72, "{}", size_of::<TcpSegment>());
    }

    #[test]
    fn as_many_blocks_as_fit() {
        let mut sack = Sack::default();
        assert!(sack.push(1_000, 2_000) && sack.push(3_000, 4_000) && sack.push(-1_000, 0));
        assert!(!sack.push(7_000, 8_000));
        assert_eq!(sack.blocks(), [(1_000, 2_000), (3_000, 4_000), (-1_000, 0)]);
    }
}

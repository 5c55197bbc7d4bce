//! Digest of the segments that left an end, in 64 bits.

use tcp::TcpSegment;

use crate::LogLevel;

/// Segments of an end between two digests in a log.
pub(crate) const DIGEST_EVERY: u64 = 1_024;

/// Odd, and half of its bits are set.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A running digest of segments. Every step is a bijection of what was before, so that two ends which differ in one word
/// never agree in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentDigest(u64);

impl SegmentDigest {
    /// Takes in a segment. Timestamps are those of the run only where the times of calls are.
    #[inline]
    pub(crate) fn segment(&mut self, segment: &TcpSegment, level: LogLevel) {
        self.word(segment.seq);
        self.word(segment.ack);
        self.word(u64::from(segment.len) << 32 | u64::from(segment.window));
        let flags = u64::from(segment.flags.bits()) | u64::from(segment.ece) << 8 | u64::from(segment.cwr) << 9;
        let blocks = segment.sack.blocks();
        self.word(flags | (segment.ecn as u64) << 10 | (blocks.len() as u64) << 16);
        for (from, to) in blocks {
            self.word(u64::from(*from as u32) << 32 | u64::from(*to as u32));
        }
        if level == LogLevel::Times {
            self.word(u64::from(segment.timestamp) << 32 | u64::from(segment.echo));
        }
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(FACTOR);
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

//! A SYN in as few bytes as say all of it: most connections of a scan are nothing else.

use std::net::SocketAddr;

use super::{CapturedSegment, SYN, SegmentOptions};

const HAS_MSS: u8 = 1;
const HAS_SCALE: u8 = 1 << 1;
const HAS_STAMPS: u8 = 1 << 2;
const SACKS: u8 = 1 << 3;
const IS_CUT: u8 = 1 << 4;

/// A segment that only asks for a connection, without its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpeningNote {
    at: u64,
    number: u64,
    seq: u32,
    stamps: (u32, u32),
    window: u16,
    /// Zero if there is none.
    ip_id: u16,
    mss: u16,
    scale: u8,
    has: u8,
}

impl OpeningNote {
    /// `None` for a segment that says more.
    pub(crate) fn of(segment: &CapturedSegment) -> Option<Self> {
        let CapturedSegment { at, number, ip_id, seq, ack, flags, window, len, options, .. } = *segment;
        if flags != SYN || ack != 0 || len > 0 || options.block_count > 0 {
            return None;
        }
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        Some(Self {
            at,
            number,
            seq,
            stamps: options.timestamps.unwrap_or_default(),
            window,
            ip_id: ip_id.unwrap_or_default(),
            mss: options.mss.unwrap_or_default(),
            scale: options.scale.unwrap_or_default(),
            has: bit(options.mss.is_some(), HAS_MSS)
                | bit(options.scale.is_some(), HAS_SCALE)
                | bit(options.timestamps.is_some(), HAS_STAMPS)
                | bit(options.sack_permitted, SACKS)
                | bit(options.cut, IS_CUT),
        })
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The segment, unchanged.
    pub(crate) fn segment(&self, source: SocketAddr, destination: SocketAddr) -> CapturedSegment {
        let has = |bit: u8| self.has & bit != 0;
        let options = SegmentOptions {
            mss: has(HAS_MSS).then_some(self.mss),
            scale: has(HAS_SCALE).then_some(self.scale),
            sack_permitted: has(SACKS),
            timestamps: has(HAS_STAMPS).then_some(self.stamps),
            cut: has(IS_CUT),
            ..SegmentOptions::default()
        };
        CapturedSegment {
            at: self.at,
            number: self.number,
            source,
            destination,
            ip_id: Some(self.ip_id).filter(|id| *id != 0),
            seq: self.seq,
            ack: 0,
            flags: SYN,
            window: self.window,
            len: 0,
            options,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_of_a_syn_is_forgotten(
            (at, number, seq, window, id) in (any::<u64>(), any::<u64>(), any::<u32>(), any::<u16>(), any::<u16>()),
            (mss, scale, stamps) in (any::<Option<u16>>(), any::<Option<u8>>(), any::<Option<(u32, u32)>>()),
            (sack_permitted, cut) in (any::<bool>(), any::<bool>()),
        ) {
            let ends: [SocketAddr; 2] = ["10.0.0.1:7".parse().unwrap(), "10.0.0.2:80".parse().unwrap()];
            let options = SegmentOptions { mss, scale, timestamps: stamps, sack_permitted, cut, ..SegmentOptions::default() };
            let segment = CapturedSegment {
                at, number, seq, window, options,
                source: ends[0], destination: ends[1], ip_id: Some(id).filter(|id| *id != 0), ack: 0, flags: SYN, len: 0,
            };
            prop_assert_eq!(OpeningNote::of(&segment).map(|note| note.segment(ends[0], ends[1])), Some(segment));
            prop_assert_eq!(OpeningNote::of(&CapturedSegment { len: 1, ..segment }), None);
        }
    }

    #[test]
    fn a_syn_takes_a_few_bytes() {
        assert!(size_of::<OpeningNote>() <= 40, "{}", size_of::<OpeningNote>());
    }
}

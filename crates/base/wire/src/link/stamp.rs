//! The stamp: a protected frame whose number is in its two Ethernet addresses.
//!
//! Between the two ends of one cable both addresses are known, so their 96 bits are free. Segmentation copies them to each
//! segment, and a receiver that joins segments joins only those with equal addresses. So a super-frame can be stamped
//! once, and nothing is added to a frame.
//!
//! ```text
//!   to     a6:8        tag:4   acknowledges:1 of class:1 latest:17   number:17
//!   from   tag:4 6:4   tag:8   pushed:1 class:1   first:16 size:14
//! ```
//!
//! Both are unicast and locally administered. `number` is that of the first segment; the number of a segment follows from
//! its TCP sequence number ([`StampedData::index`]). The tag says whose frame it is: which of the two ends of which session
//! sent it, and in which epoch ([`StampTag`]).
//!
//! A receiver that joins segments hands over what it has joined when a segment asks for it (PSH), and else when it likes: a
//! super-frame that does not ask could be overtaken by the next. So the sender lets the last segment of each super-frame ask.
//! `pushed` says that the PSH is the sender's own addition, which the receiver takes off again.
//!
//! A stamp without a size is that of a probe ([`super::StampProbe`]): it shows that frames with strange addresses arrive. Each
//! end has one such address, always the same, so that whatever learns addresses learns one of each end.
//!
//! [`AddressStamp::parse`] accepts exactly what [`AddressStamp::emit`] writes.

use super::Class;
use crate::Seq;

/// The first byte in place of the peer's address.
const TO: u64 = 0xa6;
/// The lower half of the first byte in place of our own address: unicast, locally administered, and of the quarter of
/// those addresses that is given to nobody (IEEE 802c).
const FROM: u64 = 0x6;

/// The most segments of a super-frame.
pub const MOST_SEGMENTS: u32 = 64;

/// Mark behind a life-cycle message of an end that can read and write stamps. Other ends take it for padding.
pub const STAMP_OFFER: [u8; 4] = *b"adr3";

/// Contents of two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressStamp {
    /// A protected frame, sent for the first time.
    Data(StampedData),
    /// A probe, which lies behind the addresses.
    Probe {
        /// The end with the lower address sent it.
        lower: bool,
    },
}

/// One direction of one session in one epoch. Frames with another tag are somebody else's, or of another time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampTag(u16);

/// Contents of a stamp on a single frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampableFrame {
    /// Class of the frame.
    pub class: Class,
    /// Number of the frame; of a super-frame that of the first segment.
    pub number: Seq,
    /// An acknowledgement without gaps: its class, and the latest number received.
    pub acknowledges: Option<(Class, Seq)>,
}

/// A stamp: the number of a frame, or of the segments of a super-frame, and what rides on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampedData {
    /// Tag of the end and session that sent the frame.
    pub tag: StampTag,
    /// Contents for the first segment.
    pub frame: StampableFrame,
    /// Segments of the super-frame: the TCP sequence number of a segment gives its number.
    pub run: SegmentSpan,
    /// The PSH of the last segment is not its own.
    pub pushed: bool,
}

/// Beginnings of the segments of a super-frame, and their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSpan {
    /// The lower half of the first segment's TCP sequence number.
    pub first: u16,
    /// Payload of every segment but the last; 1 to [`SegmentSpan::LONGEST`].
    pub size: u16,
}

impl SegmentSpan {
    /// The longest payload of a segment.
    pub const LONGEST: u16 = (1 << 14) - 1;
}

/// Addresses that begin as a stamp and say nothing sensible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedStamp;

impl StampTag {
    /// Tag of frames that the instance `sender` sends to the instance `receiver` in an epoch. Both numbers are drawn at
    /// random, so that nobody who has not heard the two ends agree knows the tag.
    pub fn new(sender: u32, receiver: u32, epoch: u32) -> Self {
        let mix = |state: u64, word: u32| {
            let mixed = (state ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 29
        };
        let mixed = [sender, receiver, epoch, 0].into_iter().fold(0x7374_616d_7021, mix);
        // The lowest bit is the direction: what an end sends never looks like what it receives.
        Self((mixed >> 48) as u16 & !1 | u16::from(sender > receiver))
    }

    /// Makes a stamp from any of the 65,536 values.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits on the wire.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

impl StampedData {
    /// Index of a segment, by its TCP sequence number; `None` if it is not one of these.
    pub fn index(&self, tcp_seq: u32) -> Option<u32> {
        let SegmentSpan { first, size } = self.run;
        let ahead = (tcp_seq as u16).wrapping_sub(first);
        let index = u32::from(ahead / size.max(1));
        (ahead.is_multiple_of(size.max(1)) && index < MOST_SEGMENTS).then_some(index)
    }

    fn halves(&self) -> (u64, u64) {
        let StampableFrame { class, number, acknowledges } = self.frame;
        let acknowledged =
            acknowledges.map_or(0, |(class, latest)| 1 << 35 | (class as u64) << 34 | u64::from(latest.bits()) << 17);
        let tag = u64::from(self.tag.0);
        let to = TO << 40 | tag >> 12 << 36 | acknowledged | u64::from(number.bits());
        let from = (tag >> 8 & 0xf) << 44 | FROM << 40 | (tag & 0xff) << 32;
        let run = u64::from(self.run.first) << 14 | u64::from(self.run.size & SegmentSpan::LONGEST);
        (to, from | u64::from(self.pushed) << 31 | (class as u64) << 30 | run)
    }

    fn from_halves(to: u64, from: u64) -> Self {
        let bit = |half: u64, at: u32| half >> at & 1 != 0;
        let acknowledges =
            bit(to, 35).then(|| (Class::from_bit(bit(to, 34)), Seq::from_bits((to >> 17) as u32 & 0x1_ffff)));
        let tag = (to >> 36 & 0xf) << 12 | (from >> 44) << 8 | from >> 32 & 0xff;
        Self {
            tag: StampTag(tag as u16),
            frame: StampableFrame {
                class: Class::from_bit(bit(from, 30)),
                number: Seq::from_bits(to as u32 & 0x1_ffff),
                acknowledges,
            },
            run: SegmentSpan { first: (from >> 14) as u16, size: from as u16 & SegmentSpan::LONGEST },
            pushed: bit(from, 31),
        }
    }
}

impl AddressStamp {
    /// Length of two addresses.
    pub const LEN: usize = 12;
    /// The first byte of the address that a stamped frame goes to.
    pub const FIRST: u8 = TO as u8;

    /// True if the addresses of a frame begin as those of a stamp do.
    #[inline]
    pub fn marks(frame: &[u8]) -> bool {
        let Some(addresses) = frame.first_chunk::<{ Self::LEN }>() else { return false };
        addresses[0] == Self::FIRST && addresses[6] & 0xf == FROM as u8
    }

    /// The two addresses.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let (to, from) = match self {
            Self::Data(data) => data.halves(),
            Self::Probe { lower } => (TO << 40, FROM << 40 | u64::from(*lower) << 14),
        };
        let mut addresses = [0; Self::LEN];
        addresses[..6].copy_from_slice(&to.to_be_bytes()[2..]);
        addresses[6..].copy_from_slice(&from.to_be_bytes()[2..]);
        addresses
    }

    /// Stamp in the addresses of a frame; `None` if they are ordinary ones.
    pub fn parse(frame: &[u8]) -> Result<Option<Self>, MalformedStamp> {
        let Some(addresses) = frame.first_chunk::<{ Self::LEN }>().filter(|_| Self::marks(frame)) else {
            return Ok(None);
        };
        let half = |at: usize| addresses[at..at + 6].iter().fold(0u64, |half, byte| half << 8 | u64::from(*byte));
        let data = StampedData::from_halves(half(0), half(6));
        // Bits that mean nothing where they are must be zero.
        let stamp = match data.run.size {
            0 => Self::Probe { lower: data.run.first != 0 },
            _ => Self::Data(data),
        };
        if stamp.emit() == *addresses { Ok(Some(stamp)) } else { Err(MalformedStamp) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn data() -> StampedData {
        let acknowledges = Some((Class::Ordered, Seq::new(7, true)));
        StampedData {
            tag: StampTag(0xfedc),
            frame: StampableFrame { class: Class::NonBlocking, number: Seq::new(65_535, true), acknowledges },
            run: SegmentSpan { first: 65_000, size: 1_448 },
            pushed: false,
        }
    }

    #[test]
    fn both_addresses_are_unicast_and_locally_administered() {
        for stamp in [AddressStamp::Data(data()), AddressStamp::Probe { lower: true }] {
            let bytes = stamp.emit();
            assert!([bytes[0], bytes[6]].iter().all(|byte| byte & 3 == 2), "{stamp:?}");
            assert_eq!(AddressStamp::parse(&bytes), Ok(Some(stamp)));
        }
    }

    #[test]
    fn probes_of_an_end_always_have_the_same_addresses_and_those_of_the_other_end_come_from_another() {
        let [here, there] = [true, false].map(|lower| AddressStamp::Probe { lower }.emit());
        assert_eq!(here[..6], there[..6]);
        assert_ne!(here[6..], there[6..]);
    }

    #[test]
    fn a_tag_depends_on_both_instances_on_who_sends_and_on_the_epoch() {
        let tag = StampTag::new(1, 2, 3);
        assert_eq!(tag, StampTag::new(1, 2, 3));
        for other in [StampTag::new(2, 1, 3), StampTag::new(1, 2, 4), StampTag::new(1, 3, 3), StampTag::new(4, 2, 3)] {
            assert_ne!(tag, other);
        }
        // Tags of many sessions are spread as evenly as numbers drawn at random.
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..20_000u32 {
            let (one, other) = (n.wrapping_mul(0x9e37_79b9) | 1, n.wrapping_mul(0x85eb_ca6b) & !1);
            assert_ne!(StampTag::new(one, other, 1), StampTag::new(other, one, 1));
            seen.insert(StampTag::new(one, other, n % 5).bits());
        }
        assert!((16_500..18_000).contains(&seen.len()), "{}", seen.len());
    }

    #[test]
    fn a_segment_is_found_by_its_sequence_number_also_where_that_wraps() {
        let stamp = data();
        for index in 0..MOST_SEGMENTS.min(45) {
            let seq = 0xffff_0000u32.wrapping_add(65_000).wrapping_add(index * 1_448);
            assert_eq!(stamp.index(seq), Some(index));
            assert_eq!(stamp.index(seq.wrapping_add(1)), None);
        }
        let small = StampedData { run: SegmentSpan { first: 0, size: 100 }, ..stamp };
        assert_eq!((small.index(6_300), small.index(6_400)), (Some(63), None));
    }

    #[test]
    fn ordinary_addresses_and_short_frames_are_no_stamp() {
        for frame in [&[][..], &[0xa6; 11], &[0x02; 64], &[0xff; 64], &[0x00; 64]] {
            assert_eq!(AddressStamp::parse(frame), Ok(None), "{frame:?}");
        }
        let mut pushed = AddressStamp::Probe { lower: true }.emit();
        pushed[8] |= 0x80;
        assert_eq!(AddressStamp::parse(&pushed), Err(MalformedStamp), "only a segment can have been pushed");
    }

    fn any_seq() -> impl Strategy<Value = Seq> {
        (any::<u16>(), any::<bool>()).prop_map(|(number, era)| Seq::new(number, era))
    }

    fn any_class() -> impl Strategy<Value = Class> {
        any::<bool>().prop_map(Class::from_bit)
    }

    fn any_stamp() -> impl Strategy<Value = AddressStamp> {
        let run = (any::<u16>(), 1..=SegmentSpan::LONGEST).prop_map(|(first, size)| SegmentSpan { first, size });
        let ack = proptest::option::of((any_class(), any_seq()));
        let frame = (any_class(), any_seq(), ack).prop_map(|(class, number, acknowledges)| StampableFrame {
            class,
            number,
            acknowledges,
        });
        let data = (any::<u16>(), frame, run, any::<bool>()).prop_map(|(tag, frame, run, pushed)| {
            AddressStamp::Data(StampedData { tag: StampTag(tag), frame, run, pushed })
        });
        prop_oneof![9 => data, 1 => any::<bool>().prop_map(|lower| AddressStamp::Probe { lower })]
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read(stamp in any_stamp()) {
            prop_assert_eq!(AddressStamp::parse(&stamp.emit()), Ok(Some(stamp)));
        }

        #[test]
        fn what_is_read_is_what_would_be_written(
            bytes in any::<[u8; 12]>(),
            len in 0..13usize,
            signed in any::<bool>(),
            plain in any::<bool>(),
            empty in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if signed {
                (bytes[0], bytes[6]) = (0xa6, bytes[6] & 0xf0 | 6);
            }
            if plain {
                (bytes[1], bytes[2], bytes[3]) = (bytes[1] & 0xf0, 0, bytes[3] & 1);
            }
            if empty {
                (bytes[10], bytes[11]) = (bytes[10] & 0xc0, 0);
            }
            match AddressStamp::parse(&bytes[..len]) {
                Ok(Some(stamp)) => prop_assert_eq!(&stamp.emit()[..], &bytes[..len]),
                Ok(None) => prop_assert!(!AddressStamp::marks(&bytes[..len])),
                Err(MalformedStamp) => prop_assert!(AddressStamp::marks(&bytes[..len])),
            }
        }
    }
}

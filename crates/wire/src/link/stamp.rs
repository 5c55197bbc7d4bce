//! The stamp: a protected frame whose number is in its two Ethernet addresses.
//!
//! Between the two ends of one cable both addresses are known, so their 96 bits are free. Segmentation copies them to each
//! segment, and a receiver that joins segments joins only those with equal addresses. So a super-frame can be stamped
//! once, and nothing is added to a frame.
//!
//! ```text
//!   to     a6:8 5:4   acknowledges:1 of class:1 latest:17   number:17
//!   from   a6:8 a:4   kind:2 lower:1 class:1 epoch:2   first:16 size:14
//! ```
//!
//! Both are unicast and locally administered. `number` is that of the first segment; the number of a segment follows from
//! its TCP sequence number ([`StampedData::index`]). `lower` says which end sent it: that of the lower address.
//!
//! A receiver that joins segments hands over what it has joined when a segment asks for it (PSH), and else when it likes: a
//! super-frame that does not ask could be overtaken by the next. So the sender lets the last segment of each super-frame ask.
//! Kind 3 is data whose PSH is the sender's own addition, which the receiver takes off again.
//!
//! Besides data (kinds 0 and 3) there are probes (1) and their answers (2), with a token in place of the number, and the lesson:
//! a probe with its two addresses exchanged. What it teaches a learning switch keeps the switch from passing the probe
//! on, so that only a cable answers.
//!
//! [`AddressStamp::parse`] accepts exactly what [`AddressStamp::emit`] writes.

use super::{Class, Epoch};
use crate::Seq;

/// In place of the peer's address.
const TO: u64 = 0xa65;
/// In place of our own.
const FROM: u64 = 0xa6a;
/// Bits of an address behind its signature.
const BITS: u32 = 36;

const DATA: u64 = 0;
const PROBE: u64 = 1;
const ANSWER: u64 = 2;
const DATA_PUSHED: u64 = 3;

/// The most segments of a super-frame.
pub const MOST_SEGMENTS: u32 = 64;

/// Behind a life-cycle message of an end that can read and write stamps. Ends that cannot take it for padding.
pub const STAMP_OFFER: [u8; 4] = *b"adr2";

/// What two addresses say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressStamp {
    /// A protected frame, sent for the first time.
    Data(StampedData),
    /// Asks whether stamped frames arrive.
    Probe(StampProbe),
    /// They do.
    Answer(StampProbe),
    /// Goes before a probe.
    Lesson(StampProbe),
}

/// The number of a frame, or of the segments of a super-frame, and what rides on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampedData {
    /// The end with the lower address sent it.
    pub lower: bool,
    /// Class of the frame.
    pub class: Class,
    /// Epoch of the frame.
    pub epoch: Epoch,
    /// Number of the first segment.
    pub number: Seq,
    /// An acknowledgement without gaps: its class, and the latest number received.
    pub acknowledges: Option<(Class, Seq)>,
    /// How the TCP sequence number of a segment gives its number, if there may be several segments.
    pub run: Option<SegmentSpan>,
    /// The PSH of the last segment is not its own.
    pub pushed: bool,
}

/// Where the segments of a super-frame begin, and how long they are.
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

/// A question and its answer have the same token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampProbe {
    /// The end with the lower address sent it.
    pub lower: bool,
    /// Which probe it is.
    pub token: u16,
}

/// Addresses that begin as a stamp and say nothing sensible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedStamp;

impl StampedData {
    /// Which of the segments this is, by its TCP sequence number; `None` if it is none of them.
    pub fn index(&self, tcp_seq: u32) -> Option<u32> {
        let Some(run) = self.run else { return Some(0) };
        let ahead = (tcp_seq as u16).wrapping_sub(run.first);
        let index = u32::from(ahead / run.size.max(1));
        (ahead.is_multiple_of(run.size.max(1)) && index < MOST_SEGMENTS).then_some(index)
    }

    fn halves(&self) -> (u64, u64) {
        let acknowledged = self
            .acknowledges
            .map_or(0, |(class, latest)| 1 << 35 | (class as u64) << 34 | u64::from(latest.bits()) << 17);
        let run = self.run.map_or(0, |run| u64::from(run.first) << 14 | u64::from(run.size & SegmentSpan::LONGEST));
        let to = acknowledged | u64::from(self.number.bits());
        let from = if self.pushed { DATA_PUSHED } else { DATA } << 34
            | u64::from(self.lower) << 33
            | (self.class as u64) << 32
            | u64::from(self.epoch.number()) << 30
            | run;
        (to, from)
    }

    fn from_halves(to: u64, from: u64) -> Result<Self, MalformedStamp> {
        let bit = |half: u64, at: u32| half >> at & 1 != 0;
        let acknowledges =
            bit(to, 35).then(|| (Class::from_bit(bit(to, 34)), Seq::from_bits((to >> 17) as u32 & 0x1_ffff)));
        let (first, size) = ((from >> 14) as u16, from as u16 & SegmentSpan::LONGEST);
        let stamp = Self {
            lower: bit(from, 33),
            class: Class::from_bit(bit(from, 32)),
            epoch: Epoch::new((from >> 30) as u32 & 3),
            number: Seq::from_bits(to as u32 & 0x1_ffff),
            acknowledges,
            run: (size > 0).then_some(SegmentSpan { first, size }),
            pushed: from >> 34 == DATA_PUSHED,
        };
        // Bits that mean nothing where they are must be zero.
        let is_regular = stamp.run.is_some() || !stamp.pushed;
        if is_regular && stamp.halves() == (to, from) { Ok(stamp) } else { Err(MalformedStamp) }
    }
}

impl AddressStamp {
    /// Length of two addresses.
    pub const LEN: usize = 12;
    /// The first byte of both.
    pub const FIRST: u8 = (TO >> 4) as u8;

    /// Whether the addresses of a frame begin as those of a stamp do.
    #[inline]
    pub fn marks(frame: &[u8]) -> bool {
        let Some(addresses) = frame.first_chunk::<{ Self::LEN }>() else { return false };
        addresses[0] == Self::FIRST
            && addresses[6] == Self::FIRST
            && matches!((addresses[1] >> 4, addresses[7] >> 4), (5, 10) | (10, 5))
    }

    /// The two addresses.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let probe = |kind: u64, probe: &StampProbe| (u64::from(probe.token), kind << 34 | u64::from(probe.lower) << 33);
        let (to, from) = match self {
            Self::Data(data) => data.halves(),
            Self::Probe(it) | Self::Lesson(it) => probe(PROBE, it),
            Self::Answer(it) => probe(ANSWER, it),
        };
        let (mut to, mut from) = (TO << BITS | to, FROM << BITS | from);
        if matches!(self, Self::Lesson(_)) {
            std::mem::swap(&mut to, &mut from);
        }
        let mut addresses = [0; Self::LEN];
        addresses[..6].copy_from_slice(&to.to_be_bytes()[2..]);
        addresses[6..].copy_from_slice(&from.to_be_bytes()[2..]);
        addresses
    }

    /// What the addresses of a frame say; `None` if they are ordinary ones.
    pub fn parse(frame: &[u8]) -> Result<Option<Self>, MalformedStamp> {
        let Some(addresses) = frame.first_chunk::<{ Self::LEN }>().filter(|_| Self::marks(frame)) else {
            return Ok(None);
        };
        let half = |at: usize| addresses[at..at + 6].iter().fold(0u64, |half, byte| half << 8 | u64::from(*byte));
        let (mut to, mut from) = (half(0), half(6));
        let is_lesson = to >> BITS == FROM;
        if is_lesson {
            (to, from) = (from, to);
        }
        let (to, from) = (to & ((1 << BITS) - 1), from & ((1 << BITS) - 1));
        let stamp = match from >> 34 {
            DATA | DATA_PUSHED => Self::Data(StampedData::from_halves(to, from)?),
            kind => {
                let probe = StampProbe { lower: from >> 33 & 1 != 0, token: to as u16 };
                match kind {
                    PROBE if is_lesson => Self::Lesson(probe),
                    PROBE => Self::Probe(probe),
                    ANSWER => Self::Answer(probe),
                    _ => return Err(MalformedStamp),
                }
            }
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
        StampedData {
            lower: true,
            class: Class::NonBlocking,
            epoch: Epoch::new(2),
            number: Seq::new(65_535, true),
            acknowledges: Some((Class::Ordered, Seq::new(7, true))),
            run: Some(SegmentSpan { first: 65_000, size: 1_448 }),
            pushed: false,
        }
    }

    #[test]
    fn both_addresses_are_unicast_and_locally_administered() {
        let probe = StampProbe { lower: false, token: 0xffff };
        for stamp in [AddressStamp::Data(data()), AddressStamp::Probe(probe), AddressStamp::Lesson(probe)] {
            let bytes = stamp.emit();
            assert!([bytes[0], bytes[6]].iter().all(|byte| byte & 3 == 2), "{stamp:?}");
            assert_eq!(AddressStamp::parse(&bytes), Ok(Some(stamp)));
        }
    }

    #[test]
    fn a_learning_switch_that_saw_the_lesson_knows_the_probe_s_target_behind_its_sender() {
        let probe = StampProbe { lower: true, token: 4_711 };
        let (lesson, probe) = (AddressStamp::Lesson(probe).emit(), AddressStamp::Probe(probe).emit());
        assert_eq!(lesson[6..], probe[..6]);
        assert_eq!(lesson[..6], probe[6..]);
    }

    #[test]
    fn a_segment_is_found_by_its_sequence_number_also_where_that_wraps() {
        let stamp = data();
        for index in 0..MOST_SEGMENTS.min(45) {
            let seq = 0xffff_0000u32.wrapping_add(65_000).wrapping_add(index * 1_448);
            assert_eq!(stamp.index(seq), Some(index));
            assert_eq!(stamp.index(seq.wrapping_add(1)), None);
        }
        let small = StampedData { run: Some(SegmentSpan { first: 0, size: 100 }), ..stamp };
        assert_eq!((small.index(6_300), small.index(6_400)), (Some(63), None));
        assert_eq!(StampedData { run: None, ..stamp }.index(123), Some(0));
    }

    #[test]
    fn ordinary_addresses_and_short_frames_are_no_stamp() {
        for frame in [&[][..], &[0xa6; 11], &[0x02; 64], &[0xff; 64], &[0xa6; 64]] {
            assert_eq!(AddressStamp::parse(frame), Ok(None), "{frame:?}");
        }
        let pushed = AddressStamp::Data(StampedData { pushed: true, run: None, ..data() }).emit();
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
        let data = (any::<bool>(), any_class(), 0..4u32, any_seq(), ack, proptest::option::of((run, any::<bool>())))
            .prop_map(|(lower, class, epoch, number, acknowledges, run)| {
                let epoch = Epoch::new(epoch);
                let (run, pushed) = (run.map(|(run, _)| run), run.is_some_and(|(_, pushed)| pushed));
                AddressStamp::Data(StampedData { lower, class, epoch, number, acknowledges, run, pushed })
            });
        let probe = (any::<bool>(), any::<u16>(), 0..3u8).prop_map(|(lower, token, kind)| {
            let probe = StampProbe { lower, token };
            [AddressStamp::Probe(probe), AddressStamp::Answer(probe), AddressStamp::Lesson(probe)][usize::from(kind)]
        });
        prop_oneof![data, probe]
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
            swapped in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if signed {
                (bytes[0], bytes[6]) = (0xa6, 0xa6);
                (bytes[1], bytes[7]) = (bytes[1] & 0x0f | 0x50, bytes[7] & 0x0f | 0xa0);
                if swapped {
                    bytes.rotate_left(6);
                }
            }
            match AddressStamp::parse(&bytes[..len]) {
                Ok(Some(stamp)) => prop_assert_eq!(&stamp.emit()[..], &bytes[..len]),
                Ok(None) => prop_assert!(!AddressStamp::marks(&bytes[..len])),
                Err(MalformedStamp) => prop_assert!(AddressStamp::marks(&bytes[..len])),
            }
        }
    }
}

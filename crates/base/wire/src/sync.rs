//! Message of a Sundial wave, from a clock to those that listen to it.
//!
//! Sundial (Y. Li's thesis), §3.4.1.1, §3.4.3. The thesis does not say what is in its messages. Beyond a timestamp, ours has
//! what makes a stale one visible: the *term* (whose time it is), the *wave* (counted by the root; a node never sends one of a
//! term twice) and the *depth*. It also carries how far its sender may be from the root, for nodes that measure that instead of
//! knowing it, the sum of what every change of root may have moved the time by, the *line* of roots for which that sum holds,
//! and the *epoch*: by which plan that root is one. The epoch is for people: it decides nothing.
//!
//! ```text
//!   prefix 02:68:69 00:03   version:4 0:3 elected:1   depth:16   plan:32   term:32   root:32   line:32   wave:64
//!   timestamp:64 (ps)   correction:48 (ps)   uncertainty:48 (ps)   handover:48 (ps)   CRC-32:32
//! ```
//!
//! [`SyncMessage::parse`] accepts exactly what [`SyncMessage::emit`] writes, and what pads it to the shortest frame behind
//! it is left to the caller. Numbers are big-endian. Any bytes are read without a panic.

use units::{Span, Time};

/// Length of a message.
pub(crate) const SYNC_LEN: usize = 62;
/// A locally administered OUI and a protocol of it, as [`crate::reserve`]'s.
const PREFIX: [u8; 5] = [0x02, 0x68, 0x69, 0x00, 0x03];
const SYNC_VERSION: u8 = 2;
const ELECTED: u8 = 1;
/// The longest time in a field of 48 bits: four minutes.
const LONGEST: u64 = (1 << 48) - 1;

/// Term of one root: it identifies the time that a message carries. A node believes the later of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncTerm {
    /// Counted up by whoever becomes the root. The first is 1: before it there was none.
    pub number: u32,
    /// The root, by a number that no other node has. It decides between two that began at once.
    pub root: u32,
}

impl SyncTerm {
    /// The term that this root begins after all that it knows of. When the numbers are used up it has another root's number
    /// rather than a term that there was.
    pub fn after(known: Self, root: u32) -> Self {
        match known.number.checked_add(1) {
            Some(number) => Self { number, root },
            None => Self { number: u32::MAX, root: known.root.saturating_add(1) },
        }
    }
}

/// Plan by which a root is a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncEpoch {
    /// The plan, by its number.
    pub plan: u32,
    /// True if the backup root of that plan has made itself the root.
    pub elected: bool,
}

/// One message of a wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncMessage {
    /// Term of the time that it carries.
    pub term: SyncTerm,
    /// The roots of one line took the time over from each other. Two lines have nothing to do with each other.
    pub line: u32,
    /// Plan by which that root is a root.
    pub epoch: SyncEpoch,
    /// Counted by the root, on over changes of root.
    pub wave: u64,
    /// Hops that the wave has taken from the root to the sender.
    pub depth: u16,
    /// The sender's clock when it sent.
    pub timestamp: Time,
    /// Time that passed between the timestamp and the sending, by the sender's oscillator.
    pub correction: Span,
    /// Greatest difference between the sender's clock and the root's when it sent; at most four minutes.
    pub uncertainty: Span,
    /// Time by which all changes of root of this line may have moved the time, together; at most four minutes.
    pub handover: Span,
}

/// Bytes that are no message of a clock, or of another version, or changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedSync;

impl SyncMessage {
    /// Message as bytes. Spans beyond four minutes are written as four minutes.
    pub fn emit(&self) -> [u8; SYNC_LEN] {
        let mut bytes = [0; SYNC_LEN];
        let mut rest = &mut bytes[..];
        let mut put = |part: &[u8]| {
            let (place, behind) = std::mem::take(&mut rest).split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        };
        put(&PREFIX);
        put(&[SYNC_VERSION << 4 | if self.epoch.elected { ELECTED } else { 0 }]);
        put(&self.depth.to_be_bytes());
        for number in [self.epoch.plan, self.term.number, self.term.root, self.line] {
            put(&number.to_be_bytes());
        }
        put(&self.wave.to_be_bytes());
        put(&self.timestamp.as_ps().to_be_bytes());
        for span in [self.correction, self.uncertainty, self.handover] {
            put(&span.as_ps().min(LONGEST).to_be_bytes()[2..]);
        }
        let check = crc32fast::hash(&bytes[..SYNC_LEN - 4]);
        bytes[SYNC_LEN - 4..].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// Reads a message; the bytes may go on behind it.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedSync> {
        let message = bytes.first_chunk::<SYNC_LEN>().ok_or(MalformedSync)?;
        let (body, check) = message.split_last_chunk::<4>().ok_or(MalformedSync)?;
        let mut rest = body.strip_prefix(&PREFIX).ok_or(MalformedSync)?;
        if crc32fast::hash(body) != u32::from_be_bytes(*check) {
            return Err(MalformedSync);
        }
        let [first] = take(&mut rest)?;
        if first >> 4 != SYNC_VERSION || first & 15 & !ELECTED != 0 {
            return Err(MalformedSync);
        }
        let depth = u16::from_be_bytes(take(&mut rest)?);
        let mut word = || take(&mut rest).map(u32::from_be_bytes);
        let epoch = SyncEpoch { plan: word()?, elected: first & ELECTED != 0 };
        let (term, line) = (SyncTerm { number: word()?, root: word()? }, word()?);
        let wave = u64::from_be_bytes(take(&mut rest)?);
        let timestamp = Time::from_ps(u64::from_be_bytes(take(&mut rest)?));
        let (correction, uncertainty) = (take_span(&mut rest)?, take_span(&mut rest)?);
        let handover = take_span(&mut rest)?;
        Ok(Self { term, line, epoch, wave, depth, timestamp, correction, uncertainty, handover })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], MalformedSync> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(MalformedSync)?;
    *rest = left;
    Ok(*taken)
}

fn take_span(rest: &mut &[u8]) -> Result<Span, MalformedSync> {
    let [a, b, c, d, e, f] = take(rest)?;
    Ok(Span::from_ps(u64::from_be_bytes([0, 0, a, b, c, d, e, f])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message() -> SyncMessage {
        SyncMessage {
            term: SyncTerm { number: 3, root: 0x8000_0001 },
            line: 99,
            epoch: SyncEpoch { plan: 7, elected: true },
            wave: 0x0123_4567_89ab_cdef,
            depth: 12,
            timestamp: Time::from_ps(987_654_321_012_345),
            correction: Span::from_ns(250),
            uncertainty: Span::from_ns(60),
            handover: Span::from_ns(78),
        }
    }

    #[test]
    fn no_term_begins_twice_when_the_numbers_are_used_up() {
        let first = SyncTerm::after(SyncTerm { number: u32::MAX, root: 5 }, 7);
        let next = SyncTerm::after(first, 7);
        assert!(first > SyncTerm { number: u32::MAX, root: 5 } && next > first, "{first:?} {next:?}");
        assert_eq!(SyncTerm::after(SyncTerm { number: 4, root: 5 }, 3), SyncTerm { number: 5, root: 3 });
    }

    #[test]
    fn a_message_reads_as_written_and_padding_is_ignored() {
        let mut bytes = message().emit().to_vec();
        assert_eq!(SyncMessage::parse(&bytes), Ok(message()));
        assert_eq!(SyncMessage::parse(&bytes[..SYNC_LEN - 1]), Err(MalformedSync));
        bytes.extend([0; 14]);
        assert_eq!(SyncMessage::parse(&bytes), Ok(message()));
    }

    #[test]
    fn no_single_changed_bit_is_believed() {
        let bytes = message().emit();
        for bit in 0..8 * SYNC_LEN {
            let mut garbled = bytes;
            garbled[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SyncMessage::parse(&garbled), Err(MalformedSync), "bit {bit}");
        }
    }

    #[test]
    fn whoever_becomes_the_root_begins_a_later_term_and_two_that_do_so_at_once_are_in_order() {
        let known = SyncTerm { number: 3, root: 9 };
        let [one, other] = [4, 5].map(|root| SyncTerm::after(known, root));
        assert!(known < one && one < other);
    }

    proptest! {
        #[test]
        fn any_message_reads_as_written(
            (plan, elected, depth) in any::<(u32, bool, u16)>(),
            (number, root, line) in any::<(u32, u32, u32)>(),
            (wave, timestamp) in any::<(u64, u64)>(),
            spans in prop::array::uniform3(0..=LONGEST),
        ) {
            let [correction, uncertainty, handover] = spans.map(Span::from_ps);
            let epoch = SyncEpoch { plan, elected };
            let (term, timestamp) = (SyncTerm { number, root }, Time::from_ps(timestamp));
            let message =
                SyncMessage { term, line, epoch, wave, depth, timestamp, correction, uncertainty, handover };
            prop_assert_eq!(SyncMessage::parse(&message.emit()), Ok(message));
        }

        /// With a right checksum behind whatever else, what is accepted is what would be written.
        #[test]
        fn accepted_bytes_are_those_that_would_be_written(mut bytes in prop::collection::vec(any::<u8>(), 0..64), first in 0u8..40) {
            let _ = SyncMessage::parse(&bytes);
            bytes.resize(SYNC_LEN, 0);
            bytes[..5].copy_from_slice(&PREFIX);
            bytes[5] = first;
            let check = crc32fast::hash(&bytes[..SYNC_LEN - 4]);
            bytes[SYNC_LEN - 4..].copy_from_slice(&check.to_be_bytes());
            if let Ok(message) = SyncMessage::parse(&bytes) {
                prop_assert_eq!(&message.emit()[..], &bytes[..]);
            }
        }
    }
}

//! What a clock says to those that listen to it: the message of a Sundial wave.
//!
//! Sundial (Y. Li's thesis), §3.4.1.1, §3.4.3. The thesis does not say what is in its messages. Beyond a timestamp, ours has
//! what makes a stale one visible: the *wave* (counted by the root; a node never sends one twice), the *epoch* (which plan,
//! and whether its backup root has taken over) and the *depth*. It also carries how far its sender may be from the root,
//! for nodes that measure that instead of knowing it, and the sum of what every change of root may have moved the time by.
//!
//! ```text
//!   prefix 02:68:69 00:03   version:4 0:3 elected:1   depth:16   plan:32   wave:64   timestamp:64 (ps)
//!   correction:48 (ps)   uncertainty:48 (ps)   handover:48 (ps)   CRC-32:32
//! ```
//!
//! [`SyncMessage::parse`] accepts exactly what [`SyncMessage::emit`] writes, and what pads it to the shortest frame behind
//! it is left to the caller. Numbers are big-endian. Any bytes are read without a panic.

use units::{Span, Time};

/// Length of a message.
pub(crate) const SYNC_LEN: usize = 50;
/// A locally administered OUI and a protocol of it, as [`crate::reserve`]'s.
const PREFIX: [u8; 5] = [0x02, 0x68, 0x69, 0x00, 0x03];
const SYNC_VERSION: u8 = 1;
const ELECTED: u8 = 1;
/// The longest time in a field of 48 bits: four minutes.
const LONGEST: u64 = (1 << 48) - 1;

/// Whose time a message carries: later ones are believed, earlier ones are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncEpoch {
    /// The plan, as the controller counts them.
    pub plan: u32,
    /// Whether the backup root of that plan has made itself the root.
    pub elected: bool,
}

/// One message of a wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncMessage {
    /// Whose time it is.
    pub epoch: SyncEpoch,
    /// Counted by the root, on over changes of root.
    pub wave: u64,
    /// Hops that the wave has taken from the root to the sender.
    pub depth: u16,
    /// The sender's clock when it sent.
    pub timestamp: Time,
    /// What passed between the timestamp and the sending, by the sender's oscillator.
    pub correction: Span,
    /// By how much the sender's clock may differ from the root's when it sent; at most four minutes.
    pub uncertainty: Span,
    /// By how much all changes of root so far may have moved the time, together; at most four minutes.
    pub handover: Span,
}

/// Bytes that are no message of a clock, or of another version, or changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedSync;

impl SyncMessage {
    /// As bytes. Spans beyond four minutes are written as four minutes.
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
        put(&self.epoch.plan.to_be_bytes());
        put(&self.wave.to_be_bytes());
        put(&self.timestamp.as_ps().to_be_bytes());
        for span in [self.correction, self.uncertainty, self.handover] {
            put(&span.as_ps().min(LONGEST).to_be_bytes()[2..]);
        }
        let check = crc32fast::hash(&bytes[..SYNC_LEN - 4]);
        bytes[SYNC_LEN - 4..].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// From bytes, which may go on behind the message.
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
        let epoch = SyncEpoch { plan: u32::from_be_bytes(take(&mut rest)?), elected: first & ELECTED != 0 };
        let wave = u64::from_be_bytes(take(&mut rest)?);
        let timestamp = Time::from_ps(u64::from_be_bytes(take(&mut rest)?));
        let (correction, uncertainty) = (take_span(&mut rest)?, take_span(&mut rest)?);
        let handover = take_span(&mut rest)?;
        Ok(Self { epoch, wave, depth, timestamp, correction, uncertainty, handover })
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
    fn an_election_makes_a_later_epoch_of_the_same_plan() {
        let epoch = |plan, elected| SyncEpoch { plan, elected };
        assert!(epoch(3, false) < epoch(3, true) && epoch(3, true) < epoch(4, false));
    }

    proptest! {
        #[test]
        fn any_message_reads_as_written(
            (plan, elected, depth) in any::<(u32, bool, u16)>(),
            (wave, timestamp) in any::<(u64, u64)>(),
            spans in prop::array::uniform3(0..=LONGEST),
        ) {
            let [correction, uncertainty, handover] = spans.map(Span::from_ps);
            let epoch = SyncEpoch { plan, elected };
            let timestamp = Time::from_ps(timestamp);
            let message = SyncMessage { epoch, wave, depth, timestamp, correction, uncertainty, handover };
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

//! Frames that neighbouring clocks exchange on real links: waves, requests, and the times of each other's frames.
//!
//! Sundial's chips know how long a message was on its way; hosts do not. Hence every frame has a number, and a neighbour
//! reports when it sent its latest frames and when ours arrived, as bounds on the time: `timekeeper::bounds` computes a hard
//! interval from them. A frame with a [`SyncMessage`] is a wave. A node that listens to a neighbour asks it for waves
//! repeatedly.
//!
//! ```text
//!   prefix 02:68:69 00:04   version:4 asks:1 wave:1 synchronized:1 elected:1   sender:32   instance:32   to:32   given:32
//!   plan:32   term:32   root:32   number:32   left:32 not before:64 (ns)   arrived:32 not after:64 (ns)   [sync message]   CRC-32:32
//! ```
//!
//! [`ExchangeFrame::parse`] accepts exactly the bytes that [`ExchangeFrame::emit`] writes; the padding to the shortest
//! frame is left to the caller. Numbers are big-endian. Any bytes are read without a panic. Inside, a sync message counts
//! in nanoseconds, not in picoseconds: those since 1970 do not fit.

use crate::sync::{SYNC_LEN, SyncEpoch, SyncMessage, SyncTerm};

/// A locally administered OUI and a protocol of it, as [`crate::sync`]'s.
const PREFIX: [u8; 5] = [0x02, 0x68, 0x69, 0x00, 0x04];
const EXCHANGE_VERSION: u8 = 2;
const ASKS: u8 = 8;
const WAVE: u8 = 4;
const SYNCHRONIZED: u8 = 2;
const ELECTED: u8 = 1;
/// Bytes before the message.
const HEADER: usize = 6 + 8 * 4 + 2 * 12;
const CHECK: usize = 4;
/// The longest frame there is.
pub const EXCHANGE_LONGEST: usize = HEADER + SYNC_LEN + CHECK;

/// A frame of the other one, and a bound on the time when it left or came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTime {
    /// Number of the frame; never 0.
    pub number: u32,
    /// Time in nanoseconds.
    pub time_ns: u64,
}

/// One frame between two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeFrame {
    /// Sender, as a digest of its name.
    pub sender: u32,
    /// Incarnation of the sender's daemon.
    pub instance: u32,
    /// The run of the receiver's daemon that the sender last heard, and whose frames it speaks of; 0 if it heard none.
    pub to: u32,
    /// The plan that the sender was given, which may be another than that of the time it has.
    pub given: u32,
    /// Term of the time that the sender has, or had last.
    pub term: SyncTerm,
    /// Epoch of the plan that makes that node the root.
    pub epoch: SyncEpoch,
    /// True if the sender knows the time.
    pub synchronized: bool,
    /// True if the sender listens to the receiver, or may have to: it asks for waves.
    pub asks: bool,
    /// Counted by the sender on this link, from 1.
    pub number: u32,
    /// A frame that the sender sent on this link before; the time was not before this when it left.
    pub left: Option<FrameTime>,
    /// A frame that came to the sender on this link; the time was not after this when it came.
    pub arrived: Option<FrameTime>,
    /// Makes it a wave.
    pub wave: Option<SyncMessage>,
}

/// Bytes that are no frame of a clock, or of another version, or changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedExchange;

impl ExchangeFrame {
    /// Appends it as bytes.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend_from_slice(&PREFIX);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.asks, ASKS)
            | flag(self.wave.is_some(), WAVE)
            | flag(self.synchronized, SYNCHRONIZED)
            | flag(self.epoch.elected, ELECTED);
        bytes.push(EXCHANGE_VERSION << 4 | flags);
        let Self { sender, instance, to, given, term, number, .. } = *self;
        for number in [sender, instance, to, given, self.epoch.plan, term.number, term.root, number] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for known in [self.left, self.arrived] {
            let FrameTime { number, time_ns } = known.unwrap_or(FrameTime { number: 0, time_ns: 0 });
            bytes.extend_from_slice(&number.to_be_bytes());
            bytes.extend_from_slice(&time_ns.to_be_bytes());
        }
        if let Some(wave) = &self.wave {
            bytes.extend_from_slice(&wave.emit());
        }
        let check = crc32fast::hash(&bytes[start..]);
        bytes.extend_from_slice(&check.to_be_bytes());
    }

    /// Reads a frame; the bytes may go on behind it.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedExchange> {
        let mut rest = bytes.strip_prefix(&PREFIX).ok_or(MalformedExchange)?;
        let [first] = take(&mut rest)?;
        if first >> 4 != EXCHANGE_VERSION {
            return Err(MalformedExchange);
        }
        let len = HEADER + if first & WAVE != 0 { SYNC_LEN } else { 0 };
        let check = bytes.get(len..len + CHECK).ok_or(MalformedExchange)?;
        if crc32fast::hash(&bytes[..len]).to_be_bytes() != check {
            return Err(MalformedExchange);
        }
        let mut word = || take(&mut rest).map(u32::from_be_bytes);
        let [sender, instance, to, given] = [word()?, word()?, word()?, word()?];
        let (plan, term) = (word()?, SyncTerm { number: word()?, root: word()? });
        let number = word()?;
        let (left, arrived) = (take_frame(&mut rest)?, take_frame(&mut rest)?);
        let wave = (first & WAVE != 0).then(|| SyncMessage::parse(rest)).transpose().map_err(|_| MalformedExchange)?;
        let epoch = SyncEpoch { plan, elected: first & ELECTED != 0 };
        let (synchronized, asks) = (first & SYNCHRONIZED != 0, first & ASKS != 0);
        Ok(Self { sender, instance, to, given, term, epoch, synchronized, asks, number, left, arrived, wave })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], MalformedExchange> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(MalformedExchange)?;
    *rest = left;
    Ok(*taken)
}

fn take_frame(rest: &mut &[u8]) -> Result<Option<FrameTime>, MalformedExchange> {
    let (number, time_ns) = (u32::from_be_bytes(take(rest)?), u64::from_be_bytes(take(rest)?));
    match (number, time_ns) {
        (0, 0) => Ok(None),
        (0, _) => Err(MalformedExchange),
        _ => Ok(Some(FrameTime { number, time_ns })),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(frame: &ExchangeFrame) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        bytes
    }

    fn frame(wave: bool) -> ExchangeFrame {
        ExchangeFrame {
            sender: 1,
            instance: 2,
            to: 9,
            given: 3,
            term: SyncTerm { number: 8, root: 7 },
            epoch: SyncEpoch { plan: 4, elected: true },
            synchronized: true,
            asks: !wave,
            number: 5,
            left: Some(FrameTime { number: 4, time_ns: 1_800_000_000_000_000_000 }),
            arrived: None,
            wave: wave.then(SyncMessage::default),
        }
    }

    #[test]
    fn a_wave_and_a_request_read_as_written_also_with_padding() {
        for wave in [false, true] {
            let mut bytes = bytes_of(&frame(wave));
            assert_eq!(ExchangeFrame::parse(&bytes), Ok(frame(wave)));
            assert_eq!(ExchangeFrame::parse(&bytes[..bytes.len() - 1]), Err(MalformedExchange));
            bytes.extend([0; 20]);
            assert_eq!(ExchangeFrame::parse(&bytes), Ok(frame(wave)));
        }
        assert_eq!(bytes_of(&frame(true)).len(), EXCHANGE_LONGEST);
    }

    #[test]
    fn no_single_changed_bit_is_believed() {
        let bytes = bytes_of(&frame(true));
        for bit in 0..8 * bytes.len() {
            let mut garbled = bytes.clone();
            garbled[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ExchangeFrame::parse(&garbled), Err(MalformedExchange), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_what_is_accepted_would_be_written(
            bytes in prop::collection::vec(any::<u8>(), 0..160),
            (asks, wave) in any::<(bool, bool)>(),
        ) {
            let _ = ExchangeFrame::parse(&bytes);
            // With a right beginning and a right end.
            let mut bytes = bytes;
            bytes.resize(HEADER, 0);
            bytes[..5].copy_from_slice(&PREFIX);
            bytes[5] = EXCHANGE_VERSION << 4 | if asks { ASKS } else { 0 } | if wave { WAVE } else { 0 };
            if wave {
                bytes.extend_from_slice(&SyncMessage::default().emit());
            }
            let check = crc32fast::hash(&bytes);
            bytes.extend_from_slice(&check.to_be_bytes());
            if let Ok(frame) = ExchangeFrame::parse(&bytes) {
                prop_assert_eq!(bytes_of(&frame), bytes);
            }
        }
    }
}

//! The frame of a clock on the wire, and its seal if there is a key.
//!
//! ```text
//!   without a key   a frame as it is ([`wire::exchange`])
//!   sealed          prefix 02:68:69 00:05   sender:32   receiver:32   0:8              counter:64 tag:64   a frame
//!   greeting        prefix 02:68:69 00:05   sender:32   receiver:32   111:3 kind:5   own:128 echo:128 latest:64 tag:64
//! ```
//!
//! Sessions, tags and counters are those of links ([`seal`]): a frame opens once, in one session of two daemons, in
//! one direction. A recording of an earlier session opens nothing, whatever clocks show, because a session begins with
//! random numbers of both ends, each echoed by the other. Seals of links contain the addresses of interfaces, seals of
//! nodes their names: a frame that was sealed for one neighbour is no other's. Waves have a key of their own, derived from
//! the shared key.
//!
//! A node with a key believes nothing without a seal, and sends nothing before there is a session.

use seal::keyed::{GREETING_LEN, KeyedSeal, SealKey, derive};
use seal::{SealError, SealReadiness};
use units::{Span, Time};
use wire::ethernet::{ETHERNET, Mac};
use wire::exchange::{EXCHANGE_LONGEST, ExchangeFrame};
use wire::link::OWN;

use crate::duties::name_digest;

const PREFIX: [u8; 5] = [0x02, 0x68, 0x69, 0x00, 0x05];
/// Prefix, sender, receiver.
const NAMES: usize = PREFIX.len() + 8;
/// Value that sealed frames have in place of a greeting's kind.
const SEALED: u8 = 0;
const SEAL: usize = 16;
/// Maximum length behind an Ethernet header.
pub(crate) const LONGEST_SEALED: usize = NAMES + 1 + SEAL + EXCHANGE_LONGEST;
/// Time, or a few intervals if they are longer, within which an opened frame makes earlier errors irrelevant.
const PATIENCE: Span = Span::from_ms(1_000);

/// Reason why a frame is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameRefusal {
    /// The bytes are no frame of a clock.
    Malformed,
    /// The frame is from another node than the one that the link leads to, or for another one.
    Foreign,
    /// The frame's tag does not fit.
    Forged,
    /// The frame came before.
    Replayed,
    /// The two ends have not agreed on a session yet.
    Early,
    /// The frame has no seal, and here is a key.
    Unsealed,
    /// The frame has a seal, and here is no key.
    Sealed,
}

impl FrameRefusal {
    /// True if somebody should look after it if it goes on.
    pub(crate) fn is_trouble(self) -> bool {
        matches!(self, Self::Forged | Self::Replayed | Self::Unsealed | Self::Sealed)
    }
}

/// This end of a session with a neighbour.
#[derive(Debug)]
struct SealEnd {
    keyed: KeyedSeal,
    /// Names, in place of addresses.
    own: Mac,
    peer: Mac,
}

/// Writes and reads frames to and from one neighbour.
#[derive(Debug)]
pub(crate) struct WaveSeal {
    end: Option<SealEnd>,
    /// Sender and receiver of the frames that are sent.
    names: [u32; 2],
    now: Time,
    patience: Span,
    opened_at: Time,
    /// Trouble since a frame opened last.
    trouble: Option<FrameRefusal>,
}

fn name_as_address(digest: u32) -> Mac {
    let [a, b, c, d] = digest.to_be_bytes();
    Mac([0x02, 0, a, b, c, d])
}

impl WaveSeal {
    /// `life` is random, and no other run of any daemon has the same.
    pub(crate) fn new(key: Option<(SealKey, u128)>, own: &str, peer: &str, interval: Span) -> Self {
        let names = [own, peer].map(name_digest);
        let [own, peer] = names.map(name_as_address);
        let end = key.map(|(key, life)| SealEnd { keyed: KeyedSeal::new(derive(&key, &[b"waves"]), life), own, peer });
        let patience = PATIENCE + interval * 4;
        Self { end, names, now: Time::ZERO, patience, opened_at: Time::ZERO, trouble: None }
    }

    /// Sets the current time; call before anything else in a turn.
    pub(crate) fn set_time(&mut self, now: Time) {
        self.now = now;
        if let Some(end) = &mut self.end {
            end.keyed.set_time(now);
        }
    }

    /// Readiness of the seal for frames in both directions.
    pub(crate) fn readiness(&self) -> SealReadiness {
        self.end.as_ref().map_or(SealReadiness::Open, |end| end.keyed.opening())
    }

    /// True if there is a session; `None` without a key.
    pub(crate) fn has_session(&self) -> Option<bool> {
        self.end.as_ref().map(|end| end.keyed.opening() == SealReadiness::Open)
    }

    /// Time at which [`Self::greet`] has something to send.
    pub(crate) fn greets_at(&self) -> Time {
        self.end.as_ref().map_or(Time::NEVER, |end| end.keyed.greets_at())
    }

    fn append_names(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&PREFIX);
        self.names.iter().for_each(|name| bytes.extend_from_slice(&name.to_be_bytes()));
    }

    /// Appends the next greeting, if there is one; false if not.
    pub(crate) fn greet(&mut self, bytes: &mut Vec<u8>) -> bool {
        let Some(end) = &mut self.end else { return false };
        let Some(greeting) = end.keyed.greet(end.own, end.peer) else { return false };
        self.append_names(bytes);
        bytes.extend_from_slice(&greeting[ETHERNET..]);
        true
    }

    /// Appends a frame as it goes out; false if it cannot be sealed yet.
    pub(crate) fn write(&mut self, frame: &ExchangeFrame, bytes: &mut Vec<u8>) -> bool {
        if self.end.is_none() {
            frame.emit(bytes);
            return true;
        }
        if self.readiness() != SealReadiness::Open {
            return false;
        }
        let start = bytes.len();
        self.append_names(bytes);
        bytes.push(SEALED);
        let place = bytes.len();
        bytes.extend_from_slice(&[0; SEAL]);
        frame.emit(bytes);
        let (head, rest) = bytes[start..].split_at_mut(place - start);
        let (seal, body) = rest.split_at_mut(SEAL);
        if let Some(end) = &mut self.end {
            end.keyed.write(&[head, body], seal);
        }
        true
    }

    /// Reads the bytes behind an Ethernet header; `None` if they were a greeting.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<Option<ExchangeFrame>, FrameRefusal> {
        let read = self.open(bytes);
        match &read {
            Ok(_) => (self.opened_at, self.trouble) = (self.now, None),
            Err(refusal) if refusal.is_trouble() => self.trouble = Some(*refusal),
            Err(_) => {}
        }
        read
    }

    fn open(&mut self, bytes: &[u8]) -> Result<Option<ExchangeFrame>, FrameRefusal> {
        let Some(rest) = bytes.strip_prefix(&PREFIX) else {
            let frame = ExchangeFrame::parse(bytes).map_err(|_| FrameRefusal::Malformed)?;
            return match &self.end {
                None => Ok(Some(frame)),
                Some(_) if frame.sender == self.names[1] => Err(FrameRefusal::Unsealed),
                Some(_) => Err(FrameRefusal::Foreign),
            };
        };
        let (sender, rest) = rest.split_first_chunk().ok_or(FrameRefusal::Malformed)?;
        let (receiver, rest) = rest.split_first_chunk().ok_or(FrameRefusal::Malformed)?;
        if self.names != [receiver, sender].map(|name| u32::from_be_bytes(*name)) {
            return Err(FrameRefusal::Foreign);
        }
        let end = self.end.as_mut().ok_or(FrameRefusal::Sealed)?;
        match rest.first() {
            Some(&SEALED) => end.open(bytes).map(Some),
            _ => end.hear(rest).map(|()| None),
        }
    }

    /// Reason why nothing of the neighbour is believed, for people; none if something is.
    pub(crate) fn problem(&self, neighbour: &str) -> Option<String> {
        let trouble = self.trouble.filter(|_| self.now.since(self.opened_at) > self.patience)?;
        Some(trouble.in_words(neighbour))
    }
}

impl FrameRefusal {
    /// Describes the refusal for people, if it is trouble.
    pub(crate) fn in_words(self, neighbour: &str) -> String {
        match self {
            Self::Forged => {
                format!("frames in the name of {neighbour} do not open: it has another key, or they are forged")
            }
            Self::Replayed => format!("frames of {neighbour} came before: somebody plays them again"),
            Self::Unsealed => format!("frames in the name of {neighbour} have no seal: start it with the same --key"),
            Self::Sealed => format!("frames of {neighbour} are sealed: start this node with its --key"),
            Self::Foreign => {
                format!("another node than {neighbour} is at the other end: is the cable, or --link, wrong?")
            }
            Self::Malformed | Self::Early => format!("frames of {neighbour} cannot be read"),
        }
    }
}

impl SealEnd {
    fn open(&mut self, bytes: &[u8]) -> Result<ExchangeFrame, FrameRefusal> {
        let (head, rest) = bytes.split_at(NAMES + 1);
        let (seal, body) = rest.split_at_checked(SEAL).ok_or(FrameRefusal::Malformed)?;
        self.keyed.check(seal, &[head, body]).map_err(refusal)?;
        ExchangeFrame::parse(body).map_err(|_| FrameRefusal::Malformed)
    }

    /// A greeting is about both names and comes from the peer, as if they were its addresses.
    fn hear(&mut self, bytes: &[u8]) -> Result<(), FrameRefusal> {
        let bytes = bytes.get(..GREETING_LEN - ETHERNET).ok_or(FrameRefusal::Malformed)?;
        let mut greeting = [0; GREETING_LEN];
        let (addresses, rest) = greeting.split_at_mut(ETHERNET);
        addresses.copy_from_slice(&[&self.own.0[..], &self.peer.0, &OWN.to_be_bytes()].concat());
        rest.copy_from_slice(bytes);
        self.keyed.on_greeting(&greeting, self.peer, self.own).map_err(refusal)
    }
}

fn refusal(error: SealError) -> FrameRefusal {
    match error {
        SealError::Corrupted | SealError::Forged => FrameRefusal::Forged,
        SealError::Replayed => FrameRefusal::Replayed,
        SealError::Early => FrameRefusal::Early,
    }
}

#[cfg(test)]
mod tests;

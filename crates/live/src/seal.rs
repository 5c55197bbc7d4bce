//! What a frame carries so that the far end can tell whether it is as we sent it.
//!
//! ```text
//!   none    nothing: the wire's own frame check is trusted
//!   crc     crc32:32                  for wires whose check cannot be trusted, or that have none
//!   key     counter:64 tag:64         SipHash-2-4 with a shared key: neither altered, forged nor replayed
//! ```
//!
//! A seal lies between the link header and what follows, and covers everything before and after itself.
//! The counter of a keyed seal starts at the time of day and counts every frame sent, so that it never
//! falls back, not even over a restart; a receiver takes each number once and none older than its window.
//! Padding to the shortest Ethernet frame is covered as well, because the far end cannot tell it apart:
//! sealed frames are padded here, not by the network card.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// The shortest Ethernet frame without its check; a card pads what is shorter.
const SHORTEST: usize = 60;

/// Why a seal was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The check sum does not fit: altered on the way.
    Corrupted,
    /// The tag does not fit: not from someone with the key.
    Forged,
    /// Seen before, or too old to tell.
    Replayed,
}

#[derive(Clone, Debug)]
pub enum Seal {
    None,
    Crc,
    Key(Box<Keyed>),
}

impl Seal {
    pub const LONGEST: usize = 16;

    /// With a key of 16 bytes; `start` is the time of day, in any unit that is finer than frames are.
    pub fn keyed(key: [u8; 16], start: u64) -> Self {
        Self::Key(Box::new(Keyed { key, sent: start, seen: Window::default() }))
    }

    /// How the two ends name it to each other.
    pub fn code(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Crc => 1,
            Self::Key(_) => 2,
        }
    }

    /// In bytes.
    #[inline]
    pub fn size(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Crc => 4,
            Self::Key(_) => 16,
        }
    }

    pub fn is_keyed(&self) -> bool {
        matches!(self, Self::Key(_))
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// How many zeros must follow a frame of `len` bytes.
    #[inline]
    pub fn padding(&self, len: usize) -> usize {
        if self.is_none() { 0 } else { SHORTEST.saturating_sub(len) }
    }

    /// Seals a frame of which `head` comes before the seal and `body` and `padding` zeros after it.
    pub fn write(&mut self, head: &[u8], body: &[u8], padding: usize, out: &mut [u8]) {
        let padding = &[0; SHORTEST][..padding];
        match self {
            Self::None => {}
            Self::Crc => out[..4].copy_from_slice(&crc(&[head, body, padding]).to_be_bytes()),
            Self::Key(keyed) => {
                keyed.sent += 1;
                out[..8].copy_from_slice(&keyed.sent.to_be_bytes());
                out[8..16].copy_from_slice(&keyed.tag(keyed.sent, &[head, body, padding]).to_be_bytes());
            }
        }
    }

    /// What a frame without a seal is.
    pub fn missing(&self) -> Broken {
        if self.is_keyed() { Broken::Forged } else { Broken::Corrupted }
    }

    /// Whether a frame is as its sender sealed it, and new.
    pub fn check(&mut self, head: &[u8], seal: &[u8], rest: &[u8]) -> Result<(), Broken> {
        match self {
            Self::None => Ok(()),
            Self::Crc if seal == crc(&[head, rest]).to_be_bytes() => Ok(()),
            Self::Crc => Err(Broken::Corrupted),
            Self::Key(keyed) => {
                let Some((counter, tag)) = seal.split_first_chunk::<8>() else { return Err(Broken::Forged) };
                let counter = u64::from_be_bytes(*counter);
                if tag != keyed.tag(counter, &[head, rest]).to_be_bytes() {
                    return Err(Broken::Forged);
                }
                if keyed.seen.accept(counter) { Ok(()) } else { Err(Broken::Replayed) }
            }
        }
    }
}

fn crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

#[derive(Clone)]
pub struct Keyed {
    key: [u8; 16],
    sent: u64,
    seen: Window,
}

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyed").finish_non_exhaustive()
    }
}

impl Keyed {
    fn tag(&self, counter: u64, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(counter);
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish()
    }
}

/// Which of the latest numbers have been seen.
#[derive(Clone, Debug, Default)]
struct Window {
    latest: u64,
    /// Bit n: `latest - n` was seen.
    seen: u64,
}

impl Window {
    fn accept(&mut self, number: u64) -> bool {
        if number > self.latest {
            let ahead = number - self.latest;
            self.seen = if ahead < 64 { self.seen << ahead | 1 } else { 1 };
            self.latest = number;
            return true;
        }
        let bit = match self.latest - number {
            behind @ 0..64 => 1 << behind,
            _ => return false,
        };
        let new = self.seen & bit == 0;
        self.seen |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"addresses and header";
    const BODY: &[u8] = b"what the frame carries, all of it";

    fn sealed(seal: &mut Seal) -> Vec<u8> {
        let mut out = vec![0; seal.size()];
        seal.write(HEAD, BODY, 0, &mut out);
        out
    }

    #[test]
    fn any_altered_bit_is_found() {
        for mut seal in [Seal::Crc, Seal::keyed([7; 16], 1_000)] {
            let good = sealed(&mut seal);
            let mut receiver = seal.clone();
            let whole = [HEAD, &good, BODY].concat();
            for bit in 0..whole.len() * 8 {
                let mut altered = whole.clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                let (head, rest) = altered.split_at(HEAD.len());
                let (tag, body) = rest.split_at(good.len());
                assert!(receiver.check(head, tag, body).is_err(), "bit {bit}");
            }
            assert_eq!(receiver.check(HEAD, &good, BODY), Ok(()));
        }
    }

    #[test]
    fn a_replayed_frame_and_one_of_another_key_are_refused() {
        let mut seal = Seal::keyed([7; 16], 1_000);
        let mut receiver = seal.clone();
        let (first, second) = (sealed(&mut seal), sealed(&mut seal));
        assert_eq!(receiver.check(HEAD, &second, BODY), Ok(()));
        assert_eq!(receiver.check(HEAD, &first, BODY), Ok(()));
        assert_eq!(receiver.check(HEAD, &first, BODY), Err(Broken::Replayed));
        for _ in 0..100 {
            assert_eq!(receiver.check(HEAD, &sealed(&mut seal), BODY), Ok(()));
        }
        assert_eq!(receiver.check(HEAD, &second, BODY), Err(Broken::Replayed));
        assert_eq!(receiver.check(HEAD, &sealed(&mut Seal::keyed([8; 16], 9_000)), BODY), Err(Broken::Forged));
    }

    #[test]
    fn a_sender_that_restarts_later_is_accepted() {
        let mut receiver = Seal::keyed([7; 16], 0);
        let mut before = Seal::keyed([7; 16], 1_000);
        let old = sealed(&mut before);
        assert_eq!(receiver.check(HEAD, &old, BODY), Ok(()));
        let mut after = Seal::keyed([7; 16], 2_000);
        assert_eq!(receiver.check(HEAD, &sealed(&mut after), BODY), Ok(()));
        assert_eq!(receiver.check(HEAD, &old, BODY), Err(Broken::Replayed));
    }

    #[test]
    fn a_short_frame_is_padded_only_if_sealed() {
        assert_eq!((Seal::None.padding(20), Seal::Crc.padding(20), Seal::Crc.padding(80)), (0, 40, 0));
    }
}

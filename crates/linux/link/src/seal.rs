//! Seal of a frame, by which the far end can check that it is as we sent it.
//!
//! ```text
//!   none    nothing: the wire's own frame check is trusted
//!   crc     crc32:32                  for wires whose check cannot be trusted, or that have none
//!   key     counter:64 tag:64         SipHash-2-4 with a shared key: neither altered, forged nor replayed
//! ```
//!
//! A seal lies between the link header and what follows, and covers everything before and after itself.
//! With a key, two ends first agree on a session ([`seal::greeting`]), and frames open in no other ([`seal::keyed`]).
//! Padding to the shortest Ethernet frame is covered as well, because the far end cannot recognise it:
//! sealed frames are padded here, not by the network card.

use seal::{GREETING_LEN, KeyedSeal, SealError, SealReadiness};
use units::Time;
use wire::ethernet::Mac;

/// The shortest Ethernet frame without its check; a card pads what is shorter.
const SHORTEST: usize = 60;

#[derive(Clone, Debug)]
pub enum Seal {
    None,
    Crc,
    Key(Box<KeyedSeal>),
}

impl Seal {
    pub const LONGEST: usize = 16;

    /// Makes a seal with a key of 16 bytes. `life` is random, and no other incarnation of any end has the same.
    pub fn keyed(key: [u8; 16], life: u128) -> Self {
        Self::Key(Box::new(KeyedSeal::new(key, life)))
    }

    /// Code by which the two ends name it to each other.
    pub fn code(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Crc => 1,
            Self::Key(_) => 2,
        }
    }

    /// Length in bytes.
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

    /// Number of zeros that must follow a frame of `len` bytes.
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
            Self::Key(keyed) => keyed.write(&[head, body, padding], &mut out[..16]),
        }
    }

    /// Error for a frame without a seal.
    pub fn missing(&self) -> SealError {
        if self.is_keyed() { SealError::Forged } else { SealError::Corrupted }
    }

    /// Checks that a frame is as its sender sealed it, and new.
    pub fn check(&mut self, head: &[u8], seal: &[u8], rest: &[u8]) -> Result<(), SealError> {
        match self {
            Self::None => Ok(()),
            Self::Crc if seal == crc(&[head, rest]).to_be_bytes() => Ok(()),
            Self::Crc => Err(SealError::Corrupted),
            Self::Key(keyed) => keyed.check(seal, &[head, rest]),
        }
    }

    /// Sets the current time; call before anything else in a turn.
    pub(crate) fn set_time(&mut self, now: Time) {
        if let Self::Key(keyed) = self {
            keyed.set_time(now);
        }
    }

    /// Time begins again at zero.
    pub fn start_over(&mut self) {
        if let Self::Key(keyed) = self {
            keyed.start_over();
        }
    }

    #[inline]
    pub fn opening(&self) -> SealReadiness {
        match self {
            Self::None | Self::Crc => SealReadiness::Open,
            Self::Key(keyed) => keyed.opening(),
        }
    }

    /// Time at which [`Self::greet`] has something to send.
    #[inline]
    pub(crate) fn greets_at(&self) -> Time {
        match self {
            Self::None | Self::Crc => Time::NEVER,
            Self::Key(keyed) => keyed.greets_at(),
        }
    }

    pub fn greet(&mut self, from: Mac, to: Mac) -> Option<[u8; GREETING_LEN]> {
        match self {
            Self::None | Self::Crc => None,
            Self::Key(keyed) => keyed.greet(from, to),
        }
    }
}

fn crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"addresses and header";
    const BODY: &[u8] = b"what the frame carries, all of it";

    const MACS: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];

    fn sealed(seal: &mut Seal) -> Vec<u8> {
        let mut out = vec![0; seal.size()];
        seal.write(HEAD, BODY, 0, &mut out);
        out
    }

    /// Two ends that exchange greetings for as long as there are any.
    fn meet(ends: &mut [Seal; 2], macs: [Mac; 2]) {
        for _ in 0..4 {
            for from in 0..2 {
                while let Some(greeting) = ends[from].greet(macs[from], macs[1 - from]) {
                    let Seal::Key(keyed) = &mut ends[1 - from] else { return };
                    let _ = keyed.on_greeting(&greeting, macs[from], macs[1 - from]);
                }
            }
        }
    }

    fn keyed_pair(lives: [u128; 2]) -> [Seal; 2] {
        let mut ends = lives.map(|life| Seal::keyed([7; 16], life));
        meet(&mut ends, MACS);
        assert!(ends.iter().all(|end| end.opening() == SealReadiness::Open));
        ends
    }

    #[test]
    fn any_altered_bit_is_found() {
        for [mut seal, mut receiver] in [[Seal::Crc, Seal::Crc], keyed_pair([1, 1 << 64])] {
            let good = sealed(&mut seal);
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
        let [mut seal, mut receiver] = keyed_pair([1, 1 << 64]);
        let (first, second) = (sealed(&mut seal), sealed(&mut seal));
        assert_eq!(receiver.check(HEAD, &second, BODY), Ok(()));
        assert_eq!(receiver.check(HEAD, &first, BODY), Ok(()));
        assert_eq!(receiver.check(HEAD, &first, BODY), Err(SealError::Replayed));
        for _ in 0..100 {
            assert_eq!(receiver.check(HEAD, &sealed(&mut seal), BODY), Ok(()));
        }
        assert_eq!(receiver.check(HEAD, &second, BODY), Err(SealError::Replayed));
        let mut others = [1, 1 << 64].map(|life| Seal::keyed([8; 16], life));
        meet(&mut others, MACS);
        assert_eq!(receiver.check(HEAD, &sealed(&mut others[0]), BODY), Err(SealError::Forged));
    }

    #[test]
    fn a_frame_opens_in_one_direction_of_one_session_between_two_addresses_only() {
        let [mut seal, _] = keyed_pair([1, 1 << 64]);
        let frame = sealed(&mut seal);
        assert!(seal.check(HEAD, &frame, BODY).is_err(), "our own, come back");
        for lives in [[2, 1 << 64], [1, 2 << 64], [1 << 64, 1]] {
            let [_, mut receiver] = keyed_pair(lives);
            assert!(receiver.check(HEAD, &frame, BODY).is_err(), "{lives:?}");
        }
        let mut others = [1, 1 << 64].map(|life| Seal::keyed([7; 16], life));
        meet(&mut others, [MACS[0], Mac([2, 0, 0, 0, 0, 3])]);
        assert!(others[1].check(HEAD, &frame, BODY).is_err(), "other addresses");
        let [_, mut receiver] = keyed_pair([1, 1 << 64]);
        assert_eq!(receiver.check(HEAD, &frame, BODY), Ok(()), "the very same session, for comparison");
    }

    #[test]
    fn a_sender_that_restarts_is_accepted_after_a_greeting_and_its_old_frames_are_not() {
        let [mut before, mut receiver] = keyed_pair([1, 1 << 64]);
        let old: Vec<Vec<u8>> = (0..10).map(|_| sealed(&mut before)).collect();
        assert_eq!(receiver.check(HEAD, &old[9], BODY), Ok(()));
        let mut ends = [Seal::keyed([7; 16], 2 << 64), receiver];
        meet(&mut ends, MACS);
        let [mut after, mut receiver] = ends;
        assert_eq!(receiver.check(HEAD, &sealed(&mut after), BODY), Ok(()));
        assert!(old.iter().all(|frame| receiver.check(HEAD, frame, BODY).is_err()));
    }

    #[test]
    fn an_altered_greeting_does_nothing() {
        let mut ends = [Seal::keyed([7; 16], 1), Seal::keyed([7; 16], 1 << 64)];
        let hello = ends[0].greet(MACS[0], MACS[1]).unwrap();
        ends[1].greet(MACS[1], MACS[0]);
        let Seal::Key(receiver) = &mut ends[1] else { panic!() };
        for bit in 0..hello.len() * 8 {
            let mut altered = hello;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(receiver.on_greeting(&altered, MACS[0], MACS[1]), Err(SealError::Forged), "bit {bit}");
        }
        assert!(receiver.greet(MACS[1], MACS[0]).is_none());
    }

    #[test]
    fn a_machine_set_back_to_a_snapshot_is_heard_again_after_one_question() {
        let mut ends = keyed_pair([1, 1 << 64]);
        let snapshot = ends[0].clone();
        for _ in 0..200 {
            let frame = sealed(&mut ends[0]);
            assert_eq!(ends[1].check(HEAD, &frame, BODY), Ok(()));
        }
        ends[0] = snapshot;
        ends.iter_mut().for_each(|end| end.set_time(Time::ZERO + units::Span::from_ms(5_000)));
        let frame = sealed(&mut ends[0]);
        assert_eq!(ends[1].check(HEAD, &frame, BODY), Err(SealError::Replayed));
        meet(&mut ends, MACS);
        let frame = sealed(&mut ends[0]);
        assert_eq!(ends[1].check(HEAD, &frame, BODY), Ok(()));
    }

    #[test]
    fn a_short_frame_is_padded_only_if_sealed() {
        assert_eq!((Seal::None.padding(20), Seal::Crc.padding(20), Seal::Crc.padding(80)), (0, 40, 0));
    }
}

//! Frames that somebody on the wire makes up.
//!
//! They come from the peer's address and have the link's own type. A third is random bytes; the others have the shape of
//! life-cycle messages, with any epoch up to the last, of acknowledgements and of data. What a data frame carries is no
//! packet: it can take the place of a genuine one on a link without a key, but never pass for one.

use faults::Random;
use wire::link::SessionMessage;

use link::frame::{ETHERNET, OWN, TAG};

#[derive(Clone, Debug)]
pub(crate) struct Forger {
    random: Random,
    head: [u8; 14],
}

/// Kinds of frames in the first byte's upper three bits; see `wire::link`.
const DATA: u8 = 1 << 5;
const ACK: u8 = 4 << 5;
const SESSION: u8 = 6 << 5;
const HAS_FEEDBACK: u8 = 1 << 2;
/// Window and longest frame that the bench's daemons agree on.
const WINDOW: u16 = super::ledger::WINDOW as u16;
const LONGEST: u16 = 1_500 + (ETHERNET + TAG) as u16 + 4;
/// EtherType of local experiments, which nobody reads.
const NO_PACKET: [u8; 2] = [0x12, 0x34];

impl Forger {
    /// Makes a forger of frames to `to` that `from` seems to have sent.
    pub(crate) fn new(seed: u64, from: [u8; 6], to: [u8; 6]) -> Self {
        let mut head = [0; 14];
        head[..6].copy_from_slice(&to);
        head[6..12].copy_from_slice(&from);
        head[12..].copy_from_slice(&OWN.to_be_bytes());
        Self { random: Random::new(seed, 11), head }
    }

    pub(crate) fn frame(&mut self) -> Vec<u8> {
        let mut frame = self.head.to_vec();
        match self.random.below(6) {
            0 | 1 => {
                let length = self.random.below(120) as usize;
                frame.extend((0..length).map(|_| self.byte()));
            }
            2 | 3 => self.session(&mut frame),
            4 => {
                frame.push(ACK | HAS_FEEDBACK | self.byte() & 3);
                frame.extend([self.byte() & 0b10, self.byte(), self.byte()]);
            }
            _ => {
                frame.push(DATA | self.byte() & 0b1011);
                frame.extend([self.byte(), self.byte()]);
                frame.extend(NO_PACKET);
                frame.extend((0..80).map(|_| self.byte()));
            }
        }
        frame.resize(frame.len().max(60), 0);
        frame
    }

    fn byte(&mut self) -> u8 {
        self.random.below(256) as u8
    }

    /// Writes a life-cycle message in a valid format with forged numbers.
    fn session(&mut self, frame: &mut Vec<u8>) {
        let kind = self.byte() % 13;
        let epoch: u32 = match self.random.below(3) {
            0 => 0x7fff_ffff - u32::from(self.byte() & 1),
            1 => u32::from(self.byte() & 15),
            _ => self.random.below(1 << 32) as u32,
        };
        let mut message = [0; SessionMessage::LEN];
        let ([w, x], [m, n]) = (WINDOW.to_be_bytes(), LONGEST.to_be_bytes());
        message[..8].copy_from_slice(&[kind, wire::link::VERSION, 1, 1, w, x, m, n]);
        for byte in &mut message[8..] {
            *byte = self.byte();
        }
        if self.byte() & 1 == 0 {
            // It seems not to know yet whom it talks to.
            message[12..16].fill(0);
        }
        let end = message.len();
        message[end - 4..].copy_from_slice(&epoch.to_be_bytes());
        frame.push(SESSION | (epoch & 3) as u8);
        frame.extend(message);
    }
}

#[cfg(test)]
mod tests {
    use wire::link::{FrameKind, LinkHeader};

    use super::*;

    #[test]
    fn forged_frames_come_from_the_peer_and_are_of_every_kind() {
        let (from, to) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let mut forger = Forger::new(1, from, to);
        let (mut data, mut acks, mut sessions, mut nonsense) = (0, 0, 0, 0);
        for _ in 0..2_000 {
            let frame = forger.frame();
            assert_eq!((&frame[..6], &frame[6..12], &frame[12..14]), (&to[..], &from[..], &OWN.to_be_bytes()[..]));
            assert!((60..=134).contains(&frame.len()));
            match LinkHeader::parse(&frame[14..]).map(|(header, _)| header.kind()) {
                Ok(FrameKind::Data(..)) => data += 1,
                Ok(FrameKind::Ack) => acks += 1,
                Ok(FrameKind::Session) => sessions += 1,
                _ => nonsense += 1,
            }
        }
        assert!(
            [data, acks, sessions, nonsense].iter().all(|count| *count > 100),
            "{data} {acks} {sessions} {nonsense}"
        );
    }
}

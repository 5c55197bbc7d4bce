//! Format of a protected frame on a live wire, and the senders whose frames are accepted.
//!
//! ```text
//!   88b5   to:48 from:48 88b5:16 link header, seal, then the rest of the frame from its type on
//!   88b6   to:48 from:48 88b6:16 link header, seal, then a whole frame with addresses of its own
//! ```
//!
//! Nearly every frame is the host's own, and its addresses serve for both; five bytes are added. A frame
//! that was bridged in from elsewhere keeps its addresses inside, so that what drives the link always
//! comes from the peer's own address. Control messages carry no frame. A frame of any other type passes
//! as it is, unless a key is used: then unprotected frames are sealed as well, behind a header of one byte
//! ([`SEALED_BARE`]), and nothing passes that is not sealed. The two ends agree on how by greetings of their own
//! ([`wire::link::GREETING`], [`seal::keyed`]). Both types are set aside for local experiments (IEEE 802).
//!
//! If both ends can, and nothing is sealed, new frames of the host's for the peer keep their type and length, and have
//! their number in place of their addresses ([`wire::link::AddressStamp`], [`crate::stamp`]). Ends offer that behind their
//! life-cycle messages.

pub use wire::ethernet::{ETHERNET, Mac, TAG};
use wire::link::{
    FrameKind, LinkHeader, MAX_HEADER, MalformedHeader, ProbePaths, RESERVED_ADDRESS, STAMP_OFFER, StampProbe,
};
pub use wire::link::{OWN, SEALED_BARE, WHOLE};

use units::Time;

use seal::keyed::greeting_kind;
use seal::{GREETING_LEN, SealError, SealReadiness};
use standin::backend::LONGEST_HEAD;

use crate::seal::Seal;

/// Two addresses.
const ADDRESSES: usize = 12;

const _: () =
    assert!(ETHERNET + MAX_HEADER + Seal::LONGEST <= LONGEST_HEAD, "the most that goes before what a frame carries");

/// The shortest frame, its check not counted.
const SHORTEST: usize = 60;

const EVERYONE: Mac = Mac([0xff; 6]);

/// Bytes that a link's frames need beside what the host's frames carry, at most: one that was bridged in, with a tag, and
/// an acknowledgement that lists all the gaps it can.
pub(crate) fn overhead(seal: &Seal) -> usize {
    ETHERNET + MAX_HEADER + seal.size() + TAG
}

/// Reason why a frame is not acted upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRejection {
    /// Too short for an Ethernet frame, or without our link header.
    Malformed,
    /// Our own, come back.
    Looped,
    /// The frame is from an address that is not the peer's.
    Stranger(Mac),
    Broken(SealError),
    /// The frame has no seal, where a key is used.
    Unsealed,
    /// A greeting between seals, which was taken care of.
    Greeting,
    /// The peer uses a key, and this end does not.
    KeyMissing,
    /// A probe, which is not for the endpoint, and the paths by which it arrived other than the plain one.
    Probe(StampProbe, ProbePaths),
}

impl From<MalformedHeader> for FrameRejection {
    fn from(_: MalformedHeader) -> Self {
        Self::Malformed
    }
}

/// A frame off the wire.
#[derive(Debug, PartialEq)]
pub struct ReceivedFrame<'a> {
    pub header: LinkHeader,
    /// The frame it carries, in two pieces.
    pub body: [&'a [u8]; 2],
}

/// A frame for the wire: `head`, then the frame it carries from `skip` on, then `padding` zeros.
#[derive(Clone, Copy, Debug)]
pub struct EmittedFrame {
    pub head: [u8; LONGEST_HEAD],
    pub head_len: usize,
    pub skip: usize,
    pub padding: usize,
}

impl EmittedFrame {
    /// Appends to the head, and pads to the shortest frame.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.head[self.head_len..self.head_len + bytes.len()].copy_from_slice(bytes);
        self.head_len += bytes.len();
        self.padding = SHORTEST.saturating_sub(self.head_len);
    }
}

#[derive(Debug)]
pub struct Framing {
    own: Mac,
    peer: Option<Mac>,
    /// The peer is who answers, not who was configured.
    learns: bool,
    seal: Seal,
    /// Stamps are offered here, and by the peer.
    offers_stamps: bool,
    peer_offers_stamps: bool,
}

impl Framing {
    /// `peer` is the only one listened to; if it is `None`, the first who greets us is.
    pub fn new(own: Mac, peer: Option<Mac>, seal: Seal) -> Self {
        Self { own, peer, learns: peer.is_none(), seal, offers_stamps: false, peer_offers_stamps: false }
    }

    /// Code by which the two ends name the seal to each other.
    pub fn seal_code(&self) -> u8 {
        self.seal.code()
    }

    /// Offers stamps, unless frames are sealed.
    pub(crate) fn offer_stamps(&mut self) {
        self.offers_stamps = matches!(self.seal, Seal::None);
    }

    /// True if stamps are offered by this end and by the peer's latest life-cycle message.
    pub(crate) fn peer_offers_stamps(&self) -> bool {
        self.offers_stamps && self.peer_offers_stamps
    }

    /// True if a frame goes from this end to the peer, so that the peer can restore its addresses.
    #[inline]
    pub(crate) fn is_for_peer(&self, frame: &[u8]) -> bool {
        let peer = self.peer.as_ref().map_or(&[][..], |peer| &peer.0);
        frame.len() >= ETHERNET && &frame[..6] == peer && frame[6..ADDRESSES] == self.own.0
    }

    /// True if this end has the lower address of the two.
    pub(crate) fn is_lower(&self) -> bool {
        self.peer.is_some_and(|peer| self.own.0 < peer.0)
    }

    /// Gives a frame of the peer's its addresses back; false if the peer is not known.
    #[inline]
    pub(crate) fn restore_addresses(&self, frame: &mut [u8]) -> bool {
        let (Some(peer), Some(addresses)) = (self.peer, frame.get_mut(..ADDRESSES)) else { return false };
        addresses[..6].copy_from_slice(&self.own.0);
        addresses[6..].copy_from_slice(&peer.0);
        true
    }

    pub fn peer(&self) -> Option<Mac> {
        self.peer
    }

    /// Sets the current time; call before anything else in a turn.
    pub(crate) fn set_time(&mut self, now: Time) {
        self.seal.set_time(now);
    }

    /// Time begins again at zero; what the ends agreed on stays.
    pub fn start_over(&mut self) {
        self.seal.start_over();
    }

    /// Returns whether frames can be sealed so that the peer opens them.
    #[inline]
    pub fn opening(&self) -> SealReadiness {
        self.seal.opening()
    }

    /// Time at which [`Self::greet`] has something to send.
    #[inline]
    pub(crate) fn greets_at(&self) -> Time {
        self.seal.greets_at()
    }

    /// The next greeting of the seal for the peer's.
    pub fn greet(&mut self) -> Option<EmittedFrame> {
        let greeting = self.seal.greet(self.own, self.peer.unwrap_or(EVERYONE))?;
        let mut emitted = EmittedFrame { head: [0; LONGEST_HEAD], head_len: GREETING_LEN, skip: 0, padding: 0 };
        emitted.head[..GREETING_LEN].copy_from_slice(&greeting);
        Some(emitted)
    }

    /// The peer is gone; if it was learnt, another may take its place.
    pub(crate) fn forget_peer(&mut self) {
        self.peer_offers_stamps = false;
        if self.learns {
            self.peer = None;
        }
    }

    pub fn emit(&mut self, header: &LinkHeader, body: Option<&[u8]>) -> EmittedFrame {
        let mut emitted = EmittedFrame { head: [0; LONGEST_HEAD], head_len: 0, skip: 0, padding: 0 };
        let bare = header.kind() == FrameKind::Bare;
        if bare && !self.seal.is_keyed() {
            return emitted;
        }
        let (head, body) = (&mut emitted.head, body.unwrap_or(&[]));
        let own = body.len() >= ETHERNET && body[6..ADDRESSES] == self.own.0;
        let (to, kind) = match own {
            true => (&body[..6], OWN),
            false => (&self.peer.as_ref().unwrap_or(&EVERYONE).0[..], if body.is_empty() { OWN } else { WHOLE }),
        };
        head[..6].copy_from_slice(to);
        head[6..ADDRESSES].copy_from_slice(&self.own.0);
        head[ADDRESSES..ETHERNET].copy_from_slice(&kind.to_be_bytes());
        emitted.skip = if own { ADDRESSES } else { 0 };
        let (mut at, rest) = (ETHERNET, &body[emitted.skip..]);
        at += match bare {
            true => {
                head[at] = SEALED_BARE;
                1
            }
            false => header.emit(&mut head[at..]),
        };
        if self.offers_stamps && header.kind() == FrameKind::Session {
            head[at..at + STAMP_OFFER.len()].copy_from_slice(&STAMP_OFFER);
            at += STAMP_OFFER.len();
        }
        emitted.padding = self.seal.padding(at + self.seal.size() + rest.len());
        let (sealed, seal) = head.split_at_mut(at);
        self.seal.write(sealed, rest, emitted.padding, seal);
        emitted.head_len = at + self.seal.size();
        emitted
    }

    pub fn parse<'a>(&mut self, bytes: &'a [u8]) -> Result<ReceivedFrame<'a>, FrameRejection> {
        let Some((ethernet, rest)) = bytes.split_at_checked(ETHERNET) else { return Err(FrameRejection::Malformed) };
        let kind = u16::from_be_bytes([ethernet[12], ethernet[13]]);
        if kind != OWN && kind != WHOLE {
            if self.seal.is_keyed() {
                return Err(FrameRejection::Unsealed);
            }
            return Ok(ReceivedFrame { header: LinkHeader::BARE, body: [bytes, &[]] });
        }
        let from = Mac([ethernet[6], ethernet[7], ethernet[8], ethernet[9], ethernet[10], ethernet[11]]);
        if from == self.own {
            return Err(FrameRejection::Looped);
        }
        if self.peer.is_some_and(|peer| peer != from) {
            return Err(FrameRejection::Stranger(from));
        }
        let (header, len) = match rest.first() {
            Some(first) if kind == OWN && greeting_kind(*first).is_some() => return Err(self.on_greeting(bytes, from)),
            Some(first) if kind == OWN && StampProbe::marks(*first) && matches!(self.seal, Seal::None) => {
                return Err(FrameRejection::Probe(StampProbe::parse(rest)?, path_of(ethernet)));
            }
            Some(&SEALED_BARE) if self.seal.is_keyed() => (LinkHeader::BARE, 1),
            _ => LinkHeader::parse(rest)?,
        };
        let (head, rest) = bytes.split_at(ETHERNET + len);
        let sealed = rest.split_at_checked(self.seal.size());
        let (seal, rest) = sealed.ok_or_else(|| FrameRejection::Broken(self.seal.missing()))?;
        self.seal.check(head, seal, rest).map_err(FrameRejection::Broken)?;
        if header.kind() == FrameKind::Session {
            self.peer = Some(from);
            self.peer_offers_stamps = rest.starts_with(&STAMP_OFFER);
        }
        let body = match (header.has_body(), kind) {
            (false, _) => [&[][..], &[]],
            (true, OWN) if rest.len() >= 2 => [&bytes[..ADDRESSES], rest],
            (true, WHOLE) if rest.len() >= ETHERNET => [rest, &[]],
            (true, _) => return Err(FrameRejection::Malformed),
        };
        Ok(ReceivedFrame { header, body })
    }

    /// A probe for the peer's, by one of the paths or by the plain one, or an answer.
    pub(crate) fn emit_probe(&self, probe: &StampProbe, path: ProbePaths) -> EmittedFrame {
        let to = match path {
            ProbePaths::RESERVED => RESERVED_ADDRESS,
            ProbePaths::RETURN => self.own.0,
            _ => self.peer.unwrap_or(EVERYONE).0,
        };
        let mut emitted = EmittedFrame { head: [0; LONGEST_HEAD], head_len: ETHERNET, skip: 0, padding: 0 };
        emitted.head[..6].copy_from_slice(&to);
        emitted.head[6..ADDRESSES].copy_from_slice(&self.own.0);
        emitted.head[ADDRESSES..ETHERNET].copy_from_slice(&OWN.to_be_bytes());
        emitted.put(&probe.emit());
        emitted
    }

    fn on_greeting(&mut self, bytes: &[u8], from: Mac) -> FrameRejection {
        match (bytes.first_chunk(), &mut self.seal) {
            (None, _) => FrameRejection::Malformed,
            (Some(_), Seal::None | Seal::Crc) => FrameRejection::KeyMissing,
            (Some(greeting), Seal::Key(keyed)) => match keyed.on_greeting(greeting, from, self.own) {
                Ok(()) => FrameRejection::Greeting,
                Err(broken) => FrameRejection::Broken(broken),
            },
        }
    }
}

/// The path by which a probe has come; none if it is the plain one.
fn path_of(ethernet: &[u8]) -> ProbePaths {
    match (&ethernet[..6], &ethernet[6..ADDRESSES]) {
        (to, _) if to == RESERVED_ADDRESS => ProbePaths::RESERVED,
        (to, from) if to == from => ProbePaths::RETURN,
        _ => ProbePaths::NONE,
    }
}

/// Two ends that have exchanged greetings, as far as their seals need any: for tests and measurements.
pub fn introduce(ends: [&mut Framing; 2]) {
    let [one, other] = ends;
    for _ in 0..4 {
        pass_greetings(one, other);
        pass_greetings(other, one);
    }
}

fn pass_greetings(from: &mut Framing, to: &mut Framing) {
    while let Some(greeting) = from.greet() {
        // Taken care of; there is no frame in it.
        let _ = to.parse(&greeting.head[..greeting.head_len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Seq;
    use wire::link::{Class, Epoch, LinkAgreement, SessionKind, SessionMessage};

    const HERE: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const THERE: Mac = Mac([2, 0, 0, 0, 0, 2]);

    type MakeSeal = fn(u128) -> Seal;

    fn ends(seal: MakeSeal) -> (Framing, Framing) {
        let (mut here, mut there) =
            (Framing::new(HERE, Some(THERE), seal(1)), Framing::new(THERE, Some(HERE), seal(1 << 64)));
        introduce([&mut here, &mut there]);
        (here, there)
    }

    fn seals() -> [MakeSeal; 3] {
        [|_| Seal::None, |_| Seal::Crc, |life| Seal::keyed([3; 16], life)]
    }

    fn frame(from: Mac, len: usize) -> Vec<u8> {
        let payload: Vec<u8> = (0..len).map(|n| n as u8).collect();
        [&THERE.0[..], &from.0, &[8, 0], &payload].concat()
    }

    fn data() -> LinkHeader {
        LinkHeader::new(Epoch::new(1), FrameKind::Data(Class::Ordered, Seq::default()), None)
    }

    fn hello() -> LinkHeader {
        let agreement = LinkAgreement { version: 1, classes: 1, protects: true, seal: 0, window: 9, mtu: 1_518 };
        LinkHeader::session(
            Epoch::new(1),
            SessionMessage { kind: SessionKind::Hello { asked: false }, instance: 5, heard: 0, epoch: 1, agreement },
        )
    }

    fn on_wire(framing: &mut Framing, header: &LinkHeader, body: Option<&[u8]>) -> Vec<u8> {
        let emitted = framing.emit(header, body);
        [&emitted.head[..emitted.head_len], &body.unwrap_or(&[])[emitted.skip..], &vec![0; emitted.padding]].concat()
    }

    #[test]
    fn a_frame_arrives_as_it_left_and_grows_by_five_bytes() {
        for seal in seals() {
            let (mut here, mut there) = ends(seal);
            for from in [HERE, Mac([2, 9, 9, 9, 9, 9])] {
                let body = frame(from, 64);
                let sent = on_wire(&mut here, &data(), Some(&body));
                let added = if from == HERE { 5 } else { 17 };
                assert_eq!(sent.len(), body.len() + added + seal(1).size());
                let arrived = there.parse(&sent).unwrap();
                assert_eq!((arrived.body.concat(), arrived.header), (body, data()));
            }
        }
    }

    #[test]
    fn with_a_key_unprotected_frames_are_sealed_too_and_others_are_not_listened_to() {
        let (mut here, mut there) = ends(|life| Seal::keyed([3; 16], life));
        let body = frame(HERE, 64);
        let mut sent = on_wire(&mut here, &LinkHeader::BARE, Some(&body));
        let arrived = there.parse(&sent).unwrap();
        assert_eq!((arrived.body.concat(), arrived.header), (body.clone(), LinkHeader::BARE));
        assert_eq!(there.parse(&body), Err(FrameRejection::Unsealed));
        sent[20] ^= 1;
        assert!(there.parse(&sent).is_err());
    }

    #[test]
    fn before_the_greetings_nothing_opens_and_a_peer_without_the_key_is_no_surprise() {
        let keyed = |life| Seal::keyed([3; 16], life);
        let (mut here, _) = ends(keyed);
        let sent = on_wire(&mut here, &data(), Some(&frame(HERE, 64)));
        let mut restarted = Framing::new(THERE, Some(HERE), keyed(2 << 64));
        assert_eq!(restarted.opening(), SealReadiness::Soon);
        assert_eq!(restarted.parse(&sent), Err(FrameRejection::Broken(SealError::Early)));
        restarted.set_time(Time::ZERO + units::Span::from_ms(1_000));
        assert_eq!(restarted.opening(), SealReadiness::Alone);
        assert_eq!(restarted.parse(&sent), Err(FrameRejection::Broken(SealError::Forged)));
        let greeting = restarted.greet().unwrap();
        let greeting = &greeting.head[..greeting.head_len];
        for seal in [Seal::None, Seal::Crc] {
            assert_eq!(Framing::new(HERE, None, seal).parse(greeting), Err(FrameRejection::KeyMissing));
        }
        assert_eq!(here.parse(greeting), Err(FrameRejection::Greeting));
        assert_eq!(here.parse(&greeting[..greeting.len() - 1]), Err(FrameRejection::Malformed));
        let mut stranger = Framing::new(Mac([2, 0, 0, 0, 0, 3]), None, keyed(3 << 64));
        let greeting = stranger.greet().unwrap();
        assert!(matches!(here.parse(&greeting.head[..greeting.head_len]), Err(FrameRejection::Stranger(_))));
    }

    #[test]
    fn a_short_frame_keeps_its_bytes_and_may_gain_padding() {
        for seal in seals() {
            let (mut here, mut there) = ends(seal);
            let body = frame(HERE, 1);
            let arrived = on_wire(&mut here, &data(), Some(&body));
            let arrived = there.parse(&arrived).unwrap().body.concat();
            assert_eq!(arrived[..body.len()], body);
            assert!(arrived[body.len()..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn only_the_peer_drives_the_link_and_anybody_may_pass_unprotected() {
        let (mut here, mut there) = ends(|_| Seal::None);
        let mut stranger = Framing::new(Mac([2, 0, 0, 0, 0, 3]), None, Seal::None);
        let forged = on_wire(&mut stranger, &hello(), None);
        assert_eq!(there.parse(&forged), Err(FrameRejection::Stranger(Mac([2, 0, 0, 0, 0, 3]))));
        let looped = on_wire(&mut here, &hello(), None);
        assert_eq!(here.parse(&looped), Err(FrameRejection::Looped));
        let bare = frame(Mac([2, 0, 0, 0, 0, 3]), 80);
        assert_eq!(there.parse(&bare).unwrap(), ReceivedFrame { header: LinkHeader::BARE, body: [&bare, &[]] });
    }

    #[test]
    fn an_unknown_peer_is_learnt_from_its_greeting_and_forgotten_when_it_is_gone() {
        let mut here = Framing::new(HERE, None, Seal::None);
        let mut there = Framing::new(THERE, None, Seal::None);
        let greeting = on_wire(&mut here, &hello(), None);
        assert_eq!(greeting[..6], EVERYONE.0);
        assert!(there.parse(&greeting).is_ok());
        assert_eq!(there.peer(), Some(HERE));
        there.forget_peer();
        assert_eq!(there.peer(), None);
    }

    #[test]
    fn no_bytes_are_too_strange() {
        let (mut here, mut there) = ends(|_| Seal::Crc);
        let good = on_wire(&mut here, &data(), Some(&frame(HERE, 64)));
        for len in 0..good.len() {
            assert!(there.parse(&good[..len]).is_err());
        }
    }

    #[test]
    fn addresses_read_as_written() {
        assert_eq!("02:00:00:00:00:01".parse(), Ok(HERE));
        for text in ["", "02:00", "02:00:00:00:00:0", "01:00:00:00:00:01", "02:00:00:00:00:01:02", "zz:00:00:00:00:01"]
        {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
        assert_eq!(HERE.to_string(), "02:00:00:00:00:01");
    }
}

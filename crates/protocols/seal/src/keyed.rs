//! Seals with a shared key: what they are made of, and in which session.
//!
//! ```text
//!   seal       counter:64 tag:64
//!   greeting   addresses and type, 111:3 kind:5, own:128 echo:128 latest:64 tag:64
//! ```
//!
//! Tags are SipHash-2-4. Nothing is sealed with the shared key itself: greetings have a key derived from it, and each
//! direction of a session has one that is derived from both ends' offers and addresses, sender first. A frame therefore
//! opens in one session, in one direction and on one link only. The counter starts at one in each session; a receiver
//! takes each number once and none older than its window.
//!
//! A greeting of a session says which number was the latest received. An end that is behind it, because its machine was
//! set back to a snapshot, carries on from there.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use siphasher::sip128;
use siphasher::sip128::Hasher128;
use units::Time;
use wire::ethernet::{ETHERNET, Mac};
use wire::link::GREETING;

use crate::greeting::{GRACE, Greeting, GreetingKind, GreetingMessage, GreetingStep, Offer, SealSession};
use crate::{SealError, SealReadiness};

/// A greeting on the wire, with its addresses.
pub const GREETING_LEN: usize = ETHERNET + 1 + 2 * OFFER + 8 + TAG;
const OFFER: usize = 16;
const TAG: usize = 8;

pub type SealKey = [u8; 16];

#[derive(Clone)]
pub struct KeyedSeal {
    key: SealKey,
    for_greetings: SealKey,
    greeting: Greeting,
    keys: Option<DirectionKeys>,
    sent: u64,
    seen: ReplayWindow,
    now: Time,
}

/// The keys of a session.
#[derive(Clone)]
struct DirectionKeys {
    send: SealKey,
    receive: SealKey,
}

impl std::fmt::Debug for KeyedSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyed").field("greeting", &self.greeting).finish_non_exhaustive()
    }
}

impl KeyedSeal {
    pub fn new(key: SealKey, life: u128) -> Self {
        Self {
            key,
            for_greetings: derive(&key, &[b"greeting"]),
            greeting: Greeting::new(life),
            keys: None,
            sent: 0,
            seen: ReplayWindow::default(),
            now: Time::ZERO,
        }
    }

    /// Sets the current time; call before anything else in a turn.
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    pub fn start_over(&mut self) {
        self.now = Time::ZERO;
        self.greeting.start_over();
    }

    pub fn opening(&self) -> SealReadiness {
        match self.keys {
            Some(_) => SealReadiness::Open,
            None if self.now.since(Time::ZERO) < GRACE => SealReadiness::Soon,
            None => SealReadiness::Alone,
        }
    }

    /// Time at which [`Self::greet`] has something to send.
    pub fn greets_at(&self) -> Time {
        self.greeting.next_at()
    }

    /// Seals a frame. Without a session there is no key, and the sealed frame opens nowhere.
    #[inline]
    pub fn write(&mut self, parts: &[&[u8]], out: &mut [u8]) {
        let Some(keys) = &self.keys else { return out.fill(0) };
        self.sent += 1;
        out[..8].copy_from_slice(&self.sent.to_be_bytes());
        out[8..].copy_from_slice(&tag(&keys.send, self.sent, parts).to_be_bytes());
    }

    #[inline]
    pub fn check(&mut self, seal: &[u8], parts: &[&[u8]]) -> Result<(), SealError> {
        let checked = self.open(seal, parts);
        match checked {
            Ok(()) => self.greeting.on_opened(),
            Err(_) => self.greeting.doubt(self.now),
        }
        checked
    }

    fn open(&mut self, seal: &[u8], parts: &[&[u8]]) -> Result<(), SealError> {
        let (Some(keys), Some((counter, given))) = (&self.keys, split(seal)) else { return Err(self.unopened()) };
        // Compares two registers, so the time does not depend on the position of a difference.
        if given != tag(&keys.receive, counter, parts) {
            return Err(self.unopened());
        }
        if self.seen.accept(counter) { Ok(()) } else { Err(SealError::Replayed) }
    }

    /// Error for a frame that does not open.
    fn unopened(&self) -> SealError {
        if self.greeting.is_under_way(self.now) { SealError::Early } else { SealError::Forged }
    }

    /// The next greeting to send, if there is one.
    pub fn greet(&mut self, from: Mac, to: Mac) -> Option<[u8; GREETING_LEN]> {
        let GreetingMessage { kind, own, echo } = self.greeting.next(self.now)?;
        let is_of_session = self.greeting.session() == Some(SealSession { own, peer: echo });
        let latest = if is_of_session { self.seen.latest } else { 0 };
        let mut frame = [0; GREETING_LEN];
        let mut rest = &mut frame[..];
        for part in [
            &to.0[..],
            &from.0,
            &wire::link::OWN.to_be_bytes(),
            &[GREETING | kind as u8],
            &own.0.to_be_bytes(),
            &echo.0.to_be_bytes(),
            &latest.to_be_bytes(),
        ] {
            let (place, behind) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        }
        let (head, place) = frame.split_at_mut(GREETING_LEN - TAG);
        place.copy_from_slice(&tag(&self.for_greetings, 0, &[head]).to_be_bytes());
        Some(frame)
    }

    /// A greeting came.
    pub fn on_greeting(&mut self, frame: &[u8; GREETING_LEN], from: Mac, own: Mac) -> Result<(), SealError> {
        let (head, given) = frame.split_at(GREETING_LEN - TAG);
        if given.first_chunk().map(|given| u64::from_be_bytes(*given)) != Some(tag(&self.for_greetings, 0, &[head])) {
            self.greeting.doubt(self.now);
            return Err(SealError::Forged);
        }
        let Some((message, latest)) = parse(&head[ETHERNET..]) else { return Err(SealError::Forged) };
        match self.greeting.on_message(self.now, &message) {
            GreetingStep::Nothing => {}
            GreetingStep::Adopted(session) => self.begin(session, from, own),
            GreetingStep::Confirmed => self.sent = self.sent.max(latest),
        }
        Ok(())
    }

    fn begin(&mut self, session: SealSession, peer: Mac, own: Mac) {
        let [here, there] = [session.own, session.peer].map(|offer| offer.0.to_be_bytes());
        self.keys = Some(DirectionKeys {
            send: derive(&self.key, &[b"frames", &here, &there, &own.0, &peer.0]),
            receive: derive(&self.key, &[b"frames", &there, &here, &peer.0, &own.0]),
        });
        (self.sent, self.seen) = (0, ReplayWindow::default());
    }
}

/// The kinds that a greeting's first byte can say.
pub fn greeting_kind(first: u8) -> Option<GreetingKind> {
    GreetingKind::ALL.into_iter().find(|kind| GREETING | *kind as u8 == first)
}

/// A greeting from its kind on.
fn parse(bytes: &[u8]) -> Option<(GreetingMessage, u64)> {
    let (first, rest) = bytes.split_first()?;
    let (own, rest) = rest.split_first_chunk::<OFFER>()?;
    let (echo, rest) = rest.split_first_chunk::<OFFER>()?;
    let latest = u64::from_be_bytes(*rest.first_chunk()?);
    let [own, echo] = [own, echo].map(|offer| Offer(u128::from_be_bytes(*offer)));
    Some((GreetingMessage { kind: greeting_kind(*first)?, own, echo }, latest))
}

/// Counter and tag.
fn split(seal: &[u8]) -> Option<(u64, u64)> {
    let (counter, rest) = seal.split_first_chunk()?;
    Some((u64::from_be_bytes(*counter), u64::from_be_bytes(*rest.first_chunk()?)))
}

#[inline]
fn tag(key: &SealKey, counter: u64, parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write_u64(counter);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// A key for one purpose. The parts after the first have fixed lengths for each purpose, so no two inputs are alike.
pub fn derive(key: &SealKey, parts: &[&[u8]]) -> SealKey {
    let mut hasher = sip128::SipHasher24::new_with_key(key);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish128().as_bytes()
}

/// Record of the latest numbers that have been seen.
#[derive(Clone, Debug, Default)]
struct ReplayWindow {
    latest: u64,
    /// Bit n: `latest - n` was seen.
    seen: u64,
}

impl ReplayWindow {
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

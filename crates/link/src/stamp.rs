//! Whether frames are sent with their numbers in their addresses (`wire::link::AddressStamp`).
//!
//! ```text
//!   Unused ── both ends offer it, and a session begins ──▶ Probing
//!   Probing ── a probe is answered ──▶ Used
//!   Probing ── TRIES probes are not ──▶ Unanswered
//!   Unanswered ── a probe is answered ──▶ Used
//!   Used ── MISSED probes in a row are not answered ──▶ Unanswered
//!   Used ── most stamped frames are lost ──▶ Probing, and after RELAPSES of these within RELAPSE_SPAN, Unanswered
//!   any ── the session ends, or the peer no longer offers it ──▶ Unused
//! ```
//!
//! A stamp is for two ends of one cable. A switch in between that learns addresses, or a card that drops frames with
//! addresses other than its own, would lose stamped frames. So each end probes first: it teaches a switch, if there is one,
//! that the address it is about to send to lies behind itself. A switch does not pass such a frame on; a cable does. The
//! answer is stamped as well, so that it proves both ways. Probes go on while stamps are used.
//!
//! Invariants: a stamped frame leaves only in state Used; nothing here changes the state of the session.

use guard::Counters;
use units::{Span, Time};
use wire::link::StampProbe;

/// From the beginning of a session to the first probe: by then the peer knows of it too.
const AT_FIRST: Span = Span::from_ms(5);
/// Between probes of which the first has yet to be answered.
const SOON: Span = Span::from_ms(20);
/// Between later ones.
const LATER: Span = Span::from_ms(1_000);
/// Probes sent before stamps are taken for impossible.
const TRIES: u32 = 10;
/// Probes in a row without an answer after which stamps are no longer used.
const MISSED: u32 = 4;
/// Frames among which the lost ones are counted. Several super-frames: if the last segment of one is lost, the kernel may
/// hand over the others late, and all of them are reported missing for a moment.
const LOST: u64 = 256;
const RELAPSES: u32 = 3;
const RELAPSE_SPAN: Span = Span::from_ms(60_000);

/// Whether stamps are used, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampState {
    /// There is no session, or one of the ends does not offer it.
    Unused,
    Probing,
    Used,
    /// Stamped frames do not arrive.
    Unanswered,
}

/// What one end knows of stamps.
#[derive(Debug)]
pub struct Stamper {
    /// Why this end does not offer it.
    refusal: Option<&'static str>,
    /// The peer's life-cycle messages offer it.
    peer_offers: bool,
    state: StampState,
    token: u16,
    probe_at: Time,
    /// Probes since the last answer.
    unanswered: u32,
    /// Frames sent and reported missing when this was last looked at.
    before: (u64, u64),
    relapses: u32,
    relapse_at: Time,
}

impl Stamper {
    /// `refusal` says why this end does not offer it, in one line.
    pub fn new(refusal: Option<&'static str>) -> Self {
        Self {
            refusal,
            peer_offers: false,
            state: StampState::Unused,
            token: 0,
            probe_at: Time::NEVER,
            unanswered: 0,
            before: (0, 0),
            relapses: 0,
            relapse_at: Time::ZERO,
        }
    }

    /// Time begins again.
    pub(crate) fn start_over(&mut self) {
        *self = Self::new(self.refusal);
    }

    #[inline]
    pub(crate) fn offers(&self) -> bool {
        self.refusal.is_none()
    }

    /// Both ends offer it, so stamped frames are listened to.
    pub(crate) fn is_agreed(&self) -> bool {
        self.offers() && self.peer_offers
    }

    pub fn state(&self) -> StampState {
        self.state
    }

    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.state == StampState::Used
    }

    /// What `status` says: a state, and the reason where stamps are not used.
    pub fn describe(&self) -> (&'static str, Option<&'static str>) {
        match (self.state, self.refusal) {
            (_, Some(why)) => ("off", Some(why)),
            (StampState::Unused, None) if self.peer_offers => ("off", Some("the link is not protected")),
            (StampState::Unused, None) => ("off", Some("the peer has not offered it")),
            (StampState::Probing, None) => ("probing", Some("the peer has yet to answer a stamped frame")),
            (StampState::Used, None) => ("used", None),
            (StampState::Unanswered, None) => {
                ("unanswered", Some("stamped frames do not arrive: is a switch between the two ends?"))
            }
        }
    }

    /// What the peer's latest life-cycle message says, and whether the link is protected.
    pub(crate) fn set_session(&mut self, now: Time, peer_offers: bool, active: bool) {
        self.peer_offers = peer_offers;
        match (active && self.is_agreed(), self.state) {
            (true, StampState::Unused) => self.probe_anew(now + AT_FIRST),
            (false, StampState::Probing | StampState::Used | StampState::Unanswered) => {
                (self.state, self.probe_at) = (StampState::Unused, Time::NEVER);
            }
            _ => {}
        }
    }

    fn probe_anew(&mut self, at: Time) {
        (self.state, self.probe_at, self.unanswered) = (StampState::Probing, at, 0);
    }

    /// When [`Self::due`] has something to send.
    #[inline]
    pub(crate) fn probe_at(&self) -> Time {
        self.probe_at
    }

    /// The token of the next probe, if one is to be sent now.
    pub(crate) fn due(&mut self, now: Time) -> Option<u16> {
        if self.probe_at > now {
            return None;
        }
        match self.state {
            StampState::Probing if self.unanswered >= TRIES => self.state = StampState::Unanswered,
            StampState::Used if self.unanswered >= MISSED => self.state = StampState::Unanswered,
            _ => {}
        }
        self.unanswered += 1;
        self.probe_at = now + if self.state == StampState::Probing { SOON } else { LATER };
        self.token = self.token.wrapping_add(1);
        Some(self.token)
    }

    /// An answer: it counts if it is to the latest probe.
    pub(crate) fn on_answer(&mut self, now: Time, answer: StampProbe) {
        if answer.token != self.token || self.unanswered == 0 || self.state == StampState::Unused {
            return;
        }
        self.unanswered = 0;
        if self.state == StampState::Unanswered
            && self.relapses >= RELAPSES
            && now.since(self.relapse_at) < RELAPSE_SPAN
        {
            // Probes arrive, and stamped frames do not.
            return;
        }
        self.state = StampState::Used;
        self.probe_at = now + LATER;
    }

    /// Frames that most of which are lost are sent otherwise, until a probe shows that they arrive.
    pub(crate) fn look_at_losses(&mut self, now: Time, stamped: u64, counters: &Counters) {
        let (sent, lost) =
            (stamped - self.before.0.min(stamped), counters.tx_missing - self.before.1.min(counters.tx_missing));
        if sent < LOST || !self.is_used() && lost == 0 {
            return;
        }
        self.before = (stamped, counters.tx_missing);
        if lost < LOST || lost * 2 < sent || !self.is_used() {
            return;
        }
        if now.since(self.relapse_at) >= RELAPSE_SPAN {
            (self.relapses, self.relapse_at) = (0, now);
        }
        self.relapses += 1;
        self.probe_anew(now);
        if self.relapses >= RELAPSES {
            self.state = StampState::Unanswered;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn answer(token: u16) -> StampProbe {
        StampProbe { lower: true, token }
    }

    fn probing() -> Stamper {
        let mut stamper = Stamper::new(None);
        stamper.set_session(at(0), true, true);
        stamper
    }

    fn used() -> Stamper {
        let mut stamper = probing();
        let token = stamper.due(at(5)).unwrap();
        stamper.on_answer(at(6), answer(token));
        assert!(stamper.is_used());
        stamper
    }

    #[test]
    fn an_answer_to_the_latest_probe_alone_lets_stamps_be_used() {
        let mut stamper = probing();
        stamper.on_answer(at(0), answer(0));
        assert_eq!(stamper.state(), StampState::Probing);
        assert_eq!(stamper.due(at(4)), None);
        let token = stamper.due(at(5)).unwrap();
        assert_eq!(stamper.due(at(24)), None);
        stamper.on_answer(at(1), answer(token.wrapping_add(1)));
        assert_eq!(stamper.state(), StampState::Probing);
        stamper.on_answer(at(1), answer(token));
        assert_eq!(stamper.describe(), ("used", None));
    }

    #[test]
    fn without_the_peers_offer_or_a_session_nothing_is_probed() {
        for (refusal, offers, active) in [(Some("no"), true, true), (None, false, true), (None, true, false)] {
            let mut stamper = Stamper::new(refusal);
            stamper.set_session(at(0), offers, active);
            assert_eq!((stamper.due(at(5_000)), stamper.state()), (None, StampState::Unused));
            assert!(stamper.describe().1.is_some());
        }
    }

    #[test]
    fn probes_that_nobody_answers_are_reported_and_go_on() {
        let mut stamper = probing();
        let sent = (0..10_000).filter(|ms| stamper.due(at(*ms)).is_some()).count();
        assert!((15..30).contains(&sent), "{sent}");
        assert_eq!(stamper.describe().0, "unanswered");
        let token = (10_000..).find_map(|ms| stamper.due(at(ms))).unwrap();
        stamper.on_answer(at(20_000), answer(token));
        assert!(stamper.is_used());
    }

    #[test]
    fn stamps_that_no_longer_arrive_are_no_longer_used() {
        let mut stamper = used();
        let ended = (1..).find(|ms| stamper.due(at(*ms)).is_some() && !stamper.is_used()).unwrap();
        assert!((3_000..6_000).contains(&ended), "{ended}");
        let mut stamper = used();
        stamper.set_session(at(2), false, true);
        assert_eq!(stamper.state(), StampState::Unused);
    }

    #[test]
    fn frames_most_of_which_are_lost_end_it_at_once_and_a_tenth_of_them_does_not() {
        let lost = |tx_missing| Counters { tx_missing, ..Counters::default() };
        let mut stamper = used();
        for n in 1..100 {
            stamper.look_at_losses(at(n), n * 1_000, &lost(n * 100));
            assert!(stamper.is_used());
        }
        let mut stamper = used();
        stamper.look_at_losses(at(10), 100, &lost(90));
        assert!(stamper.is_used(), "two super-frames that came late");
        let mut stamper = used();
        for relapse in 1..=RELAPSES {
            stamper.look_at_losses(at(10), u64::from(relapse) * 1_000, &lost(u64::from(relapse) * 900));
            assert!(!stamper.is_used());
            let token = stamper.due(at(10)).unwrap();
            stamper.on_answer(at(11), answer(token));
            assert_eq!(stamper.is_used(), relapse < RELAPSES);
        }
    }
}

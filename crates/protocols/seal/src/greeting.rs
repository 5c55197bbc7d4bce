//! Agreement of two ends with the same key on a session, so that nothing recorded earlier is ever accepted.
//!
//! Each incarnation of an end starts with a random number, its offer. A session is a pair of offers, one of each end;
//! the keys of the seals are derived from both. An end accepts a session only when the peer has shown that it knows
//! this end's current offer, and no offer serves twice. So frames of an earlier session open nothing,
//! even if a clock is wrong.
//!
//! ```text
//!   Asking    ── Challenge that echoes our offer: Proof ──────────▶ Proving
//!   any       ── Proof that echoes our offer: Done ───────────────▶ Settled
//!   Proving   ── Proof or Done of the session, or a sealed frame ─▶ Settled
//!   Settled   ── frames that do not open: Proof ──────────────────▶ Doubting
//!   Doubting  ── Proof or Done of the session, or a sealed frame ─▶ Settled
//!   Doubting  ── no answer: Hello ────────────────────────────────▶ Asking
//! ```
//!
//! A restarted end sends Hello with its offer, and its peer answers with a Challenge: its own offer and an echo of the
//! other. The restarted end sends frames from then on; its Proof precedes them and lets the peer switch as well. Each
//! message is repeated until it is answered, so any of them may be lost. Two ends that start at once challenge each
//! other, and both arrive at the same pair.
//!
//! A recorded Hello draws a Challenge that nobody answers: the session stands. A recorded Challenge, Proof or Done echoes
//! an offer that was used up. An end that doubts its session, because somebody sends frames that do not open, asks
//! whether the peer is still in it and meanwhile goes on using it.
//!
//! Invariants: an offer is part of one session at most; while neither end restarts and frames pass, the session of two
//! settled ends does not change.

use units::{Span, Time};

/// Time between two messages at first, and later, when the peer seems not to be there.
const RETRY: Span = Span::from_ms(20);
const LATER: Span = Span::from_ms(100);
/// An agreement should take no longer than this if the peer is there and has the key.
pub const GRACE: Span = Span::from_ms(1_000);
/// Enquiries about a doubtful session before a new one is asked for, and the time between two beginnings of doubts.
const ENQUIRIES: u32 = 20;
const DOUBT_EVERY: Span = Span::from_ms(1_000);
/// Answers that may wait at the same time; the others ask again.
const MOST_ANSWERS: usize = 8;

/// A random number that stands for one end in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer(pub u128);

impl Offer {
    /// Value in place of an echo when there is nothing to echo.
    pub const NONE: Self = Self(0);

    fn next(self) -> Self {
        Self(self.0.wrapping_add(1).max(1))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreetingKind {
    /// Has no session.
    Hello = 1,
    /// Answers a Hello: shows whether the other end is running and did send it.
    Challenge = 2,
    /// Has adopted the session.
    Proof = 3,
    /// Has adopted it as well.
    Done = 4,
}

impl GreetingKind {
    pub const ALL: [Self; 4] = [Self::Hello, Self::Challenge, Self::Proof, Self::Done];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreetingMessage {
    pub kind: GreetingKind,
    pub own: Offer,
    /// The receiver's offer, as the sender heard it.
    pub echo: Offer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealSession {
    pub own: Offer,
    pub peer: Offer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GreetingState {
    Asking,
    Proving,
    Settled,
    Doubting { enquiries: u32 },
}

/// Effect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreetingStep {
    Nothing,
    /// A new session is in force.
    Adopted(SealSession),
    /// It belongs to the session in force.
    Confirmed,
}

#[derive(Clone, Debug)]
pub struct Greeting {
    state: GreetingState,
    /// Offer for the next session.
    offer: Offer,
    session: Option<SealSession>,
    /// Time at which the state began.
    since: Time,
    repeat_at: Time,
    doubt_from: Time,
    /// Offers of ends whose Hello is to be answered.
    challenges: Vec<Offer>,
    done: bool,
}

impl Greeting {
    /// `life` is random, from a source that never repeats itself.
    pub fn new(life: u128) -> Self {
        Self {
            state: GreetingState::Asking,
            offer: Offer(life.max(1)),
            session: None,
            since: Time::ZERO,
            repeat_at: Time::ZERO,
            doubt_from: Time::ZERO,
            challenges: Vec::with_capacity(MOST_ANSWERS),
            done: false,
        }
    }

    /// Time begins again at zero; the session stays.
    pub fn start_over(&mut self) {
        (self.since, self.doubt_from) = (Time::ZERO, Time::ZERO);
        if self.repeat_at != Time::NEVER {
            self.repeat_at = Time::ZERO;
        }
    }

    pub fn session(&self) -> Option<SealSession> {
        self.session
    }

    /// True if the two ends may still be about to agree, so that frames which do not open are no surprise.
    pub(crate) fn is_under_way(&self, now: Time) -> bool {
        matches!(self.state, GreetingState::Asking | GreetingState::Proving) && now.since(self.since) < GRACE
    }

    pub fn on_message(&mut self, now: Time, message: &GreetingMessage) -> GreetingStep {
        let GreetingMessage { kind, own, echo } = *message;
        let of_session = self.session == Some(SealSession { own: echo, peer: own });
        match kind {
            GreetingKind::Hello => {
                self.on_hello(now, own);
                GreetingStep::Nothing
            }
            GreetingKind::Challenge if self.state == GreetingState::Asking && echo == self.offer => {
                let session = self.adopt(own);
                (self.state, self.since, self.repeat_at) = (GreetingState::Proving, now, now);
                GreetingStep::Adopted(session)
            }
            GreetingKind::Proof if of_session => {
                self.settle();
                self.done = true;
                GreetingStep::Confirmed
            }
            GreetingKind::Proof if echo == self.offer => {
                let session = self.adopt(own);
                self.settle();
                self.done = true;
                GreetingStep::Adopted(session)
            }
            GreetingKind::Done if of_session => {
                self.settle();
                GreetingStep::Confirmed
            }
            // The peer may be in another session, or somebody plays it again.
            GreetingKind::Proof => {
                self.doubt(now);
                GreetingStep::Nothing
            }
            GreetingKind::Challenge | GreetingKind::Done => GreetingStep::Nothing,
        }
    }

    fn on_hello(&mut self, now: Time, from: Offer) {
        match self.session {
            // It has not heard our Proof.
            Some(session) if session.peer == from && self.state == GreetingState::Proving => self.repeat_at = now,
            Some(session) if session.peer == from => {}
            _ if self.challenges.len() < MOST_ANSWERS && !self.challenges.contains(&from) => self.challenges.push(from),
            _ => {}
        }
    }

    fn adopt(&mut self, peer: Offer) -> SealSession {
        let session = SealSession { own: self.offer, peer };
        self.session = Some(session);
        self.offer = self.offer.next();
        session
    }

    fn settle(&mut self) {
        (self.state, self.repeat_at) = (GreetingState::Settled, Time::NEVER);
    }

    /// A frame of the session came, with a valid seal and for the first time.
    #[inline]
    pub(crate) fn on_opened(&mut self) {
        if self.state != GreetingState::Settled {
            self.settle();
        }
    }

    /// A frame came that does not open, or that came before.
    pub fn doubt(&mut self, now: Time) {
        if self.state == GreetingState::Settled && self.doubt_from <= now {
            (self.state, self.repeat_at) = (GreetingState::Doubting { enquiries: 0 }, now);
            self.doubt_from = now + DOUBT_EVERY;
        }
    }

    /// Time at which [`Self::next`] has something to send.
    #[inline]
    pub(crate) fn next_at(&self) -> Time {
        if self.done || !self.challenges.is_empty() { Time::ZERO } else { self.repeat_at }
    }

    /// The next message to send.
    pub fn next(&mut self, now: Time) -> Option<GreetingMessage> {
        if let Some(session) = self.session.filter(|_| std::mem::take(&mut self.done)) {
            return Some(GreetingMessage { kind: GreetingKind::Done, own: session.own, echo: session.peer });
        }
        if !self.challenges.is_empty() {
            return Some(GreetingMessage {
                kind: GreetingKind::Challenge,
                own: self.offer,
                echo: self.challenges.remove(0),
            });
        }
        if self.repeat_at > now {
            return None;
        }
        if let GreetingState::Doubting { enquiries } = &mut self.state {
            *enquiries += 1;
            if *enquiries > ENQUIRIES {
                (self.state, self.since) = (GreetingState::Asking, now);
            }
        }
        let is_early = now.since(self.since) < GRACE && !matches!(self.state, GreetingState::Doubting { .. });
        self.repeat_at = now + if is_early { RETRY } else { LATER };
        match (self.state, self.session) {
            (GreetingState::Proving | GreetingState::Doubting { .. }, Some(session)) => {
                Some(GreetingMessage { kind: GreetingKind::Proof, own: session.own, echo: session.peer })
            }
            _ => Some(GreetingMessage { kind: GreetingKind::Hello, own: self.offer, echo: Offer::NONE }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use faults::Random;

    use super::*;

    /// Two ends, a wire that keeps order, and everything that ever was on it.
    struct Pair {
        ends: [Greeting; 2],
        wire: [VecDeque<GreetingMessage>; 2],
        recorded: Vec<GreetingMessage>,
        /// Every session that was ever adopted, by either end.
        adopted: [Vec<SealSession>; 2],
        lives: u128,
        now: Time,
    }

    impl Pair {
        fn new() -> Self {
            Self::with_lives_from(1)
        }

        fn with_lives_from(first: u128) -> Self {
            Self {
                ends: [first, first + 1].map(|life| Greeting::new(life << 64)),
                wire: Default::default(),
                recorded: Vec::new(),
                adopted: Default::default(),
                lives: first + 1,
                now: Time::ZERO,
            }
        }

        fn restart(&mut self, end: usize) {
            self.lives += 1;
            self.ends[end] = Greeting::new(self.lives << 64);
            // An end that restarts starts at a time of its own.
            self.ends[end].since = self.now;
        }

        fn hear(&mut self, end: usize, message: GreetingMessage) {
            if let GreetingStep::Adopted(session) = self.ends[end].on_message(self.now, &message) {
                assert!(!self.adopted[end].contains(&session), "a session was accepted twice");
                self.adopted[end].push(session);
            }
        }

        /// Runs a millisecond: messages that are sent arrive, unless `lost` says otherwise.
        fn step(&mut self, lost: &mut dyn FnMut() -> bool) {
            for end in 0..2 {
                while let Some(message) = self.ends[end].next(self.now) {
                    self.recorded.push(message);
                    if !lost() {
                        self.wire[end].push_back(message);
                    }
                }
            }
            for end in 0..2 {
                for message in std::mem::take(&mut self.wire[1 - end]) {
                    self.hear(end, message);
                }
            }
            self.now += Span::from_ms(1);
        }

        fn run(&mut self, ms: u32) {
            (0..ms).for_each(|_| self.step(&mut || false));
        }

        fn is_settled(&self) -> bool {
            let [a, b] = self.ends.each_ref().map(|end| end.session.filter(|_| end.state == GreetingState::Settled));
            a.is_some() && a == b.map(|session| SealSession { own: session.peer, peer: session.own })
        }

        fn kinds(&self) -> Vec<GreetingKind> {
            self.recorded.iter().map(|message| message.kind).collect()
        }
    }

    #[test]
    fn a_restarted_end_and_its_peer_agree_with_four_messages() {
        let mut pair = Pair::new();
        pair.run(10);
        assert!(pair.is_settled());
        let before = pair.ends[0].session;
        pair.restart(1);
        pair.recorded.clear();
        pair.run(10);
        assert!(pair.is_settled());
        assert_ne!(pair.ends[0].session, before);
        assert_eq!(
            pair.kinds(),
            [GreetingKind::Hello, GreetingKind::Challenge, GreetingKind::Proof, GreetingKind::Done]
        );
        pair.recorded.clear();
        pair.run(10_000);
        assert!(pair.recorded.is_empty(), "a settled pair is silent");
    }

    #[test]
    fn two_ends_that_start_at_once_arrive_at_the_same_session() {
        let mut pair = Pair::new();
        pair.run(5);
        assert!(pair.is_settled());
        assert_eq!(pair.adopted.each_ref().map(Vec::len), [1, 1]);
    }

    #[test]
    fn an_agreement_survives_losses_of_any_message_and_restarts_at_any_point() {
        for seed in 0..300 {
            let mut random = Random::new(seed, 1);
            let mut pair = Pair::new();
            for _ in 0..400 {
                if random.unit() < 0.03 {
                    pair.restart(random.below(2) as usize);
                }
                pair.step(&mut || random.unit() < 0.3);
            }
            pair.run(200);
            assert!(pair.is_settled(), "seed {seed}: {:?}", pair.ends);
        }
    }

    #[test]
    fn recorded_messages_never_change_a_session_that_stands() {
        for seed in 0..100 {
            let mut random = Random::new(seed, 2);
            let mut pair = Pair::new();
            for _ in 0..300 {
                if random.unit() < 0.02 {
                    pair.restart(random.below(2) as usize);
                }
                pair.step(&mut || random.unit() < 0.1);
            }
            pair.run(200);
            let sessions = pair.ends.each_ref().map(Greeting::session);
            for _ in 0..1_000 {
                let old = pair.recorded[random.below(pair.recorded.len() as u64) as usize];
                pair.hear(random.below(2) as usize, old);
                if random.unit() < 0.1 {
                    pair.step(&mut || false);
                }
            }
            assert_eq!(pair.ends.each_ref().map(Greeting::session), sessions, "seed {seed}");
            pair.run(200);
            assert!(pair.is_settled());
        }
    }

    #[test]
    fn recorded_messages_do_not_keep_two_ends_from_agreeing() {
        let mut random = Random::new(3, 3);
        let mut pair = Pair::new();
        pair.run(10);
        for _ in 0..200 {
            pair.restart(random.below(2) as usize);
            for _ in 0..100 {
                for end in 0..2 {
                    let old = pair.recorded[random.below(pair.recorded.len() as u64) as usize];
                    pair.hear(end, old);
                }
                pair.step(&mut || false);
            }
            assert!(pair.is_settled());
        }
    }

    #[test]
    fn ends_that_settled_with_others_meanwhile_find_each_other_again() {
        let (mut pair, mut elsewhere) = (Pair::new(), Pair::with_lives_from(1_000));
        pair.run(10);
        elsewhere.run(10);
        // A cable was put into another port, and no daemon was restarted.
        std::mem::swap(&mut pair.ends[1], &mut elsewhere.ends[1]);
        assert!(!pair.is_settled());
        // The first frame does not open.
        let now = pair.now;
        pair.ends[1].doubt(now);
        pair.run(5_000);
        assert!(pair.is_settled(), "{:?}", pair.ends);
    }

    #[test]
    fn doubts_end_with_the_first_frame_and_are_bounded_in_number() {
        let mut pair = Pair::new();
        pair.run(10);
        let session = pair.ends[0].session;
        pair.recorded.clear();
        for _ in 0..10_000 {
            let now = pair.now;
            (0..10).for_each(|_| pair.ends[0].doubt(now));
            pair.step(&mut || false);
        }
        assert_eq!(pair.ends[0].session, session);
        assert!(pair.recorded.len() <= 2 * 11, "{}", pair.recorded.len());
        // While the peer does not run, the session is kept, and its next frame settles it.
        let now = pair.now;
        pair.ends[0].doubt(now);
        while pair.now < now + Span::from_ms(5_000) {
            pair.now += Span::from_ms(1);
            let now = pair.now;
            pair.ends[0].next(now);
        }
        assert_eq!((pair.ends[0].state, pair.ends[0].session), (GreetingState::Asking, session));
        pair.ends[0].on_opened();
        assert!(pair.is_settled());
    }
}

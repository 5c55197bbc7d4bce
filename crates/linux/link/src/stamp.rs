//! Decides whether frames are sent with their numbers in their addresses (`wire::link::AddressStamp`), and whose are
//! believed.
//!
//! ```text
//!   Unused ── both ends offer it, and a session begins ──▶ Probing
//!   Probing ── PROOFS questions in a row come by every path, at the peer too ──▶ Used
//!   Probing ── TRIES answers in a row lack a path ──▶ Unanswered
//!   Used ── MISSED answers in a row lack a path, or most stamped frames are lost ──▶ Probing; the RELAPSES-th time within RELAPSE_SPAN ──▶ Unanswered
//!   Used ── no question came by every path for LEASE ──▶ Probing
//!   Probing, Used ── a third host is heard ──▶ Unanswered
//!   Unanswered ── a question comes by every path ──▶ Probing
//!   any ── the session ends, or the peer no longer offers it ──▶ Unused
//! ```
//!
//! A stamp is for two ends of one cable. A switch that learns addresses would pass stamped frames on to everybody, and fill
//! its table with them. So each end asks first, by frames that no switch passes on ([`wire::link::StampProbe`]): to an address
//! that bridges keep to themselves, and to the sender's own address, which a switch finds where the frame came from. Frames with
//! strange addresses are tried only after these two have arrived. A frame that arrives proves the cable; a lost frame proves
//! nothing. The end continues to ask while stamps are used.
//!
//! Invariants: a stamped frame leaves only in state Used, and only if the latest question came by every path and the peer's
//! did too; a stamped frame is believed only if it has the tag of the session, and only for `BELIEF` after a question of
//! our own came by every path; nothing here changes the state of the session.

mod rounds;

use guard::{Counters, SessionIdentity, SessionState};
use units::{Span, Time};
use wire::link::{ProbePaths, StampTag};

use rounds::{HeardQuestion, LATER, ProbeRounds, RoundOutcome};

pub(crate) use rounds::ProbeRound;

/// Time from the beginning of a session to the first question: by then the peer knows of it too.
const AT_FIRST: Span = Span::from_ms(5);
/// Consecutive questions that must arrive by every path before stamps are used.
const PROOFS: u32 = 3;
/// Consecutive answers that lack a path, after which stamps are given up.
const TRIES: u32 = 10;
/// Consecutive answers that lack a path, after which stamps in use are probed again. After the first of them the end sends
/// no stamped frames until a question arrives by every path.
const MISSED: u32 = 4;
/// Time without a question by every path after which the cable may have been replaced.
const LEASE: Span = Span::from_ms(1_000);
/// Time for which the peer's stamps are believed after a question of ours came by every path. The peer stops using them
/// within [`LEASE`] of ours and [`LATER`] of its own, and frames that it has sent may take a while.
const BELIEF: Span = Span::from_ms(2_000);
/// Number of questions that arrive by every path while the peer's do not; after them the end asks less often.
const EAGER: u32 = 50;
/// Time between questions while a path does not lead to the peer.
const RETRY: Span = Span::from_ms(60_000);
/// Time after giving up during which the peer's questions do not restart this end's.
const PAUSE: Span = Span::from_ms(5_000);
/// Frames among which the lost ones are counted. Several super-frames: if the last segment of one is lost, the kernel may
/// hand over the others late, and all of them are reported missing for a moment.
const LOST: u64 = 256;
const RELAPSES: u32 = 3;
const RELAPSE_SPAN: Span = Span::from_ms(60_000);

/// State of stamps on this link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampState {
    /// There is no session, or one of the ends does not offer it.
    Unused,
    Probing,
    Used,
    /// Stamped frames do not arrive, or may arrive at others.
    Unanswered,
}

/// Reason why stamps are not used, though both ends offer them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StampObstacle {
    Switch,
    Filter,
    Loss,
    ThirdHost,
}

impl StampObstacle {
    /// Obstacle that explains why a question arrived by these paths only.
    fn of(paths: ProbePaths) -> Self {
        if paths.include(ProbePaths::CABLE) { Self::Filter } else { Self::Switch }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Switch => "frames do not arrive as they do over a cable: is a switch between the two ends?",
            Self::Filter => "frames with strange addresses do not arrive: does a switch or a card filter them?",
            Self::Loss => "most stamped frames were lost",
            Self::ThirdHost => "a third host is on the wire",
        }
    }
}

/// Knowledge of one end about stamps.
#[derive(Debug)]
pub struct Stamper {
    /// Reason why this end does not offer it.
    refusal: Option<&'static str>,
    /// The peer's life-cycle messages offer it.
    peer_offers: bool,
    state: StampState,
    session: SessionIdentity,
    /// Tags of frames from here, and of the peer's.
    tags: [StampTag; 2],
    /// Frames that leave now are stamped.
    sends: bool,
    /// The peer has proved the cable with questions of its own.
    peer_proved: bool,
    /// One of the two latest questions did not arrive by every path.
    doubts: bool,
    rounds: ProbeRounds,
    heard: HeardQuestion,
    believes_until: Time,
    obstacle: StampObstacle,
    /// Time until which no answer lets stamps be used again.
    barred_until: Time,
    /// Frames sent, and frames reported missing, at the last check.
    before: (u64, u64),
    relapses: u32,
    relapse_at: Time,
    /// Relapses since the start.
    all_relapses: u64,
}

impl Stamper {
    /// `refusal` says why this end does not offer it, in one line.
    pub fn new(refusal: Option<&'static str>) -> Self {
        Self {
            refusal,
            peer_offers: false,
            state: StampState::Unused,
            session: SessionIdentity::default(),
            tags: [StampTag::default(); 2],
            sends: false,
            peer_proved: false,
            doubts: false,
            rounds: ProbeRounds::new(),
            heard: HeardQuestion::default(),
            believes_until: Time::ZERO,
            obstacle: StampObstacle::Switch,
            barred_until: Time::ZERO,
            before: (0, 0),
            relapses: 0,
            relapse_at: Time::ZERO,
            all_relapses: 0,
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

    /// Both ends offer it, so questions are answered.
    pub(crate) fn is_agreed(&self) -> bool {
        self.offers() && self.peer_offers
    }

    pub fn state(&self) -> StampState {
        match self.state {
            StampState::Used if !self.peer_proved => StampState::Probing,
            state => state,
        }
    }

    /// True if frames that leave now are stamped.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.sends
    }

    /// Times that stamps were no longer used because answers lacked a path, or because most stamped frames were lost.
    pub(crate) fn relapses(&self) -> u64 {
        self.all_relapses
    }

    /// Text for `status`: a state, and the reason where stamps are not used.
    pub fn describe(&self) -> (&'static str, Option<&'static str>) {
        match (self.state(), self.refusal) {
            (_, Some(why)) => ("off", Some(why)),
            (StampState::Unused, None) if self.peer_offers => ("off", Some("the link is not protected")),
            (StampState::Unused, None) => ("off", Some("the peer has not offered it")),
            (StampState::Probing, None) => ("probing", Some("the two ends have yet to find that a cable joins them")),
            (StampState::Used, None) => ("used", None),
            (StampState::Unanswered, None) => ("unanswered", Some(self.obstacle.describe())),
        }
    }

    /// Tag of the frames of this end.
    #[inline]
    pub(crate) fn own_tag(&self) -> StampTag {
        self.tags[0]
    }

    #[inline]
    pub(crate) fn peer_tag(&self) -> StampTag {
        self.tags[1]
    }

    /// The session whose frames have these tags.
    #[inline]
    pub(crate) fn session(&self) -> SessionIdentity {
        self.session
    }

    /// True if the peer's stamps are believed: our own questions are answered.
    #[inline]
    pub(crate) fn believes(&self, now: Time) -> bool {
        now < self.believes_until
    }

    /// This end's questions are answered by every path.
    pub(crate) fn has_proved(&self) -> bool {
        self.state == StampState::Used
    }

    /// Sets the offer of the peer's latest life-cycle message, and the state of the life cycle.
    pub(crate) fn set_session(&mut self, now: Time, peer_offers: bool, state: SessionState, session: SessionIdentity) {
        self.peer_offers = peer_offers;
        let is_open = matches!(state, SessionState::Active | SessionState::Closing) && self.is_agreed();
        // Stamped frames of a closing epoch may still be under way.
        let session = if is_open { session } else { SessionIdentity::default() };
        let is_other = session != self.session;
        if is_other {
            let SessionIdentity { instance, peer, epoch } = session;
            self.tags = [StampTag::new(instance, peer, epoch), StampTag::new(peer, instance, epoch)];
            (self.session, self.believes_until, self.peer_proved) = (session, Time::ZERO, false);
        }
        let is_active = is_open && state == SessionState::Active;
        if is_active && (is_other || self.state == StampState::Unused) {
            self.barred_until = now;
            self.probe_anew(now + AT_FIRST);
        } else if !is_active && self.state != StampState::Unused {
            self.state = StampState::Unused;
            self.rounds.end();
        }
        self.update();
    }

    fn probe_anew(&mut self, at: Time) {
        self.state = StampState::Probing;
        self.rounds.begin(at);
        self.update();
    }

    fn update(&mut self) {
        self.sends = self.state == StampState::Used && self.peer_proved && !self.doubts;
    }

    /// Time at which [`Self::due`] has something to send.
    #[inline]
    pub(crate) fn probe_at(&self) -> Time {
        self.rounds.due_at()
    }

    /// The next question, if one is to be sent now.
    pub(crate) fn due(&mut self, now: Time) -> Option<ProbeRound> {
        if self.rounds.due_at() > now {
            return None;
        }
        let lapsed = now.since(self.rounds.complete_at) >= LEASE;
        if self.state == StampState::Used && lapsed {
            self.probe_anew(now);
        }
        self.doubts |= !self.rounds.is_complete();
        self.update();
        let round = self.rounds.next(now);
        if self.state == StampState::Unanswered {
            self.rounds.set_due(now + LATER);
        }
        Some(round)
    }

    /// An answer of the peer's. It counts if it is to the latest question.
    pub(crate) fn on_answer(&mut self, now: Time, token: u16, paths: ProbePaths, proved: bool) {
        self.peer_proved = proved;
        match self.rounds.on_answer(now, token, paths) {
            Some(RoundOutcome::Complete) => self.on_complete(now),
            Some(RoundOutcome::Lacking(paths)) => self.on_lacking(now, paths),
            None => {}
        }
        self.update();
    }

    fn on_complete(&mut self, now: Time) {
        self.doubts = false;
        match self.state {
            StampState::Unanswered if now < self.barred_until => return self.rounds.set_due(self.barred_until),
            StampState::Unanswered => self.state = StampState::Probing,
            StampState::Probing if self.rounds.complete >= PROOFS => self.state = StampState::Used,
            StampState::Unused | StampState::Probing | StampState::Used => {}
        }
        if self.state == StampState::Used {
            self.believes_until = self.rounds.complete_at + BELIEF;
            // The peer, if it has yet to find the same, is to know soon.
            if self.peer_proved || self.rounds.complete > EAGER {
                self.rounds.slow_down();
            }
        }
    }

    fn on_lacking(&mut self, now: Time, paths: ProbePaths) {
        self.doubts = true;
        match self.state {
            StampState::Probing if self.rounds.lacking >= TRIES => self.give_up(now, StampObstacle::of(paths)),
            StampState::Used if self.rounds.lacking >= MISSED => self.relapse(now, StampObstacle::of(paths)),
            StampState::Unanswered => self.rounds.set_due(now + RETRY),
            StampState::Unused | StampState::Probing | StampState::Used => {}
        }
    }

    /// One of the peer's questions, by one of the paths.
    pub(crate) fn on_question_by(&mut self, token: u16, path: ProbePaths) {
        self.heard.note(token, path);
    }

    /// Ends the peer's question, whose plain copy arrives last; returns the paths by which it arrived.
    pub(crate) fn on_question(&mut self, now: Time, token: u16, proved: bool) -> ProbePaths {
        let paths = self.heard.paths(token);
        self.peer_proved = proved;
        let is_cable = paths.include(ProbePaths::CABLE);
        if self.state == StampState::Unanswered && is_cable && now >= self.barred_until {
            self.probe_anew(now);
        }
        self.update();
        paths
    }

    /// A protected frame of somebody who is not the peer: no cable joins the two ends.
    pub(crate) fn on_third_host(&mut self, now: Time) {
        if self.state == StampState::Unused {
            return;
        }
        self.barred_until = now + RETRY;
        if self.state != StampState::Unanswered || self.obstacle != StampObstacle::ThirdHost {
            self.give_up(now, StampObstacle::ThirdHost);
        }
        self.rounds.set_due(self.barred_until);
    }

    fn give_up(&mut self, now: Time, obstacle: StampObstacle) {
        (self.state, self.obstacle, self.believes_until) = (StampState::Unanswered, obstacle, Time::ZERO);
        self.barred_until = self.barred_until.max(now + PAUSE);
        self.rounds.begin(now + RETRY);
        self.update();
    }

    /// Stamps were used, and should not have been. The peer learns of it by a question at once.
    fn relapse(&mut self, now: Time, obstacle: StampObstacle) {
        if now.since(self.relapse_at) >= RELAPSE_SPAN {
            (self.relapses, self.relapse_at) = (0, now);
        }
        (self.relapses, self.all_relapses) = (self.relapses + 1, self.all_relapses + 1);
        if self.relapses >= RELAPSES {
            self.barred_until = now + RETRY;
            self.give_up(now, obstacle);
        } else {
            self.believes_until = Time::ZERO;
            self.probe_anew(now);
        }
    }

    /// Frames that most of which are lost are sent otherwise, until questions show that they arrive.
    pub(crate) fn look_at_losses(&mut self, now: Time, stamped: u64, counters: &Counters) {
        let is_used = self.state() == StampState::Used;
        let (sent, lost) =
            (stamped - self.before.0.min(stamped), counters.tx_missing - self.before.1.min(counters.tx_missing));
        if sent < LOST || !is_used && lost == 0 {
            return;
        }
        self.before = (stamped, counters.tx_missing);
        if lost >= LOST && lost * 2 >= sent && is_used {
            self.relapse(now, StampObstacle::Loss);
        }
    }
}

#[cfg(test)]
mod tests;

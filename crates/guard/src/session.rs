//! The life cycle of a protected link: how two ends start together, stop together, and find each other
//! again after one of them restarted.
//!
//! The paper's control plane switches protection on from outside; a link that looks after itself needs
//! a handshake over the link, which may lose any of its messages.
//!
//! ```text
//!   Dormant   ── activate: Hello ─────────────────────────▶ Asking
//!   Asking    ── Welcome: Confirm ────────────────────────▶ Active
//!   Asking    ── Hello of a higher instance: Welcome ─────▶ Answering
//!   Dormant   ── Hello: Welcome ──────────────────────────▶ Answering
//!   Answering ── Confirm, or any frame of the epoch ──────▶ Active
//!   Active    ── deactivate, or Bye: Bye ─────────────────▶ Closing
//!   Active    ── Hello of a restarted peer: Welcome ──────▶ Answering
//!   Active    ── Unknown, or silence: Hello ──────────────▶ Asking
//!   Closing   ── both ends drained and empty: Gone ───────▶ Dormant
//! ```
//!
//! Until an end is Active it sends frames unprotected, and it accepts such frames always: they left
//! before any protected one, on a wire that keeps order, so nothing is lost or overtaken at the start.
//! An end that is Closing sends nothing new until all that it sent is acknowledged *and* the peer says
//! that all of it is delivered; only then may an unprotected frame follow. Each side keeps repeating its
//! message until it is answered, and a Dormant end still answers a Bye of the epoch that just ended.
//!
//! An epoch numbers the lives of the link. Every frame carries it modulo four, so one that was in flight
//! when an end restarted is told from those that follow. A peer with a new instance number has lost its
//! memory: what it did not acknowledge is let go (sending it again might deliver it twice), and counted.

use units::{Span, Time};
use wire::link::{Agreement, Epoch, Refusal, Session, SessionKind};

use wire::Seq;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Dormant,
    /// Sent a Hello, waits for a Welcome.
    Asking,
    /// Sent a Welcome, waits for a Confirm.
    Answering,
    Active,
    Closing,
}

/// What the endpoint has to do because of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// A new epoch begins here; frames of it may arrive from now on.
    Begin,
    /// The same, with a peer that has restarted.
    BeginAgain,
    /// A new epoch begins and is agreed: protect.
    BeginActive,
    /// The epoch begun before is agreed: protect.
    Agreed,
    Refused(Refusal),
    /// The peer forgot this epoch: let go of everything and ask again.
    Forgotten,
    Closed,
    /// The message made no sense.
    Bogus,
}

/// No link lives to see this many epochs, and numbers up to here can be told apart by size.
const LAST_EPOCH: u32 = u32::MAX / 2;

/// An end starts at one of so many.
const FIRST_EPOCHS: u32 = 1 << 16;

/// How often an answer is repeated before the peer is taken for gone.
const MAX_TRIES: u32 = 64;

#[derive(Debug)]
pub struct Lifecycle {
    state: State,
    instance: u32,
    peer: u32,
    epoch: u32,
    agreement: Agreement,
    retry: Span,
    copies: u8,
    pending: Option<(SessionKind, u8)>,
    tries: u32,
    heard_bye: bool,
    peer_is_empty: bool,
    announced: Option<bool>,
    quiet_until: Time,
    strange: Epoch,
    /// Whom the refusal at hand is for.
    refused: u32,
    /// What the peer would agree to, as it last said.
    theirs: Option<Agreement>,
}

impl Lifecycle {
    pub fn new(instance: u32, agreement: Agreement, retry: Span, copies: u8) -> Self {
        Self {
            state: State::Dormant,
            instance,
            peer: 0,
            // Two ends that both restart must not, as a rule, land on the epoch of frames still in flight.
            epoch: instance % FIRST_EPOCHS,
            agreement,
            retry,
            copies,
            pending: None,
            tries: 0,
            heard_bye: false,
            peer_is_empty: false,
            announced: None,
            quiet_until: Time::ZERO,
            strange: Epoch::default(),
            refused: 0,
            theirs: None,
        }
    }

    /// As if the handshake with `peer` had just taken place.
    pub fn establish(&mut self, peer: u32) {
        self.begin(peer, 1);
        self.state = State::Active;
    }

    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch::new(self.epoch)
    }

    /// What the peer would agree to, as it last said.
    pub fn theirs(&self) -> Option<Agreement> {
        self.theirs
    }

    #[inline]
    pub fn has_message(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether a protected frame of `epoch` belongs to the life at hand.
    #[inline]
    pub fn accepts(&self, epoch: Epoch) -> bool {
        matches!(self.state, State::Active | State::Answering | State::Closing) && epoch == self.epoch()
    }

    /// The next message to send, at highest priority.
    pub fn next_message(&mut self) -> Option<Session> {
        let (kind, left) = self.pending?;
        self.pending = (left > 1).then_some((kind, left - 1));
        let epoch = match kind {
            SessionKind::Hello => self.epoch.wrapping_add(1),
            SessionKind::Unknown => u32::from(self.strange.number()),
            _ => self.epoch,
        };
        let heard = if matches!(kind, SessionKind::Refuse(_)) { self.refused } else { self.peer };
        Some(Session { kind, instance: self.instance, heard, epoch, agreement: self.agreement })
    }

    /// When the message of this state is to be repeated.
    pub fn retry_at(&self, now: Time) -> Option<Time> {
        matches!(self.state, State::Asking | State::Answering | State::Closing).then(|| now + self.retry)
    }

    fn say(&mut self, kind: SessionKind) {
        self.pending = Some((kind, self.copies.max(1)));
    }

    pub fn activate(&mut self) {
        if self.state == State::Dormant {
            self.ask();
        }
    }

    fn ask(&mut self) {
        self.state = State::Asking;
        self.tries = 0;
        self.say(SessionKind::Hello);
    }

    /// True if the link can go dormant at once because nothing was agreed.
    pub fn deactivate(&mut self) -> bool {
        match self.state {
            State::Dormant | State::Closing => false,
            State::Asking => {
                self.state = State::Dormant;
                self.pending = None;
                true
            }
            State::Answering | State::Active => {
                self.close();
                false
            }
        }
    }

    fn close(&mut self) {
        self.state = State::Closing;
        self.tries = 0;
        self.announced = None;
    }

    pub fn on_message(&mut self, message: &Session) -> Step {
        let looped = message.instance == self.instance;
        if looped || message.epoch > LAST_EPOCH {
            return Step::Bogus;
        }
        let ours = message.instance == self.peer && message.epoch == self.epoch;
        self.theirs = Some(message.agreement);
        match (self.state, message.kind) {
            (_, SessionKind::Hello) => self.on_hello(message),
            (State::Asking, SessionKind::Welcome) if message.heard == self.instance && message.epoch > self.epoch => {
                if let Err(reason) = self.check(&message.agreement) {
                    self.refused = message.instance;
                    self.say(SessionKind::Refuse(reason));
                    self.state = State::Dormant;
                    return Step::Refused(reason);
                }
                self.begin(message.instance, message.epoch);
                self.state = State::Active;
                self.say(SessionKind::Confirm);
                Step::BeginActive
            }
            (State::Active | State::Closing, SessionKind::Welcome) if ours => {
                self.say(SessionKind::Confirm);
                Step::Nothing
            }
            (State::Answering, SessionKind::Confirm) if ours => self.confirmed(),
            (State::Asking | State::Answering, SessionKind::Refuse(reason)) if message.heard == self.instance => {
                self.state = State::Dormant;
                self.pending = None;
                Step::Refused(reason)
            }
            (State::Active, SessionKind::Unknown) if Epoch::new(message.epoch) == self.epoch() => {
                self.ask();
                Step::Forgotten
            }
            (State::Closing, SessionKind::Unknown | SessionKind::Gone) if Epoch::new(message.epoch) == self.epoch() => {
                self.heard_bye = true;
                self.peer_is_empty = true;
                Step::Nothing
            }
            (State::Active | State::Answering | State::Closing, SessionKind::Bye { rx_empty }) if ours => {
                self.heard_bye = true;
                self.peer_is_empty |= rx_empty;
                if self.state != State::Closing {
                    self.close();
                }
                Step::Nothing
            }
            (State::Dormant, SessionKind::Bye { .. }) if ours => {
                self.say(SessionKind::Gone);
                Step::Nothing
            }
            // Late or repeated: the answer has been given, or the question withdrawn.
            _ => Step::Nothing,
        }
    }

    fn on_hello(&mut self, hello: &Session) -> Step {
        let again = hello.instance == self.peer && hello.epoch <= self.epoch;
        match self.state {
            // It has not heard our Welcome; if it is merely late, the answer does no harm.
            State::Answering | State::Active if again => {
                self.say(SessionKind::Welcome);
                return Step::Nothing;
            }
            State::Closing if again => return Step::Nothing,
            // Both asked at once: one must answer.
            State::Asking if hello.instance < self.instance => return Step::Nothing,
            _ => {}
        }
        if let Err(reason) = self.check(&hello.agreement) {
            self.refused = hello.instance;
            self.say(SessionKind::Refuse(reason));
            return Step::Refused(reason);
        }
        if self.state == State::Closing {
            // The peer we were taking leave of is no more; its next life may ask again.
            self.state = State::Dormant;
            return Step::Closed;
        }
        let restarted = self.state == State::Active;
        self.begin(hello.instance, hello.epoch.max(self.epoch.wrapping_add(1)));
        self.state = State::Answering;
        self.say(SessionKind::Welcome);
        if restarted { Step::BeginAgain } else { Step::Begin }
    }

    fn begin(&mut self, peer: u32, epoch: u32) {
        self.peer = peer;
        self.epoch = epoch;
        self.tries = 0;
        self.heard_bye = false;
        self.peer_is_empty = false;
        self.announced = None;
    }

    fn check(&self, theirs: &Agreement) -> Result<(), Refusal> {
        let mine = &self.agreement;
        if theirs.version != mine.version {
            return Err(Refusal::Version);
        }
        if theirs.classes != mine.classes {
            return Err(Refusal::Classes);
        }
        if theirs.window == 0 || u32::from(theirs.window) > Seq::MAX_WINDOW {
            return Err(Refusal::Window);
        }
        if theirs.mtu != mine.mtu {
            return Err(Refusal::Mtu);
        }
        if theirs.seal != mine.seal {
            return Err(Refusal::Seal);
        }
        Ok(())
    }

    /// A frame of this epoch: as good as a Confirm.
    pub fn on_frame_of_epoch(&mut self) -> Step {
        if self.state == State::Answering { self.confirmed() } else { Step::Nothing }
    }

    fn confirmed(&mut self) -> Step {
        self.state = State::Active;
        self.pending = None;
        Step::Agreed
    }

    /// A frame of an epoch that is not ours. Says so, unless it is merely late.
    pub fn on_strange_frame(&mut self, now: Time, epoch: Epoch) {
        let just_ended = self.peer != 0 && epoch == self.epoch();
        if self.state == State::Dormant && !just_ended && now >= self.quiet_until && self.pending.is_none() {
            self.quiet_until = now + self.retry;
            self.strange = epoch;
            self.say(SessionKind::Unknown);
        }
    }

    /// Repeats what has not been answered. False when the peer seems to be gone for good.
    pub fn on_retry(&mut self) -> bool {
        self.tries += 1;
        match self.state {
            State::Asking => self.say(SessionKind::Hello),
            State::Answering => self.say(SessionKind::Welcome),
            State::Closing => {
                if let Some(rx_empty) = self.announced {
                    self.say(SessionKind::Bye { rx_empty });
                }
            }
            State::Dormant | State::Active => {}
        }
        let gone = self.tries > MAX_TRIES && matches!(self.state, State::Answering | State::Closing);
        if gone {
            self.state = State::Dormant;
            self.pending = None;
        }
        !gone
    }

    /// The peer has been silent for too long: start over.
    pub fn on_silence(&mut self) {
        match self.state {
            State::Active => self.ask(),
            State::Closing => self.state = State::Dormant,
            State::Dormant | State::Asking | State::Answering => {}
        }
    }

    /// Moves a closing link on: `drained` if all that we sent is acknowledged, `empty` if all that we
    /// received is delivered.
    pub fn try_to_close(&mut self, drained: bool, empty: bool) -> Step {
        if self.state != State::Closing || !drained {
            return Step::Nothing;
        }
        let done = self.heard_bye && empty;
        if done && self.peer_is_empty {
            self.state = State::Dormant;
            self.say(SessionKind::Gone);
            return Step::Closed;
        }
        if self.announced != Some(done) {
            self.announced = Some(done);
            self.say(SessionKind::Bye { rx_empty: done });
        }
        Step::Nothing
    }
}

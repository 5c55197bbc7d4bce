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
//!   Active    ── Unknown, silence or contradiction: Hello ▶ Asking
//!   Closing   ── both ends drained and empty: Gone ───────▶ Dormant
//! ```
//!
//! Until an end is Active it sends frames unprotected, and it accepts such frames always: they left
//! before any protected one, on a wire that keeps order, so nothing is lost or overtaken at the start.
//! An end that is Closing sends nothing new until all that it sent is acknowledged *and* the peer says
//! that all of it is delivered; only then may an unprotected frame follow. Each side repeats its message
//! until it is answered. An end that does not know the epoch of a Bye answers Gone.
//! Answering and Closing last for [`SessionTiming::linger`] at most.
//!
//! An epoch numbers the incarnations of the link. Every frame carries it modulo four, which distinguishes a
//! frame that was in flight when an end restarted from those that follow. A peer with a new instance number has
//! lost its memory: what it did not acknowledge is let go (sending it again might deliver it twice), and counted.
//!
//! # Who may wake a dormant end
//!
//! An end that nobody has spoken to since it was made follows its peer: any Hello wakes it. An end that was
//! *deactivated* by command stays as it is when a Hello comes by itself, because the peer restarted, lost sight of
//! us or tries again ([`SessionRefusal::Deactivated`]); it wakes when somebody says activate, here or at a peer that runs
//! already: such a Hello says so (`asked`). An end that was activated and has become dormant although nobody here
//! said so keeps trying, with a Hello for each [`SessionTiming::heartbeat`].
//!
//! # Forged messages
//!
//! Without a seal anybody on the wire can send any of these messages, and end an epoch. Nobody can keep the two
//! ends apart for longer than he goes on: epochs count on a circle ([`epoch`]), every state but Active and Dormant
//! passes, and an Active end repeats its Confirm with each heartbeat, so that two ends that believe in different
//! epochs or peers contradict each other and start over, as does an end that hears nothing for a few of them. What
//! contradicts is counted as bogus. Sequence numbers begin
//! elsewhere in each epoch, so until then neither takes the other's frames for its own.

pub mod epoch;
mod messages;
mod teardown;

use units::{Span, Time};
use wire::link::{Epoch, LinkAgreement, SessionKind, SessionMessage, SessionRefusal};

/// State of a link's life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Neither protects nor asks for it.
    Dormant,
    /// Sent a Hello, waits for a Welcome.
    Asking,
    /// Sent a Welcome, waits for a Confirm.
    Answering,
    /// Both ends agree: frames are protected.
    Active,
    /// Ending: waits until everything sent is acknowledged.
    Closing,
}

/// Action of the endpoint that a message requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStep {
    /// There is nothing to do.
    Nothing,
    /// A new epoch begins here; frames of it may arrive from now on.
    Begin,
    /// A new epoch begins, because the peer has restarted.
    BeginAgain,
    /// A new epoch begins and is agreed: protect.
    BeginActive,
    /// The epoch begun before is agreed: protect.
    Agreed,
    /// One of the ends will not protect the link.
    Refused(SessionRefusal),
    /// The peer forgot this epoch: let go of everything and ask again.
    Forgotten,
    /// The peer speaks of another epoch, or to another end: let go of everything and ask again.
    Contradicted,
    /// The epoch is over, as both ends wanted.
    Closed,
    /// The message made no sense.
    Bogus,
}

/// One epoch between two incarnations of the two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionIdentity {
    /// This end's instance.
    pub instance: u32,
    /// The peer's, or 0 as long as there has been none.
    pub peer: u32,
    /// The whole number of the epoch.
    pub epoch: u32,
}

/// Timing of the life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTiming {
    /// Time between two tries of a message that needs an answer.
    pub retry: Span,
    /// The longest that a handshake or a farewell goes on without the answer that ends it.
    pub linger: Span,
    /// Interval at which an end says unasked what it believes: Confirm while Active, Hello while it is dormant against its
    /// will. `None` if never; then two ends that were led astray find out only by their frames.
    pub heartbeat: Option<Span>,
}

/// An end starts at one of this many epochs.
const FIRST_EPOCHS: u32 = 1 << 16;

/// A peer is not given up before this many tries: time may have passed without our running.
const LEAST_TRIES: u32 = 3;

/// Heartbeats without a message of the peer after which the peer counts as gone.
const MOST_QUIET: u32 = 4;

/// Latest request of the owner: protected or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerIntent {
    /// Nothing: the end follows the peer.
    Follow,
    Protect,
    /// Does not protect, unless the peer asks for it.
    Rest,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
struct PendingMessage {
    kind: SessionKind,
    heard: u32,
    epoch: u32,
    copies: u8,
}

/// One end's part of the handshakes by which protection begins and ends.
#[derive(Debug)]
pub struct Lifecycle {
    state: SessionState,
    instance: u32,
    peer: u32,
    epoch: u32,
    agreement: LinkAgreement,
    timing: SessionTiming,
    copies: u8,
    will: OwnerIntent,
    /// True if protection was asked for since the link was last active.
    asked: bool,
    pending: Option<PendingMessage>,
    tries: u32,
    /// Heartbeats since the peer was last heard of while Active.
    quiet: u32,
    /// Time at which Answering or Closing has lasted for long enough.
    until: Time,
    heard_bye: bool,
    peer_is_empty: bool,
    announced: Option<bool>,
    quiet_until: Time,
    /// Latest agreement that the peer offered.
    theirs: Option<LinkAgreement>,
    /// The window that the peer announced when this epoch began.
    window: u16,
}

impl Lifecycle {
    /// Dormant; `instance` distinguishes this incarnation of the end from others.
    pub fn new(instance: u32, agreement: LinkAgreement, timing: SessionTiming, copies: u8) -> Self {
        Self {
            state: SessionState::Dormant,
            instance,
            peer: 0,
            // Two ends that both restart must not, as a rule, land on the epoch of frames still in flight.
            epoch: instance % FIRST_EPOCHS,
            agreement,
            timing,
            copies: copies.max(1),
            will: OwnerIntent::Follow,
            asked: false,
            pending: None,
            tries: 0,
            quiet: 0,
            until: Time::NEVER,
            heard_bye: false,
            peer_is_empty: false,
            announced: None,
            quiet_until: Time::ZERO,
            theirs: None,
            window: agreement.window,
        }
    }

    /// Enters the state after a handshake with `peer`, without messages.
    pub fn establish(&mut self, peer: u32) {
        self.begin(peer, 1, self.agreement.window);
        self.will = OwnerIntent::Protect;
        self.state = SessionState::Active;
    }

    /// State of the life cycle now.
    #[inline]
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// The epoch of frames sent now.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch::new(self.epoch)
    }

    /// Identity that distinguishes the frames of this epoch from all others.
    #[inline]
    pub fn identity(&self) -> SessionIdentity {
        SessionIdentity { instance: self.instance, peer: self.peer, epoch: self.epoch }
    }

    /// First sequence number of this epoch, counted from those of the first.
    pub(crate) fn first_number(&self) -> u32 {
        epoch::first_number(self.epoch)
    }

    /// Latest agreement that the peer offered.
    pub fn theirs(&self) -> Option<LinkAgreement> {
        self.theirs
    }

    /// The most frames that the peer keeps outstanding in this epoch, as it announced.
    pub(crate) fn peer_window(&self) -> u32 {
        u32::from(self.window)
    }

    /// Deactivated by command: it takes somebody's asking to protect again.
    pub(crate) fn rests(&self) -> bool {
        self.will == OwnerIntent::Rest
    }

    #[inline]
    pub(crate) fn has_message(&self) -> bool {
        self.pending.is_some()
    }

    /// True if a protected frame of `epoch` belongs to the current incarnation of the link.
    #[inline]
    pub fn accepts(&self, epoch: Epoch) -> bool {
        matches!(self.state, SessionState::Active | SessionState::Answering | SessionState::Closing)
            && epoch == self.epoch()
    }

    /// The next message to send, at highest priority.
    pub fn next_message(&mut self) -> Option<SessionMessage> {
        let pending = self.pending?;
        let copies = pending.copies - 1;
        self.pending = (copies > 0).then_some(PendingMessage { copies, ..pending });
        let PendingMessage { kind, heard, epoch, .. } = pending;
        Some(SessionMessage { kind, instance: self.instance, heard, epoch, agreement: self.agreement })
    }

    /// Time at which the message of this state is to be repeated.
    pub(crate) fn retry_at(&self, now: Time) -> Option<Time> {
        match self.state {
            SessionState::Asking | SessionState::Answering | SessionState::Closing => Some(now + self.timing.retry),
            SessionState::Dormant if self.will != OwnerIntent::Protect => None,
            SessionState::Active | SessionState::Dormant => self.timing.heartbeat.map(|span| now + span),
        }
    }

    fn say(&mut self, kind: SessionKind) {
        let epoch = match kind {
            SessionKind::Hello { .. } => self.epoch.wrapping_add(1),
            _ => self.epoch,
        };
        self.say_to(kind, self.peer, epoch);
    }

    fn say_to(&mut self, kind: SessionKind, heard: u32, epoch: u32) {
        self.pending = Some(PendingMessage { kind, heard, epoch, copies: self.copies });
    }

    fn greet(&mut self) {
        self.say(SessionKind::Hello { asked: self.asked });
    }

    /// Protection is wanted. Where somebody `asked` for it, the peer too is to wake, though it was deactivated.
    pub fn activate(&mut self, asked: bool) {
        self.will = OwnerIntent::Protect;
        self.asked |= asked && self.state != SessionState::Active;
        match self.state {
            SessionState::Dormant => self.ask(),
            SessionState::Asking => self.greet(),
            SessionState::Answering | SessionState::Active | SessionState::Closing => {}
        }
    }

    fn ask(&mut self) {
        self.state = SessionState::Asking;
        self.tries = 0;
        self.greet();
    }

    /// True if the link can go dormant at once because nothing was agreed.
    pub fn deactivate(&mut self, now: Time) -> bool {
        self.will = OwnerIntent::Rest;
        self.asked = false;
        match self.state {
            SessionState::Dormant | SessionState::Closing => false,
            SessionState::Asking => {
                self.state = SessionState::Dormant;
                self.pending = None;
                true
            }
            SessionState::Answering | SessionState::Active => {
                self.close(now);
                false
            }
        }
    }

    fn begin(&mut self, peer: u32, epoch: u32, window: u16) {
        self.peer = peer;
        self.epoch = epoch;
        self.window = window;
        self.tries = 0;
        self.quiet = 0;
        self.heard_bye = false;
        self.peer_is_empty = false;
        self.announced = None;
    }

    /// A frame of this epoch: as good as a Confirm.
    pub(crate) fn on_frame_of_epoch(&mut self) -> SessionStep {
        if self.state == SessionState::Answering { self.confirmed() } else { SessionStep::Nothing }
    }

    fn confirmed(&mut self) -> SessionStep {
        self.state = SessionState::Active;
        self.asked = false;
        // A Welcome that has not gone out yet: the Confirm is not the answer to it. The peer may know better.
        self.pending = self.pending.filter(|pending| pending.copies == self.copies);
        SessionStep::Agreed
    }

    /// Takes a frame of an epoch that is not ours. Tells the peer so, unless the frame is merely late.
    pub(crate) fn on_strange_frame(&mut self, now: Time, epoch: Epoch) {
        let just_ended = self.peer != 0 && epoch == self.epoch();
        if self.state == SessionState::Dormant && !just_ended {
            self.say_unknown(now, u32::from(epoch.number()));
        }
    }

    fn say_unknown(&mut self, now: Time, epoch: u32) {
        if now >= self.quiet_until && self.pending.is_none() {
            self.quiet_until = now + self.timing.retry;
            self.say_to(SessionKind::Unknown, self.peer, epoch);
        }
    }

    /// Repeats what has not been answered, until that has lasted for too long. `heard` says whether a frame of this epoch
    /// came since the last time.
    pub fn on_retry(&mut self, now: Time, heard: bool) -> SessionStep {
        self.tries += 1;
        let lapsed = now >= self.until && self.tries > LEAST_TRIES;
        match self.state {
            SessionState::Asking | SessionState::Dormant => self.greet(),
            SessionState::Answering if lapsed => {
                self.pending = None;
                self.state = SessionState::Dormant;
                if self.will == OwnerIntent::Protect {
                    self.ask();
                }
                return SessionStep::Forgotten;
            }
            SessionState::Answering => self.say(SessionKind::Welcome),
            SessionState::Closing if lapsed => return self.vanish(),
            SessionState::Closing => {
                if let Some(rx_empty) = self.announced {
                    self.say(SessionKind::Bye { rx_empty });
                }
            }
            SessionState::Active => return self.beat(heard),
        }
        SessionStep::Nothing
    }

    /// Says in which epoch this end is, and with whom.
    fn beat(&mut self, heard: bool) -> SessionStep {
        // Counted, not timed: a beat that comes late because we did not run is one all the same.
        self.quiet = if heard { 0 } else { self.quiet + 1 };
        if self.quiet > MOST_QUIET {
            return self.on_silence();
        }
        if self.pending.is_none() {
            // One is enough: another follows.
            let (heard, epoch) = (self.peer, self.epoch);
            self.pending = Some(PendingMessage { kind: SessionKind::Confirm, heard, epoch, copies: 1 });
        }
        SessionStep::Nothing
    }

    /// Starts over after the peer has been silent for too long.
    pub(crate) fn on_silence(&mut self) -> SessionStep {
        match self.state {
            SessionState::Active => {
                self.ask();
                SessionStep::Forgotten
            }
            SessionState::Closing => self.vanish(),
            SessionState::Dormant | SessionState::Asking | SessionState::Answering => SessionStep::Nothing,
        }
    }
}

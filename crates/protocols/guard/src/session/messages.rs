//! Effect of each message of the peer on the life cycle, state by state.

use units::Time;
use wire::Seq;
use wire::link::{Epoch, LinkAgreement, SessionKind, SessionMessage, SessionRefusal};

use super::epoch::{self, is_after, is_before};
use super::{Lifecycle, OwnerIntent, SessionState, SessionStep};

impl Lifecycle {
    /// `heard` says whether the peer has acknowledged or sent any frame of this epoch.
    pub fn on_message(&mut self, now: Time, message: &SessionMessage, heard: bool) -> SessionStep {
        let looped = message.instance == self.instance;
        if looped || message.instance == 0 {
            return SessionStep::Bogus;
        }
        self.theirs = Some(message.agreement);
        let to_us = message.heard == self.instance;
        let ours = message.instance == self.peer && message.epoch == self.epoch;
        match (self.state, message.kind) {
            (_, SessionKind::Hello { asked }) => self.on_hello(now, message, asked, heard),
            (_, SessionKind::Welcome) => self.on_welcome(message, heard),
            (SessionState::Answering, SessionKind::Confirm) if ours => self.confirmed(),
            (SessionState::Active, SessionKind::Confirm) if ours && to_us => {
                self.quiet = 0;
                SessionStep::Nothing
            }
            (SessionState::Active, SessionKind::Confirm) if !self.is_stale(message) => self.contradicted(),
            (SessionState::Dormant, SessionKind::Confirm) => {
                self.say_unknown(now, message.epoch);
                SessionStep::Nothing
            }
            (_, SessionKind::Refuse(reason)) if to_us => self.on_refusal(reason),
            (SessionState::Active, SessionKind::Unknown) if Epoch::new(message.epoch) == self.epoch() => {
                self.ask();
                SessionStep::Forgotten
            }
            (SessionState::Active, SessionKind::Gone) if ours => {
                self.ask();
                SessionStep::Forgotten
            }
            (SessionState::Closing, SessionKind::Unknown | SessionKind::Gone)
                if Epoch::new(message.epoch) == self.epoch() =>
            {
                self.heard_bye = true;
                self.peer_is_empty = true;
                SessionStep::Nothing
            }
            (SessionState::Active | SessionState::Answering | SessionState::Closing, SessionKind::Bye { rx_empty })
                if ours =>
            {
                self.heard_bye = true;
                self.peer_is_empty |= rx_empty;
                if self.state != SessionState::Closing {
                    self.close(now);
                }
                SessionStep::Nothing
            }
            // The epoch is over here, or never began; the peer that sent the Bye need not wait.
            (SessionState::Dormant | SessionState::Active, SessionKind::Bye { .. }) => {
                self.say_to(SessionKind::Gone, message.instance, message.epoch);
                SessionStep::Nothing
            }
            // Late or repeated: the answer has been given, or the question withdrawn.
            _ => SessionStep::Nothing,
        }
    }

    /// True if the message is of an epoch with us that is over.
    fn is_stale(&self, message: &SessionMessage) -> bool {
        message.instance == self.peer && message.heard == self.instance && is_before(message.epoch, self.epoch)
    }

    /// The peer believes in another epoch, or in another peer: start over, regardless of which end is right.
    fn contradicted(&mut self) -> SessionStep {
        self.ask();
        SessionStep::Contradicted
    }

    fn on_hello(&mut self, now: Time, hello: &SessionMessage, asked: bool, heard: bool) -> SessionStep {
        let again = hello.instance == self.peer && !is_after(hello.epoch, self.epoch);
        match self.state {
            // It has not heard our Welcome; if it is merely late, the answer does no harm. But a peer that was heard
            // of in this epoch and asks for it again has lost its place.
            SessionState::Answering | SessionState::Active if again && !heard => {
                self.say(SessionKind::Welcome);
                return SessionStep::Nothing;
            }
            SessionState::Closing if again => return SessionStep::Nothing,
            // Both asked at once: one must answer.
            SessionState::Asking if hello.instance < self.instance => return SessionStep::Nothing,
            SessionState::Dormant if self.will == OwnerIntent::Rest && !asked => {
                self.say_to(SessionKind::Refuse(SessionRefusal::Deactivated), hello.instance, self.epoch);
                return SessionStep::Nothing;
            }
            _ => {}
        }
        if let Err(reason) = check(&self.agreement, &hello.agreement) {
            self.say_to(SessionKind::Refuse(reason), hello.instance, self.epoch);
            let asks = matches!(self.state, SessionState::Dormant | SessionState::Asking);
            // A protected link stays protected, because anybody could have sent this Hello.
            return if asks { SessionStep::Refused(reason) } else { SessionStep::Bogus };
        }
        if self.state == SessionState::Closing {
            // The peer to which we sent a Bye is gone; its next incarnation may ask again.
            self.state = SessionState::Dormant;
            return SessionStep::Closed;
        }
        let restarted = self.state == SessionState::Active;
        if self.will == OwnerIntent::Rest {
            self.will = OwnerIntent::Follow;
        }
        self.begin(hello.instance, epoch::following(self.epoch, hello.epoch), hello.agreement.window);
        self.state = SessionState::Answering;
        self.until = now + self.timing.linger;
        self.say(SessionKind::Welcome);
        if restarted { SessionStep::BeginAgain } else { SessionStep::Begin }
    }

    fn on_welcome(&mut self, welcome: &SessionMessage, heard: bool) -> SessionStep {
        let to_us = welcome.heard == self.instance;
        let from_peer = welcome.instance == self.peer;
        match self.state {
            SessionState::Asking | SessionState::Dormant
                if to_us && self.has_greeted() && !is_before(welcome.epoch, self.epoch.wrapping_add(1)) =>
            {
                if !epoch::is_near(self.epoch, welcome.epoch) {
                    // We approach it, and ask again.
                    self.epoch = self.epoch.wrapping_add(epoch::FARTHEST);
                    self.greet();
                    return SessionStep::Nothing;
                }
                self.accept(welcome)
            }
            // Both answered each other at once; the later epoch counts.
            SessionState::Answering if to_us && from_peer && welcome.epoch == self.epoch => {
                let step = self.confirmed();
                self.say(SessionKind::Confirm);
                step
            }
            SessionState::Answering if to_us && from_peer && is_after(welcome.epoch, self.epoch) => {
                if epoch::is_near(self.epoch, welcome.epoch) { self.accept(welcome) } else { SessionStep::Nothing }
            }
            SessionState::Active | SessionState::Closing if from_peer && welcome.epoch == self.epoch && !heard => {
                self.say(SessionKind::Confirm);
                SessionStep::Nothing
            }
            SessionState::Active if !self.is_stale(welcome) => self.contradicted(),
            _ => SessionStep::Nothing,
        }
    }

    /// True if a Hello of ours may be on its way.
    fn has_greeted(&self) -> bool {
        self.state == SessionState::Asking || self.will == OwnerIntent::Protect && self.timing.heartbeat.is_some()
    }

    fn accept(&mut self, welcome: &SessionMessage) -> SessionStep {
        if let Err(reason) = check(&self.agreement, &welcome.agreement) {
            self.say_to(SessionKind::Refuse(reason), welcome.instance, self.epoch);
            self.state = SessionState::Dormant;
            return SessionStep::Refused(reason);
        }
        self.begin(welcome.instance, welcome.epoch, welcome.agreement.window);
        self.state = SessionState::Active;
        self.asked = false;
        self.say(SessionKind::Confirm);
        SessionStep::BeginActive
    }

    fn on_refusal(&mut self, reason: SessionRefusal) -> SessionStep {
        match self.state {
            SessionState::Asking | SessionState::Answering => {
                self.state = SessionState::Dormant;
                self.pending = None;
                SessionStep::Refused(reason)
            }
            // Tried by itself, and the peer still rests: nothing new.
            SessionState::Dormant if self.has_greeted() && reason != SessionRefusal::Deactivated => {
                SessionStep::Refused(reason)
            }
            SessionState::Dormant | SessionState::Active | SessionState::Closing => SessionStep::Nothing,
        }
    }
}

fn check(mine: &LinkAgreement, theirs: &LinkAgreement) -> Result<(), SessionRefusal> {
    if theirs.version != mine.version {
        return Err(SessionRefusal::Version);
    }
    if theirs.classes != mine.classes {
        return Err(SessionRefusal::Classes);
    }
    if theirs.window == 0 || u32::from(theirs.window) > Seq::MAX_WINDOW {
        return Err(SessionRefusal::Window);
    }
    if theirs.mtu != mine.mtu {
        return Err(SessionRefusal::Mtu);
    }
    if theirs.seal != mine.seal {
        return Err(SessionRefusal::Seal);
    }
    Ok(())
}

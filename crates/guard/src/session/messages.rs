//! What each message of the peer does to the life cycle, state by state.

use units::Time;
use wire::Seq;
use wire::link::{Agreement, Epoch, Refusal, Session, SessionKind};

use super::epoch::{self, is_after, is_before};
use super::{Lifecycle, State, Step, Will};

impl Lifecycle {
    /// `heard` says whether the peer has acknowledged or sent any frame of this epoch.
    pub fn on_message(&mut self, now: Time, message: &Session, heard: bool) -> Step {
        let looped = message.instance == self.instance;
        if looped || message.instance == 0 {
            return Step::Bogus;
        }
        self.theirs = Some(message.agreement);
        let to_us = message.heard == self.instance;
        let ours = message.instance == self.peer && message.epoch == self.epoch;
        match (self.state, message.kind) {
            (_, SessionKind::Hello { asked }) => self.on_hello(now, message, asked, heard),
            (_, SessionKind::Welcome) => self.on_welcome(message, heard),
            (State::Answering, SessionKind::Confirm) if ours => self.confirmed(),
            (State::Active, SessionKind::Confirm) if ours && to_us => {
                self.quiet = 0;
                Step::Nothing
            }
            (State::Active, SessionKind::Confirm) if !self.is_stale(message) => self.contradicted(),
            (State::Dormant, SessionKind::Confirm) => {
                self.say_unknown(now, message.epoch);
                Step::Nothing
            }
            (_, SessionKind::Refuse(reason)) if to_us => self.on_refusal(reason),
            (State::Active, SessionKind::Unknown) if Epoch::new(message.epoch) == self.epoch() => {
                self.ask();
                Step::Forgotten
            }
            (State::Active, SessionKind::Gone) if ours => {
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
                    self.close(now);
                }
                Step::Nothing
            }
            // It is over here, or never began; whoever takes leave need not wait.
            (State::Dormant | State::Active, SessionKind::Bye { .. }) => {
                self.say_to(SessionKind::Gone, message.instance, message.epoch);
                Step::Nothing
            }
            // Late or repeated: the answer has been given, or the question withdrawn.
            _ => Step::Nothing,
        }
    }

    /// Of an epoch with us that is over.
    fn is_stale(&self, message: &Session) -> bool {
        message.instance == self.peer && message.heard == self.instance && is_before(message.epoch, self.epoch)
    }

    /// The peer believes in another epoch, or in another peer: whoever is right, start over.
    fn contradicted(&mut self) -> Step {
        self.ask();
        Step::Contradicted
    }

    fn on_hello(&mut self, now: Time, hello: &Session, asked: bool, heard: bool) -> Step {
        let again = hello.instance == self.peer && !is_after(hello.epoch, self.epoch);
        match self.state {
            // It has not heard our Welcome; if it is merely late, the answer does no harm. But a peer that was heard
            // of in this epoch and asks for it again has lost its place.
            State::Answering | State::Active if again && !heard => {
                self.say(SessionKind::Welcome);
                return Step::Nothing;
            }
            State::Closing if again => return Step::Nothing,
            // Both asked at once: one must answer.
            State::Asking if hello.instance < self.instance => return Step::Nothing,
            State::Dormant if self.will == Will::Rest && !asked => {
                self.say_to(SessionKind::Refuse(Refusal::Deactivated), hello.instance, self.epoch);
                return Step::Nothing;
            }
            _ => {}
        }
        if let Err(reason) = check(&self.agreement, &hello.agreement) {
            self.say_to(SessionKind::Refuse(reason), hello.instance, self.epoch);
            let asks = matches!(self.state, State::Dormant | State::Asking);
            // Who is protected stays so: it may be anybody's Hello.
            return if asks { Step::Refused(reason) } else { Step::Bogus };
        }
        if self.state == State::Closing {
            // The peer we were taking leave of is no more; its next life may ask again.
            self.state = State::Dormant;
            return Step::Closed;
        }
        let restarted = self.state == State::Active;
        if self.will == Will::Rest {
            self.will = Will::Follow;
        }
        self.begin(hello.instance, epoch::following(self.epoch, hello.epoch), hello.agreement.window);
        self.state = State::Answering;
        self.until = now + self.timing.linger;
        self.say(SessionKind::Welcome);
        if restarted { Step::BeginAgain } else { Step::Begin }
    }

    fn on_welcome(&mut self, welcome: &Session, heard: bool) -> Step {
        let to_us = welcome.heard == self.instance;
        let from_peer = welcome.instance == self.peer;
        match self.state {
            State::Asking | State::Dormant
                if to_us && self.has_greeted() && !is_before(welcome.epoch, self.epoch.wrapping_add(1)) =>
            {
                if !epoch::is_near(self.epoch, welcome.epoch) {
                    // We approach it, and ask again.
                    self.epoch = self.epoch.wrapping_add(epoch::FARTHEST);
                    self.greet();
                    return Step::Nothing;
                }
                self.accept(welcome)
            }
            // Both answered each other at once; the later epoch counts.
            State::Answering if to_us && from_peer && welcome.epoch == self.epoch => {
                let step = self.confirmed();
                self.say(SessionKind::Confirm);
                step
            }
            State::Answering if to_us && from_peer && is_after(welcome.epoch, self.epoch) => {
                if epoch::is_near(self.epoch, welcome.epoch) { self.accept(welcome) } else { Step::Nothing }
            }
            State::Active | State::Closing if from_peer && welcome.epoch == self.epoch && !heard => {
                self.say(SessionKind::Confirm);
                Step::Nothing
            }
            State::Active if !self.is_stale(welcome) => self.contradicted(),
            _ => Step::Nothing,
        }
    }

    /// Whether a Hello of ours may be on its way.
    fn has_greeted(&self) -> bool {
        self.state == State::Asking || self.will == Will::Protect && self.timing.heartbeat.is_some()
    }

    fn accept(&mut self, welcome: &Session) -> Step {
        if let Err(reason) = check(&self.agreement, &welcome.agreement) {
            self.say_to(SessionKind::Refuse(reason), welcome.instance, self.epoch);
            self.state = State::Dormant;
            return Step::Refused(reason);
        }
        self.begin(welcome.instance, welcome.epoch, welcome.agreement.window);
        self.state = State::Active;
        self.asked = false;
        self.say(SessionKind::Confirm);
        Step::BeginActive
    }

    fn on_refusal(&mut self, reason: Refusal) -> Step {
        match self.state {
            State::Asking | State::Answering => {
                self.state = State::Dormant;
                self.pending = None;
                Step::Refused(reason)
            }
            // Tried by itself, and the peer still rests: nothing new.
            State::Dormant if self.has_greeted() && reason != Refusal::Deactivated => Step::Refused(reason),
            State::Dormant | State::Active | State::Closing => Step::Nothing,
        }
    }
}

fn check(mine: &Agreement, theirs: &Agreement) -> Result<(), Refusal> {
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

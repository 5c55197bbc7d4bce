//! Orderly end of an epoch: nothing unprotected follows until all that was protected is delivered.

use units::Time;
use wire::link::SessionKind;

use super::{Lifecycle, SessionState, SessionStep};

impl Lifecycle {
    pub(super) fn close(&mut self, now: Time) {
        self.state = SessionState::Closing;
        self.tries = 0;
        self.until = now + self.timing.linger;
        self.announced = None;
    }

    /// The peer does not take part in the farewell.
    pub(super) fn vanish(&mut self) -> SessionStep {
        self.state = SessionState::Dormant;
        self.pending = None;
        SessionStep::Closed
    }

    /// Moves a closing link on: `drained` if all that we sent is acknowledged, `empty` if all that we
    /// received is delivered.
    pub fn try_to_close(&mut self, drained: bool, empty: bool) -> SessionStep {
        if self.state != SessionState::Closing || !drained {
            return SessionStep::Nothing;
        }
        let done = self.heard_bye && empty;
        if done && self.peer_is_empty {
            self.state = SessionState::Dormant;
            self.say(SessionKind::Gone);
            return SessionStep::Closed;
        }
        if self.announced != Some(done) {
            self.announced = Some(done);
            self.say(SessionKind::Bye { rx_empty: done });
        }
        SessionStep::Nothing
    }
}

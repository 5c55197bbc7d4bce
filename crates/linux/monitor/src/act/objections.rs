//! Reasons against an action that must not be done, or cannot be.

use units::Moment;

use super::{Executor, PortActor};
use crate::journal::{ActionKind, ActionOutcome};
use crate::source::Selection;
use bus::message::{Condition, PortState};

impl<E: Executor> PortActor<E> {
    /// Reason why a port must not be touched, in any condition.
    pub(super) fn objection(&mut self, port: &str) -> Option<String> {
        let named = self.rules.ports.get(port);
        if self.rules.excluded.iter().any(|pattern| pattern.matches(port)) {
            return Some("it is excluded".to_owned());
        }
        if named.is_none() && !Selection::named(&self.rules.watched).takes(port, || true) {
            return Some("it is not among the ports to watch".to_owned());
        }
        if named.is_some() {
            return None;
        }
        match self.executor.default_routes() {
            Ok(holders) if holders.contains(port) => Some(
                "it holds the default route, as management ports do; name it in a [[port]] to act on it".to_owned(),
            ),
            Ok(holders) => {
                let stand_in = self.executor.daemon(port, None).ok().flatten()?.link;
                holders.contains(&stand_in).then(|| {
                    format!("its stand-in {stand_in} holds the default route; name {port} in a [[port]] to act on it")
                })
            }
            Err(why) => Some(format!("whether it is a management port is not known: {why}")),
        }
    }

    /// Objection if both ends name their neighbour at the other end of the cable, and the names do not agree.
    pub(super) fn miscabled(&self, port: &str, trigger: &PortState) -> Option<String> {
        let ours = self.rules.ports.get(port)?.peer.as_ref()?;
        let theirs = trigger.peer.as_ref()?;
        if !self.rules.sender_acts || (*ours == trigger.id && *theirs == self.id(port)) {
            return None;
        }
        Some(format!(
            "{} says that its peer is {theirs}, but the peer of {} is configured as {ours}",
            trigger.id,
            self.id(port)
        ))
    }

    /// A port that corrupts and whose sender nobody knows: the alarm is all there is.
    pub(super) fn tell_if_nobody_can_act(&mut self, now: Moment, port: &str) {
        if !self.rules.sender_acts {
            return;
        }
        let Some(state) = self.states.get(&self.id(port)).cloned() else { return };
        if state.condition == Condition::Corrupting && state.peer.is_none() {
            let why =
                "who sends to it is not known here; set `peer` in its [[port]], and its peer's monitor can protect it";
            self.say(now, port, ActionKind::Protect, ActionOutcome::Left, why, Some(&state));
        }
    }
}

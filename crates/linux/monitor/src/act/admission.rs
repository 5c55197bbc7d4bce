//! Admission of messages from the bus: only those that concern this host, can be true, and are new.

use std::collections::BTreeSet;
use std::time::Duration;

use units::Moment;

use super::{Executor, PortActor};
use crate::journal::{ActionKind, ActionOutcome, JournalEntry};
use bus::message::{Condition, Message, OrderKind, PortId, PortState};

/// Ports whose state is kept, and orders that wait: more than a host has. Others are left out, and that is reported.
const MOST_STATES: usize = 2_048;
pub(super) const MOST_ORDERS: usize = 1_024;
/// Ports that are reported one by one when messages about them are refused; and how long until they are reported again.
const MOST_REFUSALS: usize = 256;
const TOLD_FOR: Duration = Duration::from_secs(3_600);

/// Refusals that were reported, so that a sender that repeats its message does not fill the journal.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    since: Moment,
    told: BTreeSet<(String, ActionKind, &'static str)>,
}

impl Refusals {
    /// True if a refusal is worth a line. Ports beyond the first few share one line: names can be invented.
    fn is_new(&mut self, now: Moment, port: &str, deed: ActionKind, why: &'static str) -> bool {
        if now.since(self.since) >= TOLD_FOR {
            (self.since, self.told) = (now, BTreeSet::new());
        }
        let port = if self.told.len() < MOST_REFUSALS { port } else { "" };
        let before = [port, ""].map(|port| (port.to_owned(), deed, why));
        !self.told.contains(&before[1]) && self.told.insert(before[0].clone())
    }
}

impl<E: Executor> PortActor<E> {
    /// Takes note; [`tick`](Self::tick) acts. What was heard before, or is older, changes nothing.
    pub fn hear(&mut self, now: Moment, message: &Message) {
        // Before it is remembered: what is refused must not stand in the way of what is not.
        if !self.concerns_us(message) || self.is_refused(now, message) || !self.seen.is_news(message) {
            return;
        }
        match message {
            Message::Order(order) => drop(self.orders.insert(order.id.port.clone(), order.clone())),
            Message::Port(state) => {
                match state.condition {
                    Condition::Unknown => drop(self.unknown_since.entry(state.id.clone()).or_insert(now)),
                    Condition::Healthy | Condition::Corrupting => drop(self.unknown_since.remove(&state.id)),
                }
                self.states.insert(state.id.clone(), state.clone());
                self.keep_alarm(state);
            }
        }
    }

    /// Our own ports, and those at the other ends of their cables. A bus has a hundred thousand others.
    fn concerns_us(&self, message: &Message) -> bool {
        let own = |id: &PortId| id.host == self.rules.host;
        own(message.id())
            || match message {
                Message::Order(_) => false,
                Message::Port(state) => {
                    state.peer.as_ref().is_some_and(own)
                        || self.states.contains_key(&state.id)
                        || self.kept.memory.protected.values().any(|ours| ours.reasons.contains(&state.id))
                        || self.rules.ports.values().any(|rule| rule.peer.as_ref() == Some(&state.id))
                }
            }
    }

    /// Refuses messages that cannot be true, or that there is no room for, from any sender. Each is reported once.
    fn is_refused(&mut self, now: Moment, message: &Message) -> bool {
        let (full, deed) = match message {
            Message::Order(order) => {
                let waits = self.orders.contains_key(&order.id.port);
                let deed = if order.kind == OrderKind::Disable { ActionKind::Disable } else { ActionKind::Enable };
                (!waits && self.orders.len() >= MOST_ORDERS, deed)
            }
            Message::Port(state) => {
                (!self.states.contains_key(&state.id) && self.states.len() >= MOST_STATES, ActionKind::State)
            }
        };
        let why = if message.is_from_the_future(now) {
            "it has a life more than a day ahead of this host's clock: forged, or a clock is wrong"
        } else if self.rules.obey && self.is_unsigned(message) {
            "it is not signed with this host's order-key"
        } else if full || self.seen.is_full() && !self.seen.knows(message) {
            "more ports are spoken of than a host has: what is new among them is left out"
        } else {
            return false;
        };
        if self.refusals.is_new(now, &message.id().port, deed, why) {
            let entry = JournalEntry::new(now, deed, ActionOutcome::Refused, why);
            self.entries.push(JournalEntry { about: Some(message.id().clone()), ..entry });
        }
        true
    }

    fn is_unsigned(&self, message: &Message) -> bool {
        match (message, &self.rules.order_key) {
            (Message::Order(order), Some(key)) => !order.is_signed(key),
            _ => false,
        }
    }

    fn keep_alarm(&mut self, state: &PortState) {
        let alarms = &mut self.kept.memory.alarms;
        let changed = match state.condition {
            _ if state.id.host != self.rules.host => false,
            Condition::Corrupting => alarms.insert(state.id.port.clone(), state.clone()).as_ref() != Some(state),
            Condition::Healthy => alarms.remove(&state.id.port).is_some(),
            Condition::Unknown => false,
        };
        if changed {
            self.kept.save();
        }
    }
}

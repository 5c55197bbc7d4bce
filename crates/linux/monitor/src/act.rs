//! Actions on a corrupting port: LinkGuardian (SIGCOMM'23) App. C, *Notification and Activation*, and the way back, which
//! the paper leaves out.
//!
//! The receiver sees corruption; the sender can protect the link. Over a bus of many hosts the monitor of the
//! *sending* host acts, on messages about a port at the other end of one of its own cables. A monitor without such a bus
//! asks the link of the receiving interface, and the link's own handshake brings the sender along.
//!
//! ```text
//!   no reason ── corrupting ─▶ protect: Done (ours), Left (somebody's already), Refused, Failed (tried again)
//!   ours      ── every reason healthy, in both directions ─▶ unprotect
//!   ours      ── a person ended it ─▶ Left until every reason is gone
//! ```
//!
//! Invariants: in observe-only mode the executor is never asked to change anything; only what a monitor activated is
//! deactivated; a port that is excluded, not watched, or holds the default route without being named is never touched;
//! a state that is not known changes nothing, and if that lasts, protection that nobody watches is ended; no more ports are
//! off by order than the configuration allows, for any sender of orders; where there is a key for orders, one without
//! it is refused; memory has a bound for any messages on the bus.

mod admission;
mod executor;
mod memory;
mod objections;
mod orders;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use guard::copies_for;
use units::{Moment, Prob};

use self::admission::Refusals;
use crate::detect::NamePattern;
use crate::journal::{ActionKind, ActionOutcome, JournalEntry};
use bus::Deduplicator;
use bus::key::OrderKey;
use bus::message::{Condition, Order, PortId, PortState};

pub use executor::{DaemonInfo, Executor, ThisHost};
pub use memory::{ActiveProtection, ActorMemory, ObeyedOrder, StoredMemory};

/// Time for which a port that was corrupting may be unknown before it is a reason no longer.
const UNWATCHED: Duration = Duration::from_secs(3_600);
/// The loss that links aim for unless configured otherwise; used only in reports.
const TARGET: Prob = Prob::literal(1e-8);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortAction {
    /// Observe only: everything is computed and reported, nothing is done.
    #[default]
    None,
    /// Protect what corrupts, and end that when it is healthy again.
    Protect,
}

/// Configured knowledge about a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortRule {
    /// The port at the other end of its cable.
    pub peer: Option<PortId>,
    /// The protected link that stands in for it, where its interface does not show that.
    pub link: Option<String>,
}

/// Rules of which monitor acts, and on what.
#[derive(Clone, Debug)]
pub struct ActionRules {
    pub host: String,
    pub action: PortAction,
    /// True if a planner's orders are obeyed.
    pub obey: bool,
    /// Ports of this host that may be off by order at a time.
    pub most_off: u32,
    /// Key that orders must be signed with, if any.
    pub order_key: Option<OrderKey>,
    /// True if the bus connects hosts: then the host that sends on the link acts.
    pub sender_acts: bool,
    /// Ports that were named in the configuration.
    pub ports: BTreeMap<String, PortRule>,
    /// Patterns of ports to watch; all of them if there are none.
    pub watched: Vec<String>,
    pub excluded: Vec<NamePattern>,
}

/// The one who acts.
#[derive(Debug)]
pub struct PortActor<E> {
    rules: ActionRules,
    executor: E,
    kept: StoredMemory,
    seen: Deduplicator,
    states: BTreeMap<PortId, PortState>,
    /// Time since which a port has been unknown that was known before.
    unknown_since: BTreeMap<PortId, Moment>,
    /// Orders for ports of this host that are still to be looked at.
    orders: BTreeMap<String, Order>,
    /// Ports whose protection a person ended while there was reason for it.
    overruled: BTreeSet<String>,
    /// Protection of ours that was seen in force in this incarnation.
    in_force: BTreeSet<String>,
    /// Latest report about a port, so that it is reported once.
    told: BTreeMap<(String, ActionKind), (ActionOutcome, String)>,
    /// Recent refusals of messages that were not taken note of.
    refusals: Refusals,
    entries: Vec<JournalEntry>,
}

impl<E: Executor> PortActor<E> {
    pub fn new(rules: ActionRules, executor: E, kept: StoredMemory) -> Self {
        Self {
            rules,
            executor,
            kept,
            seen: Deduplicator::new(),
            states: BTreeMap::new(),
            unknown_since: BTreeMap::new(),
            orders: BTreeMap::new(),
            overruled: BTreeSet::new(),
            in_force: BTreeSet::new(),
            told: BTreeMap::new(),
            refusals: Refusals::default(),
            entries: Vec::new(),
        }
    }

    pub fn executor(&self) -> &E {
        &self.executor
    }

    /// Ports that the monitor protects on this host at the moment.
    pub fn protected(&self) -> &BTreeMap<String, ActiveProtection> {
        &self.kept.memory.protected
    }

    /// Problem of the actor; `None` if there is none.
    pub fn trouble(&self) -> Option<&str> {
        self.kept.trouble()
    }

    /// Does what is to be done; what was done, and what was not.
    pub fn tick(&mut self, now: Moment) -> Vec<JournalEntry> {
        for port in self.ports() {
            self.keep_reasons(now, &port);
            if self.kept.memory.protected.contains_key(&port) {
                self.look_after(now, &port);
            } else {
                self.protect_if_needed(now, &port);
            }
        }
        self.look_at_orders(now);
        std::mem::take(&mut self.entries)
    }

    /// Ends all protection that a monitor started, regardless of its reasons.
    pub(crate) fn end_all(&mut self, now: Moment) -> Vec<JournalEntry> {
        for port in self.kept.memory.protected.keys().cloned().collect::<Vec<_>>() {
            self.unprotect(now, &port, "the monitor ends, and was asked to leave nothing behind");
        }
        std::mem::take(&mut self.entries)
    }

    pub(crate) fn acts(&self) -> bool {
        self.rules.action == PortAction::Protect
    }

    pub(crate) fn id(&self, port: &str) -> PortId {
        PortId::new(&self.rules.host, port)
    }

    /// Ports of this host that anything is known about.
    fn ports(&self) -> BTreeSet<String> {
        let own = |id: &PortId| (id.host == self.rules.host).then(|| id.port.clone());
        let heard = self.states.values().flat_map(|state| [own(&state.id), state.peer.as_ref().and_then(own)]);
        let named = self.rules.ports.keys().chain(self.kept.memory.protected.keys()).cloned();
        heard.flatten().chain(named).collect()
    }

    fn is_own(&self, id: &PortId, port: &str) -> bool {
        id.port == port && id.host == self.rules.host
    }

    /// True if the state is that of the port at the other end of this port's cable.
    fn is_far_end(&self, state: &PortState, port: &str) -> bool {
        let points_here = state.peer.as_ref().is_some_and(|peer| self.is_own(peer, port));
        points_here || self.rules.ports.get(port).is_some_and(|rule| rule.peer.as_ref() == Some(&state.id))
    }

    fn is_on_cable(&self, state: &PortState, port: &str) -> bool {
        self.is_own(&state.id, port) || self.is_far_end(state, port)
    }

    /// Ports that corrupt on this port's cable, in either direction.
    fn corrupting<'a>(&'a self, port: &'a str) -> impl Iterator<Item = &'a PortState> {
        self.states
            .values()
            .filter(|state| state.condition == Condition::Corrupting)
            .filter(move |state| self.is_on_cable(state, port))
    }

    /// The worst of it that this monitor has to act upon.
    fn trigger<'a>(&'a self, port: &'a str) -> Option<&'a PortState> {
        let id = self.id(port);
        let near = move |state: &PortState| state.id == id;
        self.corrupting(port)
            .filter(|state| if self.rules.sender_acts { self.is_far_end(state, port) } else { near(state) })
            .max_by(|a, b| a.evidence.loss.total_cmp(&b.evidence.loss))
    }

    /// A reason is one until its port is found healthy, or nobody has watched it for long.
    fn keep_reasons(&mut self, now: Moment, port: &str) {
        let new: BTreeSet<PortId> = self.corrupting(port).map(|state| state.id.clone()).collect();
        if new.is_empty() {
            self.overruled.remove(port);
        }
        let Some(protection) = self.kept.memory.protected.get(port) else { return };
        let watched = |id: &PortId| self.unknown_since.get(id).is_none_or(|since| now.since(*since) < UNWATCHED);
        let stays = |id: &PortId| match self.states.get(id) {
            None => true,
            Some(state) if !self.is_on_cable(state, port) => false,
            Some(state) => match state.condition {
                Condition::Corrupting => true,
                Condition::Healthy => false,
                Condition::Unknown => watched(id),
            },
        };
        let reasons: BTreeSet<PortId> = protection.reasons.iter().filter(|id| stays(id)).cloned().chain(new).collect();
        if reasons != protection.reasons
            && let Some(protection) = self.kept.memory.protected.get_mut(port)
        {
            protection.reasons = reasons;
            self.kept.save();
        }
    }

    /// A link that a monitor protects.
    fn look_after(&mut self, now: Moment, port: &str) {
        let Some(protection) = self.kept.memory.protected.get(port).cloned() else { return };
        if protection.reasons.is_empty() {
            return self.unprotect(now, port, "no longer corrupting, in either direction");
        }
        if !self.acts() {
            return;
        }
        let known = self.in_force.contains(port);
        match self.executor.daemon(port, Some(&protection.link)) {
            Ok(Some(daemon)) if daemon.pid == protection.pid && daemon.wanted => {
                self.in_force.insert(port.to_owned());
            }
            Ok(Some(daemon)) if daemon.pid == protection.pid && known => {
                self.forget(port);
                self.overruled.insert(port.to_owned());
                let why = "somebody ended its protection; it stays so until nothing corrupts any more";
                self.say(now, port, ActionKind::Protect, ActionOutcome::Left, why, None);
            }
            // Started anew since, or never activated: as if nothing had been done yet.
            Ok(Some(_)) => {
                self.forget(port);
                self.protect_if_needed(now, port);
            }
            Ok(None) => {
                let why = format!("{} is gone; protection follows when it is back", protection.link);
                self.say(now, port, ActionKind::Protect, ActionOutcome::Failed, &why, None);
            }
            Err(why) => self.say(now, port, ActionKind::Protect, ActionOutcome::Failed, &why, None),
        }
    }

    fn protect_if_needed(&mut self, now: Moment, port: &str) {
        let Some(trigger) = self.trigger(port).cloned() else { return self.tell_if_nobody_can_act(now, port) };
        if self.overruled.contains(port) {
            return;
        }
        if let Some(why) = self.objection(port).or_else(|| self.miscabled(port, &trigger)) {
            return self.say(now, port, ActionKind::Protect, ActionOutcome::Refused, &why, Some(&trigger));
        }
        let loss = Prob::new(trigger.evidence.loss).unwrap_or(Prob::literal(1.0));
        if !self.acts() {
            let copies = copies_for(loss, TARGET).map_or("no number of copies".to_owned(), |(n, _)| copies(n.max(1)));
            let why = format!("{} is corrupting, {:.1e}: {copies} for {TARGET}", trigger.id, loss.get());
            self.remember(now, port, "", 0);
            return self.say(now, port, ActionKind::Protect, ActionOutcome::Would, &why, Some(&trigger));
        }
        let link = self.rules.ports.get(port).and_then(|rule| rule.link.clone());
        match self.executor.daemon(port, link.as_deref()) {
            Ok(Some(daemon)) if daemon.wanted => {
                let why = format!("{} is protected already, and not by this monitor", daemon.link);
                self.say(now, port, ActionKind::Protect, ActionOutcome::Left, &why, Some(&trigger));
            }
            Ok(Some(daemon)) => self.protect(now, port, &daemon, loss, &trigger),
            Ok(None) => {
                let what = link.map_or(format!("no link stands in for {port}"), |link| format!("{link} is not up"));
                let why = format!("{what}; `hitless link up {port} --dormant` makes one");
                self.say(now, port, ActionKind::Protect, ActionOutcome::Failed, &why, Some(&trigger));
            }
            Err(why) => self.say(now, port, ActionKind::Protect, ActionOutcome::Failed, &why, Some(&trigger)),
        }
    }

    fn protect(&mut self, now: Moment, port: &str, daemon: &DaemonInfo, loss: Prob, trigger: &PortState) {
        // Written down first: if this process is killed in between, the next incarnation still knows whose it is.
        self.remember(now, port, &daemon.link, daemon.pid);
        if let Err(why) = self.executor.protect(&daemon.link, loss) {
            // The link may be protected all the same, and only the answer was lost: the next look shows which.
            return self.say(now, port, ActionKind::Protect, ActionOutcome::Failed, &why, Some(trigger));
        }
        let number = match self.executor.daemon(port, Some(&daemon.link)) {
            Ok(Some(after)) => format!(", {} of a retransmission", copies(after.copies)),
            _ => String::new(),
        };
        let why = format!("{} is corrupting, {:.1e}{number}", trigger.id, loss.get());
        self.say(now, port, ActionKind::Protect, ActionOutcome::Done, &why, Some(trigger));
    }

    fn unprotect(&mut self, now: Moment, port: &str, reason: &str) {
        let Some(protection) = self.kept.memory.protected.get(port).cloned() else { return };
        let state = self.states.get(&self.id(port)).cloned();
        let state = self.states.values().find(|state| self.is_far_end(state, port)).cloned().or(state);
        let (outcome, why) = if self.acts() {
            match self.executor.daemon(port, Some(&protection.link)) {
                Ok(Some(daemon)) if daemon.pid != protection.pid => {
                    (ActionOutcome::Left, format!("{} was started anew since; {reason}", protection.link))
                }
                Ok(Some(daemon)) if !daemon.wanted => {
                    (ActionOutcome::Left, format!("somebody ended it before; {reason}"))
                }
                Ok(Some(_)) => match self.executor.unprotect(&protection.link) {
                    Ok(()) => (ActionOutcome::Done, reason.to_owned()),
                    Err(why) => (ActionOutcome::Failed, why),
                },
                Ok(None) => (ActionOutcome::Left, format!("{} is gone; {reason}", protection.link)),
                Err(why) => (ActionOutcome::Failed, why),
            }
        } else {
            (ActionOutcome::Would, reason.to_owned())
        };
        self.say(now, port, ActionKind::Unprotect, outcome, &why, state.as_ref());
        if outcome != ActionOutcome::Failed {
            self.forget(port);
            self.told.retain(|(about, _), _| about != port);
        }
    }

    fn remember(&mut self, now: Moment, port: &str, link: &str, pid: u32) {
        let reasons = self.corrupting(port).map(|state| state.id.clone()).collect();
        let protection = ActiveProtection { link: link.to_owned(), pid, since: now, reasons };
        self.kept.memory.protected.insert(port.to_owned(), protection);
        self.in_force.remove(port);
        self.kept.save();
    }

    fn forget(&mut self, port: &str) {
        self.kept.memory.protected.remove(port);
        self.in_force.remove(port);
        self.kept.save();
    }

    /// Puts it down unless that was the last thing said about it.
    fn say(
        &mut self,
        now: Moment,
        port: &str,
        deed: ActionKind,
        outcome: ActionOutcome,
        why: &str,
        about: Option<&PortState>,
    ) {
        let told = self.told.insert((port.to_owned(), deed), (outcome, why.to_owned()));
        let repeats = match (outcome, told) {
            (ActionOutcome::Done, _) | (_, None) => false,
            (_, Some((before, text))) => before == outcome && text == why,
        };
        if repeats {
            return;
        }
        let link = self.kept.memory.protected.get(port).map(|protection| protection.link.clone());
        let link = link.or_else(|| self.rules.ports.get(port).and_then(|rule| rule.link.clone()));
        self.entries.push(JournalEntry {
            link: link.filter(|link| !link.is_empty()),
            about: about.map(|state| state.id.clone()),
            evidence: about.map(|state| state.evidence),
            ..JournalEntry::new(now, deed, outcome, why).on(self.id(port))
        });
    }
}

fn copies(number: u8) -> String {
    if number == 1 { "1 copy".to_owned() } else { format!("{number} copies") }
}

#[cfg(test)]
mod tests;

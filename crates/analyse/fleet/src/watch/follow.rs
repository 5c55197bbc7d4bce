//! A watcher on a bus that comes and goes.
//!
//! It starts with the latest message of every key and goes on from there; when the bus fails it says so, keeps what it
//! knows, and starts in the same way once the bus is back. Orders wait until the bus has taken them, and what the bus
//! forgot (a Redis without persistence that was restarted) is published again, be it an order of ours or of somebody
//! else: an old order to disable must not come back without the newer one to enable.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bus::{Bus, BusError, PublishResult};
use bus::{Message, Order, PortId};
use serde::Serialize;
use units::Moment;

use super::onset::Onsets;
use super::{HostNotice, LinkDecision, OnsetOrder, Watcher};
use crate::corrupting::PortReports;

/// The wait after a failure, doubled by each further one up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Interval between checks for hosts that are silent, and for orders that the bus has lost.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Time after a failure of the bus before hosts that are not heard again are called silent.
const GRACE: Duration = Duration::from_secs(30);

/// An event that is worth reporting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FollowEvent {
    Decision(LinkDecision),
    /// One port was found corrupting before another, by clocks that know how wrong they are.
    Before(OnsetOrder),
    /// The bus has taken an order.
    Ordered(PortId),
    /// Somebody else gave this port a newer order, which counts.
    Overruled(PortId),
    Host(HostNotice),
    /// A message that is not ours or makes no sense. It had no effect.
    Ignored(String),
    /// The history of the bus did not reach back to where we were. The state is complete all the same.
    Gap(String),
    /// Reason why the bus can be neither read nor written.
    Degraded(String),
    Recovered,
}

#[derive(Debug)]
pub struct Follower<'f> {
    watcher: Watcher<'f>,
    bus: Box<dyn Bus>,
    /// Orders that the bus has not taken yet.
    waiting: VecDeque<Order>,
    /// Ports whose keys on the bus hold what is not ours, and when to try again.
    refused: BTreeMap<PortId, Moment>,
    caught_up: bool,
    /// Failures in a row.
    failures: u32,
    not_before: Moment,
    degraded: Option<String>,
    look_at: Moment,
    judge_hosts_at: Moment,
    /// Messages that were ignored, so that each is reported once.
    ignored: BTreeSet<String>,
    onsets: Onsets,
}

impl<'f> Follower<'f> {
    pub fn new(watcher: Watcher<'f>, bus: Box<dyn Bus>) -> Self {
        Self {
            watcher,
            bus,
            waiting: VecDeque::new(),
            refused: BTreeMap::new(),
            caught_up: false,
            failures: 0,
            not_before: Moment::ZERO,
            degraded: None,
            look_at: Moment::ZERO,
            judge_hosts_at: Moment::ZERO,
            ignored: BTreeSet::new(),
            onsets: Onsets::default(),
        }
    }

    pub fn watcher(&self) -> &Watcher<'f> {
        &self.watcher
    }

    /// Reason for which the planner is degraded; `None` if it is not.
    pub fn degraded(&self) -> Option<&str> {
        self.degraded.as_deref()
    }

    /// Time to wait before the next [`step`](Self::step).
    pub fn wait(&self, now: Moment) -> Duration {
        self.not_before.since(now)
    }

    /// Gets on with it: waits up to `patience` for messages if the bus is there.
    pub fn step(&mut self, now: Moment, patience: Duration) -> Vec<FollowEvent> {
        // A clock that was set back must not stop us for longer than a failure would.
        self.not_before = self.not_before.min(now.after(LONGEST_WAIT));
        self.look_at = self.look_at.min(now.after(LOOK_EVERY));
        let mut events = Vec::new();
        if now < self.not_before {
            return events;
        }
        match self.progress(now, patience, &mut events) {
            Ok(()) => {
                self.failures = 0;
                if self.degraded.take().is_some() {
                    events.push(FollowEvent::Recovered);
                }
            }
            Err(error) => self.failed(now, &error, &mut events),
        }
        self.bus.foreign().into_iter().for_each(|what| self.ignore(what, &mut events));
        events.extend(self.bus.gaps().into_iter().map(FollowEvent::Gap));
        events
    }

    fn progress(&mut self, now: Moment, patience: Duration, events: &mut Vec<FollowEvent>) -> Result<(), BusError> {
        let messages = if self.caught_up {
            self.tell(now, events)?;
            if now >= self.look_at {
                self.look(now, events)?;
                self.look_at = now.after(LOOK_EVERY);
            }
            self.bus.receive(patience)?
        } else {
            let messages = self.bus.catch_up()?;
            self.caught_up = true;
            self.look_at = now;
            messages
        };
        self.hear(now, &messages, events);
        self.tell(now, events)
    }

    fn hear(&mut self, now: Moment, messages: &[Message], events: &mut Vec<FollowEvent>) {
        let (decisions, nonsense) = self.watcher.on_messages(now, messages);
        self.waiting.extend(self.watcher.take_orders());
        events.extend(decisions.into_iter().map(FollowEvent::Decision));
        let (possible, _) = PortReports::possible(now, messages);
        let reports = &mut self.watcher.reports;
        let ours = possible.iter().filter(|message| reports.expect_switch(&message.id().host).is_ok());
        let orders = self.onsets.hear(ours);
        events.extend(orders.into_iter().map(FollowEvent::Before));
        nonsense.into_iter().for_each(|what| self.ignore(what.to_string(), events));
    }

    fn ignore(&mut self, what: String, events: &mut Vec<FollowEvent>) {
        /// A sender that fills the bus with nonsense must not fill the memory.
        const MOST: usize = 1_000;
        if self.ignored.len() < MOST && self.ignored.insert(what.clone()) {
            events.push(FollowEvent::Ignored(what));
        }
    }

    /// Tells the orders that wait.
    fn tell(&mut self, now: Moment, events: &mut Vec<FollowEvent>) -> Result<(), BusError> {
        let mut later = VecDeque::new();
        while let Some(order) = self.waiting.pop_front() {
            if self.refused.get(&order.id).is_some_and(|again| now < *again) {
                later.push_back(order);
                continue;
            }
            match self.bus.publish(&Message::Order(order.clone())) {
                Ok(told) => {
                    self.refused.remove(&order.id);
                    events.push(match told {
                        PublishResult::Now | PublishResult::Before => FollowEvent::Ordered(order.id),
                        PublishResult::Outdated => FollowEvent::Overruled(order.id),
                    });
                }
                Err(error @ BusError::Key { .. }) => {
                    self.ignore(error.to_string(), events);
                    self.refused.insert(order.id.clone(), now.after(LONGEST_WAIT));
                    later.push_back(order);
                }
                Err(error) => {
                    later.push_back(order);
                    later.append(&mut self.waiting);
                    self.waiting = later;
                    return Err(error);
                }
            }
        }
        self.waiting = later;
        Ok(())
    }

    /// Looks who is alive, and whether the bus still has the orders.
    fn look(&mut self, now: Moment, events: &mut Vec<FollowEvent>) -> Result<(), BusError> {
        let hosts = self.bus.hosts()?;
        if now >= self.judge_hosts_at {
            events.extend(self.watcher.on_hosts(&hosts).into_iter().map(FollowEvent::Host));
        }
        if self.watcher.acts() {
            let orders: Vec<Order> = self.watcher.reports().orders().cloned().collect();
            let keys: Vec<String> = orders.iter().map(|order| Message::Order(order.clone()).key()).collect();
            let there = self.bus.latest(&keys)?;
            for (order, there) in orders.into_iter().zip(there) {
                let is_lost = there.is_none_or(|there| there.version() < (order.life, order.number));
                if is_lost && !self.waiting.contains(&order) {
                    self.waiting.push_back(order);
                }
            }
            self.tell(now, events)?;
        }
        Ok(())
    }

    fn failed(&mut self, now: Moment, error: &BusError, events: &mut Vec<FollowEvent>) {
        self.caught_up = false;
        let wait = FIRST_WAIT * 2u32.pow(self.failures.min(10));
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.after(wait.min(LONGEST_WAIT));
        self.judge_hosts_at = now.after(GRACE);
        let why = error.to_string();
        if self.degraded.as_ref() != Some(&why) {
            events.push(FollowEvent::Degraded(why.clone()));
        }
        self.degraded = Some(why);
    }
}

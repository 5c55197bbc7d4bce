//! The outbox of a publisher: none of its messages is lost while the bus is away.
//!
//! Messages wait in order until the bus has taken them. Published messages are remembered, too: the latest message of
//! each key for as long as the outbox exists, all messages for a minute. Now and then, and after every failure, the
//! outbox looks whether the bus still has them, and publishes again what it lost: a Redis without persistence forgets
//! everything when it restarts, one with it the last second, and a person may flush it.
//!
//! ```text
//!   put ──▶ waiting ──publish──▶ told, recent
//!              ▲                    │ the bus has nothing there, or something older
//!              └────────────────────┘
//! ```
//!
//! It has no clock and never sleeps. Give it a thread of its own, since a bus that does not answer takes its time to
//! say so, and drive it like this, with `now` from a clock that is not set back:
//!
//! ```text
//!   let mut next = outbox.step(now());
//!   loop {
//!       match messages.recv_timeout(next.since(now())) {       // std::sync::mpsc
//!           Ok(message) => { outbox.put(message); while let Ok(more) = messages.try_recv() { outbox.put(more) } }
//!           Err(Timeout) => {}
//!           Err(Disconnected) => break,                          // then step on until `unsent` is empty or time is up
//!       }
//!       next = outbox.step(now());
//!       *status.lock() = outbox.status();                        // for /healthz and metrics
//!   }
//! ```
//!
//! Before the first message of a new incarnation, [`recall`](Outbox::recall) returns what the former one left on the
//! bus: take [`next_life`] (a clock that was set back would otherwise make every message of ours outdated), and publish
//! something new about each of these ports, be it a [`withdrawal`], or an alarm stays without an owner. If the bus is
//! away, begin with what the clock says, and recall later.
//!
//! Invariants: messages of one key are published in order; one leaves the queue only when the bus has it or something
//! newer, or when the queue is full and a later message of the same key waits behind it, which is counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use units::Moment;

use self::queue::{OutboxQueue, QueuedMessage};
use crate::message::{Condition, Evidence, Message, PortState};
use crate::{Bus, BusError, PublishResult};

mod queue;

/// The wait after a failure, doubled by each further one up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Time for which a key is left alone that holds data which is not ours.
const KEY_WAIT: Duration = Duration::from_secs(5);
/// Messages published in one step, so that control returns to the owner of the outbox.
const STEP: usize = 256;
/// Most recently published messages that are remembered.
const RECENT: usize = 1_000;

#[derive(Clone, Copy, Debug)]
pub struct OutboxSettings {
    /// Messages that may wait, each state change by itself. A queue of more keeps the latest of each key.
    pub room: usize,
    /// Interval of checks that the bus still has the published messages.
    pub check: Duration,
    /// Time for which a published message is published again if the bus loses it. The latest message of each key is
    /// always published again.
    pub recent: Duration,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self { room: 10_000, check: Duration::from_secs(10), recent: Duration::from_secs(60) }
    }
}

/// State of an outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxStatus {
    /// Messages that the bus has taken.
    pub published: u64,
    /// Told again because the bus had lost them.
    pub republished: u64,
    /// Attempts to publish a message after the first one.
    pub retried: u64,
    /// Calls to the bus that failed, of any kind.
    pub failed_attempts: u64,
    /// Messages dropped because the queue was full and a later message of the same key was waiting.
    pub coalesced: u64,
    /// Messages that were not published, because the bus had a newer one of that key.
    pub outdated: u64,
    pub waiting: usize,
    pub last_error: Option<String>,
    /// Reason for which the outbox is degraded; `None` if it is not.
    pub degraded: Option<String>,
}

#[derive(Debug)]
pub struct Outbox {
    bus: Box<dyn Bus>,
    settings: OutboxSettings,
    queue: OutboxQueue,
    /// The latest message that was published of each key.
    told: BTreeMap<String, Message>,
    /// Recently published messages, in order.
    recent: VecDeque<RecentMessage>,
    /// Keys that hold data which is not ours.
    refused: BTreeMap<String, PublishRefusal>,
    /// Keys under which the bus has something newer than what we said.
    outdated: BTreeSet<String>,
    pulse: Option<HeartbeatTimer>,
    /// Failures in a row.
    failures: u32,
    not_before: Moment,
    check_at: Moment,
    /// All but what is counted elsewhere.
    status: OutboxStatus,
}

#[derive(Debug)]
struct RecentMessage {
    at: Moment,
    key: String,
    message: Message,
}

#[derive(Debug)]
struct PublishRefusal {
    why: String,
    again: Moment,
}

#[derive(Debug)]
struct HeartbeatTimer {
    host: String,
    interval: Duration,
    next: Moment,
}

impl Outbox {
    pub fn new(bus: Box<dyn Bus>) -> Self {
        Self::with_settings(bus, OutboxSettings::default())
    }

    pub fn with_settings(bus: Box<dyn Bus>, settings: OutboxSettings) -> Self {
        Self {
            bus,
            settings,
            queue: OutboxQueue::default(),
            told: BTreeMap::new(),
            recent: VecDeque::new(),
            refused: BTreeMap::new(),
            outdated: BTreeSet::new(),
            pulse: None,
            failures: 0,
            not_before: Moment::ZERO,
            check_at: Moment::ZERO,
            status: OutboxStatus::default(),
        }
    }

    /// Publishes from now on, every `interval`, that `host` is alive.
    pub fn alive(&mut self, host: impl Into<String>, interval: Duration) {
        self.pulse = Some(HeartbeatTimer { host: host.into(), interval, next: Moment::ZERO });
    }

    /// Queues a message; the next [`step`](Self::step) publishes it.
    pub fn put(&mut self, message: Message) {
        self.queue.push(message);
        while self.queue.len() > self.settings.room && self.queue.coalesce() {
            self.status.coalesced += 1;
        }
    }

    /// States of the ports of a host on the bus, from this incarnation or a former one.
    pub fn recall(&mut self, host: &str) -> Result<Vec<PortState>, BusError> {
        self.bus.recall(host)
    }

    /// Messages that the bus has not taken yet, in order: for the last report of a publisher that ends.
    pub fn unsent(&self) -> impl Iterator<Item = &Message> {
        self.queue.iter().map(|waiting| &waiting.message)
    }

    pub fn status(&self) -> OutboxStatus {
        OutboxStatus { waiting: self.queue.len(), degraded: self.degraded(), ..self.status.clone() }
    }

    /// Reason why messages are not all published; `None` if they are. The text stays the same while the reason does.
    pub fn degraded(&self) -> Option<String> {
        if self.failures > 0 {
            return Some(self.status.last_error.clone().unwrap_or_default());
        }
        let more = |keys: usize| if keys > 1 { format!(" (and {} more keys)", keys - 1) } else { String::new() };
        if let Some(refusal) = self.refused.values().next() {
            return Some(format!("{}{}", refusal.why, more(self.refused.len())));
        }
        self.outdated.first().map(|key| {
            format!(
                "`{key}`: the bus has a newer message than ours{}: does another monitor speak for this host, or was \
                 its clock set back?",
                more(self.outdated.len())
            )
        })
    }

    /// Panics if the books are wrong. Checks nothing in release builds.
    pub fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        self.queue.check_invariants(self.settings.room);
        assert!(self.recent.len() <= RECENT + STEP, "{} messages are remembered", self.recent.len());
        for RecentMessage { key, message, .. } in &self.recent {
            let latest = self.told.get(key).map(Message::version);
            assert!(latest >= Some(message.version()), "`{key}`: told and forgotten");
        }
    }

    /// Gets on with it, and says when to call again; sooner, if something was put.
    pub fn step(&mut self, now: Moment) -> Moment {
        let next = self.step_once(now);
        self.check_invariants();
        next
    }

    fn step_once(&mut self, now: Moment) -> Moment {
        // A clock that was set back must not stop us for longer than a failure would.
        self.not_before = self.not_before.min(now.after(LONGEST_WAIT));
        self.check_at = self.check_at.min(now.after(self.settings.check));
        if now < self.not_before {
            return self.not_before;
        }
        match self.progress(now) {
            Ok(next) => {
                self.failures = 0;
                next
            }
            Err(error) => {
                self.note(&error);
                let wait = FIRST_WAIT * 2u32.pow(self.failures.min(10));
                self.failures = self.failures.saturating_add(1);
                // Check whether the bus still has what was published before.
                self.check_at = now;
                self.not_before = now.after(wait.min(LONGEST_WAIT));
                self.not_before
            }
        }
    }

    fn progress(&mut self, now: Moment) -> Result<Moment, BusError> {
        self.beat(now)?;
        if now >= self.check_at {
            self.put_back()?;
            self.check_at = now.after(self.settings.check);
        }
        self.forget(now);
        if !self.tell(now)? {
            return Ok(now);
        }
        let beat = self.pulse.as_ref().map(|pulse| pulse.next);
        let again = self.refused.values().map(|refusal| refusal.again).min();
        Ok([beat, again].into_iter().flatten().fold(self.check_at, Moment::min))
    }

    fn beat(&mut self, now: Moment) -> Result<(), BusError> {
        let Some(pulse) = &mut self.pulse else { return Ok(()) };
        if now < pulse.next && pulse.next <= now.after(pulse.interval) {
            return Ok(());
        }
        let key = format!("host:{}", pulse.host);
        match self.bus.heartbeat(&pulse.host, pulse.interval) {
            Ok(()) => {
                self.refused.remove(&key);
            }
            // The state of our ports is still true.
            Err(error @ BusError::Key { .. }) => {
                let again = now.after(pulse.interval);
                self.refused.insert(key, PublishRefusal { why: error.to_string(), again });
                self.note(&error);
            }
            Err(error) => return Err(error),
        }
        if let Some(pulse) = &mut self.pulse {
            pulse.next = now.after(pulse.interval);
        }
        Ok(())
    }

    /// Queues messages again that the bus has lost: for each key all recent ones, or else the latest.
    fn put_back(&mut self) -> Result<(), BusError> {
        if self.told.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.told.keys().cloned().collect();
        let there = self.bus.latest(&keys)?;
        let mut lost = BTreeMap::new();
        for ((key, ours), there) in self.told.iter().zip(there) {
            let version = there.as_ref().map(Message::version);
            if version > Some(ours.version()) {
                self.outdated.insert(key.clone());
            } else {
                self.outdated.remove(key);
            }
            if version < Some(ours.version()) {
                lost.insert(key.as_str(), version);
            }
        }
        let lately: BTreeSet<&str> = self.recent.iter().map(|recent| recent.key.as_str()).collect();
        let before = lost.keys().filter(|key| !lately.contains(*key)).filter_map(|key| self.told.get(*key));
        let since = self.recent.iter().filter_map(|RecentMessage { key, message, .. }| {
            lost.get(key.as_str()).is_some_and(|there| *there < Some(message.version())).then_some(message)
        });
        self.queue.repeat(before.chain(since).cloned().collect());
        Ok(())
    }

    fn forget(&mut self, now: Moment) {
        let old = |recent: &RecentMessage| now.since(recent.at) > self.settings.recent;
        while self.recent.len() > RECENT || self.recent.front().is_some_and(old) {
            self.recent.pop_front();
        }
    }

    /// False if there is more to publish.
    fn tell(&mut self, now: Moment) -> Result<bool, BusError> {
        let mut place = 0;
        for _ in 0..STEP {
            let refused = |key: &str| self.refused.get(key).is_some_and(|refusal| now < refusal.again);
            let Some(next) = self.queue.iter().skip(place).position(|waiting| !refused(&waiting.key)) else {
                return Ok(true);
            };
            place += next;
            let Some(waiting) = self.queue.attempt(place) else { return Ok(true) };
            self.status.retried += u64::from(waiting.attempts > 1);
            match self.bus.publish(&waiting.message) {
                Ok(told) => {
                    if let Some(waiting) = self.queue.remove(place) {
                        self.done(now, waiting, told);
                    }
                }
                Err(error @ BusError::Key { .. }) => {
                    let refusal = PublishRefusal { why: error.to_string(), again: now.after(KEY_WAIT) };
                    self.refused.insert(waiting.key.clone(), refusal);
                    self.note(&error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn done(&mut self, now: Moment, waiting: QueuedMessage, told: PublishResult) {
        let QueuedMessage { key, message, repeated, .. } = waiting;
        self.refused.remove(&key);
        match told {
            PublishResult::Now | PublishResult::Before => {
                self.outdated.remove(&key);
                *(if repeated { &mut self.status.republished } else { &mut self.status.published }) += 1;
            }
            PublishResult::Outdated => {
                self.outdated.insert(key.clone());
                self.status.outdated += 1;
            }
        }
        if !repeated {
            if self.told.get(&key).is_none_or(|former| former.version() < message.version()) {
                self.told.insert(key.clone(), message.clone());
            }
            self.recent.push_back(RecentMessage { at: now, key, message });
        }
    }

    fn note(&mut self, error: &BusError) {
        self.status.failed_attempts += 1;
        self.status.last_error = Some(error.to_string());
    }
}

/// The incarnation of a monitor that starts now, by the wall clock, after what it [recalled](Outbox::recall):
/// greater than any of its former incarnations, also if the clock was set back since.
pub fn next_life(at: Moment, recalled: &[PortState]) -> u64 {
    let former = recalled.iter().map(|state| state.life.saturating_add(1)).max();
    at.as_ms().max(former.unwrap_or(0))
}

/// Takes back what a former incarnation published about a port that this one knows nothing about: as of now, nothing is
/// known.
pub fn withdrawal(former: &PortState, life: u64, number: u64, at: Moment) -> Message {
    Message::Port(PortState {
        at,
        life,
        number,
        condition: Condition::Unknown,
        sticky: false,
        evidence: Evidence::default(),
        why: "no longer watched by this host's monitor".to_owned(),
        ..former.clone()
    })
}

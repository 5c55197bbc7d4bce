//! Messages for tests of the bus, and a bus that fails on request.

#![allow(dead_code, reason = "not every test that includes this needs all of it")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use bus::{Bus, BusError, LocalBus, PublishResult};
use bus::{Condition, Evidence, Message, PortId, PortState};
use units::Moment;

/// The `number`th message that the monitor of a host sends about a port in an incarnation.
pub(crate) fn state(host: &str, port: &str, life: u64, number: u64, condition: Condition) -> PortState {
    PortState {
        earliest_ns: None,
        latest_ns: None,
        time_of: None,
        id: PortId::new(host, port),
        peer: None,
        at: Moment::from_ms(number),
        life,
        number,
        condition,
        sticky: false,
        evidence: Evidence::default(),
        why: format!("number {number} of life {life}"),
    }
}

pub(crate) fn corrupting(host: &str, port: &str, life: u64, number: u64) -> Message {
    Message::Port(state(host, port, life, number, Condition::Corrupting))
}

pub(crate) fn healthy(host: &str, port: &str, life: u64, number: u64) -> Message {
    Message::Port(state(host, port, life, number, Condition::Healthy))
}

pub(crate) fn ms(ms: u64) -> Moment {
    Moment::from_ms(ms)
}

#[expect(clippy::disallowed_methods, reason = "tests against a real server run in real time")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}

/// Since the test first asked.
pub(crate) fn now() -> Moment {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(clock);
    Moment::ZERO.after(clock().duration_since(*start))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    /// Does not do what it is asked.
    Down,
    /// Does it, but nobody hears the answer.
    Mute,
    /// Goes down after this many calls.
    Tired(u8),
}

/// A bus that fails on request; clones are the same bus.
#[derive(Clone, Debug)]
pub(crate) struct Flaky(Arc<Mutex<Inner>>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub mood: Mood,
    /// Keys that hold what is not ours.
    pub taken: BTreeSet<String>,
    /// Every message ever published to it, in order, also what it forgot since.
    pub heard: Vec<Message>,
    local: LocalBus,
}

impl Flaky {
    pub(crate) fn new() -> Self {
        let inner = Inner { mood: Mood::Fine, taken: BTreeSet::new(), heard: Vec::new(), local: LocalBus::new() };
        Self(Arc::new(Mutex::new(inner)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(crate) fn be(&self, mood: Mood) {
        self.lock().mood = mood;
    }

    /// Restarts without its data.
    pub(crate) fn forget(&self) {
        self.lock().local = LocalBus::new();
    }

    /// Latest messages that the bus has now.
    pub(crate) fn state(&self) -> Vec<Message> {
        self.lock().local.catch_up().unwrap()
    }

    fn call<T>(&self, ask: impl FnOnce(&mut Inner) -> Result<T, BusError>) -> Result<T, BusError> {
        let mut inner = self.lock();
        let down = || Err(BusError::Down("out to lunch".to_owned()));
        match inner.mood {
            Mood::Fine => ask(&mut inner),
            Mood::Down => down(),
            Mood::Mute => ask(&mut inner).and_then(|_| down()),
            Mood::Tired(left) => {
                inner.mood = left.checked_sub(1).map_or(Mood::Down, Mood::Tired);
                ask(&mut inner)
            }
        }
    }
}

impl Bus for Flaky {
    fn publish(&mut self, message: &Message) -> Result<PublishResult, BusError> {
        self.call(|inner| {
            let key = message.key();
            if inner.taken.contains(&key) {
                return Err(BusError::Key { key, why: "is not ours".to_owned() });
            }
            let told = inner.local.publish(message)?;
            if told == PublishResult::Now {
                inner.heard.push(message.clone());
            }
            Ok(told)
        })
    }

    fn catch_up(&mut self) -> Result<Vec<Message>, BusError> {
        self.call(|inner| inner.local.catch_up())
    }

    fn receive(&mut self, patience: Duration) -> Result<Vec<Message>, BusError> {
        self.call(|inner| inner.local.receive(patience))
    }

    fn latest(&mut self, keys: &[String]) -> Result<Vec<Option<Message>>, BusError> {
        self.call(|inner| inner.local.latest(keys))
    }

    fn recall(&mut self, host: &str) -> Result<Vec<PortState>, BusError> {
        self.call(|inner| inner.local.recall(host))
    }

    fn heartbeat(&mut self, host: &str, interval: Duration) -> Result<(), BusError> {
        self.call(|inner| inner.local.heartbeat(host, interval))
    }

    fn hosts(&mut self) -> Result<Vec<String>, BusError> {
        self.call(|inner| inner.local.hosts())
    }

    fn foreign(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn gaps(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn another(&self) -> Box<dyn Bus> {
        Box::new(self.clone())
    }
}

//! A bus inside one process: for one host, and for tests.
//!
//! It promises the same as [`RedisBus`](super::Redis): the latest message of each key is kept, the history is
//! bounded, and an end that comes too late for the history starts over from the latest messages. It takes no clock: a
//! host is alive as long as the end that said so exists.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::time::time_of_day;
use units::Moment;

use crate::message::{Message, PortState};
use crate::remarks::WarnOnce;
use crate::{Bus, BusError, PublishResult};

/// Messages of history, unless said otherwise.
const HISTORY: usize = 10_000;

#[derive(Debug)]
pub struct LocalBus {
    shared: Arc<LocalBusShared>,
    /// Number of messages that this end has received or skipped; `None` before it first caught up.
    position: Option<u64>,
    alive: BTreeSet<String>,
    gaps: WarnOnce,
}

#[derive(Debug)]
struct LocalBusShared {
    state: Mutex<LocalBusState>,
    told: Condvar,
}

#[derive(Debug)]
struct LocalBusState {
    latest: BTreeMap<String, Message>,
    history: VecDeque<Message>,
    room: usize,
    /// Messages ever published; the last of them is at the end of the history.
    count: u64,
    /// Ends that say that a host is alive.
    hosts: BTreeMap<String, usize>,
}

impl LocalBusState {
    fn tell(&mut self, message: &Message) -> PublishResult {
        let key = message.key();
        match self.latest.get(&key) {
            Some(there) if there == message => return PublishResult::Before,
            Some(there) if there.is_from_the_future(Moment::ZERO.after(time_of_day())) => {}
            Some(there) if there.version() >= message.version() => return PublishResult::Outdated,
            _ => {}
        }
        self.latest.insert(key, message.clone());
        self.history.push_back(message.clone());
        self.count += 1;
        if self.history.len() > self.room {
            self.history.pop_front();
        }
        PublishResult::Now
    }

    fn oldest(&self) -> u64 {
        self.count - self.history.len() as u64
    }

    fn all(&self) -> Vec<Message> {
        self.latest.values().cloned().collect()
    }
}

impl LocalBus {
    pub fn new() -> Self {
        Self::with_history(HISTORY)
    }

    pub fn with_history(room: usize) -> Self {
        let state =
            LocalBusState { latest: BTreeMap::new(), history: VecDeque::new(), room, count: 0, hosts: BTreeMap::new() };
        Self::end(Arc::new(LocalBusShared { state: Mutex::new(state), told: Condvar::new() }))
    }

    /// A further end of the same bus.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::end(Arc::clone(&self.shared))
    }

    fn end(shared: Arc<LocalBusShared>) -> Self {
        Self { shared, position: None, alive: BTreeSet::new(), gaps: WarnOnce::default() }
    }
}

impl LocalBusShared {
    /// Locks the state. A panic elsewhere leaves it valid, because no change is half done while the lock is held.
    fn lock(&self) -> MutexGuard<'_, LocalBusState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for LocalBus {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for LocalBus {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        for host in &self.alive {
            if let Some(ends) = state.hosts.get_mut(host) {
                *ends -= 1;
                if *ends == 0 {
                    state.hosts.remove(host);
                }
            }
        }
    }
}

impl Bus for LocalBus {
    fn publish(&mut self, message: &Message) -> Result<PublishResult, BusError> {
        let told = self.shared.lock().tell(message);
        if told == PublishResult::Now {
            self.shared.told.notify_all();
        }
        Ok(told)
    }

    fn catch_up(&mut self) -> Result<Vec<Message>, BusError> {
        let state = self.shared.lock();
        self.position = Some(state.count);
        Ok(state.all())
    }

    fn receive(&mut self, patience: Duration) -> Result<Vec<Message>, BusError> {
        let Some(position) = self.position else { return self.catch_up() };
        let (state, _) = self
            .shared
            .told
            .wait_timeout_while(self.shared.lock(), patience, |state| state.count == position)
            .unwrap_or_else(PoisonError::into_inner);
        self.position = Some(state.count);
        if position < state.oldest() {
            self.gaps.add(format!(
                "the history begins {} messages after the last one received: starting over from the latest of each key",
                state.oldest() - position
            ));
            return Ok(state.all());
        }
        let known = usize::try_from(position - state.oldest()).unwrap_or(usize::MAX);
        Ok(state.history.iter().skip(known).cloned().collect())
    }

    fn latest(&mut self, keys: &[String]) -> Result<Vec<Option<Message>>, BusError> {
        let state = self.shared.lock();
        Ok(keys.iter().map(|key| state.latest.get(key).cloned()).collect())
    }

    fn recall(&mut self, host: &str) -> Result<Vec<PortState>, BusError> {
        let state = self.shared.lock();
        let of_host = |message: &Message| match message {
            Message::Port(port) if port.id.host == host => Some(port.clone()),
            Message::Port(_) | Message::Order(_) => None,
        };
        Ok(state.latest.values().filter_map(of_host).collect())
    }

    fn heartbeat(&mut self, host: &str, _interval: Duration) -> Result<(), BusError> {
        if self.alive.insert(host.to_owned()) {
            *self.shared.lock().hosts.entry(host.to_owned()).or_default() += 1;
        }
        Ok(())
    }

    fn hosts(&mut self) -> Result<Vec<String>, BusError> {
        Ok(self.shared.lock().hosts.keys().cloned().collect())
    }

    fn foreign(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn gaps(&mut self) -> Vec<String> {
        self.gaps.take()
    }

    fn another(&self) -> Box<dyn Bus> {
        Box::new(self.another())
    }
}

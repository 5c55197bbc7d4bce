//! Messages that wait to be published, in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::message::Message;

#[derive(Clone, Debug)]
pub(super) struct QueuedMessage {
    pub key: String,
    pub message: Message,
    pub attempts: u32,
    /// Told before, and lost by the bus since.
    pub repeated: bool,
}

/// First in, first out, with a count of how many wait for each key.
#[derive(Debug, Default)]
pub(super) struct OutboxQueue {
    waiting: VecDeque<QueuedMessage>,
    of_key: BTreeMap<String, usize>,
}

impl OutboxQueue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.waiting.iter()
    }

    pub(crate) fn push(&mut self, message: Message) {
        let waiting = self.enter(message, false);
        self.waiting.push_back(waiting);
    }

    /// Puts these before all others, in place of what was put there by an earlier call.
    pub(crate) fn repeat(&mut self, messages: Vec<Message>) {
        while let Some(place) = self.waiting.iter().position(|waiting| waiting.repeated) {
            self.remove(place);
        }
        for message in messages.into_iter().rev() {
            let waiting = self.enter(message, true);
            self.waiting.push_front(waiting);
        }
    }

    /// Counts one more attempt of the message at this place, and returns it.
    pub(crate) fn attempt(&mut self, place: usize) -> Option<&QueuedMessage> {
        let waiting = self.waiting.get_mut(place)?;
        waiting.attempts = waiting.attempts.saturating_add(1);
        Some(waiting)
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<QueuedMessage> {
        let waiting = self.waiting.remove(place)?;
        if let Some(count) = self.of_key.get_mut(&waiting.key) {
            *count -= 1;
            if *count == 0 {
                self.of_key.remove(&waiting.key);
            }
        }
        Some(waiting)
    }

    /// Drops the oldest message that a later one of the same key stands behind; false if there is none.
    pub(crate) fn coalesce(&mut self) -> bool {
        if self.of_key.len() == self.waiting.len() {
            return false;
        }
        let outlived = |waiting: &QueuedMessage| self.of_key.get(&waiting.key).is_some_and(|&count| count > 1);
        let Some(place) = self.waiting.iter().position(outlived) else { return false };
        self.remove(place).is_some()
    }

    fn enter(&mut self, message: Message, repeated: bool) -> QueuedMessage {
        let key = message.key();
        *self.of_key.entry(key.clone()).or_default() += 1;
        QueuedMessage { key, message, attempts: 0, repeated }
    }
    /// Panics if the counts are wrong, a new message waits before a repeated one, or more than `room` messages wait though
    /// some are superseded.
    pub(super) fn check_invariants(&self, room: usize) {
        let mut of_key = BTreeMap::new();
        for waiting in &self.waiting {
            *of_key.entry(waiting.key.clone()).or_default() += 1;
        }
        assert_eq!(self.of_key, of_key, "messages that wait, by key");
        assert!(self.waiting.iter().is_sorted_by_key(|waiting| !waiting.repeated), "new messages before repeated ones");
        let fresh = || self.waiting.iter().filter(|waiting| !waiting.repeated).map(|waiting| &waiting.key);
        let keys: BTreeSet<&String> = fresh().collect();
        assert!(fresh().count() <= room.max(keys.len()), "a full queue holds outlived messages");
    }
}

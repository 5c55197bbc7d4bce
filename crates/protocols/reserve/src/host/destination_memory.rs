//! Latest news about each destination: the paper's lastChosenTimeslot and lastResponseTime.
//!
//! Algorithm 3 has one of each per thread. The state of one port says nothing about another, so here they are per
//! destination.

use units::{Span, Time};
use wire::reserve::HostKey;

/// More destinations than a rack has; those beyond are not remembered.
const MOST: usize = 1_024;

#[derive(Clone, Debug, Default)]
pub(super) struct DestinationMemory {
    /// Reports by destination: how long its port was taken, and when that was.
    heard: Vec<(HostKey, Span, Time)>,
}

impl DestinationMemory {
    pub(super) fn learn(&mut self, now: Time, destination: HostKey, wait: Span) {
        match self.heard.binary_search_by_key(&destination, |(key, ..)| *key) {
            Ok(at) => self.heard[at] = (destination, wait, now),
            Err(at) if self.heard.len() < MOST => self.heard.insert(at, (destination, wait, now)),
            Err(_) => (),
        }
    }

    /// True if a port was nearly free a short time ago.
    pub(super) fn is_free(&self, now: Time, destination: HostKey, below: Span, recent: Span) -> bool {
        let found = self.heard.binary_search_by_key(&destination, |(key, ..)| *key);
        found.is_ok_and(|at| {
            let (_, wait, heard) = self.heard[at];
            wait < below && now.since(heard) <= recent
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_one_port_is_not_believed_of_another() {
        let (one, other) = (HostKey::new(1), HostKey::new(2));
        let mut memory = DestinationMemory::default();
        let (t, recent) = (Span::from_us(1), Span::from_us(2));
        memory.learn(Time::ZERO, one, Span::ZERO);
        let is_free =
            |memory: &DestinationMemory, key, us| memory.is_free(Time::ZERO + Span::from_us(us), key, t, recent);
        assert!(is_free(&memory, one, 2) && !is_free(&memory, other, 2), "only what was heard");
        assert!(!is_free(&memory, one, 3), "and recently");
        memory.learn(Time::ZERO, one, t);
        assert!(!is_free(&memory, one, 1), "and below t");
    }
}

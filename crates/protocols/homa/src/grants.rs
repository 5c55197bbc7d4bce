//! Grants of a host: one list for all messages that it receives.
//!
//! Only messages longer than their unasked part are listed. A message is *active* while it is among the first `at_once`
//! that are not granted to their end; each active message has up to `window` bytes granted and not yet arrived. Once all of a
//! message is granted, the next becomes active.
//!
//! An end that is to send a grant because another's message moved on is in the list of [`GrantScheduler::next_woken`];
//! the driver of the ends pulls it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::{GrantOrder, GrantPolicy};

/// Key by which its host knows an end.
pub type GrantKey = u32;

/// Shared by all ends of a host.
#[derive(Clone, Debug)]
pub struct GrantScheduler {
    shared: Rc<RefCell<GrantList>>,
}

#[derive(Debug)]
struct GrantList {
    policy: GrantPolicy,
    /// Messages, in the order of arrival.
    messages: Vec<GrantedMessage>,
    woken: VecDeque<GrantKey>,
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
struct GrantedMessage {
    key: GrantKey,
    peer: u32,
    total: u64,
    received: u64,
    /// End of the bytes that it may send; `level` is their priority.
    granted: u64,
    level: u8,
}

impl GrantScheduler {
    /// One that grants nothing yet.
    pub fn new(policy: GrantPolicy) -> Self {
        let list = GrantList { policy, messages: Vec::new(), woken: VecDeque::new() };
        Self { shared: Rc::new(RefCell::new(list)) }
    }

    /// The next end that has a grant to send and does not know it.
    pub fn next_woken(&self) -> Option<GrantKey> {
        self.shared.borrow_mut().woken.pop_front()
    }

    /// Messages that are listed.
    pub fn len(&self) -> usize {
        self.shared.borrow().messages.len()
    }

    /// True if no message is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A message of `total` bytes of the host `peer` has come so far; `granted` is what it was allowed before it was
    /// listed. Returns what it may send, and with which priority.
    pub(super) fn update(&self, key: GrantKey, peer: u32, bytes: [u64; 2], granted: u64) -> (u64, u8) {
        let list = &mut *self.shared.borrow_mut();
        let [received, total] = bytes;
        match list.messages.iter_mut().find(|message| message.key == key) {
            Some(message) => (message.received, message.total) = (received, total),
            None => list.messages.push(GrantedMessage { key, peer, total, received, granted, level: 0 }),
        }
        list.grant(Some(key));
        list.of(key).unwrap_or((granted, 0))
    }

    /// Byte before which a message may send, and its priority.
    pub(super) fn granted(&self, key: GrantKey) -> Option<(u64, u8)> {
        self.shared.borrow().of(key)
    }

    /// A message is complete, or will never be.
    pub(super) fn remove(&self, key: GrantKey) {
        let list = &mut *self.shared.borrow_mut();
        let before = list.messages.len();
        list.messages.retain(|message| message.key != key);
        if list.messages.len() < before {
            list.grant(None);
        }
    }
}

impl GrantList {
    fn of(&self, key: GrantKey) -> Option<(u64, u8)> {
        self.messages.iter().find(|message| message.key == key).map(|message| (message.granted, message.level))
    }

    /// Grants what may be granted now; `calling` need not be woken.
    fn grant(&mut self, calling: Option<GrantKey>) {
        let mut changed = true;
        // A message that is granted to its end makes room for the next.
        while std::mem::take(&mut changed) {
            let active = self.active();
            for (rank, index) in active.iter().enumerate() {
                let (message, policy) = (&mut self.messages[*index], &self.policy);
                message.level = policy.level(rank, active.len());
                let limit = message.total.min(message.received.saturating_add(policy.window));
                if limit < message.total && limit < message.granted.saturating_add(policy.step)
                    || limit <= message.granted
                {
                    continue;
                }
                message.granted = limit;
                changed |= limit == message.total;
                if calling != Some(message.key) && !self.woken.contains(&message.key) {
                    self.woken.push_back(message.key);
                }
            }
        }
    }

    /// The messages that are granted now, the first in order first.
    fn active(&self) -> Vec<usize> {
        let mut waiting: Vec<usize> = (0..self.messages.len())
            .filter(|index| self.messages[*index].granted < self.messages[*index].total)
            .collect();
        if self.policy.order == GrantOrder::Shortest {
            waiting.sort_by_key(|index| self.messages[*index].total - self.messages[*index].received);
            let mut peers = Vec::new();
            waiting.retain(|index| {
                let peer = self.messages[*index].peer;
                let first = !peers.contains(&peer);
                peers.push(peer);
                first
            });
        }
        waiting.truncate(self.policy.at_once as usize);
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduler(at_once: u32, order: GrantOrder) -> GrantScheduler {
        GrantScheduler::new(GrantPolicy { at_once, order, window: 100, step: 40, first_level: None })
    }

    #[test]
    fn the_oldest_message_is_granted_to_its_end_before_the_next() {
        let grants = scheduler(1, GrantOrder::Arrival);
        assert_eq!(grants.update(7, 0, [10, 250], 100).0, 100, "less than a step ahead");
        assert_eq!(grants.update(8, 1, [100, 300], 100).0, 100, "not its turn");
        assert_eq!(grants.update(7, 0, [60, 250], 100).0, 160);
        assert_eq!(grants.next_woken(), None);
        assert_eq!(grants.update(7, 0, [150, 250], 100).0, 250);
        assert_eq!((grants.next_woken(), grants.granted(8)), (Some(8), Some((200, 0))));
        grants.remove(7);
        grants.remove(8);
        assert!(grants.is_empty() && grants.next_woken().is_none());
    }

    #[test]
    fn the_shortest_goes_first_and_a_sender_has_one_turn() {
        let grants = scheduler(2, GrantOrder::Shortest);
        let long = grants.update(1, 0, [100, 10_000], 100).0;
        assert_eq!((long, grants.update(2, 1, [100, 5_000], 100).0), (200, 200));
        assert_eq!(grants.update(3, 1, [100, 1_000], 100).0, 200, "shorter, of a sender whose other one waits now");
        assert_eq!(grants.update(2, 1, [200, 5_000], 100).0, 200, "its sender has a shorter one");
        assert_eq!(grants.update(1, 0, [200, 10_000], 100).0, 300);
        grants.remove(3);
        assert_eq!((grants.next_woken(), grants.granted(2)), (Some(2), Some((300, 0))));
    }
}

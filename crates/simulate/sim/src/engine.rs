//! The event queue, and timers on top of it.
//!
//! A wheel of narrow buckets for what comes soon, a heap for what comes late: most events of a network are a frame's
//! time away, and putting one into its bucket costs the same however many are pending. A bucket is sorted when its
//! turn comes, which is what many events cost: so numbers are sorted and not the events, which stay where they were put, in
//! the order in which they were scheduled. `cargo bench -p hitless-sim` measures it.
//!
//! Invariants: events come out by time, and in the order scheduled where times are equal; time never
//! runs backwards.

mod timers;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use units::Time;

pub use timers::{TimerFiring, Timers};

/// Width of a bucket as a power of two of picoseconds: 33 ns, a third of a full frame at 100G.
const WIDTH: u32 = 15;
/// Together 268 µs: round trips fall inside, retransmission timers behind.
const BUCKETS: u64 = 8_192;
const NONE: u32 = u32::MAX;

/// An event in a bucket, or behind the wheel with the order in which it was scheduled.
#[derive(Clone, Copy, Debug)]
struct QueueEntry<E> {
    at: Time,
    event: E,
}

#[derive(Debug)]
struct FarEntry<E> {
    entry: QueueEntry<E>,
    order: u64,
}

impl<E> QueueEntry<E> {
    #[inline]
    fn bucket(&self) -> u64 {
        self.at.as_ps() >> WIDTH
    }

    /// Sort key of an event in its bucket: its time, then its place in the bucket's list, where events that were scheduled
    /// earlier come first.
    #[inline]
    fn rank(&self, place: usize) -> u64 {
        (self.at.as_ps() & ((1 << WIDTH) - 1)) << 32 | place as u64
    }
}

impl<E> FarEntry<E> {
    fn key(&self) -> (Time, u64) {
        (self.entry.at, self.order)
    }
}

impl<E> PartialEq for FarEntry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for FarEntry<E> {}

impl<E> PartialOrd for FarEntry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for FarEntry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[derive(Debug)]
pub struct EventQueue<E> {
    now: Time,
    /// Events that were ever scheduled behind the wheel.
    scheduled: u64,
    /// The bucket whose turn it is.
    turn: u64,
    /// Events of this bucket as they were scheduled, and the ranks of those that are still to come, the next one last.
    current: Vec<QueueEntry<E>>,
    ranks: Vec<u64>,
    /// The list of each bucket from the one behind `turn` on, once around, if it has any event.
    buckets: Vec<u32>,
    /// A bit for each bucket that has any.
    occupied: Vec<u64>,
    /// Lists of events as they were scheduled, and the numbers of those that no bucket uses. Few buckets have events at a
    /// time: the same few lists are used again and again, and stay in the cache.
    lists: Vec<Vec<QueueEntry<E>>>,
    spare: Vec<u32>,
    in_wheel: usize,
    far: BinaryHeap<Reverse<FarEntry<E>>>,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            now: Time::ZERO,
            scheduled: 0,
            turn: 0,
            current: Vec::with_capacity(64),
            ranks: Vec::with_capacity(64),
            buckets: vec![NONE; BUCKETS as usize],
            occupied: vec![0; (BUCKETS / 64) as usize],
            lists: Vec::new(),
            spare: Vec::new(),
            in_wheel: 0,
            far: BinaryHeap::new(),
        }
    }
}

impl<E: Copy> EventQueue<E> {
    pub fn now(&self) -> Time {
        self.now
    }

    pub fn len(&self) -> usize {
        self.ranks.len() + self.in_wheel + self.far.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// # Panics
    /// If `at` has passed.
    #[inline]
    pub fn schedule(&mut self, at: Time, event: E) {
        assert!(at >= self.now, "scheduled in the past");
        let entry = QueueEntry { at, event };
        let bucket = entry.bucket();
        debug_assert!(bucket >= self.turn, "the bucket of an event has passed");
        if bucket == self.turn {
            let rank = entry.rank(self.current.len());
            self.current.push(entry);
            let place = self.ranks.partition_point(|other| *other > rank);
            self.ranks.insert(place, rank);
        } else if bucket - self.turn < BUCKETS {
            self.put(bucket, entry);
        } else {
            self.far.push(Reverse(FarEntry { entry, order: self.scheduled }));
            self.scheduled += 1;
        }
    }

    #[inline]
    fn put(&mut self, bucket: u64, entry: QueueEntry<E>) {
        let slot = (bucket % BUCKETS) as usize;
        if self.buckets[slot] == NONE {
            self.buckets[slot] = self.spare.pop().unwrap_or(self.lists.len() as u32);
            self.occupied[slot / 64] |= 1 << (slot % 64);
        }
        let list = self.buckets[slot] as usize;
        if list == self.lists.len() {
            self.lists.push(Vec::new());
        }
        self.lists[list].push(entry);
        self.in_wheel += 1;
    }

    /// Takes the next event; time moves on to it.
    #[inline]
    pub fn take(&mut self) -> Option<(Time, E)> {
        if self.ranks.is_empty() {
            self.turn_to_next();
        }
        let place = self.ranks.pop()? as u32;
        let QueueEntry { at, event } = self.current[place as usize];
        self.now = at;
        Some((at, event))
    }

    /// Counts up with every bucket that is opened.
    #[inline]
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// The events of the bucket that was opened last, in no order.
    pub(crate) fn opened(&self) -> impl Iterator<Item = &E> {
        self.current.iter().map(|entry| &entry.event)
    }

    /// Opens the next bucket that has an event, in the wheel or behind it.
    fn turn_to_next(&mut self) {
        let near = self.next_occupied();
        let far = self.far.peek().map(|Reverse(first)| first.entry.bucket());
        let Some(turn) = near.into_iter().chain(far).min() else { return };
        self.turn = turn;
        self.current.clear();
        // Events from behind the wheel were scheduled before the bucket came within its reach.
        while self.far.peek().is_some_and(|Reverse(first)| first.entry.bucket() == turn) {
            self.current.extend(self.far.pop().map(|Reverse(first)| first.entry));
        }
        if near == Some(turn) {
            self.open(turn);
        }
        self.ranks.extend(self.current.iter().enumerate().map(|(place, entry)| entry.rank(place)));
        self.ranks.sort_unstable_by_key(|rank| Reverse(*rank));
    }

    fn next_occupied(&self) -> Option<u64> {
        if self.in_wheel == 0 {
            return None;
        }
        let from = self.turn + 1;
        let slot = from % BUCKETS;
        let words = self.occupied.len();
        let first = (slot / 64) as usize;
        let mut mask = u64::MAX << (slot % 64);
        for step in 0..=words {
            let at = (first + step) % words;
            let word = self.occupied[at] & mask;
            if word != 0 {
                let found = at as u64 * 64 + u64::from(word.trailing_zeros());
                return Some(from + (found + BUCKETS - slot) % BUCKETS);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Adds the events of a bucket to the current ones.
    fn open(&mut self, bucket: u64) {
        let slot = (bucket % BUCKETS) as usize;
        let list = std::mem::replace(&mut self.buckets[slot], NONE);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.spare.push(list);
        let list = &mut self.lists[list as usize];
        self.in_wheel -= list.len();
        if self.current.is_empty() {
            std::mem::swap(&mut self.current, list);
        } else {
            self.current.append(list);
        }
    }
}

/// Makes room for one more. A list that doubles would be a quarter empty on average, and these are most of the memory.
pub(crate) fn grow_by_a_quarter<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact(64 + list.len() / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_equal_ones_as_scheduled() {
        let mut queue = EventQueue::default();
        for (at, name) in [(5, 'a'), (3, 'b'), (5, 'c'), (1, 'd'), (3, 'e')] {
            queue.schedule(Time::from_ps(at), name);
        }
        let order: String = std::iter::from_fn(|| queue.take()).map(|(_, name)| name).collect();
        assert_eq!(order, "dbeac");
        assert_eq!(queue.now(), Time::from_ps(5));
    }

    #[test]
    fn a_long_shuffled_list_comes_out_sorted() {
        let mut queue = EventQueue::default();
        let mut x = 1u64;
        for n in 0..10_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            queue.schedule(Time::from_ps(x >> 52), n);
        }
        let out: Vec<(Time, u64)> = std::iter::from_fn(|| queue.take()).collect();
        assert_eq!(out.len(), 10_000);
        assert!(out.is_sorted());
    }

    /// Gaps from nothing to far behind the wheel, in and out at random: as a heap would have it.
    #[test]
    fn near_and_far_events_come_in_the_order_of_a_heap() {
        let (mut queue, mut heap, mut x) = (EventQueue::default(), BinaryHeap::new(), 7u64);
        let mut draw = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            x >> 33
        };
        for n in 0..200_000u64 {
            if !draw().is_multiple_of(3) || heap.is_empty() {
                let gap = draw() % [1, 1 << 10, 1 << 20, 1 << 29][(draw() % 4) as usize];
                let at = queue.now() + units::Span::from_ps(gap);
                queue.schedule(at, n);
                heap.push(Reverse((at, n)));
            } else {
                assert_eq!(queue.take(), heap.pop().map(|Reverse(first)| first));
            }
            assert_eq!(queue.len(), heap.len());
        }
        while let Some(Reverse(first)) = heap.pop() {
            assert_eq!(queue.take(), Some(first));
        }
        assert!(queue.is_empty() && queue.take().is_none());
    }

    #[test]
    #[should_panic(expected = "scheduled in the past")]
    fn time_does_not_run_backwards() {
        let mut queue = EventQueue::default();
        queue.schedule(Time::from_ps(5), ());
        queue.take();
        queue.schedule(Time::from_ps(4), ());
    }
}

//! Reorder buffer, in which frames wait for the one before them.
//!
//! LinkGuardian (SIGCOMM'23) §3.3, Algorithm 1. Two ways to build it:
//!
//! - `SortedBuffer`, what one would build: a frame is found by its number and leaves the moment its turn
//!   comes.
//! - `RotatingBuffer`, what a Tofino has: a queue served at a fixed rate through a loop of the pipeline. One
//!   frame is examined per slot; one whose turn has not come goes back to the tail. While a gap is open
//!   the queue gets out of order, and emptying it afterwards takes several turns. That costs the 8 % of
//!   speed that the paper loses at 100G.
//!
//! Invariant: `level` is the sum of the lengths of the frames held.

use std::collections::VecDeque;

use machine::FrameBody;
use units::{Bytes, Rate, Span, Time};
use wire::Seq;
use wire::ethernet::on_wire;
use wire::link::DATA_HEADER;

/// Build of the reorder buffer, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum ReorderBuild {
    /// Frames in the order of their numbers.
    Sorted,
    /// A queue whose frames come round at this rate, each after a turn at the earliest.
    Rotating { rate: Rate, turn: Span },
}

impl ReorderBuild {
    /// Build on the paper's switch: a port of 100G; the loop's latency is our calibration.
    pub const TOFINO: Self = Self::Rotating { rate: Rate::gbps(100), turn: Span::from_ns(200) };
}

/// Frames held by number, in a ring whose first slot is the next to be delivered.
#[derive(Debug)]
pub(crate) struct SortedBuffer<B> {
    first: Seq,
    slots: VecDeque<Option<B>>,
}

impl<B> SortedBuffer<B> {
    /// Frames that came in order passed the buffer by: start where they have got to.
    fn restart(&mut self, first: Seq) {
        self.slots.clear();
        self.first = first;
    }

    fn hold(&mut self, seq: Seq, body: B) {
        let at = seq.offset_from(self.first) as usize;
        while self.slots.len() <= at {
            self.slots.push_back(None);
        }
        self.slots[at] = Some(body);
    }

    fn take(&mut self, seq: Seq) -> Option<B> {
        while self.first != seq {
            self.slots.pop_front();
            self.first = self.first.next();
        }
        self.slots.front_mut().and_then(Option::take)
    }
}

/// Frames in a loop, each with the time at which it is examined next.
#[derive(Debug)]
pub(crate) struct RotatingBuffer<B> {
    rate: Rate,
    turn: Span,
    queue: VecDeque<(Time, Seq, B)>,
    /// Time at which the port that feeds the loop has sent what is queued.
    free_at: Time,
}

impl<B: FrameBody> RotatingBuffer<B> {
    fn hold(&mut self, now: Time, seq: Seq, body: B) {
        // The frame goes round with its link header, by which it is recognised.
        let len = on_wire(body.len() + DATA_HEADER);
        self.free_at = self.free_at.max(now) + self.rate.span_of(Bytes::new(u64::from(len)));
        self.queue.push_back((self.free_at + self.turn, seq, body));
    }
}

#[derive(Debug)]
enum ReorderStore<B> {
    Sorted(SortedBuffer<B>),
    Rotating(RotatingBuffer<B>),
}

/// A reorder buffer of either build.
#[derive(Debug)]
pub(crate) struct ReorderBuffer<B> {
    store: ReorderStore<B>,
    level: Bytes,
    frames: usize,
}

impl<B: FrameBody> ReorderBuffer<B> {
    /// Empty; `first` is the number awaited first.
    pub(crate) fn new(build: ReorderBuild, first: Seq) -> Self {
        let store = match build {
            ReorderBuild::Sorted => ReorderStore::Sorted(SortedBuffer { first, slots: VecDeque::new() }),
            ReorderBuild::Rotating { rate, turn } => {
                ReorderStore::Rotating(RotatingBuffer { rate, turn, queue: VecDeque::new(), free_at: Time::ZERO })
            }
        };
        Self { store, level: Bytes::ZERO, frames: 0 }
    }

    /// Bytes held.
    pub(crate) fn level(&self) -> Bytes {
        self.level
    }

    /// True if nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Holds a frame until `next`, the number that is awaited now, has come to its own.
    pub(crate) fn hold(&mut self, now: Time, next: Seq, seq: Seq, body: B) {
        let was_empty = self.is_empty();
        self.level += length(&body);
        self.frames += 1;
        match &mut self.store {
            ReorderStore::Sorted(sorted) => {
                if was_empty {
                    sorted.restart(next);
                }
                sorted.hold(seq, body);
            }
            ReorderStore::Rotating(rotating) => rotating.hold(now, seq, body),
        }
    }

    /// The frame with this number, if the build can find it and it is here. All later calls are for
    /// later numbers.
    pub(crate) fn take(&mut self, seq: Seq) -> Option<B> {
        if self.is_empty() {
            return None;
        }
        let ReorderStore::Sorted(sorted) = &mut self.store else { return None };
        let body = sorted.take(seq)?;
        self.level -= length(&body);
        self.frames -= 1;
        Some(body)
    }

    /// Time at which a frame comes round to be examined.
    pub(crate) fn next_turn(&self) -> Option<Time> {
        match &self.store {
            ReorderStore::Sorted(_) => None,
            ReorderStore::Rotating(rotating) => rotating.queue.front().map(|(at, ..)| *at),
        }
    }

    /// Examines the frame whose turn it is, if it is time: the frame if its number is `wanted`; any other
    /// goes back to the tail.
    pub(crate) fn examine(&mut self, now: Time, wanted: Seq) -> Option<B> {
        let ReorderStore::Rotating(rotating) = &mut self.store else { return None };
        if rotating.queue.front().is_none_or(|(at, ..)| *at > now) {
            return None;
        }
        let (_, seq, body) = rotating.queue.pop_front()?;
        if seq == wanted {
            self.level -= length(&body);
            self.frames -= 1;
            return Some(body);
        }
        rotating.hold(now, seq, body);
        None
    }

    /// Hashes the frames held and the times of their turns, relative to `now` and to the number awaited: equal for two
    /// buffers that will behave alike.
    pub(crate) fn fingerprint(&self, now: Time, next: Seq, mut mix: impl FnMut(u64)) {
        match &self.store {
            ReorderStore::Sorted(_) => mix(self.frames as u64),
            ReorderStore::Rotating(rotating) => {
                mix(rotating.free_at.since(now).as_ps());
                for (at, seq, _) in &rotating.queue {
                    mix(at.since(now).as_ps());
                    mix(seq.offset_from(next) as u64);
                }
            }
        }
    }

    /// Takes out all held frames, in sequence order.
    pub(crate) fn drain(&mut self, from: Seq) -> Vec<(Seq, B)> {
        self.level = Bytes::ZERO;
        self.frames = 0;
        match &mut self.store {
            ReorderStore::Sorted(sorted) => {
                let first = sorted.first;
                sorted
                    .slots
                    .drain(..)
                    .enumerate()
                    .filter_map(|(at, slot)| slot.map(|body| (first.plus(at as u32), body)))
                    .collect()
            }
            ReorderStore::Rotating(rotating) => {
                let mut held: Vec<(Seq, B)> = rotating.queue.drain(..).map(|(_, seq, body)| (seq, body)).collect();
                held.sort_by_key(|(seq, _)| seq.offset_from(from));
                held
            }
        }
    }

    /// Panics unless `level` and `frames` are those of the frames held.
    pub(crate) fn check_invariants(&self) {
        let (frames, level) = match &self.store {
            ReorderStore::Sorted(sorted) => sum(sorted.slots.iter().flatten()),
            ReorderStore::Rotating(rotating) => sum(rotating.queue.iter().map(|(.., body)| body)),
        };
        assert_eq!((frames, level), (self.frames, self.level), "what is held is counted wrongly");
    }

    /// Frames held.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }
}

fn sum<'a, B: FrameBody + 'a>(bodies: impl Iterator<Item = &'a B>) -> (usize, Bytes) {
    bodies.fold((0, Bytes::ZERO), |(frames, level), body| (frames + 1, level + length(body)))
}

fn length<B: FrameBody>(body: &B) -> Bytes {
    Bytes::new(u64::from(body.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(mark: u8) -> Vec<u8> {
        vec![mark; 1_518]
    }

    fn seq(number: u32) -> Seq {
        Seq::new(65_534, true).plus(number)
    }

    #[test]
    fn a_sorted_buffer_finds_what_is_there_and_passes_over_what_is_not() {
        let mut buffer = ReorderBuffer::new(ReorderBuild::Sorted, seq(0));
        buffer.hold(Time::ZERO, seq(0), seq(3), frame(3));
        buffer.hold(Time::ZERO, seq(0), seq(1), frame(1));
        assert_eq!(buffer.take(seq(0)), None);
        assert_eq!(buffer.take(seq(1)), Some(frame(1)));
        assert_eq!(buffer.take(seq(2)), None);
        assert_eq!((buffer.level(), buffer.is_empty()), (Bytes::new(1_518), false));
        assert_eq!(buffer.take(seq(3)), Some(frame(3)));
        assert_eq!((buffer.level(), buffer.is_empty()), (Bytes::ZERO, true));
    }

    #[test]
    fn a_rotating_buffer_examines_one_frame_a_slot_and_sends_the_others_round() {
        let mut buffer = ReorderBuffer::new(ReorderBuild::TOFINO, seq(0));
        buffer.hold(Time::ZERO, seq(0), seq(2), frame(2));
        buffer.hold(Time::ZERO, seq(0), seq(1), frame(1));
        let first = Time::from_ps(123_280 + 200_000);
        assert_eq!(buffer.next_turn(), Some(first));
        assert_eq!(buffer.examine(Time::ZERO, seq(1)), None);
        assert_eq!(buffer.examine(first, seq(1)), None);
        let second = buffer.next_turn().unwrap();
        assert_eq!(second, first + Span::from_ps(123_280));
        assert_eq!(buffer.examine(second, seq(1)), Some(frame(1)));
        assert_eq!(buffer.next_turn(), Some(first + Span::from_ps(123_280 + 200_000)));
    }

    #[test]
    fn both_builds_drain_in_order() {
        for build in [ReorderBuild::Sorted, ReorderBuild::TOFINO] {
            let mut buffer = ReorderBuffer::new(build, seq(0));
            for n in [5, 2, 9] {
                buffer.hold(Time::ZERO, seq(0), seq(n), frame(n as u8));
            }
            let order: Vec<Seq> = buffer.drain(seq(0)).into_iter().map(|(seq, _)| seq).collect();
            assert_eq!(order, [seq(2), seq(5), seq(9)]);
            assert!(buffer.is_empty());
        }
    }
}

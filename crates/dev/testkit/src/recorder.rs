//! A sink that records.

use std::collections::VecDeque;

use machine::{Machine, Out, Port, QueueId};
use units::Time;

/// One thing that a machine did.
#[derive(Debug, PartialEq)]
pub enum RecordedAction<F, I, D, N> {
    Transmit(F),
    Wake,
    Deliver(I),
    Complete(D),
    Note(N),
}

pub type RecordedActionOf<M> =
    RecordedAction<<M as Machine>::Frame, <M as Machine>::Inner, <M as Machine>::Done, <M as Machine>::Note>;

/// Writes down every action in order; keeps the queues above and the timers as a driver would.
pub struct Recorder<M: Machine> {
    pub acts: Vec<RecordedActionOf<M>>,
    /// The queues above, by lane.
    pub above: [VecDeque<M::Inner>; 2],
    /// Deadlines by timer.
    pub timers: Vec<(M::Timer, Time)>,
}

impl<M: Machine> std::fmt::Debug for Recorder<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("timers", &self.timers).finish_non_exhaustive()
    }
}

impl<M: Machine> Default for Recorder<M> {
    fn default() -> Self {
        Self { acts: Vec::new(), above: [VecDeque::new(), VecDeque::new()], timers: Vec::new() }
    }
}

impl<M: Machine> Recorder<M> {
    /// Takes the actions since the last call.
    pub fn acts(&mut self) -> Vec<RecordedActionOf<M>> {
        std::mem::take(&mut self.acts)
    }

    /// Takes out the earliest timer that is due.
    pub fn due(&mut self, now: Time) -> Option<M::Timer> {
        let at = self.earliest()?;
        (self.timers[at].1 <= now).then(|| self.timers.swap_remove(at).0)
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.earliest().map(|at| self.timers[at].1)
    }

    fn earliest(&self) -> Option<usize> {
        (0..self.timers.len()).min_by_key(|&at| self.timers[at].1)
    }
}

impl<M: Machine> Out<M> for Recorder<M>
where
    M::Inner: Clone,
{
    fn transmit(&mut self, _port: Port, frame: M::Frame) {
        self.acts.push(RecordedAction::Transmit(frame));
    }

    fn wake(&mut self, _port: Port) {
        if !matches!(self.acts.last(), Some(RecordedAction::Wake)) {
            self.acts.push(RecordedAction::Wake);
        }
    }

    fn waiting(&self, lane: QueueId) -> bool {
        !self.above[usize::from(lane.0)].is_empty()
    }

    fn take(&mut self, lane: QueueId) -> Option<M::Inner> {
        self.above[usize::from(lane.0)].pop_front()
    }

    fn keep(&mut self, inner: &M::Inner) -> M::Inner {
        inner.clone()
    }

    fn release(&mut self, _inner: M::Inner) {}

    fn deliver(&mut self, _lane: QueueId, inner: M::Inner) {
        self.acts.push(RecordedAction::Deliver(inner));
    }

    fn arm(&mut self, key: M::Timer, at: Time) {
        self.disarm(key);
        self.timers.push((key, at));
    }

    fn disarm(&mut self, key: M::Timer) {
        self.timers.retain(|(other, _)| *other != key);
    }

    fn complete(&mut self, done: M::Done) {
        self.acts.push(RecordedAction::Complete(done));
    }

    fn note(&mut self, note: M::Note) {
        self.acts.push(RecordedAction::Note(note));
    }
}

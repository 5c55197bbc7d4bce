//! Two machines and the wire between them, under the test's control.

use std::collections::BTreeMap;

use machine::{Machine, Port, Pull, QueueId};
use units::{Span, Time};

use crate::recorder::{RecordedAction, Recorder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left = 0,
    Right = 1,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::Left, Self::Right];

    pub fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Fate of a frame on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrives,
    Lost,
    /// Arrives this much late; later ones may overtake it.
    Late(Span),
}

/// Two ends, each sending at most one frame per `slot`, each frame arriving after `delay`.
pub struct Duo<M: Machine> {
    pub now: Time,
    slot: Span,
    delay: Span,
    ends: [DuoEnd<M>; 2],
    flying: BTreeMap<(Time, u64), (Side, M::Frame)>,
    sent: u64,
}

struct DuoEnd<M: Machine> {
    machine: M,
    out: Recorder<M>,
    free_at: Time,
    /// Time at which to pull again; `None` until woken.
    pull_at: Option<Time>,
    delivered: Vec<M::Inner>,
    events: Vec<M::Done>,
    notes: Vec<M::Note>,
}

impl<M: Machine> std::fmt::Debug for Duo<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Duo at {:?} with {} in flight", self.now, self.flying.len())
    }
}

impl<M: Machine> Duo<M>
where
    M::Inner: Clone,
{
    pub fn new(left: M, right: M, slot: Span, delay: Span) -> Self {
        let end = |machine| DuoEnd {
            machine,
            out: Recorder::default(),
            free_at: Time::ZERO,
            pull_at: None,
            delivered: Vec::new(),
            events: Vec::new(),
            notes: Vec::new(),
        };
        Self { now: Time::ZERO, slot, delay, ends: [end(left), end(right)], flying: BTreeMap::new(), sent: 0 }
    }

    pub fn machine(&self, side: Side) -> &M {
        &self.ends[side as usize].machine
    }

    /// Puts another machine in this one's place, as a restart does. Its queue above stays.
    pub fn replace(&mut self, side: Side, machine: M) {
        let end = &mut self.ends[side as usize];
        end.machine = machine;
        end.out.timers.clear();
        end.pull_at = Some(self.now);
    }

    pub fn send(&mut self, side: Side, lane: QueueId, inner: M::Inner) {
        let end = &mut self.ends[side as usize];
        end.out.above[usize::from(lane.0)].push_back(inner);
        end.pull_at = Some(self.now);
    }

    pub fn waiting(&self, side: Side) -> usize {
        self.ends[side as usize].out.above.iter().map(|queue| queue.len()).sum()
    }

    pub fn command(&mut self, side: Side, command: M::Command) {
        let now = self.now;
        let end = &mut self.ends[side as usize];
        end.machine.on_command(now, command, &mut end.out);
        self.collect(side);
    }

    /// A frame from nowhere.
    pub fn inject(&mut self, side: Side, frame: M::Frame) {
        self.act(side, |machine, now, out| machine.on_frame(now, Port(0), frame, out));
    }

    /// Anything else that a driver may do to a machine.
    pub fn act(&mut self, side: Side, act: impl FnOnce(&mut M, Time, &mut Recorder<M>)) {
        let now = self.now;
        let end = &mut self.ends[side as usize];
        act(&mut end.machine, now, &mut end.out);
        self.collect(side);
    }

    pub fn delivered(&mut self, side: Side) -> Vec<M::Inner> {
        std::mem::take(&mut self.ends[side as usize].delivered)
    }

    pub fn events(&mut self, side: Side) -> Vec<M::Done> {
        std::mem::take(&mut self.ends[side as usize].events)
    }

    pub fn notes(&mut self, side: Side) -> Vec<M::Note> {
        std::mem::take(&mut self.ends[side as usize].notes)
    }

    /// Time of the next event.
    pub fn next_event(&self) -> Option<Time> {
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        let ends = self.ends.iter().flat_map(|end| {
            let pull = end.pull_at.map(|at| at.max(end.free_at));
            [pull, end.out.next_deadline()]
        });
        ends.chain([arrival]).flatten().min()
    }

    /// Lets the next thing happen; `fate` decides for each frame sent. False when nothing ever will.
    pub fn step(&mut self, fate: &mut impl FnMut(Side, &M::Frame) -> Fate) -> bool {
        let Some(at) = self.next_event() else { return false };
        self.now = self.now.max(at);
        if let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= at) {
            let (side, frame) = entry.remove();
            self.inject(side, frame);
            return true;
        }
        for side in Side::BOTH {
            let end = &mut self.ends[side as usize];
            if let Some(key) = end.out.due(at) {
                end.machine.on_timer(at, key, &mut end.out);
                self.collect(side);
                return true;
            }
            if end.pull_at.is_some_and(|pull| pull.max(end.free_at) <= at) {
                self.pull(side, fate);
                return true;
            }
        }
        true
    }

    fn pull(&mut self, side: Side, fate: &mut impl FnMut(Side, &M::Frame) -> Fate) {
        let now = self.now;
        let end = &mut self.ends[side as usize];
        end.pull_at = None;
        let pull = end.machine.pull(now, Port(0), &mut end.out);
        let frames = self.collect(side);
        let end = &mut self.ends[side as usize];
        match pull {
            Pull::Sent | Pull::Last => {
                assert_eq!(frames.len(), 1, "a pull that sent must have sent one frame");
                end.free_at = now + self.slot;
                if pull == Pull::Sent {
                    end.pull_at = Some(end.free_at);
                }
            }
            Pull::NotBefore(at) => {
                assert!(at > now, "asked to be pulled in the past");
                end.pull_at = Some(end.pull_at.map_or(at, |other| other.min(at)));
            }
            Pull::Idle => assert!(frames.is_empty(), "an idle pull must send nothing"),
        }
        for frame in frames {
            let arrives = match fate(side, &frame) {
                Fate::Arrives => now + self.slot + self.delay,
                Fate::Late(by) => now + self.slot + self.delay + by,
                Fate::Lost => continue,
            };
            self.sent += 1;
            self.flying.insert((arrives, self.sent), (side.other(), frame));
        }
    }

    /// Checks the machine and sorts out what it did; frames are returned, and must only come from a pull.
    fn collect(&mut self, side: Side) -> Vec<M::Frame> {
        let now = self.now;
        let end = &mut self.ends[side as usize];
        end.machine.check_invariants();
        let mut frames = Vec::new();
        for act in end.out.acts() {
            match act {
                RecordedAction::Transmit(frame) => frames.push(frame),
                RecordedAction::Wake => end.pull_at = Some(now),
                RecordedAction::Deliver(inner) => end.delivered.push(inner),
                RecordedAction::Complete(done) => end.events.push(done),
                RecordedAction::Note(note) => end.notes.push(note),
            }
        }
        frames
    }

    /// Steps until nothing is left to do, or `deadline`. True if it fell quiet.
    pub fn run(&mut self, deadline: Time, fate: &mut impl FnMut(Side, &M::Frame) -> Fate) -> bool {
        while self.next_event().is_some_and(|at| at <= deadline) {
            self.step(fate);
        }
        self.next_event().is_none()
    }
}

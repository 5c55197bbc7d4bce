//! The states of one port. LinkGuardian App. C, with what it takes to be relied upon.
//!
//! ```text
//!            enough polls with frames, window not above the threshold
//!   Unknown ──────────────────────────────────────────────────────────▶ Healthy
//!      │    ◀──────────────────────────────────────────────────────────  │ ▲ ▲
//!      │      switched off, no signal, counters gone, another device     │ │ │
//!      └────────────────────────────┬────────────────────────────────────┘ │ │
//!                                   │ N bad polls, window above            │ │
//!                                   │ the threshold                        │ │
//!                                   ├──▶ Corrupting ───────────────────────┘ │
//!                                   │      sure or quiet (see `alarm`),      │
//!                                   │      unless held by damping            │
//!                                   └──▶ Sticky ─────────────────────────────┘
//!                 raised once too often    a person clears it
//! ```
//!
//! A port that goes down, whether switched off, without a signal or gone, raises no alarm and ends none: a cable pulled
//! for repair is no proof that it was repaired. What is counted starts afresh when it is back, because a link that goes
//! up or down spoils a few frames each time, and the frames before say nothing about the cable that is plugged in now.
//! That a signal is lost again and again is not corruption: other alarms are made for it.

use std::sync::Arc;
use std::time::Duration;

use units::Moment;

use super::alarm::{Alarm, End};
use super::change::{Absence, Change, Kind, Note, Verdict, span};
use super::counters::{Clock, Counters, Oddities, Step, Tick};
use super::damping::Record;
use super::limits::Limits;
use super::window::{Tally, Window};
use crate::reading::{Carrier, Reading};
use bus::message::{Condition, PortState};

#[derive(Clone, Debug)]
enum State {
    Unknown,
    Healthy,
    Corrupting(Alarm),
    Sticky(Alarm),
}

/// Readings of one port in, changes of its condition out.
///
/// [`adopt`](Self::adopt) first what was said about the port before, if anything; then [`on_reading`](Self::on_reading)
/// with every poll, and `on_absence` when it is no longer read.
#[derive(Clone, Debug)]
pub struct Detector {
    limits: Arc<Limits>,
    identity: Option<u64>,
    clock: Clock,
    counters: Counters,
    window: Window,
    state: State,
    record: Record,
    /// Polls with frames since counts started.
    polls: u32,
    /// Polls that brought bad frames, since the window is above the threshold.
    bad_polls: u32,
    absence: Option<Absence>,
    /// What was odd last, and when.
    note: Option<(Note, Moment)>,
    oddities: Oddities,
    told: Option<Change>,
}

impl Detector {
    pub fn new(limits: impl Into<Arc<Limits>>) -> Self {
        let limits = limits.into();
        Self {
            window: Window::new(limits.frames, limits.time),
            limits,
            identity: None,
            clock: Clock::default(),
            counters: Counters::default(),
            state: State::Unknown,
            record: Record::default(),
            polls: 0,
            bad_polls: 0,
            absence: None,
            note: None,
            oddities: Oddities::default(),
            told: None,
        }
    }

    /// Takes over an alarm that was told before, by a monitor that is no more. It counts as a raise, and ends as any
    /// other. That a port was healthy is not taken over: it takes no time to see that again.
    pub fn adopt(&mut self, said: &PortState) {
        let (State::Unknown | State::Healthy) = self.state else { return };
        if said.condition != Condition::Corrupting {
            return;
        }
        let now = self.clock.age();
        let alarm = Alarm::adopted(now, said.evidence.loss, &self.limits);
        self.record.on_raise(now, &self.limits);
        self.state = if said.sticky { State::Sticky(alarm) } else { State::Corrupting(alarm) };
        self.told = Some(Change {
            kind: if said.sticky { Kind::Stuck } else { Kind::Raised },
            condition: said.condition,
            sticky: said.sticky,
            evidence: said.evidence,
            why: said.why.clone(),
        });
    }

    pub fn on_reading(&mut self, reading: &Reading) -> Verdict {
        let before = self.clock.age();
        let (passed, mut note) = match self.clock.tick(reading.at) {
            Tick::First => (Duration::ZERO, None),
            Tick::Passed(passed) => (passed, None),
            Tick::SetBack => {
                self.counters.forget();
                (Duration::ZERO, Some(Note::SetBack))
            }
            Tick::Duplicate => return Verdict { change: None, note: self.remark(Note::Duplicate) },
            Tick::Backwards => return Verdict { change: None, note: self.remark(Note::Backwards) },
        };
        let mut renewed = None;
        if self.is_other_device(reading.identity) {
            renewed = self.start_over_on_other_device();
            note = Some(Note::OtherDevice);
        }
        let change = match (reading.carrier, reading.frames) {
            (Carrier::Up, Some(frames)) => {
                self.absence = None;
                let step = self.counters.step(frames, passed);
                note = oddity(step).or(note);
                self.on_step(step, before)
            }
            (Carrier::Up, None) => self.down(Absence::Uncounted),
            (Carrier::Lost, _) => self.down(Absence::Lost),
            (Carrier::Off, _) => self.down(Absence::Off),
        };
        Verdict { change: change.or(renewed), note: note.and_then(|note| self.remark(note)) }
    }

    /// The port is no longer there.
    pub(crate) fn on_absence(&mut self) -> Option<Change> {
        self.down(Absence::Gone)
    }

    /// A person says that the port is healthy. Everything starts afresh, so it is raised again if it is not.
    pub fn clear_by_hand(&mut self) -> Option<Change> {
        match self.state {
            State::Unknown | State::Healthy => None,
            State::Corrupting(_) | State::Sticky(_) => {
                self.record = Record::default();
                self.become_healthy();
                Some(self.tell(Change::by_hand()))
            }
        }
    }

    pub fn condition(&self) -> Condition {
        match self.state {
            State::Unknown => Condition::Unknown,
            State::Healthy => Condition::Healthy,
            State::Corrupting(_) | State::Sticky(_) => Condition::Corrupting,
        }
    }

    pub fn is_sticky(&self) -> bool {
        matches!(self.state, State::Sticky(_))
    }

    /// What is in the window now.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The change that was told last, or taken over.
    pub fn told(&self) -> Option<&Change> {
        self.told.as_ref()
    }

    pub fn oddities(&self) -> Oddities {
        self.oddities
    }

    /// The device that was read last, if it has an identity.
    pub fn identity(&self) -> Option<u64> {
        self.identity
    }

    /// True if something would be lost with it: an alarm, or that there were some.
    pub fn is_marked(&self) -> bool {
        self.condition() == Condition::Corrupting || self.record.is_marked(self.clock.age(), &self.limits)
    }

    /// A few words for a table: what keeps the port from being watched, or its alarm from ending, or was odd last.
    pub fn note(&self) -> String {
        let now = self.clock.age();
        let held = self.record.held(now, &self.limits.damping);
        match (self.absence, &self.state, held) {
            (Some(absence), _, _) => absence.to_string(),
            (None, State::Sticky(_), _) => "flapped too often; a person has to clear it".to_owned(),
            (None, State::Corrupting(_), Some(held)) => format!("flapped; held for another {}", span(held)),
            (None, _, _) => match self.note {
                Some((note, at)) if now.since(at) < self.limits.time => note.to_string(),
                _ => String::new(),
            },
        }
    }

    fn remark(&mut self, note: Note) -> Option<Note> {
        let counter = match note {
            Note::Wrapped => &mut self.oddities.wraps,
            Note::StartedOver | Note::Jumped | Note::TooLong | Note::SetBack => &mut self.oddities.resets,
            Note::OtherDevice => &mut self.oddities.devices,
            Note::Nonsense | Note::Duplicate | Note::Backwards => &mut self.oddities.refused,
        };
        *counter += 1;
        self.note = Some((note, self.clock.age()));
        Some(note)
    }

    /// An identity of zero is none: sources that cannot tell devices apart say so.
    fn is_other_device(&mut self, identity: u64) -> bool {
        if identity == 0 {
            return false;
        }
        self.identity.replace(identity).is_some_and(|before| before != identity)
    }

    fn start_over_on_other_device(&mut self) -> Option<Change> {
        self.counters = Counters::default();
        self.start_counts_over();
        let now = self.clock.age();
        match &mut self.state {
            State::Unknown => None,
            State::Healthy => Some(self.become_unknown(Note::OtherDevice.to_string())),
            State::Corrupting(alarm) | State::Sticky(alarm) => {
                alarm.move_to_other_device(now);
                None
            }
        }
    }

    fn start_counts_over(&mut self) {
        self.window.clear();
        (self.polls, self.bad_polls) = (0, 0);
    }

    fn on_step(&mut self, step: Step, before: Moment) -> Option<Change> {
        let now = self.clock.age();
        match (step, &mut self.state) {
            (Step::Counted { frames, bad, .. }, _) => {
                self.window.push(before, now, frames, bad);
                self.on_poll(now, frames, bad)
            }
            (Step::StartedOver { bad: true }, State::Corrupting(alarm) | State::Sticky(alarm)) => {
                alarm.on_bad(now);
                None
            }
            (Step::First | Step::StartedOver { .. } | Step::Jumped | Step::TooLong | Step::Nonsense, _) => None,
        }
    }

    fn on_poll(&mut self, now: Moment, frames: u64, bad: u64) -> Option<Change> {
        let window = self.window.tally();
        let exceeded = self.limits.exceeded(window);
        self.polls = self.polls.saturating_add(u32::from(frames > 0));
        self.bad_polls = if exceeded { self.bad_polls.saturating_add(u32::from(bad > 0)) } else { 0 };
        let enough = self.limits.raise_after.max(1);
        let proven = bad > 0 && self.bad_polls >= enough;
        let sticky = self.is_sticky();
        let change = match &mut self.state {
            State::Unknown | State::Healthy if proven => Some(self.raise(now, window)),
            State::Unknown if self.polls >= enough && !exceeded => {
                self.state = State::Healthy;
                Some(Change::found_healthy(window))
            }
            State::Unknown | State::Healthy => None,
            State::Corrupting(alarm) | State::Sticky(alarm) => {
                alarm.on_poll(now, frames, bad, window, &self.limits);
                if proven && alarm.confirm(window) {
                    Some(Change::confirmed(window, self.limits.threshold, self.bad_polls, sticky))
                } else if let Some(told) = alarm.worse(window) {
                    Some(Change::worse(window, told, sticky))
                } else {
                    self.end(now)
                }
            }
        };
        change.map(|change| self.tell(change))
    }

    fn raise(&mut self, now: Moment, window: Tally) -> Change {
        let alarm = Alarm::new(now, window.loss());
        let stuck = self.record.on_raise(now, &self.limits);
        self.state = if stuck { State::Sticky(alarm) } else { State::Corrupting(alarm) };
        let flaps = self.limits.flaps.filter(|_| stuck).map(|flaps| (self.record.flaps(), flaps.within));
        Change::raised(window, self.limits.threshold, self.bad_polls, flaps)
    }

    fn end(&mut self, now: Moment) -> Option<Change> {
        let end = match &self.state {
            State::Unknown | State::Healthy | State::Sticky(_) => None,
            State::Corrupting(alarm) => alarm.end(now, &self.limits),
        }?;
        if self.record.held(now, &self.limits.damping).is_some() {
            return None;
        }
        self.become_healthy();
        Some(match end {
            End::Sure(recent) => Change::cleared(recent, self.limits.threshold, self.limits.clear_after),
            End::Quiet(clean, loss) => Change::quiet(clean, loss),
        })
    }

    /// What raised an alarm must not raise the next.
    fn become_healthy(&mut self) {
        self.start_counts_over();
        self.state = State::Healthy;
    }

    fn become_unknown(&mut self, why: String) -> Change {
        self.state = State::Unknown;
        self.tell(Change::unknown(why))
    }

    fn down(&mut self, absence: Absence) -> Option<Change> {
        self.absence = Some(absence);
        self.counters.forget();
        self.start_counts_over();
        let now = self.clock.age();
        match &mut self.state {
            State::Unknown => None,
            State::Healthy => Some(self.become_unknown(absence.to_string())),
            State::Corrupting(alarm) | State::Sticky(alarm) => {
                alarm.start_over(now);
                None
            }
        }
    }

    fn tell(&mut self, change: Change) -> Change {
        self.told = Some(change.clone());
        change
    }
}

fn oddity(step: Step) -> Option<Note> {
    match step {
        Step::First | Step::Counted { wrapped: false, .. } => None,
        Step::Counted { wrapped: true, .. } => Some(Note::Wrapped),
        Step::StartedOver { .. } => Some(Note::StartedOver),
        Step::Jumped => Some(Note::Jumped),
        Step::TooLong => Some(Note::TooLong),
        Step::Nonsense => Some(Note::Nonsense),
    }
}

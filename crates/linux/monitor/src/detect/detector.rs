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
//! for repair is no proof that it was repaired. Counts start afresh when the port is back, because a link that goes up or
//! down spoils a few frames each time, and the frames before say nothing about the cable that is plugged in now. A port
//! that loses its signal again and again is not corrupting: other alarms exist for that.

use std::sync::Arc;
use std::time::Duration;

use units::Moment;

use super::alarm::{Alarm, AlarmEnd};
use super::change::{AbsenceReason, ChangeKind, DetectorVerdict, PortChange, ReadingNote, span};
use super::counters::{CounterAnomalies, CounterStep, PortBaseline, ReadingClock, Tick};
use super::damping::FlapRecord;
use super::limits::Limits;
use super::window::{FrameCounts, LossWindow};
use crate::reading::{CarrierState, Reading};
use bus::message::{Condition, PortState};

#[derive(Clone, Debug)]
enum DetectorState {
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
    clock: ReadingClock,
    counters: PortBaseline,
    window: LossWindow,
    state: DetectorState,
    record: FlapRecord,
    /// Polls with frames since counts started.
    polls: u32,
    /// Polls that brought bad frames, since the window is above the threshold.
    bad_polls: u32,
    absence: Option<AbsenceReason>,
    /// Last oddity, and its time.
    note: Option<(ReadingNote, Moment)>,
    oddities: CounterAnomalies,
    told: Option<PortChange>,
}

impl Detector {
    pub fn new(limits: impl Into<Arc<Limits>>) -> Self {
        let limits = limits.into();
        Self {
            window: LossWindow::new(limits.frames, limits.time),
            limits,
            identity: None,
            clock: ReadingClock::default(),
            counters: PortBaseline::default(),
            state: DetectorState::Unknown,
            record: FlapRecord::default(),
            polls: 0,
            bad_polls: 0,
            absence: None,
            note: None,
            oddities: CounterAnomalies::default(),
            told: None,
        }
    }

    /// Takes over an alarm that was reported before, by a monitor that has ended. It counts as a raise, and ends as any
    /// other. That a port was healthy is not taken over: it takes no time to see that again.
    pub fn adopt(&mut self, said: &PortState) {
        let (DetectorState::Unknown | DetectorState::Healthy) = self.state else { return };
        if said.condition != Condition::Corrupting {
            return;
        }
        let now = self.clock.age();
        let alarm = Alarm::adopted(now, said.evidence.loss, &self.limits);
        self.record.on_raise(now, &self.limits);
        self.state = if said.sticky { DetectorState::Sticky(alarm) } else { DetectorState::Corrupting(alarm) };
        self.told = Some(PortChange {
            kind: if said.sticky { ChangeKind::Stuck } else { ChangeKind::Raised },
            condition: said.condition,
            sticky: said.sticky,
            evidence: said.evidence,
            why: said.why.clone(),
        });
    }

    pub fn on_reading(&mut self, reading: &Reading) -> DetectorVerdict {
        let before = self.clock.age();
        let (passed, mut note) = match self.clock.tick(reading.at) {
            Tick::First => (Duration::ZERO, None),
            Tick::Passed(passed) => (passed, None),
            Tick::SetBack => {
                self.counters.forget();
                (Duration::ZERO, Some(ReadingNote::SetBack))
            }
            Tick::Duplicate => return DetectorVerdict { change: None, note: self.remark(ReadingNote::Duplicate) },
            Tick::Backwards => return DetectorVerdict { change: None, note: self.remark(ReadingNote::Backwards) },
        };
        let mut renewed = None;
        if self.is_other_device(reading.identity) {
            renewed = self.start_over_on_other_device();
            note = Some(ReadingNote::OtherDevice);
        }
        let change = match (reading.carrier, reading.frames) {
            (CarrierState::Up, Some(frames)) => {
                self.absence = None;
                let step = self.counters.step(frames, passed);
                note = oddity(step).or(note);
                self.on_step(step, before)
            }
            (CarrierState::Up, None) => self.down(AbsenceReason::Uncounted),
            (CarrierState::Lost, _) => self.down(AbsenceReason::Lost),
            (CarrierState::Off, _) => self.down(AbsenceReason::Off),
        };
        DetectorVerdict { change: change.or(renewed), note: note.and_then(|note| self.remark(note)) }
    }

    /// The port is no longer there.
    pub(crate) fn on_absence(&mut self) -> Option<PortChange> {
        self.down(AbsenceReason::Gone)
    }

    /// A person says that the port is healthy. Everything starts afresh, so it is raised again if it is not.
    pub fn clear_by_hand(&mut self) -> Option<PortChange> {
        match self.state {
            DetectorState::Unknown | DetectorState::Healthy => None,
            DetectorState::Corrupting(_) | DetectorState::Sticky(_) => {
                self.record = FlapRecord::default();
                self.become_healthy();
                Some(self.tell(PortChange::by_hand()))
            }
        }
    }

    pub fn condition(&self) -> Condition {
        match self.state {
            DetectorState::Unknown => Condition::Unknown,
            DetectorState::Healthy => Condition::Healthy,
            DetectorState::Corrupting(_) | DetectorState::Sticky(_) => Condition::Corrupting,
        }
    }

    pub fn is_sticky(&self) -> bool {
        matches!(self.state, DetectorState::Sticky(_))
    }

    /// Window of the latest frames.
    pub fn window(&self) -> &LossWindow {
        &self.window
    }

    /// The change that was reported last, or taken over.
    pub fn told(&self) -> Option<&PortChange> {
        self.told.as_ref()
    }

    pub fn oddities(&self) -> CounterAnomalies {
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

    /// Short text for a table: the reason why the port is not watched or its alarm does not end, or the last oddity.
    pub fn note(&self) -> String {
        let now = self.clock.age();
        let held = self.record.held(now, &self.limits.damping);
        match (self.absence, &self.state, held) {
            (Some(absence), _, _) => absence.to_string(),
            (None, DetectorState::Sticky(_), _) => "flapped too often; a person has to clear it".to_owned(),
            (None, DetectorState::Corrupting(_), Some(held)) => format!("flapped; held for another {}", span(held)),
            (None, _, _) => match self.note {
                Some((note, at)) if now.since(at) < self.limits.time => note.to_string(),
                _ => String::new(),
            },
        }
    }

    /// False if it is switched off or has no signal.
    pub(super) fn has_signal(&self) -> bool {
        !matches!(self.absence, Some(AbsenceReason::Off | AbsenceReason::Lost))
    }

    fn remark(&mut self, note: ReadingNote) -> Option<ReadingNote> {
        let counter = match note {
            ReadingNote::Wrapped => &mut self.oddities.wraps,
            ReadingNote::StartedOver | ReadingNote::Jumped | ReadingNote::TooLong | ReadingNote::SetBack => {
                &mut self.oddities.resets
            }
            ReadingNote::OtherDevice => &mut self.oddities.devices,
            ReadingNote::Nonsense | ReadingNote::Duplicate | ReadingNote::Backwards => &mut self.oddities.refused,
        };
        *counter += 1;
        self.note = Some((note, self.clock.age()));
        Some(note)
    }

    /// Sources that cannot distinguish devices use an identity of zero, which identifies nothing.
    fn is_other_device(&mut self, identity: u64) -> bool {
        if identity == 0 {
            return false;
        }
        self.identity.replace(identity).is_some_and(|before| before != identity)
    }

    fn start_over_on_other_device(&mut self) -> Option<PortChange> {
        self.counters = PortBaseline::default();
        self.start_counts_over();
        let now = self.clock.age();
        match &mut self.state {
            DetectorState::Unknown => None,
            DetectorState::Healthy => Some(self.become_unknown(ReadingNote::OtherDevice.to_string())),
            DetectorState::Corrupting(alarm) | DetectorState::Sticky(alarm) => {
                alarm.move_to_other_device(now);
                None
            }
        }
    }

    fn start_counts_over(&mut self) {
        self.window.clear();
        (self.polls, self.bad_polls) = (0, 0);
    }

    fn on_step(&mut self, step: CounterStep, before: Moment) -> Option<PortChange> {
        let now = self.clock.age();
        match (step, &mut self.state) {
            (CounterStep::Counted { frames, bad, .. }, _) => {
                self.window.push(before, now, frames, bad);
                self.on_poll(now, frames, bad)
            }
            (
                CounterStep::StartedOver { bad: true },
                DetectorState::Corrupting(alarm) | DetectorState::Sticky(alarm),
            ) => {
                alarm.on_bad(now);
                None
            }
            (
                CounterStep::First
                | CounterStep::StartedOver { .. }
                | CounterStep::Jumped
                | CounterStep::TooLong
                | CounterStep::Nonsense,
                _,
            ) => None,
        }
    }

    fn on_poll(&mut self, now: Moment, frames: u64, bad: u64) -> Option<PortChange> {
        let window = self.window.tally();
        let exceeded = self.limits.exceeded(window);
        self.polls = self.polls.saturating_add(u32::from(frames > 0));
        self.bad_polls = if exceeded { self.bad_polls.saturating_add(u32::from(bad > 0)) } else { 0 };
        let enough = self.limits.raise_after.max(1);
        let proven = bad > 0 && self.bad_polls >= enough;
        let sticky = self.is_sticky();
        let change = match &mut self.state {
            DetectorState::Unknown | DetectorState::Healthy if proven => Some(self.raise(now, window)),
            DetectorState::Unknown if self.polls >= enough && !exceeded => {
                self.state = DetectorState::Healthy;
                Some(PortChange::found_healthy(window))
            }
            DetectorState::Unknown | DetectorState::Healthy => None,
            DetectorState::Corrupting(alarm) | DetectorState::Sticky(alarm) => {
                alarm.on_poll(now, frames, bad, window, &self.limits);
                if proven && alarm.confirm(window) {
                    Some(PortChange::confirmed(window, self.limits.threshold, self.bad_polls, sticky))
                } else if let Some(told) = alarm.worse(window) {
                    Some(PortChange::worse(window, told, sticky))
                } else {
                    self.end(now)
                }
            }
        };
        change.map(|change| self.tell(change))
    }

    fn raise(&mut self, now: Moment, window: FrameCounts) -> PortChange {
        let alarm = Alarm::new(now, window.loss());
        let stuck = self.record.on_raise(now, &self.limits);
        self.state = if stuck { DetectorState::Sticky(alarm) } else { DetectorState::Corrupting(alarm) };
        let flaps = self.limits.flaps.filter(|_| stuck).map(|flaps| (self.record.flaps(), flaps.within));
        PortChange::raised(window, self.limits.threshold, self.bad_polls, flaps)
    }

    fn end(&mut self, now: Moment) -> Option<PortChange> {
        let end = match &self.state {
            DetectorState::Unknown | DetectorState::Healthy | DetectorState::Sticky(_) => None,
            DetectorState::Corrupting(alarm) => alarm.end(now, &self.limits),
        }?;
        if self.record.held(now, &self.limits.damping).is_some() {
            return None;
        }
        self.become_healthy();
        Some(match end {
            AlarmEnd::Sure(recent) => PortChange::cleared(recent, self.limits.threshold, self.limits.clear_after),
            AlarmEnd::Quiet(clean, loss) => PortChange::quiet(clean, loss),
        })
    }

    /// Starts to count anew: the frames that raised an alarm must not raise the next.
    fn become_healthy(&mut self) {
        self.start_counts_over();
        self.state = DetectorState::Healthy;
    }

    fn become_unknown(&mut self, why: String) -> PortChange {
        self.state = DetectorState::Unknown;
        self.tell(PortChange::unknown(why))
    }

    fn down(&mut self, absence: AbsenceReason) -> Option<PortChange> {
        self.absence = Some(absence);
        self.counters.forget();
        self.start_counts_over();
        let now = self.clock.age();
        match &mut self.state {
            DetectorState::Unknown => None,
            DetectorState::Healthy => Some(self.become_unknown(absence.to_string())),
            DetectorState::Corrupting(alarm) | DetectorState::Sticky(alarm) => {
                alarm.start_over(now);
                None
            }
        }
    }

    fn tell(&mut self, change: PortChange) -> PortChange {
        self.told = Some(change.clone());
        change
    }
}

fn oddity(step: CounterStep) -> Option<ReadingNote> {
    match step {
        CounterStep::First | CounterStep::Counted { wrapped: false, .. } => None,
        CounterStep::Counted { wrapped: true, .. } => Some(ReadingNote::Wrapped),
        CounterStep::StartedOver { .. } => Some(ReadingNote::StartedOver),
        CounterStep::Jumped => Some(ReadingNote::Jumped),
        CounterStep::TooLong => Some(ReadingNote::TooLong),
        CounterStep::Nonsense => Some(ReadingNote::Nonsense),
    }
}

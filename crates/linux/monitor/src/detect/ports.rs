//! The detectors of all ports of a host, by name.
//!
//! Names are not devices. A device that shows up under another name takes its detector along; another device under a
//! known name starts over, but an alarm stays until it is confirmed or cleared. A port that is no longer read becomes
//! unknown after a few polls (a few of those in which one would expect it: samples may come less often than polls) and
//! is forgotten, unless there is an alarm to remember: that one stays as it is until the port is back or has been gone
//! for long, since a driver that is reloaded repairs no cable.
//!
//! Invariants: an excluded port has no detector and produces nothing; changes are reported in the order of names; a
//! name under which a port was reported corrupting or healthy is reported unknown before it is forgotten.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::sync::Arc;

use units::Moment;

use super::change::{ChangeKind, PortChange, ReadingNote, span};
use super::detector::Detector;
use super::limits::Limits;
use super::pattern::NamePattern;
use crate::reading::Reading;
use bus::message::{Condition, Evidence, PortState};

#[derive(Debug)]
pub struct MonitoredPorts {
    limits: Arc<Limits>,
    excluded: Vec<NamePattern>,
    ports: BTreeMap<String, PortEntry>,
    polls: u64,
}

/// Polls after which a port that was read only once is forgotten. Nothing was reported of it yet, and the interval of
/// its readings is not known.
const READ_ONCE: u64 = 1 << 16;

#[derive(Debug)]
struct PortEntry {
    detector: Detector,
    /// The last poll that had something new of it, by number and by time; of a port that was never read, the first in
    /// which it was missed.
    poll: u64,
    seen: Option<Moment>,
    /// Number of polls from one reading to the next: more than one if samples come less often than polls. `None` after the
    /// first reading.
    every: Option<u64>,
}

impl PortEntry {
    fn on_read(&mut self, poll: u64, now: Moment) {
        if self.poll < poll {
            self.every = self.seen.map(|_| poll - self.poll);
        }
        (self.poll, self.seen) = (poll, Some(now));
    }

    /// Polls without a word after which it is gone.
    fn patience(&self, gone_after: u32) -> u64 {
        self.every.map_or(READ_ONCE, |every| every.saturating_mul(u64::from(gone_after.max(1))))
    }
}

/// Result of a poll: changes and notes, each with the name of its port, in the order of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollResult {
    pub changes: Vec<(String, PortChange)>,
    pub notes: Vec<(String, ReadingNote)>,
}

/// A port in a table.
#[derive(Clone, Debug, PartialEq)]
pub struct PortRow {
    pub port: String,
    pub condition: Condition,
    pub sticky: bool,
    /// Evidence of the window as it is now.
    pub evidence: Evidence,
    /// Remark on what keeps the port from being watched, or its alarm from ending, or was odd lately; mostly empty.
    pub note: String,
    /// Reason why its condition is what it is; empty if nothing was reported yet.
    pub why: String,
    /// False if it is switched off or has no signal.
    pub has_signal: bool,
}

impl PortRow {
    /// A port that nobody can judge is neither healthy nor corrupting.
    pub(crate) fn is_judged(&self) -> bool {
        self.condition != Condition::Unknown
    }
}

impl MonitoredPorts {
    pub fn new(limits: impl Into<Arc<Limits>>, excluded: Vec<NamePattern>) -> Self {
        Self { limits: limits.into(), excluded, ports: BTreeMap::new(), polls: 0 }
    }

    pub(crate) fn is_excluded(&self, name: &str) -> bool {
        self.excluded.iter().any(|pattern| pattern.matches(name))
    }

    /// Takes over what was reported about the port of this name before; see [`Detector::adopt`]. The port need not be there yet: if it
    /// never comes, the port is reported unknown in the end.
    pub fn adopt(&mut self, name: &str, said: &PortState) {
        if said.condition == Condition::Corrupting && !self.is_excluded(name) {
            let entry = self.entry(name);
            entry.detector.adopt(said);
            // If the port is there, the next poll will show it.
            entry.every = entry.every.or(Some(1));
        }
    }

    /// All readings of one poll; `now` by the clock of the readings. Where nothing could be read, no readings: ports
    /// that nobody sees are unknown.
    pub fn on_poll(&mut self, now: Moment, readings: &[Reading]) -> PollResult {
        self.polls += 1;
        let mut poll = PollResult::default();
        if readings.iter().any(|reading| self.is_strange(reading)) {
            self.follow_renames(readings, &mut poll.changes);
        }
        for reading in readings {
            if !self.ports.contains_key(&reading.port) && self.is_excluded(&reading.port) {
                continue;
            }
            let polls = self.polls;
            let entry = self.entry(&reading.port);
            let verdict = entry.detector.on_reading(reading);
            // A reading that was read before says nothing new: a source that repeats itself counts as silent.
            if !matches!(verdict.note, Some(ReadingNote::Duplicate | ReadingNote::Backwards)) {
                entry.on_read(polls, now);
            }
            poll.changes.extend(verdict.change.map(|change| (reading.port.clone(), change)));
            poll.notes.extend(verdict.note.map(|note| (reading.port.clone(), note)));
        }
        self.miss(now, &mut poll.changes);
        poll.changes.sort_by(|(a, _), (b, _)| a.cmp(b));
        poll.notes.sort_by(|(a, _), (b, _)| a.cmp(b));
        poll
    }

    /// A person says that a port is healthy; `None` if there is no alarm. See [`Detector::clear_by_hand`].
    pub fn clear_by_hand(&mut self, name: &str) -> Option<PortChange> {
        self.ports.get_mut(name)?.detector.clear_by_hand()
    }

    pub fn get(&self, name: &str) -> Option<&Detector> {
        self.ports.get(name).map(|entry| &entry.detector)
    }

    /// Detectors, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Detector)> {
        self.ports.iter().map(|(name, entry)| (name.as_str(), &entry.detector))
    }

    /// Rows of all ports, in the order of names.
    pub fn rows(&self) -> Vec<PortRow> {
        let row = |(name, detector): (&str, &Detector)| PortRow {
            port: name.to_owned(),
            condition: detector.condition(),
            sticky: detector.is_sticky(),
            evidence: detector.window().tally().into(),
            note: detector.note(),
            why: detector.told().map(|told| told.why.clone()).unwrap_or_default(),
            has_signal: detector.has_signal(),
        };
        self.iter().map(row).collect()
    }

    fn entry(&mut self, name: &str) -> &mut PortEntry {
        let new = || PortEntry {
            detector: Detector::new(Arc::clone(&self.limits)),
            poll: self.polls,
            seen: None,
            every: None,
        };
        self.ports.entry(name.to_owned()).or_insert_with(new)
    }

    /// True unless the same device was last read under this name, or nobody wants to know.
    fn is_strange(&self, reading: &Reading) -> bool {
        let known = self.ports.get(&reading.port).and_then(|entry| entry.detector.identity());
        reading.identity != 0 && known != Some(reading.identity) && !self.is_excluded(&reading.port)
    }

    /// A device that was read under one name and now is read under another, and only there, was renamed. Several at
    /// once may have swapped names, so all leave before any arrives.
    fn follow_renames(&mut self, readings: &[Reading], changes: &mut Vec<(String, PortChange)>) {
        let known = only(self.iter().filter_map(|(name, detector)| Some((detector.identity()?, name.to_owned()))));
        let read = only(readings.iter().map(|reading| (reading.identity, reading.port.as_str())));
        let renamed: Vec<(String, String)> = read
            .iter()
            .filter(|(_, new)| !self.is_excluded(new))
            .filter_map(|(identity, new)| Some((known.get(identity)?.clone(), (*new).to_owned())))
            .filter(|(old, new)| old != new)
            .collect();
        let leave = |(old, new)| self.ports.remove(&old).map(|entry| (old, new, entry));
        let moving: Vec<(String, String, PortEntry)> = renamed.iter().cloned().filter_map(leave).collect();
        for (old, new, entry) in moving {
            let mut moved = entry.detector.told().cloned().unwrap_or_else(|| PortChange::unknown("nothing known yet"));
            (moved.kind, moved.why) = (ChangeKind::Moved, format!("was called {old} before: {}", moved.why));
            changes.push((new.clone(), moved));
            self.ports.insert(new, entry);
        }
        for (old, new) in renamed {
            if !self.ports.contains_key(&old) {
                changes.push((old, PortChange::unknown(format!("is called {new} now"))));
            }
        }
    }

    /// Ports that were not in this poll.
    fn miss(&mut self, now: Moment, changes: &mut Vec<(String, PortChange)>) {
        let (polls, limits) = (self.polls, &self.limits);
        self.ports.retain(|name, entry| {
            let (missed, patience) = (polls - entry.poll, entry.patience(limits.gone_after));
            if missed < patience {
                return true;
            }
            if missed == patience {
                changes.extend(entry.detector.on_absence().map(|change| (name.clone(), change)));
            }
            let gone = now.since(*entry.seen.get_or_insert(now));
            if !entry.detector.is_marked() || gone > limits.keep {
                if entry.detector.condition() == Condition::Corrupting {
                    let why = format!("gone for {}; its alarm is forgotten", span(gone));
                    changes.push((name.clone(), PortChange::unknown(why)));
                }
                return false;
            }
            true
        });
    }
}

/// Returns those keys that stand for one thing: a key that stands for two distinguishes nothing.
fn only<T: PartialEq>(pairs: impl Iterator<Item = (u64, T)>) -> BTreeMap<u64, T> {
    let (mut once, mut more) = (BTreeMap::new(), BTreeSet::new());
    for (key, value) in pairs {
        match once.entry(key) {
            btree_map::Entry::Vacant(entry) => {
                entry.insert(value);
            }
            btree_map::Entry::Occupied(entry) if *entry.get() != value => {
                more.insert(key);
            }
            btree_map::Entry::Occupied(_) => {}
        }
    }
    once.retain(|key, _| *key != 0 && !more.contains(key));
    once
}

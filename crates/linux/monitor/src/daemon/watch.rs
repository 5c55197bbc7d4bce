//! From counters to messages: what one poll brings, and what is said of it.
//!
//! It takes the time as arguments and never waits. It numbers the messages; their incarnation is greater than that of
//! any former monitor of this host, once it is known what that one published.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::time::Duration;

use units::Moment;

use super::bounds::TimeBounds;
use crate::act::PortRule;
use crate::config::MonitorConfig;
use crate::detect::{ChangeKind, MonitoredPorts, PortChange, PortRow, ReadingNote};
use crate::journal::{ActionKind, ActionOutcome, JournalEntry};
use crate::reading::{Reading, ReceivedFrames};
use crate::source::{ReadingRecorder, Selection, Source};
use bus::message::{Condition, Message, PortId, PortState};
use bus::outbox::{next_life, withdrawal};

/// Polls after which ports should have been judged.
const JUDGED_AFTER: u64 = 5;
/// Longest time for which samples may stay away, or ten intervals if that is longer.
const SILENCE: Duration = Duration::from_secs(60);
/// Ports that a line about all of them names.
const NAMED: usize = 3;
/// Polls after which a port is reported unknown if a former incarnation reported it and this one knows nothing of it.
const WITHDRAW_AFTER: u64 = 5;

pub struct PortPoller {
    host: String,
    rules: BTreeMap<String, PortRule>,
    /// Filters the readings, because not all sources can leave out ports.
    wanted: Selection,
    sources: Vec<Box<dyn Source>>,
    reads_samples: bool,
    recorder: Option<ReadingRecorder<File>>,
    ports: MonitoredPorts,
    /// Place of the source that speaks for a port: counters of another one would make no sense beside.
    speaker: BTreeMap<String, usize>,
    totals: BTreeMap<String, ReceivedFrames>,
    life: u64,
    number: u64,
    /// The latest that was published of each port in this incarnation.
    said: BTreeMap<String, PortState>,
    /// Ports whose alarm was taken over from a former incarnation.
    adopted: BTreeSet<String>,
    /// States that a former incarnation published and this one has not yet answered; and the poll before which it learnt
    /// them.
    former: BTreeMap<String, PortState>,
    recalled_at: u64,
    polls: u64,
    errors: BTreeMap<String, u64>,
    troubles: Vec<String>,
    remarks: Vec<String>,
    /// Time of the latest sample, or of the first poll; and the longest time for which samples may stay away.
    heard: Option<Moment>,
    silence: Duration,
    is_silent: bool,
    /// Interval in which the current poll began, if it is known and messages should have it.
    time_bounds: Option<TimeBounds>,
}

impl std::fmt::Debug for PortPoller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("host", &self.host).field("polls", &self.polls).finish_non_exhaustive()
    }
}

/// Output of one poll for others and for the journal.
#[derive(Debug, Default)]
pub struct PollOutput {
    pub messages: Vec<Message>,
    pub entries: Vec<JournalEntry>,
}

impl PortPoller {
    /// `life` should grow from one start of the program to the next, as the time of day does.
    pub fn new(config: &MonitorConfig, sources: Vec<Box<dyn Source>>, life: u64) -> io::Result<Self> {
        Ok(Self {
            host: config.host.clone(),
            rules: config.rules.clone(),
            wanted: config.wanted(),
            sources,
            reads_samples: config.replays(),
            recorder: config.record.as_deref().map(ReadingRecorder::create).transpose()?,
            ports: MonitoredPorts::new(config.limits.clone(), config.exclude.clone()),
            speaker: BTreeMap::new(),
            totals: BTreeMap::new(),
            life,
            number: 0,
            said: BTreeMap::new(),
            adopted: BTreeSet::new(),
            former: BTreeMap::new(),
            recalled_at: 0,
            polls: 0,
            errors: BTreeMap::new(),
            troubles: Vec::new(),
            remarks: Vec::new(),
            heard: None,
            silence: SILENCE.max(config.interval * 10),
            is_silent: false,
            time_bounds: None,
        })
    }

    /// Sets the times between which everything found from now on was found.
    pub fn found_between(&mut self, bounds: Option<TimeBounds>) {
        self.time_bounds = bounds;
    }

    /// Takes what a file or the bus still has of a former incarnation. Alarms are taken over, once, and become ours;
    /// the rest is answered when more is known. Returns what is to be published.
    pub fn recall(&mut self, states: Vec<PortState>, at: Moment) -> Vec<Message> {
        // An impossible incarnation is not exceeded: receivers would refuse a greater one, too.
        let possible = states.iter().filter(|state| state.life <= Message::latest_life(at)).cloned();
        let life = next_life(Moment::from_ms(self.life), &possible.collect::<Vec<_>>());
        let overtaken = life > self.life;
        self.life = life;
        self.recalled_at = self.polls;
        let mut messages = Vec::new();
        for state in states {
            let port = self.name_of(&state.id);
            let alarm = state.condition == Condition::Corrupting && !self.ports.is_excluded(&port);
            if alarm && self.adopted.insert(port.clone()) {
                self.ports.adopt(&port, &state);
                messages.push(self.say(&port, at, |said| *said = state));
            } else if alarm {
                // It may have ended since.
                messages.push(self.say(&port, at, |_| ()));
            } else if !self.said.contains_key(&port) {
                self.former.insert(port, state);
            }
        }
        if overtaken {
            let told: BTreeSet<String> = messages.iter().map(|message| self.name_of(message.id())).collect();
            let others: Vec<String> = self.said.keys().filter(|port| !told.contains(*port)).cloned().collect();
            messages.extend(others.iter().map(|port| self.say(port, at, |_| ())));
        }
        messages
    }

    /// Looks at every port once. `now` is by a clock that is not set back, `at` by the wall clock.
    pub fn poll(&mut self, now: Moment, at: Moment) -> PollOutput {
        let mut polled = PollOutput::default();
        let readings = self.read(now);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.record(&readings)
        {
            self.troubles.push(format!("samples cannot be recorded: {error}"));
        }
        self.polls += 1;
        self.listen(now, !readings.is_empty());
        // Samples have a time of their own, and come when they come.
        match readings.iter().map(|reading| reading.at).max() {
            None if self.reads_samples => {}
            latest => self.take(latest.unwrap_or(now), &readings, at, &mut polled),
        }
        self.check_judged();
        polled
    }

    fn take(&mut self, now: Moment, readings: &[Reading], at: Moment, polled: &mut PollOutput) {
        let poll = self.ports.on_poll(now, readings);
        for (port, change) in poll.changes {
            self.follow(&port, change, at, polled);
        }
        for (port, note) in poll.notes.into_iter().filter(|(_, note)| *note != ReadingNote::Wrapped) {
            let id = self.id(&port);
            polled
                .entries
                .push(JournalEntry::new(at, ActionKind::State, ActionOutcome::Seen, note.to_string()).on(id).quiet());
        }
        self.withdraw(at, &mut polled.messages);
    }

    /// Samples that stay away say nothing of any port.
    fn listen(&mut self, now: Moment, came: bool) {
        let heard = *self.heard.get_or_insert(now);
        if came {
            self.heard = Some(now);
        }
        self.is_silent = self.reads_samples && !came && now.since(heard) >= self.silence;
        if self.is_silent {
            let silence = self.silence.as_secs();
            self.troubles.push(format!("no sample has come for {silence} s or more: ports are as they were then"));
        }
    }

    /// A monitor that judges nothing looks like one of a healthy network.
    fn check_judged(&mut self) {
        let rows = self.rows();
        if rows.is_empty() {
            self.troubles.push("no port is watched: no source has one that was asked for".to_owned());
        } else if self.polls >= JUDGED_AFTER && !rows.iter().any(PortRow::is_judged) {
            let reason = |row: &PortRow| match row.note.as_str() {
                "" => format!("{}: too few frames so far", row.port),
                note => format!("{}: {note}", row.port),
            };
            let mut reasons: Vec<String> = rows.iter().take(NAMED).map(reason).collect();
            if let more @ 1.. = rows.len().saturating_sub(NAMED) {
                reasons.push(format!("and {more} more"));
            }
            let ports = if rows.len() == 1 { "the only port" } else { "no port" };
            let cannot = if rows.len() == 1 { "cannot be judged" } else { "can be judged" };
            self.troubles.push(format!("{ports} {cannot} ({})", reasons.join("; ")));
        }
    }

    /// The port of this name: `eth1`, or `leaf3/eth1` of another host.
    fn id(&self, name: &str) -> PortId {
        named_port(&self.host, name)
    }

    fn name_of(&self, id: &PortId) -> String {
        if id.host == self.host { id.port.clone() } else { id.to_string() }
    }

    /// All that was read makes no sense, and nothing else will come: what did not, and what was expected.
    pub fn nonsense(&self) -> Option<String> {
        let of_all: Option<Vec<String>> = self.sources.iter().map(|source| source.nonsense()).collect();
        of_all?.into_iter().next()
    }

    /// Remarks for a person on the way in which ports are counted, once each.
    pub fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// A person says that a port is healthy. The error is one line.
    pub fn clear(&mut self, port: &str, at: Moment) -> Result<PollOutput, String> {
        if self.ports.get(port).is_none() {
            let meant = units::nearest(port, self.ports.iter().map(|(name, _)| name));
            let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            return Err(format!("{port} is not watched{hint}"));
        }
        let change = self.ports.clear_by_hand(port).ok_or(format!("{port} has no alarm"))?;
        let mut polled = PollOutput::default();
        let id = self.id(port);
        polled
            .entries
            .push(JournalEntry::new(at, ActionKind::Clear, ActionOutcome::Done, "asked for by a person").on(id));
        self.follow(port, change, at, &mut polled);
        Ok(polled)
    }

    pub fn rows(&self) -> Vec<PortRow> {
        let mut rows = self.ports.rows();
        // An alarm stays; that a port is healthy is not known any longer.
        for row in rows.iter_mut().filter(|row| self.is_silent && row.condition == Condition::Healthy) {
            (row.condition, row.note) = (Condition::Unknown, "no sample of late".to_owned());
        }
        rows
    }

    /// The counters of each port as they were read last.
    pub fn totals(&self) -> &BTreeMap<String, ReceivedFrames> {
        &self.totals
    }

    pub fn polls(&self) -> u64 {
        self.polls
    }

    /// Number of failures of each source, as a whole or for a port.
    pub fn errors(&self) -> &BTreeMap<String, u64> {
        &self.errors
    }

    /// Troubles of the last poll.
    pub fn troubles(&self) -> &[String] {
        &self.troubles
    }

    /// True if nothing will ever come again from any source.
    pub fn is_over(&self) -> bool {
        self.sources.iter().all(|source| source.is_over())
    }

    fn read(&mut self, now: Moment) -> Vec<Reading> {
        self.troubles.clear();
        let mut all: Vec<(usize, Reading)> = Vec::new();
        for (place, source) in self.sources.iter_mut().enumerate() {
            let (mut readings, mut troubles) = (Vec::new(), Vec::new());
            if let Err(error) = source.read(now, &mut readings, &mut troubles) {
                troubles.push(error.to_string());
            }
            *self.errors.entry(source.name().to_owned()).or_default() += troubles.len() as u64;
            self.troubles.extend(troubles.iter().map(|trouble| format!("{}: {trouble}", source.name())));
            self.remarks.extend(source.remarks().iter().map(|remark| format!("{}: {remark}", source.name())));
            for reading in &mut readings {
                if let Some((_, port)) = reading.port.rsplit_once('/').filter(|(host, _)| *host == self.host) {
                    reading.port = port.to_owned();
                }
            }
            readings.retain(|reading| self.wanted.takes(&reading.port, || true));
            all.extend(readings.into_iter().map(|reading| (place, reading)));
        }
        self.choose_speakers(&all);
        all.retain(|(place, reading)| self.speaker.get(&reading.port) == Some(place));
        let readings: Vec<Reading> = all.into_iter().map(|(_, reading)| reading).collect();
        for reading in &readings {
            if let Some(frames) = reading.frames {
                self.totals.insert(reading.port.clone(), frames);
            }
        }
        readings
    }

    /// Chooses a source for each port: the first that counts its frames, as long as that source knows the port.
    fn choose_speakers(&mut self, all: &[(usize, Reading)]) {
        let mut present: BTreeMap<&str, Vec<(usize, bool)>> = BTreeMap::new();
        for (place, reading) in all {
            present.entry(&reading.port).or_default().push((*place, reading.frames.is_some()));
        }
        for (port, candidates) in present {
            if self.speaker.get(port).is_some_and(|chosen| candidates.iter().any(|(place, _)| place == chosen)) {
                continue;
            }
            let counts = candidates.iter().find(|(_, counts)| *counts).or(candidates.first());
            if let Some((place, _)) = counts {
                self.speaker.insert(port.to_owned(), *place);
            }
        }
    }

    fn follow(&mut self, port: &str, change: PortChange, at: Moment, polled: &mut PollOutput) {
        let PortChange { kind, condition, sticky, evidence, why } = change;
        self.former.remove(port);
        let text = format!("{kind}: {why}");
        let entry = JournalEntry::new(at, ActionKind::State, ActionOutcome::Seen, text).on(self.id(port));
        let entry = JournalEntry { about: entry.port.clone(), evidence: Some(evidence), ..entry };
        polled.entries.push(if matches!(kind, ChangeKind::Healthy | ChangeKind::Unknown) {
            entry.quiet()
        } else {
            entry
        });
        let found = self.time_bounds.clone();
        polled.messages.push(self.say(port, at, |said| {
            if said.condition != condition {
                (said.earliest_ns, said.latest_ns) = found.as_ref().map(|found| found.between).unzip();
                said.time_of = found.and_then(|found| found.of);
            }
            (said.condition, said.sticky, said.evidence, said.why) = (condition, sticky, evidence, why);
        }));
    }

    /// Withdraws ports that a former incarnation reported and this one knows nothing about.
    fn withdraw(&mut self, at: Moment, messages: &mut Vec<Message>) {
        if self.polls < self.recalled_at + WITHDRAW_AFTER {
            return;
        }
        for (port, former) in std::mem::take(&mut self.former) {
            if former.condition == Condition::Unknown {
                continue;
            }
            self.number += 1;
            let message = withdrawal(&former, self.life, self.number, at);
            if let Message::Port(state) = &message {
                self.said.insert(port, state.clone());
            }
            messages.push(message);
        }
    }

    /// The next message about a port: what was said last, with something changed.
    fn say(&mut self, port: &str, at: Moment, change: impl FnOnce(&mut PortState)) -> Message {
        self.number += 1;
        let id = self.id(port);
        let mut state = self.said.remove(port).unwrap_or_else(|| PortState {
            earliest_ns: None,
            latest_ns: None,
            time_of: None,
            id,
            peer: None,
            at,
            life: self.life,
            number: self.number,
            condition: Condition::Unknown,
            sticky: false,
            evidence: Default::default(),
            why: String::new(),
        });
        change(&mut state);
        (state.at, state.life, state.number) = (at, self.life, self.number);
        state.peer = self.rules.get(port).and_then(|rule| rule.peer.clone());
        self.said.insert(port.to_owned(), state.clone());
        Message::Port(state)
    }
}

/// The port of this name, of a host unless it names another.
pub(crate) fn named_port(host: &str, name: &str) -> PortId {
    name.rsplit_once('/').map_or_else(|| PortId::new(host, name), |(host, port)| PortId::new(host, port))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::reading::{CarrierState, Phy};
    use bus::message::Evidence;

    /// Ports whose counters the test moves.
    #[derive(Clone, Debug, Default)]
    struct Desk(Arc<Mutex<BTreeMap<String, Option<ReceivedFrames>>>>);

    impl Desk {
        fn set(&self, port: &str, all: u64, bad: u64) {
            self.0.lock().unwrap().insert(port.to_owned(), Some(ReceivedFrames { all, bad, bits: 64 }));
        }
    }

    impl Source for Desk {
        fn name(&self) -> &str {
            "desk"
        }

        fn read(&mut self, now: Moment, readings: &mut Vec<Reading>, troubles: &mut Vec<String>) -> io::Result<()> {
            for (port, frames) in self.0.lock().unwrap().iter() {
                let port = port.clone();
                if frames.is_none() {
                    troubles.push(format!("{port}: nothing counts its frames"));
                }
                let carrier = CarrierState::Up;
                readings.push(Reading { port, identity: 1, at: now, carrier, frames: *frames, phy: Phy::default() });
            }
            Ok(())
        }
    }

    struct Story {
        watch: PortPoller,
        desk: Desk,
        second: u64,
        frames: u64,
        bad: u64,
    }

    impl Story {
        fn new(text: &str) -> Self {
            let config = crate::config::MonitorOptions::parse(text).unwrap();
            let config = config.check(MonitorConfig::new("leaf1", Path::new("/run/hitless"))).unwrap();
            let desk = Desk::default();
            let watch = PortPoller::new(&config, vec![Box::new(desk.clone())], 100).unwrap();
            Self { watch, desk, second: 0, frames: 0, bad: 0 }
        }

        /// A second in which eth1 receives a million frames, some of them bad.
        fn poll(&mut self, bad: u64) -> Vec<PortState> {
            (self.frames, self.bad) = (self.frames + 1_000_000, self.bad + bad);
            self.desk.set("eth1", self.frames, self.bad);
            self.look()
        }

        fn look(&mut self) -> Vec<PortState> {
            self.second += 1;
            let at = Moment::from_ms(self.second * 1_000);
            states(self.watch.poll(at, at).messages)
        }
    }

    fn states(messages: Vec<Message>) -> Vec<PortState> {
        let port = |message| match message {
            Message::Port(state) => state,
            Message::Order(_) => unreachable!("a watch gives no orders"),
        };
        messages.into_iter().map(port).collect()
    }

    fn former(port: &str, condition: Condition, life: u64) -> PortState {
        PortState {
            earliest_ns: None,
            latest_ns: None,
            time_of: None,
            id: PortId::new("leaf1", port),
            peer: None,
            at: Moment::ZERO,
            life,
            number: 9,
            condition,
            sticky: false,
            evidence: Evidence { frames: 1_000_000, bad: 1_000, loss: 1e-3, low: 9e-4, high: 1.1e-3, seconds: 1.0 },
            why: "as it was".to_owned(),
        }
    }

    #[test]
    fn a_change_becomes_a_numbered_message_that_names_the_peer() {
        let mut story = Story::new("[[port]]\nname = \"eth1\"\npeer = \"leaf3/eth7\"");
        assert!(story.poll(0).is_empty());
        assert!(story.poll(0).is_empty());
        assert_eq!(story.poll(0)[0].condition, Condition::Healthy);
        assert!(story.poll(50).is_empty());
        let raised = story.poll(50);
        assert_eq!((raised[0].condition, raised[0].life, raised[0].number), (Condition::Corrupting, 100, 2));
        assert_eq!(raised[0].peer, Some(PortId::new("leaf3", "eth7")));
    }

    #[test]
    fn a_message_says_when_its_condition_was_found_and_keeps_saying_so() {
        let bounds = |from| Some(TimeBounds { between: (from, from + 5), of: Some("clock 7".to_owned()) });
        let mut story = Story::new("");
        for second in 1..=4 {
            story.watch.found_between(bounds(second * 1_000));
            story.poll(if second == 4 { 50 } else { 0 });
        }
        story.watch.found_between(bounds(5_000));
        let raised = story.poll(50);
        assert_eq!((raised[0].condition, raised[0].found_between()), (Condition::Corrupting, Some((5_000, 5_005))));
        assert_eq!(raised[0].time_of.as_deref(), Some("clock 7"));
        story.watch.found_between(bounds(6_000));
        let again = states(story.watch.recall(vec![former("eth1", Condition::Corrupting, 7)], Moment::ZERO));
        assert_eq!(again[0].found_between(), None, "as a former life said it, which did not know");
        story.watch.found_between(None);
        let healthy =
            (0..2_000).find_map(|_| story.poll(0).into_iter().find(|state| state.condition == Condition::Healthy));
        assert_eq!(healthy.map(|state| state.found_between()), Some(None));
    }

    #[test]
    fn an_alarm_of_a_former_life_is_ours_from_the_first_moment() {
        let mut story = Story::new("quiet = \"20s\"");
        let owned = states(story.watch.recall(vec![former("eth1", Condition::Corrupting, 7)], Moment::ZERO));
        assert_eq!(
            (owned[0].condition, owned[0].life, owned[0].why.as_str()),
            (Condition::Corrupting, 100, "as it was")
        );
        let clears =
            (0..60).find_map(|_| story.poll(0).into_iter().find(|state| state.condition == Condition::Healthy));
        assert!(clears.is_some(), "a clean wire ends it");
    }

    #[test]
    fn an_alarm_that_ended_in_this_life_is_not_taken_over_again_from_a_bus_that_was_away() {
        let mut story = Story::new("quiet = \"20s\"");
        story.watch.recall(vec![former("eth1", Condition::Corrupting, 7)], Moment::ZERO);
        let clears = (0..60).any(|_| story.poll(0).iter().any(|state| state.condition == Condition::Healthy));
        assert!(clears);
        let again = states(story.watch.recall(vec![former("eth1", Condition::Corrupting, 7)], Moment::ZERO));
        assert_eq!((again[0].condition, again[0].number), (Condition::Healthy, 3));
        assert_eq!(story.watch.rows()[0].condition, Condition::Healthy);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_make_us_older_than_our_former_life() {
        let mut story = Story::new("");
        (0..3).for_each(|_| drop(story.poll(0)));
        let again = states(story.watch.recall(vec![former("eth7", Condition::Healthy, 5_000)], Moment::ZERO));
        assert_eq!((again.len(), again[0].id.port.as_str(), again[0].life), (1, "eth1", 5_001));
    }

    #[test]
    fn a_port_that_is_no_more_is_taken_back_and_one_that_is_there_is_not() {
        let mut story = Story::new("exclude = \"eth9\"");
        let left = [("eth1", Condition::Healthy), ("eth7", Condition::Healthy), ("eth8", Condition::Unknown)];
        let mut left: Vec<PortState> = left.map(|(port, condition)| former(port, condition, 7)).into();
        left.push(former("eth9", Condition::Corrupting, 7));
        assert!(story.watch.recall(left, Moment::ZERO).is_empty());
        let told: Vec<PortState> = (0..8).flat_map(|_| story.poll(0)).collect();
        let told: Vec<(&str, Condition)> = told.iter().map(|state| (state.id.port.as_str(), state.condition)).collect();
        let unknown = Condition::Unknown;
        assert_eq!(told, [("eth1", Condition::Healthy), ("eth7", unknown), ("eth9", unknown)]);
    }

    #[test]
    fn where_two_sources_know_a_port_the_one_that_counts_speaks_and_goes_on_to() {
        let config = MonitorConfig::new("leaf1", Path::new("/run/hitless"));
        let (blind, seeing, other) = (Desk::default(), Desk::default(), Desk::default());
        blind.0.lock().unwrap().insert("eth1".to_owned(), None);
        seeing.set("eth1", 10, 0);
        other.set("eth1", 1_000_000, 999);
        let sources: Vec<Box<dyn Source>> = vec![Box::new(blind), Box::new(seeing.clone()), Box::new(other)];
        let mut watch = PortPoller::new(&config, sources, 1).unwrap();
        watch.poll(Moment::from_ms(1), Moment::ZERO);
        seeing.set("eth1", 20, 0);
        watch.poll(Moment::from_ms(1_001), Moment::ZERO);
        assert_eq!(watch.totals()["eth1"].all, 20);
        assert_eq!((watch.errors()["desk"], watch.troubles().len()), (2, 1));
    }

    #[test]
    fn a_person_clears_what_has_an_alarm_and_hears_of_what_has_none() {
        let mut story = Story::new("");
        story.poll(0);
        (0..2).for_each(|_| drop(story.poll(100)));
        let cleared = states(story.watch.clear("eth1", Moment::ZERO).unwrap().messages);
        assert_eq!(cleared[0].condition, Condition::Healthy);
        assert_eq!(story.watch.clear("eth1", Moment::ZERO).unwrap_err(), "eth1 has no alarm");
        assert_eq!(story.watch.clear("eht1", Moment::ZERO).unwrap_err(), "eht1 is not watched; did you mean eth1?");
    }

    #[test]
    fn a_file_of_samples_that_says_nothing_for_a_while_loses_no_port() {
        let mut story = Story::new("source = \"./samples\"");
        (0..3).for_each(|_| drop(story.poll(0)));
        let frames = std::mem::take(&mut *story.desk.0.lock().unwrap());
        assert!((0..10).all(|_| story.look().is_empty()));
        *story.desk.0.lock().unwrap() = frames;
        assert_eq!(story.watch.rows()[0].condition, Condition::Healthy);
    }

    #[test]
    fn watching_nothing_is_told_with_every_read_also_where_samples_are_read() {
        for text in ["", "source = \"./samples\""] {
            let mut story = Story::new(text);
            for _ in 0..3 {
                story.look();
                assert!(story.watch.troubles()[0].contains("no port is watched"), "{text}");
            }
        }
    }

    #[test]
    fn a_monitor_that_can_judge_no_port_says_so_for_as_long_as_it_lasts() {
        let mut story = Story::new("");
        story.desk.set("eth1", 0, 0);
        for nth in 1..10 {
            story.look();
            let said = story.watch.troubles();
            assert_eq!(said.len(), usize::from(nth >= JUDGED_AFTER), "{said:?}");
            assert!(said.iter().all(|line| line == "the only port cannot be judged (eth1: too few frames so far)"));
        }
        (0..3).for_each(|_| drop(story.poll(0)));
        assert_eq!((story.watch.troubles().len(), story.watch.rows()[0].is_judged()), (0, true));
    }

    #[test]
    fn samples_that_stay_away_leave_no_port_judged_healthy() {
        let mut story = Story::new("source = \"./samples\"");
        (0..3).for_each(|_| drop(story.poll(0)));
        story.desk.0.lock().unwrap().clear();
        (0..59).for_each(|_| drop(story.look()));
        assert!(story.watch.troubles().is_empty() && story.watch.rows()[0].is_judged());
        (0..3).for_each(|_| drop(story.look()));
        assert!(story.watch.troubles()[0].contains("no sample has come for 60 s"), "{:?}", story.watch.troubles());
        assert!(!story.watch.rows()[0].is_judged());
        story.poll(0);
        assert!(story.watch.troubles().is_empty() && story.watch.rows()[0].is_judged());
    }

    #[test]
    fn ports_of_other_hosts_are_published_under_their_own() {
        let mut story = Story::new("source = \"./samples\"");
        let mut said = Vec::new();
        for second in 1..=4 {
            for port in ["leaf3/eth7", "leaf1/eth1", "eth2"] {
                story.desk.set(port, second * 1_000_000, 0);
            }
            said.extend(story.look());
        }
        let ids: Vec<String> = said.iter().map(|state| state.id.to_string()).collect();
        assert_eq!(ids, ["leaf1/eth1", "leaf1/eth2", "leaf3/eth7"]);
        let names: Vec<String> = story.watch.rows().into_iter().map(|row| row.port).collect();
        assert_eq!(names, ["eth1", "eth2", "leaf3/eth7"], "its own host need not be named");
        let alarm = PortState { id: PortId::new("leaf3", "eth7"), ..former("eth7", Condition::Corrupting, 7) };
        let taken = states(story.watch.recall(vec![alarm], Moment::ZERO));
        assert_eq!((taken[0].id.to_string(), taken.len()), ("leaf3/eth7".to_owned(), 1));
        assert_eq!(story.watch.rows()[2].condition, Condition::Corrupting);
        assert!(story.watch.clear("leaf3/eth7", Moment::ZERO).is_ok());
    }
}

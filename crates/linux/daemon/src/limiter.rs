//! Limits of reports about events that frames, or a machine that is busy, can cause any number of times.
//!
//! Each topic is limited on its own: the first report is made at once, later ones once a minute, with the number of those in between.
//! A few more reports are made of changes of a state, and the state at the end is always reported, though it may take a
//! minute.

use units::{Span, Time};

/// Time between two reports of a topic.
const EVERY: Span = Span::from_ms(60_000);
/// Changes of a state within that time, of each topic: an operator may switch something off and on.
const CHANGES: u32 = 3;

/// Topic of a report. Each topic is limited on its own.
pub trait ReportTopic: Copy {
    /// Its number among all topics.
    fn index(self) -> usize;

    /// The number of the state that it is a change of, if it is one. Only the latest change of each state is kept to be
    /// reported later.
    fn state(self) -> Option<usize>;

    /// Name of the things that are counted.
    fn unit(self) -> &'static str;
}

fn most(topic: impl ReportTopic) -> u32 {
    if topic.state().is_some() { CHANGES } else { 1 }
}

/// Decides which reports are made, and which are only counted.
#[derive(Debug)]
pub struct LogLimiter<T> {
    topics: Vec<WithheldReports<T>>,
}

#[derive(Clone, Debug)]
struct WithheldReports<T> {
    /// Time of the first of those counted here.
    since: Option<Time>,
    made: u32,
    /// Reports withheld since the last one made.
    withheld: u64,
    /// The latest of the withheld reports.
    latest: Option<(T, String)>,
}

impl<T> WithheldReports<T> {
    const NONE: Self = Self { since: None, made: 0, withheld: 0, latest: None };
}

impl<T: ReportTopic> WithheldReports<T> {
    fn is_over(&self, now: Time) -> bool {
        self.since.is_none_or(|since| now.since(since) >= EVERY)
    }

    /// Begins to count again.
    fn begin(&mut self, now: Time) {
        (self.since, self.made) = (Some(now), 0);
    }

    fn make(&mut self, topic: T, line: &str, times: u64) -> String {
        self.made += 1;
        self.latest = None;
        match std::mem::take(&mut self.withheld) {
            0 => line.to_owned(),
            1 if times == 0 => line.to_owned(),
            before => format!("{line} ({} {} since the last report)", before + times, topic.unit()),
        }
    }
}

impl<T> Default for LogLimiter<T> {
    fn default() -> Self {
        Self { topics: Vec::new() }
    }
}

impl<T: ReportTopic> LogLimiter<T> {
    /// The line to write now, if one is to be; `times` is how often it happened.
    pub fn admit(&mut self, now: Time, topic: T, times: u64, line: &str) -> Option<String> {
        if let Some(state) = topic.state() {
            // Another state follows: that one is no longer the latest.
            let of_it = |reports: &&mut WithheldReports<T>| {
                reports.latest.as_ref().is_some_and(|(of, _)| of.state() == Some(state))
            };
            self.topics.iter_mut().filter(of_it).for_each(|reports| reports.latest = None);
        }
        if self.topics.len() <= topic.index() {
            self.topics.resize(topic.index() + 1, WithheldReports::NONE);
        }
        let reports = &mut self.topics[topic.index()];
        if reports.is_over(now) {
            reports.begin(now);
        }
        if reports.made < most(topic) {
            return Some(reports.make(topic, line, times));
        }
        reports.withheld += times;
        reports.latest = Some((topic, line.to_owned()));
        None
    }

    /// A line that was withheld and is to be written now.
    pub fn due(&mut self, now: Time) -> Option<String> {
        let reports = self.topics.iter_mut().find(|reports| reports.latest.is_some() && reports.is_over(now))?;
        let (topic, line) = reports.latest.take()?;
        reports.begin(now);
        Some(reports.make(topic, &line, 0))
    }
}

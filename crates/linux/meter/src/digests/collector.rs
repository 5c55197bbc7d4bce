//! Compares the reports of meters, segment by segment: LossRadar's collector and analyzer, li-thesis §5.3, §5.5.
//!
//! ```text
//!   report ──▶ Watched (a segment) ──▶ radar::segment ──▶ losses, and those that came late ──▶ lines
//!   reply ────────▶ `recall` ──▶ times, places, neighbours ──▶ radar::rule ──▶ causes ──▶ lines, Summary at the end
//! ```
//!
//! A digest shows the batch of a loss. When in it, and among which packets, its meters are asked; no time is made up. Without
//! evidence the cause is unknown.
//!
//! All segments together take the memory that they are given. When it is full the segment that holds most is forgotten, which is
//! counted and reported: the sender whose reports take most is the first to lose them, and others are not affected. A
//! segment whose ends all report is not forgotten for a new one either, and an end that reports is not taken over by
//! another incarnation.
//!
//! Invariants: no report, from any sender, makes this panic, stall or grow beyond its memory; what is unsure is
//! reported as unsure.

mod events;
mod evidence;
mod questions;
mod recall;
pub mod text;
mod watched;

use std::collections::BTreeMap;
use units::Timestamp;

use bus::collectors::LatestFinding;
use radar::causes::CauseCounts as Causes;
use radar::digest::PackedDigest;
use radar::packet::Flow;
use radar::rule::{CauseRule, EvidenceRule};
use radar::segment::{MeterReport, MoreReply, ReportError, ReportMarks};

use events::UnlistedEvents;
pub use events::{CollectorEvent, JudgedCause, LostPacket};
use questions::{OpenQuestions, QuestionKind};
use watched::CollectedSegment;

use super::question::MeterQuestion;
use super::queue::ReceivedReport;
use super::run_length;

/// Segments at a time.
const MOST_SEGMENTS: usize = 1_024;
/// Batches of another length are nobody's.
const LENGTHS: std::ops::RangeInclusive<u64> = 1_000_000..=60_000_000_000;
/// A report that is further from now was made by a clock that is wrong.
const FURTHEST: u64 = 60_000_000_000;
/// An end that has not reported for so long is silent.
const SILENCE: u64 = 1_000_000_000;
/// Meters that are expected are heard after so long, or something is wrong.
const UNHEARD: u64 = 5_000_000_000;
/// Cells that a meter may have: what is kept of those that wait is bounded.
const MOST_CELLS: usize = 8_192;

/// Result for a segment's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectorSummary {
    pub segment: String,
    pub ends: Vec<EndSummary>,
    /// Time up to which everything has been compared.
    pub until: Timestamp,
    /// Packets that went in, by any end.
    pub packets: u64,
    pub lost: u64,
    /// Lost, but nobody knows what.
    pub unnamed: u64,
    /// Missing, but perhaps only to a meter.
    pub unsure: u64,
    /// Came out and were not seen to go in.
    pub extra: u64,
    /// Losses that were reported too early: the packets arrived after all.
    pub late: u64,
    /// Batches that could not be compared.
    pub skipped: u64,
    pub causes: Causes,
    /// Flows with losses, those with most first.
    pub flows: Vec<(Flow, Causes)>,
    /// Losses of flows beyond those that are kept apart.
    pub other_flows: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndSummary {
    pub end: String,
    pub reports: u64,
    /// Packets that its meter could not look at.
    pub missed: u64,
    /// Reports that did not come.
    pub missing: u64,
    pub silent: bool,
}

#[derive(Debug)]
pub struct Collector {
    /// Ends of each segment.
    ends: usize,
    /// Batches that a packet may take.
    patience: u64,
    rule: CauseRule,
    /// Bytes that all segments may take together.
    memory: usize,
    segments: BTreeMap<String, CollectedSegment>,
    /// Bytes that they take.
    held: usize,
    /// Segments that were forgotten because they took too much, and the largest of those since the last look.
    dropped: u64,
    largest: Option<(usize, String)>,
    /// Reports that could not be used, since the last look.
    refused: u64,
    /// Reason why the last report was refused.
    refusal: Option<String>,
    /// The first look, and that nobody was heard by then, which is told once.
    began: Option<Timestamp>,
    told_alone: bool,
    unlisted: UnlistedEvents,
    questions: OpenQuestions,
}

impl Collector {
    /// `memory` is in bytes, for what all segments hold together.
    pub fn new(ends: usize, patience: u64, memory: usize) -> Self {
        Self {
            ends,
            patience,
            rule: CauseRule::Evidence(EvidenceRule::default()),
            memory,
            segments: BTreeMap::new(),
            held: 0,
            dropped: 0,
            largest: None,
            refused: 0,
            refusal: None,
            began: None,
            told_alone: false,
            unlisted: UnlistedEvents::default(),
            questions: OpenQuestions::default(),
        }
    }

    /// Judges losses by this rule instead of the usual one.
    #[must_use]
    pub fn with_rule(self, rule: CauseRule) -> Self {
        Self { rule, ..self }
    }

    /// Bytes that all segments take, about: never more than was given.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Segments that were forgotten because they held most when the memory was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A report or a reply has come, at `now`.
    pub fn on_received(&mut self, now: Timestamp, received: &ReceivedReport) -> Vec<CollectorEvent> {
        match received.question {
            Some(question) => self.on_reply(now, received.life, question, &received.report),
            None => {
                let marks = ReportMarks::from_bits(received.flags);
                self.on_marked(now, received.missing, marks, &received.report)
            }
        }
    }

    /// A report has come, at `now`, and `missing` before it have not.
    pub fn on_report(&mut self, now: Timestamp, missing: u64, bytes: &[u8]) -> Vec<CollectorEvent> {
        self.on_marked(now, missing, ReportMarks::default(), bytes)
    }

    /// Questions to meters since the last call.
    pub fn questions(&mut self) -> Vec<MeterQuestion> {
        self.questions.take()
    }

    /// A meter replies. What nobody asked, or it in particular was not asked, is ignored.
    fn on_reply(&mut self, now: Timestamp, life: u64, number: u32, body: &[u8]) -> Vec<CollectorEvent> {
        self.refusal = None;
        let Some(open) = self.questions.answered(life, number) else { return Vec::new() };
        match open.kind {
            QuestionKind::More { batch } => {
                // What cannot be read is as good as gone.
                let reply = run_length::decode(body).and_then(|body| MoreReply::parse(&body).ok());
                let reply = reply.unwrap_or(MoreReply::Gone);
                self.watch(&open.segment, |watched, unlisted| watched.on_more(now, &open.end, batch, reply, unlisted))
            }
            QuestionKind::Recall { token } => {
                self.watch(&open.segment, |watched, unlisted| watched.on_recalled(now, token, body, unlisted))
            }
        }
    }

    /// Lets a segment take something in, and counts its memory and its questions.
    fn watch<T: Default>(
        &mut self,
        name: &str,
        then: impl FnOnce(&mut CollectedSegment, &mut UnlistedEvents) -> T,
    ) -> T {
        let Some(watched) = self.segments.get_mut(name) else { return T::default() };
        let outcome = then(watched, &mut self.unlisted);
        watched.ask(&mut self.questions);
        let bytes = watched.bytes();
        let before = std::mem::replace(&mut watched.accounted, bytes);
        self.held = self.held + watched.accounted - before;
        self.stay_within_memory();
        outcome
    }

    fn on_marked(&mut self, now: Timestamp, missing: u64, marks: ReportMarks, bytes: &[u8]) -> Vec<CollectorEvent> {
        self.refusal = None;
        let report = match MeterReport::packed(bytes) {
            Ok(report) => report,
            Err(error) => return self.refuse(&error_text(error)),
        };
        if let Err(why) = check(now, &report) {
            return self.refuse(&format!("segment {}, end {}: {why}", report.segment, report.end));
        }
        let name = report.segment.clone();
        if !self.segments.contains_key(&name) && !self.make_room(now) {
            return self.refuse(&format!("segment {name}: {MOST_SEGMENTS} others are watched already"));
        }
        let new = || CollectedSegment::new(name.clone(), self.ends, self.patience, self.rule);
        self.segments.entry(name.clone()).or_insert_with(new);
        let outcome =
            self.watch(&name, |watched, unlisted| Some(watched.on_report(now, missing, marks, report, unlisted)));
        match outcome {
            Some(Err(why)) => self.refuse(&why),
            Some(Ok(news)) => news,
            None => Vec::new(),
        }
    }

    /// Reason why the last report was refused; `None` if it was taken.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Returns the events since the last look: silent ends, and reports that could not be compared; to be called now and
    /// then.
    pub fn look(&mut self, now: Timestamp) -> Vec<CollectorEvent> {
        self.questions.forget_old(now);
        let unlisted = &mut self.unlisted;
        let mut news: Vec<CollectorEvent> =
            self.segments.values_mut().flat_map(|watched| watched.look(now, unlisted)).collect();
        if let Some((bytes, segment)) = self.largest.take() {
            let (kb, memory, dropped) = (bytes / 1_000, self.memory / 1_000_000, self.dropped);
            news.push(CollectorEvent::Trouble(format!(
                "the memory for segments ({memory} MB) is full: the segments that held most were forgotten, {dropped} so far, \
                 the largest of them {segment} with {kb} kB; give more --memory, or a --key if these are not your meters"
            )));
        }
        if let more @ 1.. = std::mem::take(&mut self.refused).saturating_sub(1) {
            news.push(CollectorEvent::Trouble(format!("{more} more reports could not be used")));
        }
        news.extend(self.unlisted.take());
        news.extend(self.unheard(now).map(CollectorEvent::Trouble));
        news
    }

    /// Meters that are expected and were not heard: none at all, or not all ends of a segment.
    fn unheard(&mut self, now: Timestamp) -> Option<String> {
        let seconds = UNHEARD / 1_000_000_000;
        let began = *self.began.get_or_insert(now);
        if self.segments.is_empty() && now.since(began) >= UNHEARD && !std::mem::replace(&mut self.told_alone, true) {
            return Some(format!(
                "no meter has reported for {seconds} s: is `hitless radar meter` running, does its --to lead here, has it our --key?"
            ));
        }
        let lacking: Vec<String> = self.segments.values_mut().filter_map(|watched| watched.lacks_an_end(now)).collect();
        let first = lacking.first()?;
        let more =
            if lacking.len() > 1 { format!(" (and {} more segments)", lacking.len() - 1) } else { String::new() };
        Some(format!("{first}{more}"))
    }

    /// Lines and causes that waited for more, before the end.
    pub fn end(&mut self) -> Vec<CollectorEvent> {
        let unlisted = &mut self.unlisted;
        self.segments.values_mut().flat_map(|watched| watched.end(unlisted)).collect()
    }

    /// Latest findings of all segments, as `collector` publishes them.
    pub fn findings(&self, now: Timestamp, collector: &str) -> Vec<LatestFinding> {
        let is_here = |watched: &&CollectedSegment| !watched.is_silent(now);
        self.segments.values().filter(is_here).map(|watched| watched.latest(now, collector)).collect()
    }

    /// Nanoseconds of the longest batch that any meter has.
    pub fn longest_batch(&self) -> u64 {
        self.segments.values().map(CollectedSegment::length).max().unwrap_or(0)
    }

    /// Ends the input and returns the summaries.
    pub fn finish(self) -> Vec<CollectorSummary> {
        self.segments.into_values().map(CollectedSegment::finish).collect()
    }

    /// Room for one more segment: one of which not all ends report any longer, or ever did, may go for it.
    fn make_room(&mut self, now: Timestamp) -> bool {
        if self.segments.len() < MOST_SEGMENTS {
            return true;
        }
        let least = self.segments.iter().min_by_key(|(_, watched)| (watched.is_complete(), watched.heard()));
        let Some((name, _)) = least.filter(|(_, watched)| !watched.is_complete() || watched.is_silent(now)) else {
            return false;
        };
        let name = name.clone();
        self.forget(&name);
        true
    }

    fn stay_within_memory(&mut self) {
        while self.held > self.memory {
            let Some((name, most)) = self.segments.iter().max_by_key(|(_, watched)| watched.accounted) else { return };
            let found = (most.accounted, name.clone());
            self.forget(&found.1);
            self.dropped += 1;
            self.largest = self.largest.take().max(Some(found));
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some(watched) = self.segments.remove(name) {
            self.held -= watched.accounted;
        }
    }

    /// Reported once between two looks: a sender of nonsense sends a hundred a second of it.
    fn refuse(&mut self, why: &str) -> Vec<CollectorEvent> {
        self.refused += 1;
        self.refusal = Some(why.to_owned());
        if self.refused == 1 { vec![CollectorEvent::Trouble(why.to_owned())] } else { Vec::new() }
    }
}

fn error_text(error: ReportError) -> String {
    format!("a report that cannot be used: {error}")
}

fn check(now: Timestamp, report: &MeterReport<PackedDigest>) -> Result<(), String> {
    if !LENGTHS.contains(&report.length) {
        return Err(format!("batches of {} ns; expected 1 ms to 60 s", report.length));
    }
    let cells = report.out.shape().cells().max(report.came.shape().cells());
    if cells > MOST_CELLS {
        return Err(format!("digests of {cells} cells; expected {MOST_CELLS} at most"));
    }
    let at = report.batch.checked_mul(report.length).ok_or("a batch after the end of time")?;
    let off = at.abs_diff(now.0);
    if off > FURTHEST + report.length {
        let seconds = off / 1_000_000_000;
        return Err(format!("its clock is {seconds} s away from the collector's: set both by NTP or PTP"));
    }
    Ok(())
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

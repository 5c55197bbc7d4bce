//! One segment under watch.

use std::collections::BTreeMap;
use units::Timestamp;

use bus::collectors::LatestFinding;
use radar::causes::CauseCounts as Causes;
use radar::digest::PackedDigest;
use radar::packet::Flow;
use radar::rule::CauseRule;
use radar::segment::{MeterReport, MeteredSegment, MoreReply, MoreWanted, ReportMarks, SegmentFinding};
use radar::signature::Fields;

use super::super::kept;
use super::events::UnlistedEvents;
use super::questions::{OpenQuestion, OpenQuestions, QuestionKind};
use super::recall::{RecallQuestion, SegmentRecall};
use super::{CollectorEvent, CollectorSummary, EndSummary, SILENCE, UNHEARD};

#[derive(Debug)]
pub(crate) struct CollectedSegment {
    /// Part of the collector's memory that is counted for this segment.
    pub accounted: usize,
    pub(super) name: String,
    pub(super) segment: MeteredSegment,
    /// Losses whose evidence is not complete, or whose cause is not known yet.
    pub(super) recall: SegmentRecall,
    pub(super) ends: BTreeMap<String, CollectorEnd>,
    /// Time of its first report.
    began: Option<Timestamp>,
    told_lacking: bool,
    expected: usize,
    pub(super) patience: u64,
    /// Nanoseconds of a batch, once one has been reported.
    pub(super) length: u64,
    /// Time up to which everything has been compared.
    pub(super) until: Timestamp,
    packets: u64,
    total: SegmentFinding,
    /// The part of `total` that has been reported.
    told: SegmentFinding,
    pub(super) lost: u64,
    /// Called lost too early, and how many of these have been reported.
    pub(super) late: u64,
    told_late: u64,
    pub(super) causes: Causes,
    pub(super) flows: BTreeMap<Flow, Causes>,
    pub(super) other_flows: u64,
}

#[derive(Debug, Default)]
pub(super) struct CollectorEnd {
    life: u64,
    heard: Timestamp,
    /// Known fields of packets that enter by it.
    pub fields: Fields,
    /// Its reports go to another collector now.
    has_left: bool,
    summary: EndSummary,
}

/// Facts about a report that was taken.
struct ReportReceipt {
    now: Timestamp,
    missing: u64,
    missed: u64,
    life: u64,
    fields: Fields,
}

impl CollectedSegment {
    pub(crate) fn new(name: String, expected: usize, patience: u64, rule: CauseRule) -> Self {
        Self {
            accounted: 0,
            name,
            segment: MeteredSegment::new(expected, patience),
            recall: SegmentRecall::new(rule),
            ends: BTreeMap::new(),
            began: None,
            told_lacking: false,
            expected,
            patience,
            length: 0,
            until: Timestamp::default(),
            packets: 0,
            total: SegmentFinding::default(),
            told: SegmentFinding::default(),
            lost: 0,
            late: 0,
            told_late: 0,
            causes: Causes::default(),
            flows: BTreeMap::new(),
            other_flows: 0,
        }
    }

    /// Approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of_end =
            |(name, _): (&String, &CollectorEnd)| 2 * (size_of::<CollectorEnd>() + size_of::<String>() + name.len());
        let ends: usize = self.ends.iter().map(of_end).sum();
        let flows = 2 * self.flows.len() * size_of::<(Flow, Causes)>();
        2 * (size_of::<Self>() + self.name.len()) + self.segment.bytes() + self.recall.bytes() + ends + flows
    }

    /// It has two ends, so each way is compared for itself.
    pub(super) fn is_link(&self) -> bool {
        self.expected == 2
    }

    /// Every end has reported.
    pub(crate) fn is_complete(&self) -> bool {
        self.ends.len() == self.expected
    }

    /// One line, once, if an end has not reported for long while others have.
    pub(crate) fn lacks_an_end(&mut self, now: Timestamp) -> Option<String> {
        let is_late = self.began.is_some_and(|began| now.since(began) >= UNHEARD);
        if !is_late || self.is_complete() || std::mem::replace(&mut self.told_lacking, true) {
            return None;
        }
        let (heard, expected) = (self.ends.len(), self.expected);
        let names: Vec<&str> = self.ends.keys().map(String::as_str).collect();
        Some(format!(
            "segment {}: only {heard} of {expected} ends report ({}): nothing is compared; the others need the same --segment \
             and names of their own",
            self.name,
            names.join(", ")
        ))
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn latest(&self, now: Timestamp, collector: &str) -> LatestFinding {
        LatestFinding {
            segment: self.name.clone(),
            collector: collector.to_owned(),
            at_ms: now.0 / 1_000_000,
            until_ns: self.until.0,
            packets: self.packets,
            skipped: self.total.skipped,
            late: self.late,
            extra: self.total.extra,
            unsure: self.total.unsure,
            unnamed: self.total.unnamed,
            lost: self.lost,
        }
    }

    /// Time of its latest report.
    pub(crate) fn heard(&self) -> Timestamp {
        self.ends.values().map(|end| end.heard).max().unwrap_or_default()
    }

    /// True if no end has reported for long.
    pub(crate) fn is_silent(&self, now: Timestamp) -> bool {
        now.since(self.heard()) > self.silence()
    }

    fn silence(&self) -> u64 {
        SILENCE.max(3 * self.length)
    }

    pub(crate) fn on_report(
        &mut self,
        now: Timestamp,
        missing: u64,
        marks: ReportMarks,
        report: MeterReport<PackedDigest>,
        unlisted: &mut UnlistedEvents,
    ) -> Result<Vec<CollectorEvent>, String> {
        self.check_life(now, &report)?;
        self.began.get_or_insert(now);
        let (length, packets) = (report.length, report.out.packets());
        let heard =
            ReportReceipt { now, missing, missed: report.missed, life: report.life, fields: report.out.shape().fields };
        let (end, batch, facts) = (report.end.clone(), report.batch, report.facts.clone());
        let finding = self.segment.on_marked(report, marks);
        let finding = finding.map_err(|refused| format!("segment {}: {refused}", self.name))?;
        let nth = self.segment.ends().position(|(name, _)| name == end).unwrap_or(0);
        let mut news = self.on_heard(end.clone(), &heard, unlisted);
        if let Some(end) = self.ends.get_mut(&end) {
            end.has_left = marks.leaves;
        }
        self.length = length;
        let packets = packets.max(0).unsigned_abs();
        self.packets = self.packets.saturating_add(packets);
        self.recall.on_batch(self.is_link().then_some(nth), packets);
        self.on_rounds(nth, batch, &facts.rounds);
        news.extend(self.on_finding(&finding, now, unlisted));
        Ok(news)
    }

    /// An end has sent more of a batch.
    pub(crate) fn on_more(
        &mut self,
        now: Timestamp,
        end: &str,
        batch: u64,
        reply: MoreReply,
        unlisted: &mut UnlistedEvents,
    ) -> Vec<CollectorEvent> {
        let finding = self.segment.on_more(end, batch, reply);
        self.on_finding(&finding, now, unlisted)
    }

    /// Hands over what the meters are to be asked.
    pub(crate) fn ask(&mut self, questions: &mut OpenQuestions) {
        for MoreWanted { end, question } in self.segment.wanted() {
            let Some(of_end) = self.ends.get(&end) else { continue };
            let kind = QuestionKind::More { batch: question.batch };
            let open = OpenQuestion::new(of_end.heard, of_end.life, &self.name, &end, kind);
            questions.ask(open, [&[kept::MORE], &question.to_bytes()[..]].concat());
        }
        for RecallQuestion { end, token, question } in self.recall.take_questions() {
            let name = self.segment.ends().nth(end).map(|(name, _)| name);
            let Some((name, of_end)) = name.and_then(|name| Some((name, self.ends.get(name)?))) else { continue };
            let open = OpenQuestion::new(of_end.heard, of_end.life, &self.name, name, QuestionKind::Recall { token });
            questions.ask(open, question.to_bytes());
        }
    }

    fn on_finding(
        &mut self,
        finding: &SegmentFinding,
        now: Timestamp,
        unlisted: &mut UnlistedEvents,
    ) -> Vec<CollectorEvent> {
        // No loss of an earlier batch can come any more.
        let compared = self.segment.ends().map(|(_, latest)| latest).min().unwrap_or(0);
        self.until = Timestamp(compared.saturating_sub(2 * self.patience + 1) * self.length);
        self.total.unsure = self.total.unsure.saturating_add(finding.unsure);
        self.total.unnamed = self.total.unnamed.saturating_add(finding.unnamed);
        self.total.extra = self.total.extra.saturating_add(finding.extra);
        self.total.skipped = self.total.skipped.saturating_add(finding.skipped);
        self.on_losses(now, finding, unlisted)
    }

    /// An end that reports is not taken over: another incarnation is heard when the first has been silent.
    fn check_life(&self, now: Timestamp, report: &MeterReport<PackedDigest>) -> Result<(), String> {
        match self.ends.get(&report.end) {
            Some(end) if end.life != report.life && now.since(end.heard) <= self.silence() => Err(format!(
                "segment {}: two meters report as end {}: the one that came later is heard when the other has been silent for a \
                 while; give them different names",
                self.name, report.end
            )),
            _ => Ok(()),
        }
    }

    fn on_heard(&mut self, name: String, heard: &ReportReceipt, unlisted: &mut UnlistedEvents) -> Vec<CollectorEvent> {
        let mut news = Vec::new();
        let segment = || self.name.clone();
        if !self.ends.contains_key(&name) && unlisted.may_tell() {
            news.push(CollectorEvent::Heard { segment: segment(), end: name.clone() });
        }
        let new = || CollectorEnd {
            summary: EndSummary { end: name.clone(), ..EndSummary::default() },
            ..CollectorEnd::default()
        };
        let end = self.ends.entry(name.clone()).or_insert_with(new);
        (end.heard, end.life, end.fields) = (heard.now, heard.life, heard.fields);
        end.summary.reports += 1;
        end.summary.missed = end.summary.missed.saturating_add(heard.missed);
        end.summary.missing = end.summary.missing.saturating_add(heard.missing);
        if std::mem::take(&mut end.summary.silent) {
            news.push(CollectorEvent::Back { segment: segment(), end: name });
        }
        news
    }

    pub(crate) fn look(&mut self, now: Timestamp, unlisted: &mut UnlistedEvents) -> Vec<CollectorEvent> {
        let mut news = self.judge(now, unlisted);
        let silence = self.silence();
        for end in self.ends.values_mut() {
            if !end.has_left && now.since(end.heard) > silence && !std::mem::replace(&mut end.summary.silent, true) {
                news.push(CollectorEvent::Silent { segment: self.name.clone(), end: end.summary.end.clone() });
            }
        }
        let told = std::mem::replace(&mut self.told, self.total.clone());
        let more = |of: fn(&SegmentFinding) -> u64| of(&self.total) - of(&told);
        let (unsure, unnamed) = (more(|all| all.unsure), more(|all| all.unnamed));
        let (extra, skipped) = (more(|all| all.extra), more(|all| all.skipped));
        let late = self.late - std::mem::replace(&mut self.told_late, self.late);
        let mut say = |text: String| news.push(CollectorEvent::Trouble(format!("segment {}: {text}", self.name)));
        if unsure > 0 {
            say(format!("{unsure} packets are missing, but a meter missed some too: not called lost"));
        }
        if unnamed > 0 {
            say(format!("{unnamed} lost packets could not be named: more --cells at the meters, or shorter batches"));
        }
        if skipped > 0 {
            say(format!("{skipped} batches were not compared: reports of an end are missing, or its clock is far off"));
        }
        if late > 0 {
            say(format!(
                "{late} packets that were called lost came after all: packets take longer than --patience has it"
            ));
        }
        if extra > 0 {
            say(format!(
                "{extra} packets came out that were not seen to go in: if the clocks of the ends differ, give more \
                 --patience; until then losses may be packets that are late"
            ));
        }
        news
    }

    pub(crate) fn finish(self) -> CollectorSummary {
        let mut flows: Vec<(Flow, Causes)> = self.flows.into_iter().collect();
        flows.sort_by_key(|(_, causes)| std::cmp::Reverse(causes.losses()));
        CollectorSummary {
            segment: self.name,
            ends: self.ends.into_values().map(|end| end.summary).collect(),
            until: self.until,
            packets: self.packets,
            lost: self.lost,
            unnamed: self.total.unnamed,
            unsure: self.total.unsure,
            extra: self.total.extra,
            late: self.late,
            skipped: self.total.skipped,
            causes: self.causes,
            flows,
            other_flows: self.other_flows,
        }
    }
}

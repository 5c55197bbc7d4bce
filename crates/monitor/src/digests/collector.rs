//! What meters report, compared segment by segment: LossRadar's collector and analyzer, li-thesis §5.3, §5.5.
//!
//! ```text
//!   report ──▶ Watched (a segment) ──▶ radar::segment ──▶ losses ──▶ News, at once
//!                                                           └──▶ radar::causes ──▶ Summary, at the end
//! ```
//!
//! A loss is known by its batch, not by the microsecond. For the analysis, which looks for bursts, the losses of a batch are
//! spread over it, but for those that follow each other in their flow: they were sent together.
//!
//! Invariants: no report makes this panic, stall or grow without bound, whoever sent it; what is unsure is said to be.

mod watched;

use std::collections::BTreeMap;

use radar::causes::Summary as Causes;
use radar::packet::{Flow, Stamp};
use radar::segment::{Report, ReportError};
use radar::signature::Fields;

use watched::Watched;

/// Segments at a time; reports of more are refused.
const MOST_SEGMENTS: usize = 1_024;
/// Batches of another length are nobody's.
const LENGTHS: std::ops::RangeInclusive<u64> = 1_000_000..=60_000_000_000;
/// A report that is further from now was made by a clock that is wrong.
const FURTHEST: u64 = 60_000_000_000;
/// An end that has not reported for so long is silent.
const SILENCE: u64 = 1_000_000_000;
/// Cells that a meter may have: what is kept of those that wait is bounded.
const MOST_CELLS: usize = 8_192;

/// A packet that went in and did not come out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPacket {
    pub segment: String,
    /// The end by which it went in, and that where it should have come out; `None` in a black box.
    pub from: Option<String>,
    pub to: Option<String>,
    /// When the batch began in which it was found.
    pub batch: Stamp,
    /// Nanoseconds from then until it was known to be lost.
    pub delay: u64,
    pub flow: Flow,
    pub tcp_seq: Option<u32>,
    pub ip_id: Option<u16>,
    /// What of the packet is known; the rest is rewritten on the way.
    pub fields: Fields,
}

/// What a collector has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    Lost(Box<LostPacket>),
    /// An end has reported for the first time.
    Heard {
        segment: String,
        end: String,
    },
    Silent {
        segment: String,
        end: String,
    },
    Back {
        segment: String,
        end: String,
    },
    /// Something cannot be compared, or not be believed, and what to do about it.
    Trouble(String),
}

/// What became of a segment's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub segment: String,
    pub ends: Vec<EndSummary>,
    /// Everything up to here has been compared.
    pub until: Stamp,
    /// Packets that went in, by any end.
    pub packets: u64,
    pub lost: u64,
    /// Lost, but nobody knows what.
    pub unnamed: u64,
    /// Missing, but perhaps only to a meter.
    pub unsure: u64,
    /// Came out and were not seen to go in.
    pub extra: u64,
    /// Called lost too early: they came after all.
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
    segments: BTreeMap<String, Watched>,
    /// Which meter a life is of.
    lives: BTreeMap<u64, (String, String)>,
    /// Reports that could not be used, since the last of them was told.
    refused: u64,
}

impl Collector {
    pub fn new(ends: usize, patience: u64) -> Self {
        Self { ends, patience, segments: BTreeMap::new(), lives: BTreeMap::new(), refused: 0 }
    }

    /// A report has come, at `now`.
    pub fn on_report(&mut self, now: Stamp, life: u64, bytes: &[u8]) -> Vec<News> {
        let report = match Report::from_bytes(bytes) {
            Ok(report) => report,
            Err(error) => return self.refuse(&error_text(error)),
        };
        if let Err(why) = check(now, &report) {
            return self.refuse(&format!("segment {}, end {}: {why}", report.segment, report.end));
        }
        if self.segments.len() >= MOST_SEGMENTS && !self.segments.contains_key(&report.segment) {
            return self.refuse(&format!("segment {}: {MOST_SEGMENTS} others are watched already", report.segment));
        }
        if self.lives.len() > 16 * MOST_SEGMENTS {
            self.lives.clear();
        }
        self.lives.insert(life, (report.segment.clone(), report.end.clone()));
        let new = || Watched::new(report.segment.clone(), self.ends, self.patience);
        let watched = self.segments.entry(report.segment.clone()).or_insert_with(new);
        match watched.on_report(now, report) {
            Ok(news) => news,
            Err(why) => self.refuse(&why),
        }
    }

    /// Reports of a meter were sent and did not come.
    pub fn on_missing(&mut self, life: u64, reports: u64) {
        if let Some((segment, end)) = self.lives.get(&life)
            && let Some(watched) = self.segments.get_mut(segment)
        {
            watched.on_missing(end, reports);
        }
    }

    /// To be called now and then: who is silent, and what could not be compared.
    pub fn look(&mut self, now: Stamp) -> Vec<News> {
        self.refused = 0;
        self.segments.values_mut().flat_map(|watched| watched.look(now)).collect()
    }

    /// There is no more to come.
    pub fn finish(self) -> Vec<Summary> {
        self.segments.into_values().map(Watched::finish).collect()
    }

    /// Told once between two looks: whoever sends nonsense sends a hundred a second of it.
    fn refuse(&mut self, why: &str) -> Vec<News> {
        self.refused += 1;
        if self.refused == 1 { vec![News::Trouble(why.to_owned())] } else { Vec::new() }
    }
}

fn error_text(error: ReportError) -> String {
    format!("a report that cannot be used: {error}")
}

fn check(now: Stamp, report: &Report) -> Result<(), String> {
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
mod tests;

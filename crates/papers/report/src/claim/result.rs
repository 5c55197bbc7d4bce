//! Result of a claim: its points with their verdicts, its charts, and the command to run it again.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Band, Claim, ClaimPoint, PaperValue, PointKind, StatementForm};
use crate::table::{Align, Table, thousands};
use chart::Chart;

/// A value of ours, with what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredValue {
    pub value: f64,
    /// Trials.
    pub n: u64,
    /// 95 % confidence interval of the true value, if it was estimated from samples.
    pub interval: Option<(f64, f64)>,
    /// Further observation that helps to judge it.
    pub note: Option<String>,
}

/// Fewer values than this beyond a percentile say nothing about it.
const FEWEST_BEYOND: f64 = 5.0;

impl MeasuredValue {
    pub fn exact(value: f64, n: u64) -> Self {
        Self { value, n, interval: None, note: None }
    }

    /// Estimated from samples; the interval is one of 95 %.
    pub fn counted(value: f64, n: u64, interval: (f64, f64)) -> Self {
        Self { value, n, interval: Some(interval), note: None }
    }

    /// A share of independent trials; `None` without any.
    pub fn share(count: u64, of: u64) -> Option<Self> {
        (of > 0).then(|| Self::counted(count as f64 / of as f64, of, units::binomial(count, of)))
    }

    /// A mean of independent samples, within 1.96 standard errors; a single sample says nothing of it.
    pub fn mean(samples: &[f64]) -> Option<Self> {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
        let off = if samples.len() < 2 { f64::INFINITY } else { 1.96 * (squares / (n - 1.0) / n).sqrt() };
        let interval = (off.is_finite() || n < 2.0).then_some((mean - off, mean + off));
        (!samples.is_empty()).then_some(Self { value: mean, n: samples.len() as u64, interval, note: None })
    }

    /// The value below which `share` of the sorted values lie, if enough lie beyond, and between which of them that of an
    /// endless run lies. None is negative.
    pub fn quantile(sorted: &[f64], share: f64) -> Option<Self> {
        let beyond = sorted.len() as f64 * (1.0 - share);
        if beyond < FEWEST_BEYOND {
            return None;
        }
        let value = units::samples::quantile_above(sorted, share)?;
        let (low, high) = units::quantile_ranks(sorted.len(), share);
        let interval = (low.map_or(0.0, |rank| sorted[rank]), high.map_or(f64::INFINITY, |rank| sorted[rank]));
        Some(Self::counted(value, sorted.len() as u64, interval))
    }

    /// Less another value. What is estimated may lie anywhere in its interval.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let interval = self.both(other).map(|((low, high), (least, most))| (low - most, high - least));
        Self { value: self.value - other.value, n: self.n.min(other.n), interval, note: None }
    }

    /// Quotient of two values that are not negative; `None` if the divisor is zero. An estimated value may lie anywhere in its
    /// interval.
    pub fn over(&self, other: &Self) -> Option<Self> {
        let interval = self.both(other).map(|((low, high), (least, most))| {
            let by = |value: f64, by: f64| if value == 0.0 { 0.0 } else { value / by.max(0.0) };
            (by(low.max(0.0), most), by(high, least))
        });
        let (value, n) = (self.value / other.value, self.n.min(other.n));
        (other.value != 0.0).then_some(Self { value, n, interval, note: None })
    }

    /// The intervals of both, if either has one.
    fn both(&self, other: &Self) -> Option<((f64, f64), (f64, f64))> {
        let of = |measured: &Self| measured.interval.unwrap_or((measured.value, measured.value));
        (self.interval.is_some() || other.interval.is_some()).then(|| (of(self), of(other)))
    }

    #[must_use]
    pub fn with_note(self, note: String) -> Self {
        Self { note: Some(note), ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verdict {
    /// The value, or its whole interval, lies within the band.
    #[serde(rename = "match")]
    Match,
    /// It lies outside.
    #[serde(rename = "differs")]
    Differs,
    /// The interval neither lies within the band nor excludes it, or nothing could be measured at this scale.
    #[serde(rename = "too few")]
    TooFew,
    /// Shown, not judged: no band could be given beforehand.
    #[serde(rename = "noted")]
    Noted,
}

impl Verdict {
    pub const ALL: [Self; 4] = [Self::Match, Self::Differs, Self::TooFew, Self::Noted];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Match => "match",
            Self::Differs => "differs",
            Self::TooFew => "too few",
            Self::Noted => "noted",
        })
    }
}

/// Reason of a row that differs, if its file gives none.
pub const SILENT: &str = "Open: the file gives no reason";

/// A point of a claim beside our value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    pub id: String,
    pub kind: PointKind,
    /// Form of what the paper says.
    #[serde(default)]
    pub form: StatementForm,
    pub paper: PaperValue,
    /// `None` if it could not be measured.
    pub ours: Option<f64>,
    pub n: u64,
    /// 95 % confidence interval of the true value.
    pub interval: Option<Band>,
    /// Band in which our value had to lie.
    pub band: Option<Band>,
    pub verdict: Verdict,
    pub why: String,
}

impl PointResult {
    /// Judges a point. `ours` is `None` if the scale has too few trials.
    pub fn judge(claim: &Claim, point: &ClaimPoint, ours: Option<&MeasuredValue>) -> Self {
        let result = Self {
            id: format!("{}.{}", claim.id, point.id),
            kind: point.kind(),
            form: point.form(),
            paper: point.paper.clone(),
            ours: None,
            n: 0,
            interval: None,
            band: point.band,
            verdict: Verdict::TooFew,
            why: "too few flows for it at this scale, or a run that was not finished".to_owned(),
        };
        let Some(measured) = ours else { return result };
        let verdict = point.judge(measured);
        let interval = measured.interval.map(|(low, high)| Band { low, high });
        let certain = interval.map(|interval| format!("95 %: {interval}")).unwrap_or_default();
        let is_silent = verdict == Verdict::Differs && point.why.is_empty();
        let why = if is_silent { SILENT } else { &point.why };
        let reasons = [certain.as_str(), measured.note.as_deref().unwrap_or_default(), &point.note, why];
        let why = reasons.into_iter().filter(|reason| !reason.is_empty()).collect::<Vec<_>>().join("; ");
        Self { ours: Some(measured.value), n: measured.n, interval, verdict, why, ..result }
    }

    /// The result under the kind and band that the point has today; `None` if it has to be run again. That is so if the
    /// paper's value is another one, or a band is not part of the one that was decided before the run. A band that was
    /// dropped or narrowed, and the fixed band of an order statement, judge the value and interval that were kept.
    #[must_use]
    pub fn under(&self, point: &ClaimPoint) -> Option<Self> {
        if !self.is_of_paper(point) {
            return None;
        }
        let paper = if point.paper.number().is_some() { self.paper.clone() } else { point.paper.clone() };
        let today = Self { kind: point.kind(), form: point.form(), paper, ..self.clone() };
        match (self.band, point.band) {
            (None, None) => Some(today),
            (Some(kept), Some(band)) if kept.is_near(&band) => Some(today),
            (kept, band) if point.form() == StatementForm::Order || kept.is_some_and(|kept| kept.holds(band)) => {
                Some(Self { band, verdict: self.judge_again(point), ..today })
            }
            _ => None,
        }
    }

    fn judge_again(&self, point: &ClaimPoint) -> Verdict {
        let interval = self.interval.map(|interval| (interval.low, interval.high));
        let kept = self.ours.map(|value| MeasuredValue { value, n: self.n, interval, note: None });
        kept.map_or(Verdict::TooFew, |kept| point.judge(&kept))
    }

    /// Files keep slightly fewer than all digits. What is no claim may have words now, say that the number is not printed.
    fn is_of_paper(&self, point: &ClaimPoint) -> bool {
        match (self.paper.number(), point.paper.number()) {
            (Some(one), Some(other)) => is_near(one, other),
            (Some(_), None) => point.kind() != PointKind::Claim,
            _ => self.paper == point.paper,
        }
    }
}

impl Band {
    /// True if the other band is dropped, or lies within this one.
    fn holds(&self, other: Option<Self>) -> bool {
        other.is_none_or(|other| self.covers(&other))
    }

    fn is_near(&self, other: &Self) -> bool {
        is_near(self.low, other.low) && is_near(self.high, other.high)
    }
}

fn is_near(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= 1e-12 * one.abs()
}

/// A claim with its points judged.
#[derive(Clone, Debug)]
pub struct ClaimResult {
    pub id: String,
    pub title: String,
    /// Statement of the claim in a sentence or two.
    pub claim: String,
    /// Section, figure or table of the paper.
    pub paper: String,
    /// Command that runs this claim alone.
    pub command: String,
    pub charts: Vec<Chart>,
    pub points: Vec<PointResult>,
    /// Remarks that help the reader to judge the points.
    pub notes: Vec<String>,
    pub seconds: f64,
}

impl ClaimResult {
    /// The claim with some of its points beside their values; without charts.
    pub fn judge(claim: &Claim, values: &[(&ClaimPoint, Option<MeasuredValue>)], seconds: f64) -> Self {
        let judge =
            |(point, ours): &(&ClaimPoint, Option<MeasuredValue>)| PointResult::judge(claim, point, ours.as_ref());
        let points = values.iter().map(judge).collect();
        let Claim { id, title, claim, paper, notes, .. } = claim.clone();
        Self { id, title, claim, paper, command: String::new(), charts: Vec::new(), points, notes, seconds }
    }
}

/// The points as a table for people.
pub fn table(points: &[PointResult]) -> Table {
    let mut table = Table::new(&[
        ("claim", Align::Left),
        ("paper", Align::Right),
        ("ours", Align::Right),
        ("band", Align::Right),
        ("n", Align::Right),
        ("verdict", Align::Left),
        ("why", Align::Left),
    ]);
    for point in points {
        table.row(vec![
            point.id.clone(),
            point.paper.to_string(),
            point.ours.map_or_else(|| "-".into(), number),
            point.band.map(|band| band.to_string()).unwrap_or_default(),
            thousands(point.n),
            point.verdict.to_string(),
            point.why.clone(),
        ]);
    }
    table
}

/// Four digits, in whichever notation is shorter to read.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        0.001..1e6 => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').into()
        }
        _ => format!("{value:.2e}"),
    }
}

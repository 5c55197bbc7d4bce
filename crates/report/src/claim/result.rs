//! What became of a claim: its points with their verdicts, its charts, and how to run it again.

use std::fmt;

use serde::Serialize;

use super::{Band, Claim, ClaimPoint, PaperValue, PointKind};
use crate::table::{Align, Table, thousands};
use chart::Chart;

/// A value of ours, with what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredValue {
    pub value: f64,
    /// Trials.
    pub n: u64,
    /// Where the true value lies with 95 % certainty, if it was estimated from counts.
    pub interval: Option<(f64, f64)>,
    /// What else was seen that helps to judge it.
    pub note: Option<String>,
}

impl MeasuredValue {
    pub fn exact(value: f64, n: u64) -> Self {
        Self { value, n, interval: None, note: None }
    }

    pub fn counted(value: f64, n: u64, (low, high): (f64, f64)) -> Self {
        let note = Some(format!("95 %: {low:.1e} to {high:.1e}"));
        Self { value, n, interval: Some((low, high)), note }
    }

    #[must_use]
    pub fn with_note(self, note: String) -> Self {
        Self { note: Some(note), ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Match,
    Differs,
    /// Shown, not judged: no band could be given beforehand.
    Noted,
    /// This scale has too little of it.
    Unmeasured,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Match => "match",
            Self::Differs => "differs",
            Self::Noted => "noted",
            Self::Unmeasured => "unmeasured",
        })
    }
}

/// A point of a claim beside our value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointResult {
    pub id: String,
    pub kind: PointKind,
    pub paper: PaperValue,
    /// `None` if it could not be measured.
    pub ours: Option<f64>,
    pub n: u64,
    /// Where ours had to lie.
    pub band: Option<Band>,
    pub verdict: Verdict,
    pub why: String,
}

impl PointResult {
    /// `ours` is `None` if the scale has too little of it.
    pub fn judge(claim: &Claim, point: &ClaimPoint, ours: Option<&MeasuredValue>) -> Self {
        let ClaimPoint { kind, band, .. } = *point;
        let result = Self {
            id: format!("{}.{}", claim.id, point.id),
            kind,
            paper: point.paper.clone(),
            ours: None,
            n: 0,
            band: None,
            verdict: Verdict::Unmeasured,
            why: "too few flows for it at this scale, or a run that was not finished".to_owned(),
        };
        let Some(measured) = ours else { return result };
        let verdict = match band {
            None => Verdict::Noted,
            Some(band) if band.admits(measured) => Verdict::Match,
            Some(_) => Verdict::Differs,
        };
        let reasons = [measured.note.as_deref().unwrap_or_default(), &point.why];
        let why = reasons.into_iter().filter(|reason| !reason.is_empty()).collect::<Vec<_>>().join("; ");
        Self { ours: Some(measured.value), n: measured.n, band, verdict, why, ..result }
    }
}

/// A claim with its points judged.
#[derive(Clone, Debug)]
pub struct ClaimResult {
    pub id: String,
    pub title: String,
    /// What is claimed, in a sentence or two.
    pub claim: String,
    /// Section, figure or table of the paper.
    pub paper: String,
    /// What to type to run this claim alone.
    pub command: String,
    pub charts: Vec<Chart>,
    pub points: Vec<PointResult>,
    /// What a reader should know to judge the points.
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

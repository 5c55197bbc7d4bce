//! Claims of the papers, as files.
//!
//! A file under `experiments/` states one claim before anything is run: where the paper makes it, what
//! it says, and for each point the band in which our value must lie to count as a match. A row that
//! differs stays, with the reason that the file gives.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::table::{Align, Table};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The claim's id, such as `lg.fig8.speed`.
    pub id: String,
    /// A few words for a headline.
    pub title: String,
    /// Section, figure or table of the paper.
    pub paper: String,
    /// What is claimed, in a sentence.
    pub claim: String,
    /// What is taken from each run.
    pub measure: String,
    pub point: Vec<Point>,
}

/// How much stands behind each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A few minutes on two cores for everything.
    Quick,
    /// The papers' numbers of trials; of what is rare, enough to count. Hours.
    Full,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Quick => "quick",
            Self::Full => "full",
        })
    }
}

/// One value of a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Extends the claim's id.
    pub id: String,
    pub rate: Option<String>,
    pub loss: Option<String>,
    pub mode: Option<String>,
    /// What the paper says.
    pub paper: Said,
    /// What ours must lie within to count as the same.
    pub band: [f64; 2],
    /// Why ours differs, or may.
    #[serde(default)]
    pub why: String,
}

/// What is wrong with an experiment file.
#[derive(Clone, Debug)]
pub struct ExperimentError(String);

impl ExperimentError {
    pub fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string())
    }
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ExperimentError {}

impl Experiment {
    /// `name` is the file's, for the message.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        toml::from_str(text).map_err(|error| ExperimentError(format!("{name}: {error}")))
    }
}

/// A value of ours, with what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub value: f64,
    /// Trials.
    pub n: u64,
    /// Where the true value lies with 95 % certainty, if it was estimated from counts.
    pub interval: Option<(f64, f64)>,
    /// What else was seen that helps to judge it.
    pub note: Option<String>,
}

impl Measured {
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
    /// Told, not judged: no band could be given beforehand.
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

/// What a paper says of a value: a number, or only words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Said {
    Number(f64),
    Words(String),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => f.pad(&number(*value)),
            Self::Words(words) => f.pad(words),
        }
    }
}

/// A claim beside what we found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub id: String,
    pub paper: Said,
    /// `None` if it could not be measured.
    pub ours: Option<f64>,
    pub n: u64,
    /// What ours had to lie within.
    pub band: Option<[f64; 2]>,
    pub verdict: Verdict,
    pub why: String,
}

impl Row {
    /// One point of a claim about a link.
    pub fn of_point(experiment: &Experiment, point: &Point, ours: &Measured) -> Self {
        let id = format!("{}.{}", experiment.id, point.id);
        Self::judge(id, &point.paper, point.band, &point.why, ours)
    }

    /// Within the band, or not told apart from it by what was counted.
    pub fn judge(id: String, paper: &Said, [low, high]: [f64; 2], why: &str, ours: &Measured) -> Self {
        let (least, most) = ours.interval.unwrap_or((ours.value, ours.value));
        let within = (low..=high).contains(&ours.value);
        let verdict = if within || (least <= high && most >= low) { Verdict::Match } else { Verdict::Differs };
        let reasons = [ours.note.as_deref().unwrap_or_default(), why];
        let why = reasons.into_iter().filter(|reason| !reason.is_empty()).collect::<Vec<_>>().join("; ");
        Self { id, paper: paper.clone(), ours: Some(ours.value), n: ours.n, band: Some([low, high]), verdict, why }
    }

    /// A value without a band.
    pub fn noted(id: String, paper: &Said, why: &str, ours: &Measured) -> Self {
        Self { verdict: Verdict::Noted, band: None, ..Self::judge(id, paper, [0.0, 0.0], why, ours) }
    }

    /// A value that could not be had.
    pub fn unmeasured(id: String, paper: &Said) -> Self {
        let why = "too few flows for it at this scale, or a run that was not finished".to_owned();
        Self { id, paper: paper.clone(), ours: None, n: 0, band: None, verdict: Verdict::Unmeasured, why }
    }
}

/// The rows as a table for people.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("claim", Align::Left),
        ("paper", Align::Right),
        ("ours", Align::Right),
        ("band", Align::Right),
        ("n", Align::Right),
        ("verdict", Align::Left),
        ("why", Align::Left),
    ]);
    for row in rows {
        table.row(vec![
            row.id.clone(),
            row.paper.to_string(),
            row.ours.map_or_else(|| "-".into(), number),
            row.band.map(band).unwrap_or_default(),
            crate::table::thousands(row.n),
            row.verdict.to_string(),
            row.why.clone(),
        ]);
    }
    table
}

/// From where to where, as far as it has ends.
pub fn band([low, high]: [f64; 2]) -> String {
    match high {
        1e9.. => format!("from {}", number(low)),
        _ => format!("{} to {}", number(low), number(high)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        id = "x.y"
        title = "It"
        paper = "Fig. 1"
        claim = "it works"
        measure = "effective_speed"
        [[point]]
        id = "a"
        paper = 0.92
        band = [0.90, 0.94]
    "#;

    fn judge(measured: Measured) -> Row {
        let experiment = Experiment::parse("x", FILE).unwrap();
        Row::of_point(&experiment, &experiment.point[0], &measured)
    }

    #[test]
    fn the_band_decides() {
        assert_eq!(judge(Measured::exact(0.91, 3)).verdict, Verdict::Match);
        assert_eq!(judge(Measured::exact(0.95, 3)).verdict, Verdict::Differs);
        assert_eq!(judge(Measured::exact(0.95, 3)).id, "x.y.a");
    }

    #[test]
    fn a_count_matches_unless_it_excludes_the_band() {
        let counted = |interval| judge(Measured::counted(0.0, 3, interval)).verdict;
        assert_eq!(counted((0.0, 0.91)), Verdict::Match);
        assert_eq!(counted((0.0, 0.5)), Verdict::Differs);
    }

    #[test]
    fn a_typo_in_a_file_is_an_error_that_names_it() {
        let said = Experiment::parse("fig1.toml", &FILE.replace("band", "bandd")).unwrap_err().to_string();
        assert!(said.contains("fig1.toml") && said.contains("bandd"), "{said}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.92, 1.0, 1e-10, 24_400.0].map(number), ["0", "0.92", "1", "1.00e-10", "24400"]);
    }
}

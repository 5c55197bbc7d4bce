//! Claims of the papers, as files.
//!
//! A file under `experiments/<paper>/` states one claim before anything is run: where the paper makes it, what it says,
//! and for each point what kind of statement it is and the band in which our value must lie to count as a match. `runner`
//! says how values are had: from runs of one link, of a network or of a fleet, or from a function of ours. A row that
//! differs stays, with the reason that the file gives.
//!
//! There is one schema for all of them; a key that the claim's runner does not use is an error. What a band may be is
//! in `rules`.

mod band;
mod citations;
mod evidence;
pub mod files;
mod form;
mod lines;
pub mod measure;
mod reasons;
mod result;
mod rules;
mod tally;

use std::fmt;

use serde::{Deserialize, Serialize};

use lines::PointLines;

pub use band::Band;
pub use citations::Citation;
pub use evidence::EvidenceCounts;
pub use form::StatementForm;
pub use reasons::check_across;
pub use result::{ClaimResult, MeasuredValue, PointResult, SILENT, Verdict, number, table};
pub use tally::VerdictTally;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Identifier, such as `lg.fig8.speed`.
    pub id: String,
    /// A few words for a headline.
    pub title: String,
    /// Section, figure or table of the paper.
    pub paper: String,
    /// Statement of the claim in a sentence or two.
    pub claim: String,
    pub runner: Runner,
    /// Name under which it can be requested together with other claims; the runner's name if not given.
    part: Option<String>,
    /// Its place in the paper's report; claims without one come last, by the names of their files.
    #[serde(default = "last")]
    order: u32,
    /// Remarks on the method for the reader.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The measure of the points that name none.
    pub measure: Option<String>,
    /// The kind of the points that name none.
    kind: Option<PointKind>,
    pub point: Vec<ClaimPoint>,
    /// Network: the scenario's file, in the same folder.
    #[serde(default)]
    pub scenario: String,
    #[serde(default)]
    pub quick: Amount,
    #[serde(default)]
    pub full: Amount,
    #[serde(default)]
    pub run: Vec<RunSpec>,
    #[serde(default)]
    pub chart: Vec<ChartSpec>,
    /// Text of the scenario's file.
    #[serde(skip)]
    pub(crate) scenario_text: &'static str,
    /// The file's name, and where in it each point stands, for messages.
    #[serde(skip)]
    file: String,
    #[serde(skip)]
    lines: Vec<PointLines>,
}

/// One value of a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimPoint {
    /// Extends the claim's id.
    pub id: String,
    /// The claim's if not given, or else the point's id.
    measure: Option<String>,
    /// The file's if not given.
    kind: Option<PointKind>,
    pub paper: PaperValue,
    /// Range in which our value counts as a match. Without one the value is shown, not judged.
    pub band: Option<Band>,
    /// Numbers that the paper's words mean, if they name a range.
    range: Option<Band>,
    /// End of the band that the paper leaves open, or that its words are an order statement.
    says: Option<Says>,
    /// Why the band is wider than half to twice the paper's number.
    wide: Option<String>,
    /// The id of a point of the same claim that cannot be true together with this one: their bands do not overlap.
    excludes: Option<String>,
    /// Calibrated points: what was fitted, and to what.
    input: Option<String>,
    /// Remark on the value: what it is, or how it is had.
    #[serde(default)]
    pub note: String,
    /// Why ours differs: the rules are in `reasons`.
    #[serde(default)]
    pub why: String,
    /// Link: what is simulated. Without rate and mode there is no run.
    pub rate: Option<String>,
    pub loss: Option<String>,
    pub mode: Option<String>,
    /// The share of the link that is offered; all of it if not given.
    pub load: Option<f64>,
    /// The loss of the run that it is divided by; that of its own if not given.
    pub over_loss: Option<String>,
    /// Fleet: the share of its paths that every ToR keeps.
    pub constraint: Option<f64>,
    /// Fleet: pods of the fabric; with fewer than the paper's, repairs take 2 days, as in the authors' simulator.
    pub pods: Option<u32>,
    /// Network: the run that it is taken from.
    pub of: Option<String>,
    /// The run whose value is subtracted.
    pub minus: Option<String>,
    /// The run (of a link: the mode) that it is divided by, and which measure of it; the same run or the same measure if only one is given.
    pub over: Option<String>,
    pub over_measure: Option<String>,
}

/// Source of a claim's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runner {
    Link,
    Network,
    Fleet,
    Computed,
}

/// Meaning of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PointKind {
    /// The paper is right about something that it measured and that could have come out otherwise.
    Claim,
    /// Computed, exact: the paper's formula or account was evaluated again.
    Arithmetic,
    /// Our simulation agrees with our formula or expectation, regardless of what the paper says.
    ModelCheck,
    /// An input was fitted to it, or to its neighbour.
    Calibrated,
    /// Nothing: the value is shown without a band.
    Noted,
}

/// A statement that leaves one end open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Says {
    #[serde(rename = "at least")]
    AtLeast,
    #[serde(rename = "at most")]
    AtMost,
    /// Order statement: a ratio above 1, whatever its size.
    #[serde(rename = "higher")]
    Higher,
    /// Order statement: a ratio below 1.
    #[serde(rename = "lower")]
    Lower,
}

/// Amount of simulation for a network.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// Each run is made with this many seeds, and their flows are pooled; samples are the first seed's.
    pub seeds: u64,
    #[serde(default)]
    pub set: Vec<String>,
}

/// A run of a network's scenario, and what it sets differently.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    pub name: String,
    #[serde(default)]
    pub set: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartSpec {
    pub title: String,
    pub kind: ChartKind,
    /// Runs shown, in this order; all if not given.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Tail: the lowest share shown.
    #[serde(default)]
    pub from: f64,
    /// Bars and points: the measure and its unit. Points show the 99.9th percentile of flow completion times if it is not
    /// given.
    #[serde(default)]
    pub measure: String,
    #[serde(default)]
    pub unit: String,
    /// Bars: values on a logarithmic axis.
    #[serde(default)]
    pub log: bool,
    /// Points: the run that all others are compared with in bytes on the wire.
    pub base: Option<String>,
    /// Series: events, as fractions of the run, with their names.
    #[serde(default)]
    pub marks: Vec<(f64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// Flow completion times, the highest of them.
    Tail,
    /// Flow completion times, all of them, with shares evenly spaced.
    Cdf,
    /// Throughput, queue and buffers over time.
    Series,
    /// One measure of each run.
    Bars,
    /// One measure of each run by what the run costs: bytes on the wire beyond those of another run.
    Points,
}

/// Number of trials behind each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunScale {
    /// A few minutes on two cores for everything.
    Quick,
    /// Number of trials as in the papers; for rare events, enough to count them. Takes hours.
    Full,
}

/// A value in a paper: a number, or only words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PaperValue {
    Number(f64),
    Words(String),
}

/// Error in a claim's file, or the reason for which it could not be run.
#[derive(Clone, Debug)]
pub struct ClaimError(String);

fn last() -> u32 {
    u32::MAX
}

impl Claim {
    /// `name` is the file's, for the message.
    pub fn parse(name: &str, text: &str) -> Result<Self, ClaimError> {
        let wrong = |error: &dyn fmt::Display| ClaimError::new(format_args!("{name}: {error}"));
        let mut claim: Self = toml::from_str(text).map_err(|error| wrong(&error))?;
        name.clone_into(&mut claim.file);
        claim.lines = lines::of_points(text);
        for point in &mut claim.point {
            point.kind = point.kind.or(claim.kind);
        }
        claim.check()?;
        for point in &mut claim.point {
            point.band = point.says.and_then(Says::order_band).or(point.band);
        }
        Ok(claim)
    }

    /// An error of the whole file.
    pub fn error(&self, what: impl fmt::Display) -> ClaimError {
        ClaimError::new(format_args!("{}: {what}", self.file))
    }

    /// An error of a point, with the file and the line of one of its keys, or of the point if it has no such key.
    pub fn error_at(&self, point: &ClaimPoint, key: &str, what: impl fmt::Display) -> ClaimError {
        let at = self.point.iter().position(|one| std::ptr::eq(one, point) || one.id == point.id);
        let line = at.and_then(|at| self.lines.get(at)).map(|lines| format!(":{}", lines.of(key)));
        ClaimError::new(format_args!("{}{}: {}: {what}", self.file, line.unwrap_or_default(), point.id))
    }

    /// Name under which it can be requested together with other claims, such as `net`.
    pub fn part(&self) -> &str {
        self.part.as_deref().unwrap_or(match self.runner {
            Runner::Link => "link",
            Runner::Network => "net",
            Runner::Fleet => "fleet",
            Runner::Computed => "computed",
        })
    }

    pub fn measure<'a>(&'a self, point: &'a ClaimPoint) -> &'a str {
        point.measure.as_ref().or(self.measure.as_ref()).unwrap_or(&point.id)
    }

    pub fn amount(&self, scale: RunScale) -> &Amount {
        match scale {
            RunScale::Quick => &self.quick,
            RunScale::Full => &self.full,
        }
    }

    /// Keys of other runners, and what no point may say.
    fn check(&self) -> Result<(), ClaimError> {
        let keys = [
            ("scenario", !self.scenario.is_empty()),
            ("run", !self.run.is_empty()),
            ("chart", !self.chart.is_empty()),
            ("quick or full", self.quick.seeds > 0),
        ];
        if let Some((key, _)) = keys.iter().find(|(_, given)| *given && self.runner != Runner::Network) {
            return Err(self.error(format_args!("{key} is a key of runner {:?}", Runner::Network)));
        }
        for point in &self.point {
            self.check_keys(point)?;
            rules::check(self, point)?;
        }
        Ok(())
    }

    fn check_keys(&self, point: &ClaimPoint) -> Result<(), ClaimError> {
        let keys = [
            ("rate", point.rate.is_some(), Runner::Link),
            ("loss", point.loss.is_some(), Runner::Link),
            ("mode", point.mode.is_some(), Runner::Link),
            ("load", point.load.is_some(), Runner::Link),
            ("over_loss", point.over_loss.is_some(), Runner::Link),
            ("of", point.of.is_some(), Runner::Network),
            ("minus", point.minus.is_some(), Runner::Network),
            ("over", point.over.is_some() && self.runner != Runner::Link, Runner::Network),
            ("over_measure", point.over_measure.is_some(), Runner::Network),
            ("constraint", point.constraint.is_some(), Runner::Fleet),
            ("pods", point.pods.is_some(), Runner::Fleet),
        ];
        match keys.iter().find(|(_, given, runner)| *given && self.runner != *runner) {
            Some((key, _, runner)) => {
                Err(self.error_at(point, key, format_args!("{key} is a key of runner {runner:?}")))
            }
            None => Ok(()),
        }
    }
}

impl PointKind {
    pub const ALL: [Self; 5] = [Self::Claim, Self::Arithmetic, Self::ModelCheck, Self::Calibrated, Self::Noted];
}

/// Name for several points of a kind.
impl fmt::Display for PointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Claim => "claims",
            Self::Arithmetic => "arithmetic",
            Self::ModelCheck => "model checks",
            Self::Calibrated => "calibrated",
            Self::Noted => "noted",
        })
    }
}

impl ClaimPoint {
    /// Every point has one: a file with a point that has none is refused.
    pub fn kind(&self) -> PointKind {
        self.kind.unwrap_or(PointKind::Claim)
    }
}

impl ClaimError {
    pub fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string())
    }
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ClaimError {}

impl PaperValue {
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Words(_) => None,
        }
    }
}

impl fmt::Display for PaperValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => f.pad(&number(*value)),
            Self::Words(words) => f.pad(words),
        }
    }
}

impl fmt::Display for RunScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Quick => "quick",
            Self::Full => "full",
        })
    }
}

#[cfg(test)]
mod tests;

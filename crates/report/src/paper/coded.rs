//! Claims whose values a function of ours computes: closed forms, accounts of memory, counts held against a model.
//!
//! The file still says, before anything runs, what is claimed and within which band each value must lie; the function
//! only gives values by name.

use serde::Deserialize;

use super::{Effort, Found, Part};
use crate::experiment::{ExperimentError, Measured, Row, Said};
use crate::files::File;
use crate::stopwatch::Stopwatch;
use chart::Chart;

/// A claim, as its file states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The claim's id, such as `rc.model`.
    pub id: String,
    /// A few words for a headline.
    pub title: String,
    /// Section, figure or table of the paper.
    pub paper: String,
    /// What is claimed, in a sentence or two.
    pub claim: String,
    #[serde(default)]
    pub notes: Vec<String>,
    pub point: Vec<StatedPoint>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedPoint {
    /// Extends the claim's id.
    pub id: String,
    /// The name of the value; the point's id if not given.
    pub measure: Option<String>,
    pub paper: Said,
    /// Without one the value is told, not judged.
    pub band: Option<[f64; 2]>,
    #[serde(default)]
    pub why: String,
}

/// What a function found.
#[derive(Clone, Debug, Default)]
pub struct Computed {
    /// By name; `None` if this scale has too little of it.
    pub values: Vec<(String, Option<Measured>)>,
    pub charts: Vec<Chart>,
    /// In addition to those of the file.
    pub notes: Vec<String>,
}

/// `None` if the watch ended it early.
pub type Compute = fn(&Effort<'_>) -> Result<Option<Computed>, ExperimentError>;

#[derive(Clone, Debug)]
pub struct CodeClaim {
    pub statement: Statement,
    pub compute: Compute,
}

/// Claims of a paper that are computed, under a name that all of them can be asked for by.
#[derive(Clone, Debug)]
pub struct Coded {
    name: &'static str,
    claims: Vec<CodeClaim>,
}

impl Statement {
    /// `name` is the file's, for the message.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        toml::from_str(text).map_err(|error| ExperimentError::new(format_args!("{name}: {error}")))
    }

    /// The claim with its values judged.
    pub fn found(&self, computed: Computed, seconds: f64) -> Result<Found, ExperimentError> {
        let row = |point: &StatedPoint| {
            let id = format!("{}.{}", self.id, point.id);
            let measure = point.measure.as_ref().unwrap_or(&point.id);
            let value = computed.values.iter().find(|(name, _)| name == measure);
            let unknown = || ExperimentError::new(format_args!("{}: no measure {measure}", self.id));
            Ok(match (&value.ok_or_else(unknown)?.1, point.band) {
                (Some(measured), Some(band)) => Row::judge(id, &point.paper, band, &point.why, measured),
                (Some(measured), None) => Row::noted(id, &point.paper, &point.why, measured),
                (None, _) => Row::unmeasured(id, &point.paper),
            })
        };
        let rows = self.point.iter().map(row).collect::<Result<_, _>>()?;
        let Self { id, title, paper, claim, notes, .. } = self.clone();
        let notes = notes.into_iter().chain(computed.notes).collect();
        Ok(Found { id, title, claim, paper, charts: computed.charts, rows, notes, seconds })
    }
}

impl Computed {
    pub fn value(&mut self, name: impl Into<String>, measured: Measured) {
        self.values.push((name.into(), Some(measured)));
    }
}

impl Coded {
    /// Reads the files of claims, each with the function that computes what it asks for.
    pub fn read(name: &'static str, claims: &[(File, Compute)]) -> Result<Self, ExperimentError> {
        let claim = |((file, text), compute): &(File, Compute)| {
            Ok(CodeClaim { statement: Statement::parse(file, text)?, compute: *compute })
        };
        claims.iter().map(claim).collect::<Result<_, _>>().map(|claims| Self { name, claims })
    }
}

impl Part for Coded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ids(&self) -> Vec<&str> {
        self.claims.iter().map(|claim| claim.statement.id.as_str()).collect()
    }

    fn retain(&mut self, wanted: &dyn Fn(&str) -> bool) {
        self.claims.retain(|claim| wanted(&claim.statement.id));
    }

    fn run(&self, effort: &Effort<'_>) -> Result<Vec<Found>, ExperimentError> {
        let mut found = Vec::new();
        for CodeClaim { statement, compute } in &self.claims {
            let begun = Stopwatch::start();
            if let Some(computed) = compute(effort)? {
                found.push(statement.found(computed, begun.seconds())?);
            }
        }
        Ok(found)
    }
}

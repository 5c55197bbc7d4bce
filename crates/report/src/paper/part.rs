//! Claims that are run together.

use std::fmt;

use super::{Effort, Found};
use crate::experiment::ExperimentError;
use crate::files::File;
use crate::study::{self, Finding, Study};

pub trait Part: fmt::Debug {
    /// What all of them can be asked for by, such as `net`.
    fn name(&self) -> &'static str;

    /// In the order of the report.
    fn ids(&self) -> Vec<&str>;

    fn retain(&mut self, wanted: &dyn Fn(&str) -> bool);

    /// What the watch ended early is missing from the result.
    fn run(&self, effort: &Effort<'_>) -> Result<Vec<Found>, ExperimentError>;
}

/// Studies of networks, each with the text of its scenario.
#[derive(Clone, Debug)]
pub struct Studies(Vec<(Study, &'static str)>);

impl Studies {
    /// Reads studies and finds the scenario of each among `scenarios`.
    pub fn read(studies: &[File], scenarios: &[File]) -> Result<Self, ExperimentError> {
        let pair = |(name, text): &File| {
            let study = Study::parse(name, text)?;
            let scenario = scenarios.iter().find(|(scenario, _)| *scenario == study.scenario);
            let missing = || ExperimentError::new(format_args!("{name}: no scenario {}", study.scenario));
            let text = scenario.ok_or_else(missing)?.1;
            Ok((study, text))
        };
        studies.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    pub fn pairs(&self) -> &[(Study, &'static str)] {
        &self.0
    }
}

impl Part for Studies {
    fn name(&self) -> &'static str {
        "net"
    }

    fn ids(&self) -> Vec<&str> {
        self.0.iter().map(|(study, _)| study.id.as_str()).collect()
    }

    fn retain(&mut self, wanted: &dyn Fn(&str) -> bool) {
        self.0.retain(|(study, _)| wanted(&study.id));
    }

    fn run(&self, effort: &Effort<'_>) -> Result<Vec<Found>, ExperimentError> {
        let findings = study::conduct(&self.0, effort)?.into_iter();
        Ok(findings.filter(|finding| !finding.rows.is_empty() || !finding.gathered.is_empty()).map(found).collect())
    }
}

fn found(finding: Finding) -> Found {
    let charts = finding.charts();
    let Finding { study, rows, seconds, .. } = finding;
    let Study { id, title, claim, paper, notes, .. } = study;
    Found { id, title, claim, paper, charts, rows, notes, seconds }
}

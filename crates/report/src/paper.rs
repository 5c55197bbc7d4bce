//! Papers whose experiments are run again: which there are, which of their claims are meant, and what came of them.
//!
//! A [`Paper`] is a list of [`Part`]s, each with the claims of one kind, which are run together: studies of networks
//! ([`Studies`]), what code computes ([`Coded`]), and whatever else a paper's own module brings. Every claim ends as a
//! [`Found`], whatever its kind.

mod coded;
mod page;
mod part;

use std::fmt;

use sim::link::Watch;

pub use coded::{CodeClaim, Coded, Compute, Computed, StatedPoint, Statement};
pub use page::About;
pub use part::{Part, Studies};

use crate::experiment::{ExperimentError, Row, Scale};
use crate::{flowradar, linkguardian, lossradar, melo, rdma_corruption};
use chart::Chart;

#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// As it is asked for.
    pub name: &'static str,
    /// Headline of the report.
    pub title: &'static str,
    /// Its first paragraph.
    pub lead: &'static str,
    pub(crate) parts: fn() -> Parts,
}

/// The parts of a paper, in the order of the report.
pub type Parts = Result<Vec<Box<dyn Part>>, ExperimentError>;

/// Every paper, in the order in which they are listed.
pub const PAPERS: [Paper; 5] =
    [linkguardian::PAPER, rdma_corruption::PAPER, melo::PAPER, lossradar::PAPER, flowradar::PAPER];

/// How claims are run.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    pub scale: Scale,
    /// Runs at the same time; no result depends on it.
    pub jobs: usize,
    pub seed: u64,
    pub watch: &'a (dyn Watch + Sync),
}

/// One claim with what came of it.
#[derive(Clone, Debug)]
pub struct Found {
    pub id: String,
    pub title: String,
    /// What is claimed, in a sentence or two.
    pub claim: String,
    /// Section, figure or table of the paper.
    pub paper: String,
    pub charts: Vec<Chart>,
    pub rows: Vec<Row>,
    /// What a reader should know of how it was done.
    pub notes: Vec<String>,
    pub seconds: f64,
}

/// A paper's claims, or those of them that were chosen.
#[derive(Debug)]
pub struct Claims {
    paper: Paper,
    parts: Vec<Box<dyn Part>>,
}

/// What came of them.
#[derive(Debug)]
pub struct Reproduction {
    pub paper: Paper,
    pub found: Vec<Found>,
}

impl Paper {
    pub fn named(name: &str) -> Option<Self> {
        PAPERS.into_iter().find(|paper| paper.name == name)
    }

    pub fn claims(self) -> Result<Claims, ExperimentError> {
        Ok(Claims { paper: self, parts: (self.parts)()? })
    }

    /// What can be asked for: the paper, its parts, its claims.
    pub fn known(self) -> Result<Vec<String>, ExperimentError> {
        let claims = self.claims()?;
        let mut names: Vec<&str> = Vec::new();
        for part in claims.parts.iter().filter(|part| !part.ids().is_empty()) {
            if !names.contains(&part.name()) {
                names.push(part.name());
            }
        }
        let below = names.into_iter().chain(claims.ids()).map(|what| format!("{}/{what}", self.name));
        Ok(std::iter::once(self.name.to_owned()).chain(below).collect())
    }
}

impl Claims {
    /// The claims meant by `linkguardian`, `linkguardian/net` or `linkguardian/lg.fig8`; `None` if there are none.
    pub fn meant(what: &str) -> Result<Option<Self>, ExperimentError> {
        let (name, claim) = what.split_once('/').map_or((what, None), |(name, claim)| (name, Some(claim)));
        let Some(paper) = Paper::named(name) else { return Ok(None) };
        let all = paper.claims()?;
        Ok(match claim {
            None => Some(all),
            Some("") => None,
            Some(claim) => all.select(claim),
        })
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(|part| part.ids())
    }

    /// Those meant by the name of a part or the beginning of an id; `None` if there are none.
    pub fn select(mut self, what: &str) -> Option<Self> {
        for part in &mut self.parts {
            if part.name() != what {
                part.retain(&|id| id.starts_with(what));
            }
        }
        let any = self.ids().next().is_some();
        any.then_some(self)
    }

    /// Runs them; what the watch ended early is missing from the result.
    pub fn reproduce(&self, effort: &Effort<'_>) -> Result<Reproduction, ExperimentError> {
        let mut found = Vec::new();
        for part in &self.parts {
            found.extend(part.run(effort)?);
        }
        Ok(Reproduction { paper: self.paper, found })
    }
}

impl Reproduction {
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.found.iter().flat_map(|found| &found.rows)
    }
}

impl fmt::Debug for Effort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scale, jobs, seed, watch: _ } = self;
        f.debug_struct("Effort").field("scale", scale).field("jobs", jobs).field("seed", seed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

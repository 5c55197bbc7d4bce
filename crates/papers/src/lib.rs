//! Papers whose experiments are run again: which there are, which of their claims are meant, and running those.
//!
//! The claims of a [`Paper`] are the files in its folder under `experiments/`; a file says which runner makes its runs.
//! With any runner, a claim ends as a [`ClaimResult`].

mod deter;
mod files;
mod flowradar;
mod hpcc;
mod linkguardian;
mod lossradar;
mod melo;
mod page;
mod pl2;
pub mod rdma_corruption;
mod sundial;

pub use page::PageInfo;

use report::claim::files::{self as claim_files, EmbeddedFile};
use report::claim::{Claim, ClaimError, ClaimResult, PointResult};
use report::runner::{self, Computations, Effort};

#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// As it is asked for, and the name of its folder.
    pub name: &'static str,
    /// Headline of the report.
    pub title: &'static str,
    /// Its first paragraph.
    pub lead: &'static str,
    /// What computes the claims of runner `computed`.
    computations: Computations,
}

/// Every paper, in the order in which they are listed.
pub const PAPERS: [Paper; 9] = [
    linkguardian::PAPER,
    rdma_corruption::PAPER,
    melo::PAPER,
    lossradar::PAPER,
    flowradar::PAPER,
    hpcc::PAPER,
    pl2::PAPER,
    deter::PAPER,
    sundial::PAPER,
];

/// A paper's claims, or those of them that were chosen, in the order of the report.
#[derive(Clone, Debug)]
pub struct Claims {
    paper: Paper,
    claims: Vec<Claim>,
}

/// A paper with the results of its claims.
#[derive(Debug)]
pub struct Reproduction {
    pub paper: Paper,
    pub results: Vec<ClaimResult>,
}

impl Paper {
    pub fn named(name: &str) -> Option<Self> {
        PAPERS.into_iter().find(|paper| paper.name == name)
    }

    pub fn claims(self) -> Result<Claims, ClaimError> {
        Claims::read(self, &files::of_paper(self.name))
    }

    /// What can be asked for: the paper, its parts, its claims.
    pub fn known(self) -> Result<Vec<String>, ClaimError> {
        let Claims { claims, .. } = self.claims()?;
        let mut names: Vec<&str> = Vec::new();
        for claim in &claims {
            if !names.contains(&claim.part()) {
                names.push(claim.part());
            }
        }
        names.extend(claims.iter().map(|claim| claim.id.as_str()));
        let below = names.into_iter().map(|what| format!("{}/{what}", self.name));
        Ok(std::iter::once(self.name.to_owned()).chain(below).collect())
    }
}

impl Claims {
    /// The claims among a paper's files.
    fn read(paper: Paper, files: &[EmbeddedFile]) -> Result<Self, ClaimError> {
        let claims = claim_files::claims(files)?;
        claims.iter().try_for_each(|claim| runner::check(claim, paper.computations))?;
        Ok(Self { paper, claims })
    }

    /// The claims meant by `linkguardian`, `linkguardian/net` or `linkguardian/lg.fig8`; `None` if there are none.
    pub fn meant(what: &str) -> Result<Option<Self>, ClaimError> {
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
        self.claims.iter().map(|claim| claim.id.as_str())
    }

    /// Those meant by the name of a part or the beginning of an id; `None` if there are none.
    pub fn select(mut self, what: &str) -> Option<Self> {
        self.claims.retain(|claim| claim.part() == what || claim.id.starts_with(what));
        (!self.claims.is_empty()).then_some(self)
    }

    /// Runs them; what the watch ended early is missing from the result.
    pub fn reproduce(&self, effort: &Effort<'_>) -> Result<Reproduction, ClaimError> {
        let mut results = runner::run(&self.claims, self.paper.computations, effort)?;
        for result in &mut results {
            let (paper, id) = (self.paper.name, &result.id);
            result.command = format!("hitless reproduce {paper}/{id} --scale {} --seed {}", effort.scale, effort.seed);
        }
        Ok(Reproduction { paper: self.paper, results })
    }
}

impl Reproduction {
    pub fn points(&self) -> impl Iterator<Item = &PointResult> {
        self.results.iter().flat_map(|result| &result.points)
    }
}

#[cfg(test)]
mod tests;

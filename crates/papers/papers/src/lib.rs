//! Papers whose experiments are run again: which there are, which of their claims are meant, and running those.
//!
//! The claims of a [`Paper`] are the files in its folder under `experiments/`; a file says which runner makes its runs.
//! With any runner, a claim ends as a [`ClaimResult`].

mod deter;
mod figures;
mod files;
mod flowradar;
mod hpcc;
mod kept;
mod linkguardian;
mod lossradar;
mod melo;
mod overview;
mod page;
mod pl2;
pub mod rdma_corruption;
mod saved;
mod sundial;
mod textbook;

pub use figures::PaperFigure;
pub use overview::{EvidenceGroup, IndexInfo, Overview};
pub use page::PageInfo;
pub use saved::{SavedClaim, SavedResults, SavedRun};

use report::claim::files::{self as claim_files, EmbeddedFile};
use report::claim::{Claim, ClaimError, ClaimPoint, ClaimResult, PointResult, check_across};
use report::runner::{self, Computations, Effort};

#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Name on the command line, and of its folder.
    pub name: &'static str,
    /// Headline of the report.
    pub title: &'static str,
    /// First paragraph of the paper's page.
    pub lead: &'static str,
    /// Functions that compute the claims of runner `computed`.
    computations: Computations,
}

/// Every paper, in the order in which they are listed.
pub const PAPERS: [Paper; 10] = [
    linkguardian::PAPER,
    rdma_corruption::PAPER,
    melo::PAPER,
    lossradar::PAPER,
    flowradar::PAPER,
    hpcc::PAPER,
    pl2::PAPER,
    deter::PAPER,
    sundial::PAPER,
    textbook::PAPER,
];

/// Help on the names that can be requested, in a few sentences that name every paper.
pub fn help() -> String {
    let names = PAPERS.map(|paper| paper.name).join(", ");
    format!(
        "A paper: {names}. A part of it, such as `linkguardian/net`; or the claims whose ids begin so, such as \
         `linkguardian/lg.fig11`. `all` runs every paper; `list` prints papers, claims and figures, and what is not \
         reproduced and why"
    )
}

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

    /// Names that can be requested: the paper, its parts, its claims.
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
        check_across(&claims)?;
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

    /// Selects the claims meant by the name of a part or the beginning of an id; `None` if there are none.
    pub fn select(mut self, what: &str) -> Option<Self> {
        self.claims.retain(|claim| claim.part() == what || claim.id.starts_with(what));
        (!self.claims.is_empty()).then_some(self)
    }

    pub fn paper(&self) -> Paper {
        self.paper
    }

    /// Selects the claims whose ids `is` accepts.
    #[must_use]
    pub fn filter(mut self, is: impl Fn(&str) -> bool) -> Self {
        self.claims.retain(|claim| is(&claim.id));
        self
    }

    /// Points that were saved, as results of these claims and of the kinds that these have; without charts. `None` if there
    /// is no such claim any more, or it has further points, other values of the paper or bands that are not part of those that
    /// were decided before the run.
    pub fn saved(&self, saved: &SavedClaim) -> Option<ClaimResult> {
        let claim = self.claims.iter().find(|claim| claim.id == saved.id)?;
        let as_asked = |point: &ClaimPoint| {
            let id = format!("{}.{}", claim.id, point.id);
            saved.points.iter().find(|saved| saved.id == id).and_then(|saved| saved.under(point))
        };
        let points = claim.point.iter().map(as_asked).collect::<Option<Vec<_>>>()?;
        Some(ClaimResult { points, ..ClaimResult::judge(claim, &[], saved.seconds) })
    }

    /// Runs them one after the other and gives each result as soon as it is there.
    pub fn reproduce_each(
        &self,
        effort: &Effort<'_>,
        done: &mut dyn FnMut(ClaimResult) -> Result<(), ClaimError>,
    ) -> Result<(), ClaimError> {
        runner::run_each(&self.claims, self.paper.computations, effort, &mut |mut result| {
            result.command = self.command(&result.id, effort);
            done(result)
        })
    }

    /// Command that runs one of them again.
    fn command(&self, id: &str, effort: &Effort<'_>) -> String {
        format!("hitless reproduce {}/{id} --scale {} --seed {}", self.paper.name, effort.scale, effort.seed)
    }

    /// Runs them; what the watch ended early is missing from the result.
    pub fn reproduce(&self, effort: &Effort<'_>) -> Result<Reproduction, ClaimError> {
        let mut results = runner::run(&self.claims, self.paper.computations, effort)?;
        for result in &mut results {
            result.command = self.command(&result.id, effort);
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

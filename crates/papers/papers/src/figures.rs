//! Every figure and table of a paper, with the claims that run it again, or the reason why there is none.
//!
//! They are listed in `experiments/<paper>/figures.toml`.

use report::claim::{ClaimError, PointResult, VerdictTally};
use serde::{Deserialize, Serialize};

use crate::{Claims, Paper, files};

/// A figure or table, or a place in the text that has numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFigure {
    /// Name in the paper.
    pub name: String,
    pub shows: String,
    /// Ids of the claims that run it again.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Reason for which no claim covers the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<String>,
    /// Parts of the figure that its claims leave out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FiguresFile {
    figure: Vec<PaperFigure>,
}

impl Paper {
    /// Figures, in the order of the paper.
    pub fn figures(self) -> Result<Vec<PaperFigure>, ClaimError> {
        let path = format!("{}/figures.toml", self.name);
        let (_, text) = files::named(&path)?;
        let wrong = |what: String| ClaimError::new(format_args!("{path}: {what}"));
        let FiguresFile { figure } = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let claims = self.claims()?;
        figure.iter().try_for_each(|figure| figure.check(&claims).map_err(wrong))?;
        Ok(figure)
    }
}

impl PaperFigure {
    fn check(&self, claims: &Claims) -> Result<(), String> {
        let name = &self.name;
        if let Some(unknown) = self.claims.iter().find(|id| !claims.ids().any(|known| known == *id)) {
            return Err(format!("{name}: no claim {unknown}"));
        }
        match (self.claims.is_empty(), &self.not) {
            (true, None) => Err(format!("{name}: expected claims, or not = \"why there is none\"")),
            (false, Some(_)) => Err(format!("{name}: has claims and a reason why there is none")),
            _ => Ok(()),
        }
    }

    /// Counts the points of its claims by their verdicts.
    pub fn tally<'a>(&self, results: impl IntoIterator<Item = (&'a str, &'a [PointResult])>) -> VerdictTally {
        let its = results.into_iter().filter(|(id, _)| self.claims.iter().any(|claim| claim == id));
        VerdictTally::of(its.flat_map(|(_, points)| points))
    }
}

#[cfg(test)]
mod tests {
    use crate::PAPERS;

    #[test]
    fn every_paper_lists_its_figures_and_every_claim_is_known() {
        for paper in PAPERS {
            let figures = paper.figures().unwrap();
            assert!(figures.len() > 5, "{}", paper.name);
        }
    }

    #[test]
    fn a_claim_that_no_figure_has_is_not_in_the_paper() {
        let mut beyond = Vec::new();
        for paper in PAPERS {
            let figures = paper.figures().unwrap();
            let listed = |id: &str| figures.iter().any(|figure| figure.claims.iter().any(|claim| claim == id));
            beyond.extend(paper.claims().unwrap().claims.into_iter().filter(|claim| !listed(&claim.id)));
        }
        for claim in beyond {
            let paper = &claim.paper;
            assert!(["not in the paper", "beyond"].iter().any(|words| paper.contains(words)), "{}: {paper}", claim.id);
        }
    }
}

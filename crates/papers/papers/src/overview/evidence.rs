//! Headline of everything that prints verdicts: claims by the form of what is printed, papers and textbooks apart.

use std::fmt;

use report::claim::{EvidenceCounts, PointResult};
use serde::Serialize;

use crate::{Paper, textbook};

/// Claims of all papers, or of the textbooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EvidenceGroup {
    /// `papers` or `textbooks`.
    pub of: &'static str,
    #[serde(flatten)]
    pub counts: EvidenceCounts,
}

impl EvidenceGroup {
    /// Sums by group, papers first; a group without results is absent.
    pub fn sums<'a>(results: impl IntoIterator<Item = (&'a str, EvidenceCounts)>) -> Vec<Self> {
        let mut groups = ["papers", "textbooks"].map(|of| (Self { of, counts: EvidenceCounts::default() }, 0));
        for (paper, counts) in results {
            let (group, papers) = &mut groups[usize::from(paper == textbook::PAPER.name)];
            group.counts += counts;
            *papers += 1;
        }
        groups.into_iter().filter(|(_, papers)| *papers > 0).map(|(group, _)| group).collect()
    }

    /// Counts of points that were just measured.
    pub fn of_points<'a, P>(results: impl IntoIterator<Item = (Paper, P)>) -> Vec<Self>
    where
        P: IntoIterator<Item = &'a PointResult>,
    {
        Self::sums(results.into_iter().map(|(paper, points)| (paper.name, EvidenceCounts::of(points))))
    }
}

impl fmt::Display for EvidenceGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.of, self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbooks_are_counted_apart() {
        let counts = |words| EvidenceCounts { words, ..EvidenceCounts::default() };
        let sums = |names: &[(&'static str, usize)]| {
            let sums = EvidenceGroup::sums(names.iter().map(|(name, words)| (*name, counts(*words))));
            sums.into_iter().map(|group| (group.of, group.counts.words)).collect::<Vec<_>>()
        };
        assert_eq!(sums(&[("melo", 1), ("textbook", 2), ("hpcc", 3)]), [("papers", 4), ("textbooks", 2)]);
        assert_eq!(sums(&[("melo", 1)]), [("papers", 1)]);
    }
}

//! From causes of single losses to what is broken: li-thesis §5.7.2.2, "every injected problem is captured".

use std::collections::{BTreeMap, BTreeSet};

use super::Thresholds;
use super::thresholds::ns;
use crate::loss::Cause;
use crate::packet::Stamp;

/// How many losses have which cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary([u64; Cause::ALL.len()]);

impl Summary {
    pub fn add(&mut self, cause: Cause) {
        self.add_times(cause, 1);
    }

    pub fn add_times(&mut self, cause: Cause, times: u64) {
        self.0[cause as usize] += times;
    }

    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    pub fn losses(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each cause that has any losses, with how many.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().zip(self.0).filter(|(_, losses)| *losses > 0)
    }
}

impl FromIterator<Cause> for Summary {
    fn from_iter<I: IntoIterator<Item = Cause>>(causes: I) -> Self {
        let mut summary = Self::default();
        causes.into_iter().for_each(|cause| summary.add(cause));
        summary
    }
}

/// A place that somebody should look at, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit<S> {
    pub segment: S,
    pub cause: Cause,
    pub losses: u64,
    /// Intervals with such losses.
    pub intervals: usize,
    pub first: Stamp,
    pub last: Stamp,
}

/// The places that lose packets to blackholes, at random or in loops, again and again: in as many intervals as
/// [`Thresholds::again`] says. Broken things stay broken, so what happened once may be a mistake of the analysis.
/// Congestion accuses nobody.
pub fn culprits<S: Ord + Clone>(
    losses: impl IntoIterator<Item = (S, Stamp, Cause)>,
    thresholds: &Thresholds,
) -> Vec<Culprit<S>> {
    let mut suspects: BTreeMap<(S, Cause), (Culprit<S>, BTreeSet<u64>)> = BTreeMap::new();
    for (segment, at, cause) in losses {
        if !matches!(cause, Cause::Blackhole | Cause::Random | Cause::Loop) {
            continue;
        }
        let new = || {
            let culprit = Culprit { segment: segment.clone(), cause, losses: 0, intervals: 0, first: at, last: at };
            (culprit, BTreeSet::new())
        };
        let (culprit, intervals) = suspects.entry((segment.clone(), cause)).or_insert_with(new);
        intervals.insert(at.0 / ns(thresholds.interval));
        culprit.losses += 1;
        culprit.intervals = intervals.len();
        (culprit.first, culprit.last) = (culprit.first.min(at), culprit.last.max(at));
    }
    let culprits = suspects.into_values().map(|(culprit, _)| culprit);
    culprits.filter(|culprit| culprit.intervals >= thresholds.again).collect()
}

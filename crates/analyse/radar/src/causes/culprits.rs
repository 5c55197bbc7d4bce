//! Derives broken links and switches from the causes of single losses: li-thesis §5.7.2.2, "every injected problem is
//! captured".

use std::collections::{BTreeMap, BTreeSet};

use super::CauseThresholds;
use super::thresholds::ns;
use crate::loss::LossCause;
use units::Timestamp;

/// Number of losses by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseCounts([u64; LossCause::ALL.len()]);

impl CauseCounts {
    pub fn add(&mut self, cause: LossCause) {
        self.add_times(cause, 1);
    }

    pub fn add_times(&mut self, cause: LossCause, times: u64) {
        self.0[cause as usize] += times;
    }

    /// Losses of this cause that were none; fewer are never counted than there are.
    pub fn take_back(&mut self, cause: LossCause, times: u64) {
        let losses = &mut self.0[cause as usize];
        *losses = losses.saturating_sub(times);
    }

    pub fn of(&self, cause: LossCause) -> u64 {
        self.0[cause as usize]
    }

    pub fn losses(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Causes that have any losses, with their counts.
    pub fn causes(&self) -> impl Iterator<Item = (LossCause, u64)> {
        LossCause::ALL.into_iter().zip(self.0).filter(|(_, losses)| *losses > 0)
    }
}

impl FromIterator<LossCause> for CauseCounts {
    fn from_iter<I: IntoIterator<Item = LossCause>>(causes: I) -> Self {
        let mut summary = Self::default();
        causes.into_iter().for_each(|cause| summary.add(cause));
        summary
    }
}

/// A place that somebody should look at, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit<S> {
    pub segment: S,
    pub cause: LossCause,
    pub losses: u64,
    /// Intervals with such losses.
    pub intervals: usize,
    pub first: Timestamp,
    pub last: Timestamp,
}

/// The places that lose packets to blackholes, at random or in loops, again and again: in as many intervals as
/// [`CauseThresholds::again`] says. Broken things stay broken, so what happened once may be a mistake of the analysis.
/// Congestion accuses nobody.
pub fn culprits<S: Ord + Clone>(
    losses: impl IntoIterator<Item = (S, Timestamp, LossCause)>,
    thresholds: &CauseThresholds,
) -> Vec<Culprit<S>> {
    let mut suspects: BTreeMap<(S, LossCause), (Culprit<S>, BTreeSet<u64>)> = BTreeMap::new();
    for (segment, at, cause) in losses {
        if !matches!(cause, LossCause::Blackhole | LossCause::Random | LossCause::Loop) {
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

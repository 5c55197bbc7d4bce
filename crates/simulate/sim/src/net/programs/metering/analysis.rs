//! Derives causes from losses, and broken parts from causes: `radar::causes`, segment by segment, and what only the whole
//! network shows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use radar::causes::{CauseThresholds, Culprit, classify, culprits};
use radar::loss::LossCause;

use super::MeteringResult;
use crate::topology::{DirectedLink, NodeId, Topology};

/// Cause of each loss, and the culprits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossAnalysis {
    /// Cause of each of [`MeteringResult::losses`].
    pub causes: Vec<LossCause>,
    /// Culprits, at most one for each segment, which is known by its directed link.
    pub accused: Vec<Culprit<u32>>,
}

impl MeteringResult {
    /// Judges each segment. Its losses mostly have one reason (li-thesis §5.5.1), so it is accused of the one that cost it
    /// most: the rest of a blackhole's losses, spread out as retransmissions are, would pass for random drops. A loss without a time
    /// has no cause.
    pub fn judge(&self, topology: &Topology, thresholds: &CauseThresholds) -> LossAnalysis {
        let mut segments: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let timed = self.losses.iter().enumerate().filter(|(_, lost)| !lost.is_untimed);
        for (at, lost) in timed {
            segments.entry(lost.segment).or_default().push(at);
        }
        let mut causes = vec![LossCause::Unknown; self.losses.len()];
        for of in segments.values() {
            let losses: Vec<_> = of.iter().map(|at| self.losses[*at].loss).collect();
            for (at, cause) in of.iter().zip(classify(&losses, thresholds)) {
                causes[*at] = cause;
            }
        }
        let judged = self.losses.iter().zip(&causes).map(|(lost, cause)| (lost.segment, lost.loss.at, *cause));
        let mut accused: BTreeMap<u32, Culprit<u32>> = BTreeMap::new();
        for culprit in culprits(judged, thresholds) {
            let worst = accused.entry(culprit.segment).or_insert_with(|| culprit.clone());
            if culprit.losses > worst.losses {
                *worst = culprit;
            }
        }
        let mut verdict = LossAnalysis { causes, accused: accused.into_values().collect() };
        self.join_blackholes(topology, thresholds, &mut verdict);
        verdict
    }

    /// Chance does not choose whom a packet is for. What a segment lost for hosts to whom another segment shows its switch to be
    /// a blackhole is lost there too, however it is spread; only if enough others are left is the segment accused of random
    /// drops. Ours; §5.8 proposes to look at headers.
    fn join_blackholes(&self, topology: &Topology, thresholds: &CauseThresholds, verdict: &mut LossAnalysis) {
        let switch = |segment: u32| topology.to(DirectedLink(segment));
        let lost_to = |segment: u32, cause: LossCause| {
            let of = self.losses.iter().zip(&verdict.causes);
            of.filter(move |(lost, of)| lost.segment == segment && **of == cause).map(|(lost, _)| lost.loss.flow.dst)
        };
        let holes: BTreeSet<(NodeId, IpAddr)> = (verdict.accused.iter())
            .filter(|culprit| culprit.cause == LossCause::Blackhole)
            .flat_map(|culprit| lost_to(culprit.segment, LossCause::Blackhole).map(|to| (switch(culprit.segment), to)))
            .collect();
        let is_joined = |culprit: &Culprit<u32>| {
            let at = switch(culprit.segment);
            let others = lost_to(culprit.segment, LossCause::Random).filter(|to| !holes.contains(&(at, *to)));
            culprit.cause == LossCause::Random && others.count() < thresholds.few
        };
        let joined: Vec<bool> = verdict.accused.iter().map(is_joined).collect();
        for (culprit, _) in verdict.accused.iter_mut().zip(joined).filter(|(_, joined)| *joined) {
            culprit.cause = LossCause::Blackhole;
        }
    }
}

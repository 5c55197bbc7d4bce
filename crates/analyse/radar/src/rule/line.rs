//! A cause as it is reported.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CauseFigures, CauseGroup, CauseReason, IntervalAccount};
use crate::loss::LossCause;
use crate::packet::Flow;

/// Flows that are named.
const MOST_FLOWS: usize = 10;

/// Cause of some losses of an interval. Times are nanoseconds of the upstream clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseLine {
    pub since_ns: u64,
    pub until_ns: u64,
    pub lost: u64,
    pub cause: LossCause,
    pub why: CauseReason,
    pub evidence: CauseEvidenceLine,
}

/// Figures behind a cause, and the flows with most of its losses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseEvidenceLine {
    #[serde(flatten)]
    pub figures: CauseFigures,
    pub flows: Vec<String>,
    pub more_flows: usize,
}

impl IntervalAccount {
    /// The line of one of its groups, which stands for `lost` packets.
    pub fn line(&self, group: &CauseGroup, lost: u64) -> CauseLine {
        let mut flows: BTreeMap<Flow, u64> = BTreeMap::new();
        for nth in &group.losses {
            *flows.entry(self.evidence.losses[*nth].flow).or_default() += 1;
        }
        if group.why == CauseReason::Round {
            flows.extend(self.round.map(|round| (round.flow, 1)));
        }
        let mut flows: Vec<(Flow, u64)> = flows.into_iter().collect();
        flows.sort_by_key(|(_, lost)| std::cmp::Reverse(*lost));
        let more_flows = flows.len().saturating_sub(MOST_FLOWS);
        let flows = flows.into_iter().take(MOST_FLOWS).map(|(flow, _)| flow.to_string()).collect();
        CauseLine {
            since_ns: self.since.0,
            until_ns: self.until.0,
            lost,
            cause: group.cause,
            why: group.why,
            evidence: CauseEvidenceLine { figures: group.figures, flows, more_flows },
        }
    }
}

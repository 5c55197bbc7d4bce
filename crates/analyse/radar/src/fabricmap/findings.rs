//! Findings: a kind, a place, a time and the flows concerned, in bounded memory.
//!
//! What is found again at the same place belongs to the same finding until it has not been found for a second. Invariants: a
//! finding names at most [`MOST_FLOWS`] flows and counts the others; there are at most [`MOST_FINDINGS`], and more are counted.

use std::collections::BTreeMap;
use std::fmt;

use crate::flowset::FlowKey;

/// Flows in a finding's memory.
pub const MOST_FLOWS: usize = 65_536;
/// Findings, and the flows of all of them.
pub const MOST_FINDINGS: usize = 4_096;
const MOST_ALL_FLOWS: usize = 4 * MOST_FLOWS;
/// Nanoseconds after which a finding is over.
const OVER: u64 = 1_000_000_000;

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    Loop,
    Blackhole,
    Loss,
    Imbalance,
    Heavy,
    Pulsing,
    OffRoute,
}

impl FindingKind {
    pub const ALL: [Self; 7] =
        [Self::Loop, Self::Blackhole, Self::Loss, Self::Imbalance, Self::Heavy, Self::Pulsing, Self::OffRoute];

    pub fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Blackhole => "blackhole",
            Self::Loss => "loss",
            Self::Imbalance => "imbalance",
            Self::Heavy => "heavy",
            Self::Pulsing => "pulsing",
            Self::OffRoute => "off-route",
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Place of a finding: switches (`spine1`) or ports (`leaf1/eth1`), in the order in which packets pass them.
pub type FindingPlace = Vec<String>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// Nanoseconds since 1970: the beginning of the first slot and the end of the last one.
    pub since: u64,
    pub until: u64,
    /// End of the slot with which it was known.
    pub known: u64,
    pub place: FindingPlace,
    /// Flows with their packets, as far as there was memory for them.
    pub flows: BTreeMap<FlowKey, u64>,
    pub more_flows: u64,
    pub is_sure: bool,
    pub why: &'static str,
}

/// Something that a rule has found in a slot.
#[derive(Clone, Debug)]
pub struct FindingEvidence {
    pub kind: FindingKind,
    pub place: FindingPlace,
    pub why: &'static str,
    pub is_sure: bool,
    /// Beginning of what was seen, and the end of the slot that showed it.
    pub since: u64,
    pub until: u64,
    pub flows: Vec<(FlowKey, u64)>,
}

#[derive(Debug, Default)]
pub struct FindingLog {
    all: Vec<Finding>,
    /// The latest finding of each kind at each place.
    latest: BTreeMap<(FindingKind, FindingPlace, Option<FlowKey>), usize>,
    flows: usize,
    /// Findings beyond those that are kept.
    pub more: u64,
    /// Numbers of findings that nobody has been told of.
    news: Vec<usize>,
}

impl FindingLog {
    pub fn all(&self) -> &[Finding] {
        &self.all
    }

    /// Adds what a rule found. Heavy and pulsing flows pass many ports: they are one finding for each flow.
    pub fn note(&mut self, evidence: FindingEvidence) {
        let by_flow = matches!(evidence.kind, FindingKind::Heavy | FindingKind::Pulsing);
        let key = match evidence.flows.first() {
            Some((flow, _)) if by_flow => (evidence.kind, Vec::new(), Some(*flow)),
            _ => (evidence.kind, evidence.place.clone(), None),
        };
        let open = self.latest.get(&key).copied();
        match open.filter(|at| evidence.since <= self.all[*at].until.saturating_add(OVER)) {
            Some(at) => self.extend(at, evidence),
            None if self.all.len() >= MOST_FINDINGS => self.more += 1,
            None => {
                self.latest.insert(key, self.all.len());
                self.news.push(self.all.len());
                let FindingEvidence { kind, place, why, is_sure, since, until, .. } = evidence;
                let (flows, more_flows) = (BTreeMap::new(), 0);
                self.all.push(Finding { kind, since, until, known: until, place, flows, more_flows, is_sure, why });
                self.add_flows(self.all.len() - 1, &evidence.flows);
            }
        }
    }

    /// Findings that are new since the last call.
    pub fn news(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.news).into_iter().map(|at| self.all[at].clone()).collect()
    }

    fn extend(&mut self, at: usize, evidence: FindingEvidence) {
        let finding = &mut self.all[at];
        finding.since = finding.since.min(evidence.since);
        finding.until = finding.until.max(evidence.until);
        finding.is_sure |= evidence.is_sure;
        for place in evidence.place {
            if !finding.place.contains(&place) {
                finding.place.push(place);
            }
        }
        self.add_flows(at, &evidence.flows);
    }

    fn add_flows(&mut self, at: usize, flows: &[(FlowKey, u64)]) {
        let finding = &mut self.all[at];
        for (flow, packets) in flows {
            if let Some(known) = finding.flows.get_mut(flow) {
                *known += packets;
            } else if finding.flows.len() < MOST_FLOWS && self.flows < MOST_ALL_FLOWS {
                finding.flows.insert(*flow, *packets);
                self.flows += 1;
            } else {
                finding.more_flows += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabricmap::stories::flow;

    const SECOND: u64 = 1_000_000_000;

    fn evidence(kind: FindingKind, place: &str, at: u64, flows: std::ops::Range<u64>) -> FindingEvidence {
        FindingEvidence {
            kind,
            place: vec![place.to_owned()],
            why: "test",
            is_sure: false,
            since: at,
            until: at + SECOND / 100,
            flows: flows.map(|nth| (flow(nth), 1)).collect(),
        }
    }

    #[test]
    fn what_goes_on_is_one_finding_and_what_comes_back_later_another() {
        let mut log = FindingLog::default();
        for at in [10, 11, 12, 20] {
            log.note(evidence(FindingKind::Loop, "leaf1", at * SECOND, 0..3));
        }
        log.note(evidence(FindingKind::Loop, "leaf2", 12 * SECOND, 0..1));
        log.note(evidence(FindingKind::Blackhole, "leaf1", 12 * SECOND, 0..1));
        let times: Vec<_> =
            log.all().iter().map(|found| (found.kind.name(), found.since / SECOND, found.until / SECOND)).collect();
        assert_eq!(times, [("loop", 10, 12), ("loop", 20, 20), ("loop", 12, 12), ("blackhole", 12, 12)]);
        assert_eq!(log.all()[0].flows[&flow(1)], 3);
        assert_eq!((log.news().len(), log.news().len()), (4, 0));
    }

    #[test]
    fn a_heavy_flow_is_one_finding_at_all_its_ports() {
        let mut log = FindingLog::default();
        for port in ["leaf1/up1", "spine1/down2", "leaf1/up1"] {
            log.note(evidence(FindingKind::Heavy, port, SECOND, 7..8));
        }
        log.note(evidence(FindingKind::Heavy, "leaf1/up1", SECOND, 8..9));
        assert_eq!(log.all().len(), 2);
        assert_eq!(log.all()[0].place, ["leaf1/up1", "spine1/down2"]);
    }

    #[test]
    fn flows_and_findings_without_end_take_no_more_memory() {
        let mut log = FindingLog::default();
        log.note(evidence(FindingKind::Loss, "a", SECOND, 0..MOST_FLOWS as u64 + 1_000));
        assert_eq!((log.all()[0].flows.len(), log.all()[0].more_flows), (MOST_FLOWS, 1_000));
        for nth in 0..MOST_FINDINGS as u64 + 50 {
            log.note(evidence(FindingKind::Loss, &nth.to_string(), SECOND, 100 * nth..100 * nth + 100));
        }
        assert_eq!((log.all().len(), log.more), (MOST_FINDINGS, 51));
        assert!(log.flows <= MOST_ALL_FLOWS);
    }
}

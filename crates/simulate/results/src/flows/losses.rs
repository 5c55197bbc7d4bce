//! Losses that meters found in simulated networks, by segment and cause, and the links that they accuse.

use std::collections::BTreeMap;

use machine::DropReason;
use radar::causes::CauseThresholds;
use radar::loss::LossCause;
use scenario::SweepPoint;
use serde::Serialize;
use sim::net::NetworkOutcome;
use sim::net::metering::{MeteringConfig, MeteringResult, SegmentLoss};
use sim::topology::{DirectedLink, Topology};

/// Losses of one run, or of several of the same point.
#[derive(Clone, Debug, Default)]
pub(super) struct RunLosses {
    meters: u64,
    cells: u64,
    metered: u64,
    late: u64,
    /// Losses by directed link.
    segments: BTreeMap<u32, SegmentLosses>,
    accused: BTreeMap<(u32, LossCause), (u64, u64)>,
}

/// Losses on a directed link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SegmentLosses {
    #[serde(flatten)]
    pub found: MeterLosses,
    #[serde(rename = "really")]
    pub truth: GroundTruth,
}

units::counters! {
    /// Losses that meters found; those that they named, by cause.
    #[derive(Serialize)]
    MeterLosses:
    congestion,
    blackhole,
    random,
    #[serde(rename = "loop")]
    looped,
    unknown,
    /// Losses that were counted and could not be named.
    unnamed,
}

units::counters! {
    /// Losses by their drop reason, as only the simulator knows it; those after the last batch included.
    #[derive(Serialize)]
    GroundTruth:
    full,
    corrupted,
    blackhole,
    expired,
}

#[derive(Clone, Debug, Serialize)]
pub struct LossSummary {
    pub meters: u64,
    /// Cells of each digest.
    pub cells: u64,
    /// Packets that passed upstream meters, at each of them.
    pub metered: u64,
    pub named: u64,
    pub unnamed: u64,
    /// Packets that came after their batch had been looked at.
    pub late: u64,
    /// Losses that the simulator knows of; those after the last batch included.
    pub lost: u64,
    /// Segments that lost anything.
    pub segments: Vec<SegmentSummary>,
    /// Links that somebody should inspect, and the cause to look for.
    pub accused: Vec<AccusedLink>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SegmentSummary {
    pub from: String,
    pub to: String,
    #[serde(flatten)]
    pub losses: SegmentLosses,
}

#[derive(Clone, Debug, Serialize)]
pub struct AccusedLink {
    pub from: String,
    pub to: String,
    pub cause: LossCause,
    pub losses: u64,
    /// Seeds with which it is accused.
    pub runs: u64,
}

/// Thresholds of the thesis, for batches of this length.
fn thresholds(config: &MeteringConfig) -> CauseThresholds {
    let usual = CauseThresholds::default();
    CauseThresholds { batch: config.batch, interval: usual.interval.max(config.batch), ..usual }
}

impl RunLosses {
    /// `None` without meters.
    pub(super) fn of(point: &SweepPoint, outcome: &NetworkOutcome) -> Option<Self> {
        let (found, config) = (outcome.radar.as_ref()?, point.radar()?);
        let verdict = found.judge(point.topology(), &thresholds(config));
        let mut segments: BTreeMap<u32, SegmentLosses> = BTreeMap::new();
        for (lost, cause) in found.losses.iter().zip(&verdict.causes) {
            *segments.entry(lost.segment).or_default().found.of(*cause) += 1;
        }
        for unnamed in &found.unnamed {
            segments.entry(unnamed.segment).or_default().found.unnamed += unnamed.left.net.max(0) as u64;
        }
        for (link, why, packets) in found.truth.counts() {
            segments.entry(link).or_default().truth.count(why, packets);
        }
        let accused = verdict.accused.iter().map(|culprit| ((culprit.segment, culprit.cause), (culprit.losses, 1)));
        let MeteringResult { meters, cells, metered, late, .. } = *found;
        Some(Self { meters, cells, metered, late, segments, accused: accused.collect() })
    }

    pub(super) fn with(mut self, other: Self) -> Self {
        self.metered += other.metered;
        self.late += other.late;
        for (link, segment) in other.segments {
            let mine = self.segments.entry(link).or_default();
            mine.found += segment.found;
            mine.truth += segment.truth;
        }
        for (what, (losses, runs)) in other.accused {
            let mine = self.accused.entry(what).or_default();
            *mine = (mine.0 + losses, mine.1 + runs);
        }
        self
    }

    pub(super) fn summary(&self, topology: &Topology) -> LossSummary {
        let names = |link: u32| {
            let link = DirectedLink(link);
            [topology.from(link), topology.to(link)].map(|node| topology.name(node).to_owned())
        };
        let segments: Vec<SegmentSummary> = (self.segments.iter())
            .map(|(link, losses)| {
                let [from, to] = names(*link);
                SegmentSummary { from, to, losses: *losses }
            })
            .collect();
        let accused = self.accused.iter().map(|((link, cause), (losses, runs))| {
            let [from, to] = names(*link);
            AccusedLink { from, to, cause: *cause, losses: *losses, runs: *runs }
        });
        LossSummary {
            meters: self.meters,
            cells: self.cells,
            metered: self.metered,
            named: self.segments.values().map(|segment| segment.found.named()).sum(),
            unnamed: self.segments.values().map(|segment| segment.found.unnamed).sum(),
            late: self.late,
            lost: self.segments.values().map(|segment| segment.truth.all()).sum(),
            segments,
            accused: accused.collect(),
        }
    }
}

impl MeterLosses {
    fn of(&mut self, cause: LossCause) -> &mut u64 {
        match cause {
            LossCause::Congestion => &mut self.congestion,
            LossCause::Blackhole => &mut self.blackhole,
            LossCause::Random => &mut self.random,
            LossCause::Loop => &mut self.looped,
            LossCause::Unknown => &mut self.unknown,
        }
    }

    pub fn named(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum::<u64>() - self.unnamed
    }
}

impl GroundTruth {
    fn count(&mut self, why: DropReason, packets: u64) {
        match why {
            DropReason::Full => self.full += packets,
            DropReason::Corrupted => self.corrupted += packets,
            DropReason::Blackhole => self.blackhole += packets,
            DropReason::Expired => self.expired += packets,
            // Dropped on purpose; meters of a black box cannot know.
            DropReason::Filtered => {}
        }
    }

    pub fn all(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

/// The losses that meters named, each with its cause, by batch, segment and time.
pub(super) fn named(point: &SweepPoint, outcome: &NetworkOutcome) -> Vec<(SegmentLoss, LossCause)> {
    let (Some(found), Some(config)) = (&outcome.radar, point.radar()) else { return Vec::new() };
    let causes = found.judge(point.topology(), &thresholds(config)).causes;
    found.losses.iter().copied().zip(causes).collect()
}

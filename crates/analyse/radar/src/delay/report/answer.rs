//! Output of `--json`.

use serde::Serialize;

use super::{DelayReport, reason};
use crate::delay::{DelayPercentiles, DirectionDelays, FlowDelays};
use crate::packet::FlowFields;

#[derive(Debug, Serialize)]
pub struct DelayAnswer {
    /// Packets that were measured.
    packets: u64,
    /// Lead of DOWN's clock over UP's, at the time of UP's clock when it is known best.
    offset_ns: Option<(i64, i64)>,
    offset_at_ns: u64,
    /// Drift of DOWN's clock against UP's, over the packets of both.
    drift_ppm: Option<(f64, f64)>,
    directions: Vec<DirectionLine>,
    /// The direction that takes longer, if that is sure.
    slower: Option<String>,
    flows: Vec<FlowLine>,
    /// Flows with fewer packets, which are not listed.
    more_flows: u64,
    packets_up: u64,
    packets_down: u64,
    /// Packets that were not measured.
    only_up: u64,
    only_down: u64,
    alike: u64,
    undirected: u64,
    drift_bound_ppm: f64,
    warnings: Vec<String>,
    wall_seconds: f64,
}

/// Each between two ends; null without packets.
#[derive(Debug, Serialize)]
struct DelayLine {
    p50: Option<(u64, u64)>,
    p99: Option<(u64, u64)>,
    max: Option<(u64, u64)>,
}

impl From<Option<DelayPercentiles>> for DelayLine {
    fn from(delay: Option<DelayPercentiles>) -> Self {
        Self { p50: delay.map(|of| of.p50), p99: delay.map(|of| of.p99), max: delay.map(|of| of.max) }
    }
}

#[derive(Debug, Serialize)]
struct DirectionLine {
    direction: String,
    n: u64,
    delay_ns: DelayLine,
    /// The medians of both directions differ by more than they may be wrong.
    sure: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl DirectionLine {
    fn new(report: &DelayReport, of: &DirectionDelays) -> Self {
        Self {
            direction: of.direction.to_string(),
            n: of.packets,
            delay_ns: of.delay.into(),
            sure: of.sure,
            reason: reason(of, &report.analysis),
        }
    }
}

#[derive(Debug, Serialize)]
struct FlowLine {
    #[serde(flatten)]
    flow: FlowFields,
    direction: String,
    n: u64,
    delay_ns: DelayLine,
}

impl FlowLine {
    fn new(FlowDelays { flow, direction, packets, delay }: &FlowDelays) -> Self {
        Self { flow: (*flow).into(), direction: direction.to_string(), n: *packets, delay_ns: Some(*delay).into() }
    }
}

impl DelayAnswer {
    pub(super) fn of(report: &DelayReport) -> Self {
        let analysis = &report.analysis;
        Self {
            packets: analysis.packets,
            offset_ns: analysis.offset.ends(),
            offset_at_ns: analysis.offset_at.0,
            drift_ppm: analysis.drift_ppm,
            directions: analysis.directions.iter().map(|of| DirectionLine::new(report, of)).collect(),
            slower: analysis.slower.map(|direction| direction.to_string()),
            flows: analysis.flows.iter().map(FlowLine::new).collect(),
            more_flows: analysis.more_flows,
            packets_up: analysis.up.packets,
            packets_down: analysis.down.packets,
            only_up: analysis.unmeasured.only_up,
            only_down: analysis.unmeasured.only_down,
            alike: analysis.unmeasured.alike,
            undirected: analysis.unmeasured.undirected,
            drift_bound_ppm: report.question.drift_ppm,
            warnings: report.notes.clone(),
            wall_seconds: report.seconds,
        }
    }
}

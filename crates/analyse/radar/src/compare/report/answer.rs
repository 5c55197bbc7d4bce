//! Output of `--json`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::LossReport;
use crate::compare::{FlowLosses, OutsideCounts};
use crate::loss::{Loss, LossCause};
use crate::packet::FlowFields;
use crate::rule::CauseLine;

#[derive(Debug, Serialize)]
pub struct LossAnswer {
    lost: Vec<LostPacketLine>,
    /// Lost too, but more than there was memory for.
    unnamed: u64,
    packets_up: u64,
    packets_down: u64,
    /// All that was lost, and its share of the packets that were judged.
    losses: u64,
    loss: f64,
    judged: u64,
    /// Packets of UP that came from DOWN's side: they could not be lost on the way that is compared.
    other_direction: u64,
    /// Packets that no router forwards: neither compared nor judged.
    link_local: PerCapture<u64>,
    causes: BTreeMap<LossCause, u64>,
    /// Causes by interval, and what they rest on.
    intervals: Vec<CauseLine>,
    flows: Vec<FlowLossLine>,
    /// Packets of UP before DOWN's capture began and after it ended: not judged.
    outside: OutsidePackets,
    /// Packets of DOWN that UP lacks; true if UP has packets of the other direction.
    only_down: u64,
    both_directions: bool,
    /// Packets of DOWN from before or after UP's capture.
    down_outside: u64,
    skew_ns: Option<i64>,
    drift_ns: i64,
    not_ip: PerCapture<u64>,
    truncated: PerCapture<bool>,
    /// Frames of segmentation or receive offload that were cut into the packets of the wire.
    super_frames: PerCapture<u64>,
    /// Packets were compared up to this many bytes, from the IP header on.
    depth: usize,
    exact: bool,
    warnings: Vec<String>,
    wall_seconds: f64,
    packets_per_second: f64,
}

#[derive(Debug, Serialize)]
struct PerCapture<T> {
    up: T,
    down: T,
}

#[derive(Debug, Serialize)]
struct OutsidePackets {
    before: u64,
    after: u64,
}

impl From<OutsideCounts> for OutsidePackets {
    fn from(OutsideCounts { before, after }: OutsideCounts) -> Self {
        Self { before, after }
    }
}

#[derive(Debug, Serialize)]
struct LostPacketLine {
    time: u64,
    /// Interval of the loss by DOWN's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_down: Option<(u64, u64)>,
    src: IpAddr,
    dst: IpAddr,
    proto: u8,
    src_port: u16,
    dst_port: u16,
    tcp_seq: Option<u32>,
    ip_id: Option<u16>,
    cause: LossCause,
}

#[derive(Debug, Serialize)]
struct FlowLossLine {
    #[serde(flatten)]
    flow: FlowFields,
    packets: u64,
    lost: u64,
}

impl LostPacketLine {
    fn new(report: &LossReport, loss: &Loss, cause: LossCause) -> Self {
        let flow = loss.flow;
        Self {
            time: loss.at.0,
            time_down: report.down_time(loss.at.0),
            src: flow.src,
            dst: flow.dst,
            proto: flow.protocol,
            src_port: flow.src_port,
            dst_port: flow.dst_port,
            tcp_seq: loss.tcp.map(|segment| segment.seq),
            ip_id: loss.ip_id,
            cause,
        }
    }
}

impl FlowLossLine {
    fn new(FlowLosses { flow, packets, lost }: &FlowLosses) -> Self {
        Self { flow: (*flow).into(), packets: *packets, lost: *lost }
    }
}

impl LossAnswer {
    pub fn of(report: &LossReport) -> Self {
        let LossReport { captures, comparison, causes, intervals, notes, seconds, clock: _ } = report;
        let mut by_cause = BTreeMap::new();
        causes.iter().for_each(|cause| *by_cause.entry(*cause).or_default() += 1);
        let lost = comparison.lost.iter().zip(causes);
        Self {
            lost: lost.map(|(lost, cause)| LostPacketLine::new(report, &lost.loss, *cause)).collect(),
            unnamed: comparison.unnamed,
            packets_up: comparison.up.packets,
            packets_down: comparison.down.packets,
            losses: comparison.losses(),
            loss: report.loss(),
            judged: comparison.judged(),
            other_direction: comparison.other_way,
            link_local: PerCapture { up: comparison.up.link_local, down: comparison.down.link_local },
            causes: by_cause,
            intervals: intervals.clone(),
            flows: comparison.flows.iter().map(FlowLossLine::new).collect(),
            outside: comparison.outside.into(),
            only_down: comparison.only_down,
            both_directions: comparison.both_ways,
            down_outside: comparison.down_outside,
            skew_ns: comparison.skew,
            drift_ns: comparison.drift,
            not_ip: PerCapture { up: comparison.up.not_ip, down: comparison.down.not_ip },
            truncated: PerCapture { up: comparison.up.truncated, down: comparison.down.truncated },
            super_frames: PerCapture { up: comparison.up.super_frames, down: comparison.down.super_frames },
            depth: comparison.depth,
            exact: captures.exact,
            warnings: notes.clone(),
            wall_seconds: *seconds,
            packets_per_second: report.packets_per_second(),
        }
    }
}

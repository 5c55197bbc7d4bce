//! The map as JSON: a contract of `radar map`.

use serde::Serialize;

use super::findings::{Finding, FindingLog};
use super::ports::FabricPorts;
use super::series::MapSeries;
use super::{LinkTotals, SwitchTotals, page, text};
use crate::flowset::FlowKey;
use crate::packet::FlowFields;

/// What was learnt of a fabric.
#[derive(Debug)]
pub struct MapAnswer {
    pub(super) fabric: FabricPorts,
    pub slots: u64,
    /// Nanoseconds of a slot.
    pub length: u64,
    pub switches: Vec<SwitchTotals>,
    pub links: Vec<[LinkTotals; 2]>,
    pub(super) log: FindingLog,
    pub(super) series: MapSeries,
    /// Reports that came after their slot was judged.
    pub late: u64,
    pub remarks: Vec<String>,
}

#[derive(Serialize)]
struct MapJson<'a> {
    slots: u64,
    switches: Vec<SwitchJson<'a>>,
    links: Vec<LinkJson<'a>>,
    findings: Vec<FindingJson<'a>>,
    more_findings: u64,
    late: u64,
}

#[derive(Serialize)]
struct SwitchJson<'a> {
    switch: &'a str,
    packets: u64,
    flows: u64,
    missed: u64,
    undecoded: u64,
    reports: u64,
}

#[derive(Serialize)]
struct LinkJson<'a> {
    link: &'a str,
    forward: WayJson,
    reverse: WayJson,
}

#[derive(Serialize)]
struct WayJson {
    packets: u64,
    flows: u64,
    lost: Option<[u64; 2]>,
    unjudged: u64,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    kind: &'static str,
    since_ns: u64,
    until_ns: u64,
    known_ns: u64,
    r#where: &'a [String],
    flows: Vec<MapFlowJson>,
    more_flows: u64,
    sure: bool,
    why: &'static str,
}

#[derive(Serialize)]
struct MapFlowJson {
    #[serde(flatten)]
    flow: FlowFields,
    packets: u64,
}

impl MapAnswer {
    pub fn fabric(&self) -> &FabricPorts {
        &self.fabric
    }

    pub fn findings(&self) -> &[Finding] {
        self.log.all()
    }

    /// Flows of a finding, those with most packets first.
    pub(super) fn flows_of(finding: &Finding) -> Vec<(FlowKey, u64)> {
        let mut flows: Vec<(FlowKey, u64)> = finding.flows.iter().map(|(flow, packets)| (*flow, *packets)).collect();
        flows.sort_by_key(|(flow, packets)| (std::cmp::Reverse(*packets), *flow));
        flows
    }

    /// One line.
    pub fn json(&self) -> String {
        let way = |totals: &LinkTotals| {
            let LinkTotals { packets, flows, lost, unjudged } = *totals;
            WayJson { packets, flows, lost, unjudged }
        };
        let json = MapJson {
            slots: self.slots,
            switches: self.fabric.switches().iter().zip(&self.switches).map(switch_json).collect(),
            links: self
                .fabric
                .links()
                .iter()
                .zip(&self.links)
                .map(|(link, [forward, reverse])| LinkJson {
                    link: &link.name,
                    forward: way(forward),
                    reverse: way(reverse),
                })
                .collect(),
            findings: self.findings().iter().map(|finding| finding_json(finding, usize::MAX)).collect(),
            more_findings: self.log.more,
            late: self.late,
        };
        serde_json::to_string(&json).unwrap_or_default()
    }

    pub fn text(&self, top: usize) -> String {
        text::text(self, top)
    }

    pub fn html(&self) -> String {
        page::page(self)
    }
}

fn switch_json<'a>((switch, totals): (&'a String, &SwitchTotals)) -> SwitchJson<'a> {
    let SwitchTotals { packets, flows, missed, undecoded, reports } = *totals;
    SwitchJson { switch, packets, flows, missed, undecoded, reports }
}

fn finding_json(finding: &Finding, most: usize) -> FindingJson<'_> {
    let flow = |(key, packets): &(FlowKey, u64)| MapFlowJson { flow: key.flow().into(), packets: *packets };
    let flows = MapAnswer::flows_of(finding);
    FindingJson {
        kind: finding.kind.name(),
        since_ns: finding.since,
        until_ns: finding.until,
        known_ns: finding.known,
        r#where: &finding.place,
        more_flows: finding.more_flows + flows.len().saturating_sub(most) as u64,
        flows: flows.iter().take(most).map(flow).collect(),
        sure: finding.is_sure,
        why: finding.why,
    }
}

/// A finding as a line of JSON, with some of its flows.
pub fn json_finding(finding: &Finding) -> String {
    const FLOWS: usize = 10;
    serde_json::to_string(&finding_json(finding, FLOWS)).unwrap_or_default()
}

/// A finding as a line for people.
pub fn finding_line(finding: &Finding) -> String {
    text::line(finding)
}

//! `hitless radar collectors`: who collects what, as the bus has it.

use std::collections::BTreeMap;

use chart::table::{Align, Table, thousands};
use meter::digests::announcer::CollectorOverview;
use serde::Serialize;

use crate::args::CollectorsArgs;
use crate::output::{CommandResult, Failure, print};

#[derive(Debug, Serialize)]
struct CollectorsResult {
    collectors: Vec<CollectorRow>,
    segments: Vec<SegmentRow>,
}

#[derive(Debug, Serialize)]
struct CollectorRow {
    name: String,
    address: String,
    /// Segments of those below that it takes.
    segments: usize,
}

#[derive(Debug, Serialize)]
struct SegmentRow {
    segment: String,
    /// Null if no collector announces itself.
    collector: Option<String>,
    /// Those that take it in turn if that one goes.
    heirs: Vec<String>,
    /// Losses so far, as the latest finding has them; null without one.
    lost: Option<u64>,
}

pub(super) fn run(args: &CollectorsArgs, json: bool) -> CommandResult {
    let place = super::redis("--from", &args.from, args.bus_ca.as_deref())?;
    let key = super::key(args.key.as_deref())?;
    if let Some(name) = args.segment.as_ref().filter(|name| !is_name(name)) {
        return Err(Failure::Usage(format!("--segment {name:?}: expected a name of 1 to 255 characters")));
    }
    let overview =
        CollectorOverview::read(&place, key.as_ref()).map_err(|error| Failure::Outside(error.to_string()))?;
    let result = result(&overview, args.segment.as_deref());
    print(json, &result, || describe(&result))
}

pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && !name.contains(char::is_control)
}

fn result(overview: &CollectorOverview, only: Option<&str>) -> CollectorsResult {
    let mut lost: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    lost.extend(only.map(|segment| (segment, None)));
    let findings = overview.findings.iter().filter(|finding| only.is_none_or(|only| only == finding.segment));
    lost.extend(findings.map(|finding| (finding.segment.as_str(), Some(finding.lost))));
    let segment = |(segment, lost): (&&str, &Option<u64>)| {
        let mut order = overview.order(segment).into_iter().map(str::to_owned);
        let collector = order.next();
        SegmentRow { segment: (*segment).to_owned(), collector, heirs: order.collect(), lost: *lost }
    };
    let segments: Vec<SegmentRow> = lost.iter().map(segment).collect();
    let takes = |name: &str| segments.iter().filter(|row| row.collector.as_deref() == Some(name)).count();
    let collectors = overview.collectors.iter().map(|known| CollectorRow {
        name: known.name.clone(),
        address: known.address.clone(),
        segments: takes(&known.name),
    });
    CollectorsResult { collectors: collectors.collect(), segments }
}

fn describe(result: &CollectorsResult) -> String {
    if result.collectors.is_empty() {
        return "no collector announces itself there: `hitless radar collect --from` does".to_owned();
    }
    let mut collectors =
        Table::new(&[("collector", Align::Left), ("address", Align::Left), ("segments", Align::Right)]);
    for CollectorRow { name, address, segments } in &result.collectors {
        collectors.row(vec![name.clone(), address.clone(), thousands(*segments as u64)]);
    }
    let mut segments = Table::new(&[
        ("segment", Align::Left),
        ("collector", Align::Left),
        ("heirs", Align::Left),
        ("lost", Align::Right),
    ]);
    for SegmentRow { segment, collector, heirs, lost } in &result.segments {
        let lost = lost.map_or(String::new(), thousands);
        segments.row(vec![segment.clone(), collector.clone().unwrap_or_default(), heirs.join(", "), lost]);
    }
    if result.segments.is_empty() { collectors.to_string() } else { format!("{collectors}\n{segments}") }
}

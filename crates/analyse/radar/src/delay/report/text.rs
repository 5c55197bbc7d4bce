//! The delays as people read them.

use chart::table::{Align, Table, thousands};

use super::{DelayReport, verdict};
use crate::compare::report::text::{packets, time};
use crate::delay::DelayPercentiles;

pub(super) fn describe(report: &DelayReport, top: usize) -> String {
    let mut text = summary(report);
    text += &format!("{}\n\n{}", verdict(&report.analysis), directions(report));
    if !report.analysis.flows.is_empty() && top > 0 {
        text += &format!("\n{}", flows(report, top));
    }
    for note in &report.notes {
        text += &format!("note: {note}\n");
    }
    text
}

/// Summary that also begins the page.
pub(super) fn summary(report: &DelayReport) -> String {
    let analysis = &report.analysis;
    let mut text = format!(
        "{} measured, of {} in UP and {} in DOWN\n",
        packets(analysis.packets),
        thousands(analysis.up.packets),
        thousands(analysis.down.packets)
    );
    if let Some((low, high)) = analysis.offset.ends() {
        let middle = low / 2 + high / 2;
        let (ahead, size) = if middle < 0 { ("behind", -middle) } else { ("ahead of", middle) };
        text += &format!(
            "DOWN's clock is {} {ahead} UP's, ± {}",
            time(size),
            time((high - low).unsigned_abs().div_ceil(2) as i64)
        );
    }
    if let Some((low, high)) = analysis.drift_ppm {
        text += &format!(", and gains {low:.1} to {high:.1} ppm on it");
    }
    text + "\n"
}

/// An interval as text.
pub(super) fn between((low, high): (u64, u64)) -> String {
    let [low, high] = [low, high].map(|ns| time(i64::try_from(ns).unwrap_or(i64::MAX)));
    if low == high { low } else { format!("{low} to {high}") }
}

pub(super) fn cells(delay: Option<DelayPercentiles>) -> Vec<String> {
    let cell = |of: Option<(u64, u64)>| of.map_or_else(|| "-".to_owned(), between);
    vec![cell(delay.map(|of| of.p50)), cell(delay.map(|of| of.p99)), cell(delay.map(|of| of.max))]
}

const DELAYS: [(&str, Align); 3] = [("p50", Align::Right), ("p99", Align::Right), ("max", Align::Right)];

fn directions(report: &DelayReport) -> String {
    let mut table = Table::new(&[&[("direction", Align::Left), ("packets", Align::Right)][..], &DELAYS].concat());
    for of in &report.analysis.directions {
        table.row([vec![of.direction.to_string(), thousands(of.packets)], cells(of.delay)].concat());
    }
    table.to_string()
}

fn flows(report: &DelayReport, top: usize) -> String {
    let names = [("flow", Align::Left), ("direction", Align::Left), ("packets", Align::Right)];
    let mut table = Table::new(&[&names[..], &DELAYS].concat());
    let flows = &report.analysis.flows;
    for of in flows.iter().take(top) {
        let names = vec![of.flow.to_string(), of.direction.to_string(), thousands(of.packets)];
        table.row([names, cells(Some(of.delay))].concat());
    }
    let more = flows.len().saturating_sub(top) as u64 + report.analysis.more_flows;
    let more = match more {
        0 => String::new(),
        more => format!("and {} more flows: --top and --json list those with most packets\n", thousands(more)),
    };
    format!("{table}{more}")
}

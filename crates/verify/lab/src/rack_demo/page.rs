//! The demonstration of a rack as a page: one file that needs nothing else.

use chart::page::PageFrame;
use chart::svg::escape;
use chart::{Axis, Bar, BarGroup, BarsChart, Chart, Palette};

use super::rows::RackWay;
use super::{RackDemoResult, RackRow, text};

pub fn page(result: &RackDemoResult) -> String {
    let header = format!(
        "<p class=\"lead\">{} hosts around a switch in software: GETs of 4 KiB beside hosts that all send to the client's host \
         at once. Scheduler of pl2: {}.</p>\n",
        result.hosts, result.scheduler
    );
    let charts = [
        bars(result, "The slowest hundredth of GETs", "p99 (ms)", |row| row.get_p99_us.map(|us| us / 1e3)),
        bars(result, "Frames dropped at the switch", "frames", |row| Some(row.switch_dropped as f64)),
        bars(result, "What the client's port carried", "share of its rate", |row| Some(row.port_utilisation)),
    ];
    let mut palette = Palette::default();
    let charts: String = charts
        .into_iter()
        .enumerate()
        .map(|(number, chart)| chart.figure(&format!("chart-{number}"), &mut palette))
        .collect();
    PageFrame {
        title: "Incast, with and without reservations",
        css: "",
        header: &header,
        main: &format!("{charts}<pre>{}</pre>\n", escape(&text(result))),
        footer: "",
    }
    .html()
}

/// A group for each background, a bar for each way.
fn bars(result: &RackDemoResult, title: &str, axis: &str, value: fn(&RackRow) -> Option<f64>) -> Chart {
    let rows = &result.rows;
    let group = |rows: &[RackRow]| BarGroup {
        name: rows.first().map_or(String::new(), |row| format!("{} from {}", row.background, row.senders)),
        bars: rows
            .iter()
            .filter_map(|row| Some(Bar { name: row.way.into(), ours: Some(value(row)?), paper: None }))
            .collect(),
    };
    Chart::Bars(BarsChart {
        title: title.into(),
        caption: "Sums of counts and medians of times over rounds.".into(),
        axis: Axis::linear(axis),
        groups: rows.chunks(RackWay::ALL.len()).map(group).filter(|group| !group.bars.is_empty()).collect(),
    })
}

//! The delays as a page: one file that needs nothing else.

use chart::page::PageFrame;
use chart::svg::escape;
use chart::table::thousands;
use chart::{Axis, Chart, Data, Line, LinesChart, Palette, time_us};

use super::text::{cells, summary};
use super::{DelayReport, verdict};
use crate::compare::report::page::section;
use crate::delay::{DelayPercentiles, TimeSlot};

/// More rows than these are for a file, not for a page.
const MOST_ROWS: usize = 200;

pub(super) fn page(report: &DelayReport) -> String {
    let mut palette = Palette::default();
    let mut lead = verdict(&report.analysis);
    if let Some(first) = lead.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let lines = summary(report);
    let notes = lines.lines().chain(report.notes.iter().map(String::as_str));
    let notes: String = notes.map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    let header = format!("<p class=\"lead\">{}</p>\n<ul>\n{notes}</ul>\n", escape(&lead));
    let main = [
        section("directions", "Each way", &directions(report).html()),
        section("time", "Over time", &charts(report, &mut palette)),
        section("flows", "Flows", &flows(report).html()),
    ]
    .concat();
    let question = &report.question;
    PageFrame {
        title: "One-way delay",
        css: "",
        header: &header,
        main: &main,
        footer: &format!("<p>{} (UP) and {} (DOWN). {FOOTER}</p>\n", escape(&question.up), escape(&question.down)),
    }
    .html()
}

const FOOTER: &str = "Every delay is an interval that contains the truth, as long as the clocks drift by no more than was said \
                      and nobody set them. The low end is what surely happened in that direction.";

fn directions(report: &DelayReport) -> Data {
    let rows = report.analysis.directions.iter().map(|of| {
        let values = [vec![thousands(of.packets)], cells(of.delay)].concat();
        (vec![of.direction.to_string()], values)
    });
    Data {
        caption: "Delay by direction".into(),
        names: vec!["direction".into()],
        values: ["packets", "p50", "p99", "max"].map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

fn flows(report: &DelayReport) -> Data {
    let rows = report.analysis.flows.iter().take(MOST_ROWS).map(|of| {
        let values = [vec![thousands(of.packets)], cells(Some(of.delay))].concat();
        (vec![of.flow.to_string(), of.direction.to_string()], values)
    });
    Data {
        caption: "Delay by flow".into(),
        names: vec!["flow".into(), "direction".into()],
        values: ["packets", "p50", "p99", "max"].map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

/// One chart for each direction, and one for the clocks.
fn charts(report: &DelayReport, palette: &mut Palette) -> String {
    let slots = &report.analysis.slots;
    let from = slots.first().map_or(0, |slot| slot.at.0);
    let seconds = |slot: &TimeSlot| slot.at.0.saturating_sub(from) as f64 / 1e9;
    let line = |name: &str, value: &dyn Fn(&TimeSlot) -> Option<f64>| {
        Line::new(name, slots.iter().filter_map(|slot| Some((seconds(slot), value(slot)?))).collect())
    };
    let mut figures = String::new();
    for (way, of) in report.analysis.directions.iter().enumerate() {
        let delay =
            |pick: fn(DelayPercentiles) -> u64| move |slot: &TimeSlot| Some(pick(slot.delays[way]?) as f64 / 1e3);
        let chart = LinesChart {
            title: format!("Delay {}", of.direction),
            caption: "In each slot of time, the low and the high end of the median and of the longest delay.".into(),
            x: Axis::linear("seconds of UP's capture"),
            y: Axis::linear("delay").written(time_us),
            lines: vec![
                line("median, at least", &delay(|of| of.p50.0)),
                line("median, at most", &delay(|of| of.p50.1)),
                line("longest, at least", &delay(|of| of.max.0)),
                line("longest, at most", &delay(|of| of.max.1)),
            ],
        };
        figures += &Chart::Lines(chart).figure(&format!("delay-{}", of.direction), palette);
    }
    let middle = report.analysis.offset.low.unwrap_or(0);
    let offset = |pick: fn((i64, i64)) -> i64| {
        move |slot: &TimeSlot| Some(pick(slot.offset?).saturating_sub(middle) as f64 / 1e3)
    };
    let chart = LinesChart {
        title: "DOWN's clock against UP's".into(),
        caption: format!(
            "Microseconds beyond {:.6} s: the offset is anywhere between the lines, and nowhere else.",
            middle as f64 / 1e9
        ),
        x: Axis::linear("seconds of UP's capture"),
        y: Axis::linear("offset, µs"),
        lines: vec![line("at least", &offset(|of| of.0)), line("at most", &offset(|of| of.1))],
    };
    figures + &Chart::Lines(chart).figure("offset", palette)
}

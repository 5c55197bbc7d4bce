//! The losses as a page: one file that needs nothing else.

mod timeline;

use chart::page::PageFrame;
use chart::svg::escape;
use chart::table::thousands;
use chart::{Data, Palette};

use super::text::{percent, summary, utc};
use super::{Captures, LossReport};
use crate::causes::CauseCounts;

/// More lines than these are for a file, not for a page.
const MOST_ROWS: usize = 1_000;

pub(super) fn page(report: &LossReport) -> String {
    let mut palette = Palette::default();
    let lines = summary(report);
    let (lead, rest) = lines.split_once('\n').unwrap_or((&lines, ""));
    let notes = rest.lines().chain(report.notes.iter().map(String::as_str));
    let notes: String = notes.map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    let header = format!("<p class=\"lead\">{}</p>\n<ul>\n{notes}</ul>\n", escape(lead));
    let main = if report.comparison.lost.is_empty() {
        "<p>There is nothing to show.</p>\n".to_owned()
    } else {
        [
            section("timeline", "When", &timeline::figure(report, &mut palette)),
            section("causes", "Why", &causes(report).html()),
            section("flows", "Whose", &flows(report).html()),
            section("losses", "Which", &losses(report).html()),
        ]
        .concat()
    };
    let Captures { up, down, .. } = &report.captures;
    PageFrame {
        title: "Lost packets",
        css: "",
        header: &header,
        main: &main,
        footer: &format!("<p>Packets of {} that are missing in {}. {FOOTER}</p>\n", escape(up), escape(down)),
    }
    .html()
}

const FOOTER: &str = "Causes are guesses from the pattern of losses: bursts are congestion, flows that lose all they send \
                      are in a blackhole, losses spread evenly are random, packets with no time to live left are in a loop.";

pub(crate) fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{body}</section>\n")
}

fn causes(report: &LossReport) -> Data {
    let summary: CauseCounts = report.causes.iter().copied().collect();
    let all = summary.losses() as f64;
    let row = |(cause, count): (crate::loss::LossCause, u64)| {
        (vec![cause.to_string()], vec![thousands(count), percent(count as f64 / all)])
    };
    Data {
        caption: "Losses by cause".into(),
        names: vec!["cause".into()],
        values: vec!["packets".into(), "share".into()],
        rows: summary.causes().map(row).collect(),
    }
}

fn flows(report: &LossReport) -> Data {
    let flows = &report.comparison.flows;
    let row = |flow: &crate::compare::FlowLosses| {
        let share = flow.lost as f64 / flow.packets.max(1) as f64;
        (vec![flow.flow.to_string()], vec![thousands(flow.lost), thousands(flow.packets), percent(share)])
    };
    Data {
        caption: caption("Losses by flow", flows.len()),
        names: vec!["flow".into()],
        values: ["lost", "of", "share"].map(String::from).to_vec(),
        rows: flows.iter().take(MOST_ROWS).map(row).collect(),
    }
}

fn losses(report: &LossReport) -> Data {
    let number = |value: Option<u64>| value.map_or_else(|| chart::NOTHING.to_owned(), |value| value.to_string());
    let rows = report.comparison.lost.iter().zip(&report.causes).take(MOST_ROWS).map(|(lost, cause)| {
        let loss = &lost.loss;
        let values = vec![
            number(loss.tcp.map(|segment| segment.seq.into())),
            number(loss.ip_id.map(Into::into)),
            thousands(lost.len.into()),
            cause.to_string(),
        ];
        (vec![utc(loss.at.0), loss.flow.to_string()], values)
    });
    Data {
        caption: caption("Lost packets", report.comparison.lost.len()),
        names: vec!["time (UTC)".into(), "flow".into()],
        values: ["sequence", "IP id", "bytes", "cause"].map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

fn caption(what: &str, all: usize) -> String {
    match all.saturating_sub(MOST_ROWS) {
        0 => what.to_owned(),
        _ => format!("{what}: the first {} of {}", thousands(MOST_ROWS as u64), thousands(all as u64)),
    }
}

#[cfg(test)]
mod tests;

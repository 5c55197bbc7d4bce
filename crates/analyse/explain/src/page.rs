//! The explanation as a page: one file that needs nothing else.

mod figures;

use chart::page::PageFrame;
use chart::svg::escape;
use chart::table::thousands;
use chart::{Axis, Bar, BarGroup, BarsChart, Chart, Data, Palette};

use crate::connection::ConnectionSummary;
use crate::explanation::Explanation;
use crate::scans::ScanAnswer;
use crate::text::{scan_text, shares};
use crate::verdict::{advice, time_text, verdict};

/// More rows than these are for a file, not for a page.
const MOST_ROWS: usize = 200;

impl Explanation {
    /// `name` is the capture's.
    pub fn page(&self, name: &str) -> String {
        let mut palette = Palette::default();
        let lead = format!(
            "{} connections in {} packets.",
            thousands(self.connection_count()),
            thousands(self.counts.packets)
        );
        let notes: String = self.notes().iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
        let notes = if notes.is_empty() { notes } else { format!("<ul>\n{notes}</ul>\n") };
        let mut main = section("slowest", "Where the time of the slowest 1 % went", &self.share_figure(&mut palette));
        for (number, place) in self.slowest(usize::MAX).into_iter().enumerate() {
            let summary = &self.connections[place];
            if summary.trace.is_some() {
                main += &connection_section(summary, number, &mut palette);
            }
        }
        if !self.scans.is_empty() {
            let lines: String = self.scans.iter().take(MOST_ROWS).map(scan_line).collect();
            main += &section("scans", "Connections without payload", &format!("<ul>\n{lines}</ul>\n"));
        }
        main += &section("connections", "All connections", &self.table().html());
        PageFrame {
            title: "Why connections were slow",
            css: figures::CSS,
            header: &format!("<p class=\"lead\">{lead}</p>\n{notes}"),
            main: &main,
            footer: &format!("<p>From {}. {FOOTER}</p>\n", escape(name)),
        }
        .html()
    }

    fn share_figure(&self, palette: &mut Palette) -> String {
        let slowest = self.slowest_hundredth();
        let count = slowest.len();
        let sums = shares(slowest.into_iter());
        let bar = |(cause, side, ns): (crate::terms::TimeCause, crate::terms::EndSide, u64)| Bar {
            name: format!("{}, {}", cause.name(), side.name()),
            ours: Some(ns as f64 / 1e6),
            paper: None,
        };
        let chart = BarsChart {
            title: "Time by cause".into(),
            caption: format!("The slowest {count} of {}, idle time not counted.", self.connections.len()),
            axis: Axis::linear("ms"),
            groups: vec![BarGroup { name: String::new(), bars: sums.into_iter().map(bar).collect() }],
        };
        Chart::Bars(chart).figure("shares", palette)
    }

    fn table(&self) -> Data {
        let row = |summary: &ConnectionSummary| {
            let values = vec![
                time_text(summary.duration),
                thousands(summary.bytes[0]),
                thousands(summary.bytes[1]),
                thousands(summary.losses.len() as u64),
                summary.timeouts.to_string(),
                summary.probes.to_string(),
            ];
            (vec![format!("{} > {}", summary.client, summary.server), verdict(summary)], values)
        };
        let slowest = self.slowest(MOST_ROWS);
        Data {
            caption: format!("{} of {} connections, the slowest first", slowest.len(), self.connections.len()),
            names: vec!["connection".into(), "what cost most".into()],
            values: ["time", "bytes up", "bytes down", "lost", "timeouts", "probes"].map(String::from).to_vec(),
            rows: slowest.iter().map(|place| row(&self.connections[*place])).collect(),
        }
    }
}

const FOOTER: &str = "Causes follow from the packets and from a TCP sender that shadows the real one; a stall says whether it was \
                      seen, inferred or guessed.";

fn scan_line(scan: &ScanAnswer) -> String {
    format!("<li>{}</li>\n", escape(&scan_text(scan)))
}

fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{}</h2>\n{body}</section>\n", escape(heading))
}

fn connection_section(summary: &ConnectionSummary, number: usize, palette: &mut Palette) -> String {
    let id = format!("connection-{number}");
    let words = format!("<p>{}</p>\n<p>{}</p>\n", escape(&verdict(summary)), escape(&advice(summary)));
    let body = format!("{words}{}{}", figures::figures(summary, &id, palette), stall_table(summary).html());
    section(&id, &format!("{} > {}", summary.client, summary.server), &body)
}

fn stall_table(summary: &ConnectionSummary) -> Data {
    let start = summary.start;
    let mut stalls: Vec<_> = summary.stalls.iter().collect();
    stalls.sort_by_key(|stall| std::cmp::Reverse(stall.until - stall.from));
    let row = |stall: &&crate::stalls::StallNote| {
        let why = stall.why.map_or(String::new(), |why| why.name().to_owned());
        let numbers: Vec<String> =
            stall.packets.iter().filter(|number| **number > 0).map(|number| number.to_string()).collect();
        (
            vec![
                stall.cause.name().to_owned(),
                stall.side.name().to_owned(),
                why,
                format!("{:?}", stall.sure).to_lowercase(),
            ],
            vec![time_text(stall.from.saturating_sub(start)), time_text(stall.until - stall.from), numbers.join(", ")],
        )
    };
    Data {
        caption: "Stalls, the longest first".into(),
        names: ["cause", "side", "why", "sure"].map(String::from).to_vec(),
        values: ["at", "for", "packets"].map(String::from).to_vec(),
        rows: stalls.iter().take(MOST_ROWS).map(row).collect(),
    }
}

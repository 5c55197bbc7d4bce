//! The explanation for a terminal.

use std::net::IpAddr;

use chart::table::{Align, Table, thousands};

use crate::connection::ConnectionSummary;
use crate::explanation::{Explanation, busy_time};
use crate::scans::ScanAnswer;
use crate::terms::{EndSide, TimeCause};
use crate::verdict::{advice, time_text, verdict};

/// Connections that are listed unless somebody asks for another number.
const LISTED: usize = 10;

/// Time by cause, over several connections, the largest first; idle time is not counted.
pub(crate) fn shares<'a>(summaries: impl Iterator<Item = &'a ConnectionSummary>) -> Vec<(TimeCause, EndSide, u64)> {
    let mut sums: Vec<(TimeCause, EndSide, u64)> = Vec::new();
    for (cause, side, ns) in summaries.flat_map(|summary| summary.parts.sorted()) {
        match sums.iter_mut().find(|(known, end, _)| (*known, *end) == (cause, side)) {
            Some((.., sum)) => *sum = sum.saturating_add(ns),
            None => sums.push((cause, side, ns)),
        }
    }
    sums.retain(|(cause, ..)| *cause != TimeCause::Idle);
    sums.sort_by_key(|(cause, side, ns)| (std::cmp::Reverse(*ns), *cause, *side));
    sums
}

impl Explanation {
    /// The slowest hundredth, at least one connection.
    pub(crate) fn slowest_hundredth(&self) -> Vec<&ConnectionSummary> {
        let count = self.connections.len().div_ceil(100);
        self.slowest(count).into_iter().map(|place| &self.connections[place]).collect()
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "{} connections in {} packets ({} not TCP, {} skipped)\n",
            thousands(self.connection_count()),
            thousands(self.counts.packets),
            thousands(self.counts.not_tcp),
            thousands(self.counts.skipped()),
        );
        for note in self.notes() {
            text += &format!("note: {note}\n");
        }
        text += &scans_text(&self.scans);
        if self.connections.is_empty() {
            return text;
        }
        text += &format!("\nWhere the time of the slowest 1 % went:\n{}", self.share_table());
        for place in self.slowest(LISTED) {
            text += &format!("\n{}", connection_text(&self.connections[place]));
        }
        text
    }

    fn share_table(&self) -> Table {
        let sums = shares(self.slowest_hundredth().into_iter());
        let all = sums.iter().fold(0_u64, |all, (.., ns)| all.saturating_add(*ns));
        let mut table = Table::new(&[
            ("cause", Align::Left),
            ("side", Align::Left),
            ("time", Align::Right),
            ("share", Align::Right),
        ]);
        for (cause, side, ns) in sums {
            let share = format!("{:.1} %", 100.0 * ns as f64 / all.max(1) as f64);
            table.row(vec![cause.name().into(), side.name().into(), time_text(ns), share]);
        }
        table
    }
}

fn scans_text(scans: &[ScanAnswer]) -> String {
    if scans.is_empty() {
        return String::new();
    }
    let all: u64 = scans.iter().map(|scan| scan.connections).sum();
    let mut text = format!("\nWithout payload, {} connections:\n", thousands(all));
    for scan in scans.iter().take(LISTED) {
        text += &format!("  {}\n", scan_text(scan));
    }
    if let Some(more) = scans.len().checked_sub(LISTED).filter(|more| *more > 0) {
        text += &format!("  and {more} more groups\n");
    }
    text
}

/// Prints the client and the server of a scan, the number of connections and their outcomes.
pub(crate) fn scan_text(scan: &ScanAnswer) -> String {
    let hosts = |host: Option<IpAddr>, count: u64| {
        host.map_or_else(|| format!("{} addresses", thousands(count)), |host| host.to_string())
    };
    let ports = match scan.ports {
        1 => format!("port {}", scan.first_port),
        count => format!("{} ports ({} to {})", thousands(count), scan.first_port, scan.last_port),
    };
    let outcomes = [(scan.unanswered, "without an answer"), (scan.refused, "refused"), (scan.opened, "opened")];
    let outcomes = outcomes.iter().filter(|(count, _)| *count > 0);
    let outcomes: Vec<String> = outcomes.map(|(count, what)| format!("{} {what}", thousands(*count))).collect();
    format!(
        "{} connections from {} to {}, {ports}, within {}: {}",
        thousands(scan.connections),
        hosts(scan.client, scan.clients),
        hosts(scan.server, scan.servers),
        time_text(scan.end_ns.saturating_sub(scan.start_ns)),
        outcomes.join(", ")
    )
}

fn connection_text(summary: &ConnectionSummary) -> String {
    let mut text = format!("{} > {}: {}\n  {}\n", summary.client, summary.server, verdict(summary), advice(summary));
    let parts = summary.parts.sorted();
    let parts =
        parts.iter().take(5).map(|(cause, side, ns)| format!("{} ({}) {}", cause.name(), side.name(), time_text(*ns)));
    text += &format!("  {}\n", parts.collect::<Vec<_>>().join(", "));
    let counts = [
        (summary.losses.len() as u64, "lost"),
        (summary.timeouts.into(), "timeouts"),
        (summary.probes.into(), "probes"),
        (summary.spurious.into(), "sent again for nothing"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(*count)))
        .collect();
    let counts = if counts.is_empty() { "nothing lost".to_owned() } else { counts.join(", ") };
    let agreement = summary.agreement.map_or(String::new(), |share| format!(", shadow agrees {:.1} %", 100.0 * share));
    text += &format!("  {} busy, {counts}{agreement}\n", time_text(busy_time(summary)));
    text
}

//! Rows as people read them.

use std::fmt::Write as _;

use chart::table::{Align, Table};

use super::{CongestionRow, CongestionSettings};

/// Legend of the columns; its lines fit into a terminal of 100 columns.
const NOTES: &str = "\
slow    completion time over that of the flow alone, of complete flows (-: too few flows)
Gb/s    payload received by all hosts, over the time of the run
Jain    evenness of long flows while all of them are active: 1 is even, 1/n is one flow alone
queue   weighted by time; RTT: of data packets, sending to acknowledgement
pauses  that switches sent; drops: at full buffers; resent: packets; RTOs: timeouts";

/// Describes a comparison: its settings, a line for each controller, and a legend of the columns.
pub fn describe(settings: &CongestionSettings, rows: &[CongestionRow]) -> String {
    let CongestionSettings { traffic, recovery, pfc, loss, protect, .. } = settings;
    let pfc = if *pfc { "PFC on" } else { "PFC off" };
    let mut out = format!("{}\n{recovery}, {pfc}", traffic.about());
    if loss.get() > 0.0 || protect != "none" {
        // Writing to a string cannot fail.
        let _ = write!(out, ", one link that loses {loss}, protection: {protect}");
    }
    let _ = write!(out, "\n\n{}\n", table(rows));
    for row in rows.iter().filter(|row| row.complete < row.flows) {
        let _ = writeln!(out, "{}: {} of {} flows did not complete", row.cc, row.flows - row.complete, row.flows);
    }
    if traffic.measured().is_some() {
        out += "slow is that of the mice alone.\n";
    }
    let ports = if traffic.bottleneck().is_some() { "the bottleneck's port" } else { "all switch ports" };
    let _ = write!(out, "{NOTES}\nThe queue is that of {ports}. --json has more, --scenario prints a file to change.");
    out
}

fn table(rows: &[CongestionRow]) -> Table {
    let mut table = Table::new(&[
        ("cc", Align::Left),
        ("slow p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("Gb/s", Align::Right),
        ("Jain", Align::Right),
        ("queue p99", Align::Right),
        ("max", Align::Right),
        ("RTT p99", Align::Right),
        ("pauses", Align::Right),
        ("drops", Align::Right),
        ("resent", Align::Right),
        ("RTOs", Align::Right),
    ]);
    for row in rows {
        let slowdown = |value: Option<f64>| value.map_or("-".into(), |value| short(value, ""));
        let queue = row.queue_bytes;
        let bytes = |value: Option<u64>| value.map_or("-".into(), |bytes| short(bytes as f64 / 1e3, " KB"));
        table.row(vec![
            row.cc.into(),
            slowdown(row.slowdown.p50),
            slowdown(row.slowdown.p99),
            slowdown(row.slowdown.max),
            format!("{:.1}", row.goodput_gbps),
            row.fairness.map_or("-".into(), |jain| format!("{jain:.3}")),
            bytes(queue.and_then(|queue| queue.p99)),
            bytes(queue.and_then(|queue| queue.max)),
            row.rtt_us.and_then(|rtt| rtt.p99).map_or("-".into(), |p99| short(p99, " µs")),
            row.pauses.map_or("-".into(), |pauses| pauses.to_string()),
            row.dropped.to_string(),
            row.retransmitted.to_string(),
            row.timeouts.to_string(),
        ]);
    }
    table
}

/// Three digits, and a unit.
fn short(value: f64, unit: &str) -> String {
    match value {
        small if small < 10.0 => format!("{small:.2}{unit}"),
        middle if middle < 100.0 => format!("{middle:.1}{unit}"),
        large => format!("{large:.0}{unit}"),
    }
}

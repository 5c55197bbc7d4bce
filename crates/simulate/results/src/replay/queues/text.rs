//! Replayed queues as people read them.

use std::cmp::Reverse;
use std::fmt::Write as _;

use chart::table::{Align, Table, thousands};

use super::{DifferenceOfDrops, QueueAnswer, QueuePortRow, QueueReport, QueueRunRow};

/// Ports that are listed; JSON has them all.
const LISTED: usize = 20;
/// Legend of the columns.
const NOTES: &str = "\
held      what waited in the queue when a packet came, in the run; MTU of 1,518 bytes
differs   by how much the replay differs from that, flow by flow; MTU
dropped   in the run; accepted: of these, let through by the replay; elsewhere: dropped at another port
false     dropped in the replay only; error: the share of all drops that is wrong";

/// Report for people: for every run the difference of queues and drops, and the ports with the largest.
pub fn queues_text(report: &QueueReport) -> String {
    let tags = if report.tags { "with drop tags" } else { "without drop tags" };
    let mut out = format!("send times within {} µs, {tags}", report.threshold_ns / 1e3);
    if report.clocks_ns > 0.0 {
        // Writing to a string cannot fail.
        let _ = write!(out, ", clocks up to {} µs apart", report.clocks_ns / 1e3);
    }
    out.push('\n');
    for run in &report.runs {
        out += &of_run(run, report.tags);
    }
    format!("{out}\n{NOTES}\n")
}

fn of_run(run: &QueueRunRow, tags: bool) -> String {
    let QueueRunRow { point, label, seed, connections, logs, queues, .. } = run;
    let label = if label.is_empty() { String::new() } else { format!(" ({label})") };
    let bytes = run.sample_bytes as f64 / run.packets.max(1) as f64;
    let mut out = format!(
        "\npoint {point}{label}, seed {seed}: {} packets of {} connections, {bytes:.3} bytes of samples per packet\n",
        thousands(run.packets),
        thousands(*logs)
    );
    if run.packets_missing > 0 {
        let missing = thousands(run.packets_missing);
        let silent = thousands(connections - logs);
        let _ = writeln!(out, "{missing} packets of {silent} connections without a log are missing in the replay");
    }
    let _ = writeln!(
        out,
        "queues held {:.2} MTU on average, and differ by {:.2} MTU on average and {:.2} at the 99th percentile",
        queues.held, queues.mean, queues.p99
    );
    out += &drops(&run.drops);
    if tags && run.overflows > 0 {
        let _ = writeln!(out, "{} packets joined queues that had no room for them", thousands(run.overflows));
    }
    let _ = write!(out, "\n{}", ports(&run.ports));
    if let Some(at) = &run.at {
        let _ = write!(out, "\n{}", who(at));
    }
    out
}

fn drops(drops: &DifferenceOfDrops) -> String {
    let DifferenceOfDrops { in_run, false_accepts, false_drops, wrong_place, error, .. } = *drops;
    match error {
        None => "nothing was dropped, in the run or in the replay\n".to_owned(),
        Some(error) => format!(
            "{} packets were dropped; the replay let {} of them through, dropped {} elsewhere and {} others: error {:.2} %\n",
            thousands(in_run),
            thousands(false_accepts),
            thousands(wrong_place),
            thousands(false_drops),
            error * 100.0
        ),
    }
}

/// Ports, ordered by dropped packets and then by queue content difference.
fn ports(rows: &[QueuePortRow]) -> String {
    let mut used: Vec<&QueuePortRow> =
        rows.iter().filter(|row| row.queues.held > 0.0 || row.queues.mean > 0.0 || row.drops.in_either > 0).collect();
    used.sort_by(|one, other| {
        let order = |row: &QueuePortRow| Reverse(row.drops.in_either);
        order(one).cmp(&order(other)).then(other.queues.mean.total_cmp(&one.queues.mean))
    });
    let names = ["held", "differs", "p99", "dropped", "accepted", "elsewhere", "false", "error"];
    let columns: Vec<_> =
        std::iter::once(("port", Align::Left)).chain(names.map(|name| (name, Align::Right))).collect();
    let mut table = Table::new(&columns);
    for QueuePortRow { port, queues, drops } in used.iter().take(LISTED) {
        table.row(vec![
            port.clone(),
            format!("{:.2}", queues.held),
            format!("{:.2}", queues.mean),
            format!("{:.2}", queues.p99),
            thousands(drops.in_run),
            thousands(drops.false_accepts),
            thousands(drops.wrong_place),
            thousands(drops.false_drops),
            drops.error.map_or("-".to_owned(), |error| format!("{:.2} %", error * 100.0)),
        ]);
    }
    let mut out = table.to_string();
    let (more, empty) = (used.len().saturating_sub(LISTED), rows.len() - used.len());
    if more > 0 {
        let _ = writeln!(out, "{more} more ports: --json has them");
    }
    if empty > 0 {
        let _ = writeln!(out, "{empty} ports whose queues every packet found empty");
    }
    out
}

fn who(at: &QueueAnswer) -> String {
    let QueueAnswer { time_ns, port, run_bytes, replay_bytes, flows } = at;
    let [run, replay] = [*run_bytes, *replay_bytes].map(thousands);
    let mut out = format!("in {port} at {} µs: {run} bytes in the run, {replay} in the replay\n", time_ns / 1e3);
    if flows.is_empty() {
        return out;
    }
    let columns = [("flow", Align::Right), ("from", Align::Left), ("to", Align::Left)];
    let bytes = [("run, bytes", Align::Right), ("replay, bytes", Align::Right)];
    let mut table = Table::new(&[&columns[..], &bytes].concat());
    for flow in flows {
        let [run, replay] = [flow.run_bytes, flow.replay_bytes].map(|bytes| thousands(bytes.into()));
        table.row(vec![flow.flow.to_string(), flow.from.clone(), flow.to.clone(), run, replay]);
    }
    out += &table.to_string();
    out
}

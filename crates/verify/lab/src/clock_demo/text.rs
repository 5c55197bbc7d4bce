//! The demonstration of clocks, for people.

use std::collections::BTreeSet;

use chart::table::{Align, Table, thousands};

use super::{ClockDemoResult, KillKind, StopRow};

/// The root was stopped: for how long, what plan was given, and when it was the only root that all follow.
fn stops(result: &ClockDemoResult) -> Table {
    let mut table = Table::new(&[
        ("root stopped for", Align::Right),
        ("plan for the", Align::Left),
        ("times", Align::Right),
        ("others took over", Align::Right),
        ("one root, all following", Align::Right),
        ("after, at most", Align::Right),
        ("by their parents", Align::Right),
    ]);
    let kinds: BTreeSet<(u64, &str)> =
        result.stops.iter().map(|stop| (stop.stopped_ms, stop.planned_for.name())).collect();
    for (stopped_ms, name) in kinds {
        let is_of_kind = |stop: &&StopRow| (stop.stopped_ms, stop.planned_for.name()) == (stopped_ms, name);
        let of_kind: Vec<&StopRow> = result.stops.iter().filter(is_of_kind).collect();
        let healed: Vec<f64> = of_kind.iter().filter_map(|stop| stop.healed_ms).collect();
        table.row(vec![
            format!("{stopped_ms} ms"),
            name.to_owned(),
            of_kind.len().to_string(),
            of_kind.iter().filter(|stop| stop.elected).count().to_string(),
            healed.len().to_string(),
            format!("{:.0} ms", healed.iter().copied().fold(0.0, f64::max)),
            of_kind.iter().filter(|stop| stop.is_as_planned).count().to_string(),
        ]);
    }
    table
}

pub fn text(result: &ClockDemoResult) -> String {
    let load = result.load.map_or(String::new(), |load| format!(", load {load:.1}"));
    let mut text = format!(
        "{} clocks, waves every {:.0} µs, {} cores{load}; {} readings in {:.0} s, {} wrong\n\n",
        result.nodes,
        result.interval_us,
        result.cores,
        thousands(result.reads),
        result.seconds,
        result.wrong
    );
    let mut idle = Table::new(&[
        ("depth", Align::Right),
        ("readings", Align::Right),
        ("ε p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
    ]);
    let us = |us: f64| format!("{us:.1} µs");
    for row in &result.eps_idle {
        idle.row(vec![row.depth.to_string(), thousands(row.reads), us(row.p50_us), us(row.p99_us), us(row.max_us)]);
    }
    text.push_str(&format!("{idle}\n"));
    let mut kills = Table::new(&[("killed", Align::Left), ("times", Align::Right), ("recovery, median", Align::Right)]);
    for (kind, ms) in &result.recovery_by_kind_ms {
        let times = result.kills.iter().filter(|kill| kill.kind.name() == *kind).count();
        kills.row(vec![(*kind).to_owned(), times.to_string(), format!("{ms:.1} ms")]);
    }
    if !result.kills.is_empty() {
        text.push_str(&format!("{kills}\n"));
    }
    if !result.stops.is_empty() {
        text.push_str(&format!("{}\n", stops(result)));
    }
    if let Some(ptp4l) = &result.ptp4l {
        text.push_str(&format!("ptp4l on the same plan: {ptp4l}\n\n"));
    }
    if result.second_roots > 0 {
        text.push_str(&format!(
            "{} backup roots took over while their root lived: it had not run for longer than the timeouts\n\n",
            result.second_roots
        ));
    }
    if result.forged.sent > 0 && !result.key {
        let (sent, removed) = (result.forged.sent, result.forged.roots_removed);
        text.push_str(&format!(
            "{sent} frames were forged: they removed a root {removed} times; with --key none is believed\n\n"
        ));
    }
    for stop in &result.stops {
        if let Some(late) = &stop.late {
            let what = format!("{} ms and a plan for the {}", stop.stopped_ms, stop.planned_for.name());
            text.push_str(&format!("not as planned after {what}: {late}\n"));
        }
    }
    for kill in &result.kills {
        if let Some(stranded) = &kill.stranded {
            let killed = if kill.kind == KillKind::Forged { "" } else { " was killed" };
            text.push_str(&format!("stranded until the next plan, after {}{killed}: {stranded}\n", kill.what));
        }
    }
    for verdict in &result.verdicts {
        let met = if verdict.met { "met   " } else { "MISSED" };
        text.push_str(&format!("{met}  {}: {}\n", verdict.aim, verdict.found));
    }
    text
}

//! The demonstration of clocks, for people.

use chart::table::{Align, Table, thousands};

use super::{ClockDemoResult, KillKind};

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
    text.push_str(&format!("{kills}\n"));
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

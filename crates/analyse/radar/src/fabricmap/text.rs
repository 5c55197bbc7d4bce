//! The map as text.

use chart::table::{Align, Table, thousands};

use super::LinkTotals;
use super::answer::MapAnswer;
use super::findings::Finding;
use crate::compare::report::text::utc;

pub(super) fn text(answer: &MapAnswer, top: usize) -> String {
    let mut out = format!(
        "{} slots of {} ms, {} switches, {} links; {}\n\n",
        thousands(answer.slots),
        answer.length as f64 / 1e6,
        answer.switches.len(),
        answer.links.len(),
        match answer.findings().len() {
            0 => "nothing found".to_owned(),
            1 => "1 finding".to_owned(),
            more => format!("{more} findings"),
        }
    );
    out += &switches(answer);
    out.push('\n');
    out += &links(answer);
    for finding in answer.findings() {
        out += &format!("\n{}\n", line(finding));
        let flows = MapAnswer::flows_of(finding);
        for (flow, packets) in flows.iter().take(top) {
            out += &format!("  {}  {} packets\n", flow.flow(), thousands(*packets));
        }
        let more = finding.more_flows + flows.len().saturating_sub(top) as u64;
        if more > 0 {
            out += &format!("  and {} more\n", thousands(more));
        }
    }
    out
}

fn switches(answer: &MapAnswer) -> String {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("switch", Align::Left),
        right("packets"),
        right("flows"),
        right("missed"),
        right("undecoded"),
        right("reports"),
    ]);
    for (name, totals) in answer.fabric.switches().iter().zip(&answer.switches) {
        let numbers = [totals.packets, totals.flows, totals.missed, totals.undecoded, totals.reports];
        table.row([name.clone()].into_iter().chain(numbers.map(thousands)).collect());
    }
    table.to_string()
}

fn links(answer: &MapAnswer) -> String {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("link", Align::Left),
        right("up"),
        right("lost"),
        right("down"),
        right("lost "),
        right("unjudged"),
    ]);
    for (link, [up, down]) in answer.fabric.links().iter().zip(&answer.links) {
        table.row(vec![
            link.name.clone(),
            thousands(up.packets),
            interval(up),
            thousands(down.packets),
            interval(down),
            thousands(up.unjudged.max(down.unjudged)),
        ]);
    }
    table.to_string()
}

/// Lost packets as people read them.
pub(super) fn interval(totals: &LinkTotals) -> String {
    match totals.lost {
        None => "unknown".to_owned(),
        Some([low, high]) if low == high => thousands(low),
        Some([low, high]) => format!("{} to {}", thousands(low), thousands(high)),
    }
}

/// A finding in one line.
pub(super) fn line(finding: &Finding) -> String {
    let Finding { kind, since, until, place, flows, more_flows, is_sure, why, .. } = finding;
    let sure = if *is_sure { "" } else { ", not sure" };
    let number = flows.len() as u64 + more_flows;
    let flows = if number == 1 { "1 flow".to_owned() } else { format!("{} flows", thousands(number)) };
    let seconds = (until - since) as f64 / 1e9;
    format!("{kind} at {}: {flows}, {why}{sure}; since {}, for {seconds:.2} s", place.join(" "), utc(*since))
}

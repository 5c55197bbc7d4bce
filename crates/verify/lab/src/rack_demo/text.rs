//! The demonstration of a rack, for people.

use chart::table::{Align, Table, thousands};

use super::{RackDemoResult, RackRow};

pub fn text(result: &RackDemoResult) -> String {
    let mut table = Table::new(&[
        ("way", Align::Left),
        ("background", Align::Left),
        ("GETs", Align::Right),
        ("failed", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("background", Align::Right),
        ("port used", Align::Right),
        ("dropped", Align::Right),
        ("peak", Align::Right),
        ("refused by hosts", Align::Right),
        ("switch busy", Align::Right),
    ]);
    for row in &result.rows {
        table.row(cells(row));
    }
    let accounts: String = result.rows.iter().filter_map(account).collect();
    let bound =
        result.bound_bytes.map_or("no bound".to_owned(), |bound| format!("at most {} B may wait", thousands(bound)));
    let verdict = match &result.why_invalid {
        None => String::new(),
        Some(why) => format!("\nNot valid: {why}.\n"),
    };
    format!(
        "{} hosts at {} Mbit/s, {} B of buffer a port, {}; GETs of 4 KiB from {}\npl2: scheduler {}, {bound}\n\n{table}{accounts}{verdict}",
        result.hosts,
        result.rate_mbps,
        thousands(result.buffer_bytes),
        if result.simulated { "simulated".to_owned() } else { format!("{} cores", result.cores) },
        if result.simulated { "a server of no delay" } else { result.program },
        result.scheduler
    )
}

/// Account of the numbered datagrams.
fn account(row: &RackRow) -> Option<String> {
    if row.sent == 0 {
        return None;
    }
    let RackRow { way, senders, sent, delivered, refused_by_hosts: refused, switch_dropped: dropped, .. } = row;
    let known = delivered + refused + dropped;
    let rest = match sent.checked_sub(known) {
        Some(0) => String::new(),
        Some(missing) => format!(" + {} not accounted for", thousands(missing)),
        None => format!(" − {} (other frames were refused or dropped too)", thousands(known - sent)),
    };
    Some(format!(
        "{way}, {senders} × udp: {} sent = {} delivered + {} refused by hosts + {} dropped at the switch{rest}; {} twice, {} out \
         of order\n",
        thousands(*sent),
        thousands(*delivered),
        thousands(*refused),
        thousands(*dropped),
        thousands(row.duplicates),
        thousands(row.reordered)
    ))
}

fn cells(row: &RackRow) -> Vec<String> {
    let background =
        if row.senders == 0 { "none".to_owned() } else { format!("{} × {}", row.senders, row.background) };
    vec![
        row.way.to_owned(),
        background,
        thousands(row.gets),
        thousands(row.failed),
        delay(row.get_p50_us),
        delay(row.get_p99_us),
        delay(row.get_p999_us),
        format!("{:.0} Mbit/s", row.background_mbps),
        format!("{:.0} %", row.port_utilisation * 100.0),
        thousands(row.switch_dropped),
        format!("{} B", thousands(row.port_peak_bytes)),
        thousands(row.refused_by_hosts),
        format!("{:.0} %", row.switch_busy * 100.0),
    ]
}

fn delay(us: Option<f64>) -> String {
    match us {
        None => "–".to_owned(),
        Some(us) if us < 1e3 => format!("{us:.0} µs"),
        Some(us) => format!("{:.1} ms", us / 1e3),
    }
}

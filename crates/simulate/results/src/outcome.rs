//! One simulated link, for people.

use chart::table::{Align, Table, thousands};
use sim::link::{DelayUs, LinkOutcome};

/// The outcome as a table of name and value.
pub fn table(outcome: &LinkOutcome) -> Table {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let mut row = |name: &str, value: String| table.row(vec![name.into(), value]);
    let offered = outcome.frames_offered.max(1) as f64;
    let (low, high) = units::poisson(outcome.frames_lost);
    let skipped = 100.0 * outcome.frames_skipped as f64 / offered;
    row("frames offered", format!("{} ({skipped:.1} % skipped between losses)", thousands(outcome.frames_offered)));
    row("corrupted on the wire", thousands(outcome.frames_corrupted));
    row("lost", thousands(outcome.frames_lost));
    row(
        "effective loss",
        format!("{:.2e} (95 %: {:.1e} to {:.1e})", outcome.effective_loss, low / offered, (high / offered).min(1.0)),
    );
    row(
        "effective speed",
        outcome.effective_speed.map_or("-".into(), |speed| format!("{:.3} % of line rate", speed * 100.0)),
    );
    row("recovered, given up", format!("{}, {}", thousands(outcome.recovered), thousands(outcome.given_up)));
    let copies = outcome.copies.map_or(String::new(), |copies| format!(" ({copies} for each loss)"));
    row("retransmissions", format!("{}{copies}", thousands(outcome.retransmissions)));
    row("recovery delay", delay(outcome.recovery_delay_us));
    row("transit", delay(outcome.transit_us));
    row("Tx buffer peak", format!("{} B", thousands(outcome.tx_buffer_peak_bytes)));
    row("Rx buffer peak", format!("{} B", thousands(outcome.rx_buffer_peak_bytes)));
    row("pauses, overflows", format!("{}, {}", thousands(outcome.pauses), thousands(outcome.overflows)));
    row(
        "reordered, duplicated",
        format!("{}, {}", thousands(outcome.frames_reordered), thousands(outcome.frames_duplicated)),
    );
    if outcome.frames_dropped_at_queue > 0 {
        row("dropped before the link", thousands(outcome.frames_dropped_at_queue));
    }
    row("link time", format!("{:.6} s", outcome.simulated_seconds));
    row("run time", format!("{:.2} s, {} events", outcome.wall_seconds, thousands(outcome.events)));
    table
}

fn delay(delay: Option<DelayUs>) -> String {
    delay.map_or("-".into(), |delay| {
        format!("p50 {:.2} µs, p99 {:.2} µs, p99.9 {:.2} µs, max {:.2} µs", delay.p50, delay.p99, delay.p999, delay.max)
    })
}

//! The metrics that a link reports to Prometheus.
//!
//! | metric | meaning |
//! | --- | --- |
//! | `hitless_link_wanted`, `hitless_link_active` | 1 while protection is asked for, and while it is in force |
//! | `hitless_link_wire_loss_ratio{direction}` | share of frames lost on the wire |
//! | `hitless_link_recovered_total`, `..._given_up_total` | missing frames that arrived after all, or never |
//! | `hitless_link_recovery_delay_seconds{quantile}` | from noticing a loss to its repair |
//! | `hitless_link_wire_bytes_total{direction}`, `..._frames_total{direction}` | what the wire carries |
//! | `hitless_link_dropped_total{reason}` | frames dropped here, by reason |
//! | `hitless_link_buffer_bytes{buffer}` | what waits: for the wire, for its acknowledgement, for its turn |
//! | `hitless_link_copies` | copies of each retransmission |
//! | `hitless_link_keeper`, `..._keepers_replaced_total` | 1 while a keeper makes the link fail open; keepers that ended by themselves |

use std::io::{self, PipeReader};
use std::net::TcpListener;

use linux::mailbox::NoAnswer;
use linux::metrics::{MetricsPage, counter, counters, delays, gauge, gauges, serve, written};
use prometheus_client::registry::Registry;

use crate::run::LinkHandle;
use crate::status::LinkStatus;

/// Tells the metrics of a link until `stop` has something to read or is closed, or the link ends.
pub(crate) fn serve_link(listener: &TcpListener, link: &LinkHandle, stop: &PipeReader) -> io::Result<()> {
    serve(listener, stop, |path| {
        let status = match link.prompt_status() {
            Ok(status) => status,
            Err(NoAnswer::Late) => {
                return Some(MetricsPage::text("503 Service Unavailable", "the link does not answer\n"));
            }
            Err(NoAnswer::Ended) => return None,
        };
        Some(match path {
            "/metrics" | "/" => MetricsPage::metrics(text(&status)),
            _ => MetricsPage::text("404 Not Found", "see /metrics\n"),
        })
    })
}

fn text(status: &LinkStatus) -> String {
    let mut registry = Registry::with_labels(
        [("name".into(), status.name.clone().into()), ("interface".into(), status.interface.clone().into())]
            .into_iter(),
    );
    let registry_of_link = registry.sub_registry_with_prefix("hitless_link");
    register_gauges(registry_of_link, status);
    register_counters(registry_of_link, status);
    written(&registry)
}

fn register_gauges(registry: &mut Registry, status: &LinkStatus) {
    gauge(registry, "wanted", "1 while protection is asked for", f64::from(u8::from(status.wanted)));
    gauge(registry, "active", "1 while the link is protected", f64::from(u8::from(status.is_active())));
    gauge(registry, "copies", "Copies of each retransmission", f64::from(status.copies));
    gauge(
        registry,
        "keeper",
        "1 while a keeper makes the link fail open",
        f64::from(u8::from(status.keeper.is_ready())),
    );
    let loss = [("in", status.loss_in.unwrap_or(0.0)), ("out", status.loss_out.unwrap_or(0.0))];
    gauges(registry, "wire_loss_ratio", "Share of frames lost on the wire", "direction", &loss);
    let buffers = [
        ("queue", status.queued_bytes as f64),
        ("unacknowledged", status.tx_buffered_bytes as f64),
        ("reorder", status.rx_held_bytes as f64),
    ];
    gauges(registry, "buffer_bytes", "Bytes that wait", "buffer", &buffers);
    let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
    let quantiles = [("0.5", status.recovery_p50_us), ("0.99", status.recovery_p99_us), ("1", status.recovery_max_us)];
    let known: Vec<(&str, f64)> =
        quantiles.iter().filter_map(|(quantile, us)| Some((*quantile, seconds(*us)?))).collect();
    delays(registry, "recovery_delay", "From noticing a loss to its repair", "quantile", &known);
}

/// Counters of frames that ended here: every place that drops one.
pub const REASONS: [&str; 23] = [
    "no_buffer",
    "tx_oversize",
    "flushed",
    "host_malformed",
    "gate_dropped",
    "rx_overflow",
    "queue_dropped",
    "host_refused",
    "host_overflow",
    "ring_overflow",
    "wire_refused",
    "rx_malformed",
    "rx_looped",
    "rx_stranger",
    "rx_corrupted",
    "rx_unsealed",
    "rx_early",
    "rx_forged",
    "rx_replayed",
    "rx_old_epoch",
    "rx_stamp_bad",
    "rx_stamp_dropped",
    "rx_stamp_stranger",
];

fn register_counters(registry: &mut Registry, status: &LinkStatus) {
    let count = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    counter(registry, "recovered", "Missing frames that arrived after all", status.recovered);
    counter(registry, "keepers_replaced", "Keepers that ended by themselves", status.keeper.replaced);
    counter(registry, "given_up", "Missing frames not waited for any longer", status.given_up);
    counter(registry, "retransmitted", "Frames sent again, each copy counted", count("tx_replay"));
    let bytes = [("in", count("wire_rx_bytes")), ("out", count("wire_tx_bytes"))];
    counters(registry, "wire_bytes", "Bytes over the wire", "direction", &bytes);
    let frames = [("in", count("wire_rx_frames")), ("out", count("wire_tx_frames"))];
    counters(registry, "wire_frames", "Frames over the wire", "direction", &frames);
    let dropped = REASONS.map(|reason| (reason, count(reason)));
    counters(registry, "dropped", "Frames dropped at this end", "reason", &dropped);
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::keeper::KeeperStatus;

    #[test]
    fn every_metric_of_the_table_is_there_with_its_value() {
        let status = LinkStatus {
            name: "hit0".into(),
            interface: "eth1".into(),
            state: "active".into(),
            recovered: 7,
            loss_in: Some(1e-3),
            recovery_p50_us: Some(50.0),
            keeper: KeeperStatus { state: "ready".into(), replaced: 2, ..KeeperStatus::default() },
            counters: [("rx_forged".to_owned(), 3)].into(),
            ..LinkStatus::default()
        };
        let text = text(&status);
        let has = |wanted: &str| assert!(text.contains(wanted), "{wanted} in\n{text}");
        let link = "name=\"hit0\",interface=\"eth1\"";
        has(&format!("hitless_link_active{{{link}}} 1.0"));
        has(&format!("hitless_link_recovered_total{{{link}}} 7"));
        has(&format!("hitless_link_keeper{{{link}}} 1.0"));
        has(&format!("hitless_link_keepers_replaced_total{{{link}}} 2"));
        has(&format!("hitless_link_wire_loss_ratio{{{link},direction=\"in\"}} 0.001"));
        has(&format!("hitless_link_dropped_total{{{link},reason=\"rx_forged\"}} 3"));
        has(&format!("hitless_link_recovery_delay_seconds{{{link},quantile=\"0.5\"}} 0.00005"));
        assert!(text.ends_with("# EOF\n"));
    }
}

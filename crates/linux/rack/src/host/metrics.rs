//! The metrics that a host that has joined reports to Prometheus.
//!
//! | metric | meaning |
//! | --- | --- |
//! | `hitless_rack_guaranteed` | 1 while the switch answers, so that frames wait here and not in the switch |
//! | `hitless_rack_round_trip_seconds` | the smallest round trip to the switch of late, once it is known |
//! | `hitless_rack_queued_bytes` | what waits for a reservation |
//! | `hitless_rack_held_frames` | frames that are asked for or granted and have not left |
//! | `hitless_rack_reservations_total{event}` | messages to and from the switch, frames sent and received |
//! | `hitless_rack_wire_bytes_total{direction}`, `..._frames_total{direction}` | what the cable carries |
//! | `hitless_rack_refused_total{reason}` | frames of the host that never left, by reason |
//! | `hitless_rack_keeper`, `..._keepers_replaced_total` | 1 while a keeper makes the host fail open; keepers that ended by themselves |
//! | `hitless_rack_rx_malformed_total` | frames from the cable that could not be read |

use linux::metrics::{counter, counters, gauge, written};
use prometheus_client::registry::Registry;
use reserve::host::HostCounters;

use super::HostStatus;
use super::status::REFUSED;

pub(super) fn text(status: &HostStatus) -> String {
    let labels = [("name", &status.name), ("interface", &status.interface)];
    let labels = labels.map(|(label, value)| (label.into(), value.clone().into()));
    let mut registry = Registry::with_labels(labels.into_iter());
    let host = registry.sub_registry_with_prefix("hitless_rack");
    gauge(host, "guaranteed", "1 while the switch answers", f64::from(u8::from(status.guaranteed)));
    gauge(host, "keeper", "1 while a keeper makes the host fail open", f64::from(u8::from(status.keeper.is_ready())));
    counter(host, "keepers_replaced", "Keepers that ended by themselves", status.keeper.replaced);
    if let Some(us) = status.round_trip_us {
        gauge(host, "round_trip_seconds", "Smallest round trip to the switch of late", us / 1e6);
    }
    gauge(host, "queued_bytes", "Bytes that wait for a reservation", status.queued_bytes as f64);
    gauge(host, "held_frames", "Frames that are asked for or granted", status.held_frames as f64);
    let count = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let events: Vec<_> = HostCounters::default().iter().map(|(name, _)| (name, count(name))).collect();
    counters(host, "reservations", "Messages to and from the switch, frames sent and received", "event", &events);
    let bytes = [("in", count("wire_rx_bytes")), ("out", count("wire_tx_bytes"))];
    counters(host, "wire_bytes", "Bytes over the cable", "direction", &bytes);
    let frames = [("in", count("wire_rx_frames")), ("out", count("wire_tx_frames"))];
    counters(host, "wire_frames", "Frames over the cable", "direction", &frames);
    let refused = REFUSED.map(|reason| (reason, count(reason)));
    counters(host, "refused", "Frames of this host that never left", "reason", &refused);
    counter(host, "rx_malformed", "Frames from the cable that could not be read", count("rx_malformed"));
    written(&registry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::keeper::KeeperStatus;

    #[test]
    fn every_metric_of_the_table_is_there_with_its_value() {
        let status = HostStatus {
            name: "rack0".to_owned(),
            interface: "eth0".to_owned(),
            guaranteed: true,
            round_trip_us: Some(50.0),
            keeper: KeeperStatus { state: "ready".to_owned(), replaced: 2, ..KeeperStatus::default() },
            counters: [("grants".to_owned(), 7), ("queue_dropped".to_owned(), 3), ("wire_tx_frames".to_owned(), 9)]
                .into(),
            ..HostStatus::default()
        };
        let text = text(&status);
        let has = |wanted: &str| assert!(text.contains(wanted), "{wanted} in\n{text}");
        let host = "name=\"rack0\",interface=\"eth0\"";
        has(&format!("hitless_rack_guaranteed{{{host}}} 1.0"));
        has(&format!("hitless_rack_keeper{{{host}}} 1.0"));
        has(&format!("hitless_rack_keepers_replaced_total{{{host}}} 2"));
        has(&format!("hitless_rack_round_trip_seconds{{{host}}} 0.00005"));
        has(&format!("hitless_rack_reservations_total{{{host},event=\"grants\"}} 7"));
        has(&format!("hitless_rack_refused_total{{{host},reason=\"queue_dropped\"}} 3"));
        has(&format!("hitless_rack_wire_frames_total{{{host},direction=\"out\"}} 9"));
        assert!(text.ends_with("# EOF\n"));
    }
}

//! The metrics that a switch reports to Prometheus.
//!
//! | metric | meaning |
//! | --- | --- |
//! | `hitless_switch_busy_share` | share of its time that the loop had something to do |
//! | `hitless_switch_port_up{port}` | 1 while the interface is up |
//! | `hitless_switch_frames_total{port}`, `..._bytes_total{port}` | frames and bytes that left by a port |
//! | `hitless_switch_received_total{port}` | frames that came in at a port |
//! | `hitless_switch_dropped_total{port}` | frames that found the buffer of a port full |
//! | `hitless_switch_refused_total{reason}` | frames refused for another reason, all ports together |
//! | `hitless_switch_buffer_bytes{port}`, `..._buffer_peak_bytes{port}` | what waits at a port, and the most that has |
//! | `hitless_switch_reservations_total{event}` | messages, frames and offences of hosts that reserve, if they can |
//! | `hitless_switch_utilisation{port}` | share of a port's rate that is used |

use linux::metrics::{counters, gauge, gauges, written};
use prometheus_client::registry::Registry;

use super::{PortStatus, SwitchStatus};

/// Counters of frames that a switch refuses for reasons other than a full buffer.
pub const DROP_REASONS: [&str; 6] = ["ring_overflow", "malformed", "too_long", "foreign_source", "filtered", "refused"];

pub(super) fn text(status: &SwitchStatus) -> String {
    let mut registry = Registry::with_labels([("name".into(), status.name.clone().into())].into_iter());
    let switch = registry.sub_registry_with_prefix("hitless_switch");
    gauge(switch, "busy_share", "Share of its time that the loop had something to do", status.busy_share());
    register_ports(switch, status);
    let sum = |reason: &str| status.ports.iter().map(|port| port.count(reason)).sum();
    let refused: Vec<(&str, u64)> = DROP_REASONS.iter().map(|reason| (*reason, sum(reason))).collect();
    counters(switch, "refused", "Frames refused for another reason than a full buffer", "reason", &refused);
    if status.scheduler.is_some() {
        let events: Vec<(&str, u64)> =
            status.reservations.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        counters(switch, "reservations", "Messages, frames and offences of hosts that reserve", "event", &events);
    }
    written(&registry)
}

fn register_ports(registry: &mut Registry, status: &SwitchStatus) {
    let values = |value: fn(&PortStatus) -> f64| -> Vec<(&str, f64)> {
        status.ports.iter().map(|port| (port.interface.as_str(), value(port))).collect()
    };
    let counts = |name: &str| -> Vec<(&str, u64)> {
        status.ports.iter().map(|port| (port.interface.as_str(), port.count(name))).collect()
    };
    gauges(registry, "port_up", "1 while the interface is up", "port", &values(|port| f64::from(u8::from(port.up))));
    gauges(registry, "buffer_bytes", "Bytes that wait", "port", &values(|port| port.held_bytes as f64));
    let peaks = values(|port| port.peak_bytes as f64);
    gauges(registry, "buffer_peak_bytes", "The most bytes that have waited", "port", &peaks);
    gauges(registry, "utilisation", "Share of the rate that is used", "port", &values(|port| port.utilisation));
    counters(registry, "received", "Frames that came in", "port", &counts("received"));
    counters(registry, "frames", "Frames that left", "port", &counts("passed"));
    counters(registry, "bytes", "Bytes that left", "port", &counts("passed_bytes"));
    counters(registry, "dropped", "Frames that found the buffer full", "port", &counts("dropped"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_the_table_is_there_with_its_value() {
        let port = PortStatus {
            interface: "eth1".to_owned(),
            up: true,
            peak_bytes: 1_538,
            counters: [("dropped".to_owned(), 7), ("too_long".to_owned(), 3)].into(),
            ..PortStatus::default()
        };
        let status = SwitchStatus { name: "switch0".to_owned(), ports: vec![port], ..SwitchStatus::default() };
        let text = text(&status);
        let has = |wanted: &str| assert!(text.contains(wanted), "{wanted} in\n{text}");
        has("hitless_switch_port_up{name=\"switch0\",port=\"eth1\"} 1.0");
        has("hitless_switch_buffer_peak_bytes{name=\"switch0\",port=\"eth1\"} 1538.0");
        has("hitless_switch_dropped_total{name=\"switch0\",port=\"eth1\"} 7");
        has("hitless_switch_refused_total{name=\"switch0\",reason=\"too_long\"} 3");
        has("hitless_switch_busy_share{name=\"switch0\"} 0.0");
        assert!(text.ends_with("# EOF\n"));
    }
}

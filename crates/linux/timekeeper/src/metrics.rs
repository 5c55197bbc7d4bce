//! The metrics that a clock reports to Prometheus, and its health.
//!
//! | metric | meaning |
//! | --- | --- |
//! | `hitless_clock_synchronized` | 1 while it knows the time |
//! | `hitless_clock_epsilon_seconds` | by how much it may be wrong; absent while it does not know the time |
//! | `hitless_clock_heard_seconds` | since the last message that was believed |
//! | `hitless_clock_depth` | hops to the root |
//! | `hitless_clock_state{state}` | 1 for the state that it is in, 0 for the others |
//! | `hitless_clock_handover_seconds` | by how much all changes of root so far may have moved the time |
//! | `hitless_clock_system_behind_seconds` | what the system's clock was behind at its last adjustment; absent if it is left alone |
//! | `hitless_clock_link_up{interface}` | 1 while frames can pass |
//! | `hitless_clock_events_total{event}` | messages believed and rejected, by reason; turns, elections |
//!
//! `/healthz` answers 200 while it knows the time, 503 and why if it does not.

use std::io::{self, PipeReader};
use std::net::TcpListener;

use linux::mailbox::{Mailbox, NoAnswer};
use linux::metrics::{MetricsPage, counters, gauge, gauges, serve, written};
use prometheus_client::registry::Registry;

use crate::control::ClockRequest;
use crate::page::ClockState;
use crate::status::ClockStatus;

/// Answers until `stop` has something to read or is closed, or the loop ends.
pub(crate) fn serve_status(listener: &TcpListener, asked: &Mailbox<ClockRequest>, stop: &PipeReader) -> io::Result<()> {
    serve(listener, stop, |path| match asked.ask(ClockRequest::Status) {
        Ok(status) => Some(page(path, &status)),
        Err(NoAnswer::Late) => Some(MetricsPage::text("503 Service Unavailable", "it does not answer\n")),
        Err(NoAnswer::Ended) => None,
    })
}

fn page(path: &str, status: &ClockStatus) -> MetricsPage {
    match path {
        "/metrics" | "/" => MetricsPage::metrics(text(status)),
        "/healthz" => {
            let code = if status.is_synchronized() { "200 OK" } else { "503 Service Unavailable" };
            MetricsPage::text(code, format!("{}\n", status.problem().unwrap_or_else(|| "ok".to_owned())))
        }
        _ => MetricsPage::text("404 Not Found", "see /metrics and /healthz\n"),
    }
}

fn text(status: &ClockStatus) -> String {
    let mut registry = Registry::with_labels([("node".into(), status.node.clone().into())].into_iter());
    let clock = registry.sub_registry_with_prefix("hitless_clock");
    let seconds = |ns: u64| ns as f64 / 1e9;
    gauge(clock, "synchronized", "1 while it knows the time", f64::from(u8::from(status.is_synchronized())));
    if let Some(eps_ns) = status.eps_ns {
        gauge(clock, "epsilon_seconds", "By how much the clock may be wrong", seconds(eps_ns));
    }
    if let Some(us) = status.heard_us_ago {
        gauge(clock, "heard_seconds", "Time since the last message that was believed", us / 1e6);
    }
    gauge(clock, "depth", "Hops to the root", status.depth.into());
    let states = ClockState::ALL.map(|state| (state.to_string(), f64::from(u8::from(state == status.state))));
    let states: Vec<(&str, f64)> = states.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    gauges(clock, "state", "1 for the state that it is in", "state", &states);
    let handover = seconds(status.handover_ns);
    gauge(clock, "handover_seconds", "What changes of root may have moved the time by", handover);
    if let Some(behind) = status.system_behind_ns {
        gauge(
            clock,
            "system_behind_seconds",
            "What the system's clock was behind at its last adjustment",
            behind as f64 / 1e9,
        );
    }
    let links: Vec<(&str, f64)> = status
        .links
        .iter()
        .map(|link| (link.interface.as_str(), f64::from(u8::from(link.problem.is_none()))))
        .collect();
    gauges(clock, "link_up", "1 while frames can pass", "interface", &links);
    let events: Vec<(&str, u64)> = status.counters.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    counters(clock, "events", "Messages believed and rejected, turns, elections", "event", &events);
    written(&registry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::ClockLinkStatus;

    #[test]
    fn every_metric_of_the_table_is_there_with_its_value() {
        let link = ClockLinkStatus { interface: "eth1".to_owned(), ..ClockLinkStatus::default() };
        let status = ClockStatus {
            node: "h3".to_owned(),
            state: ClockState::Turned,
            eps_ns: Some(1_500),
            heard_us_ago: Some(700.0),
            depth: 3,
            links: vec![link],
            counters: [("turned".to_owned(), 2)].into(),
            ..ClockStatus::default()
        };
        let text = text(&status);
        for line in [
            "hitless_clock_synchronized{node=\"h3\"} 1.0",
            "hitless_clock_epsilon_seconds{node=\"h3\"} 0.0000015",
            "hitless_clock_depth{node=\"h3\"} 3.0",
            "hitless_clock_state{node=\"h3\",state=\"turned\"} 1.0",
            "hitless_clock_link_up{node=\"h3\",interface=\"eth1\"} 1.0",
            "hitless_clock_events_total{node=\"h3\",event=\"turned\"} 2",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        assert_eq!(page("/healthz", &status).code, "200 OK");
        let lost = page("/healthz", &ClockStatus::default());
        assert_eq!((lost.code, lost.body.as_str()), ("503 Service Unavailable", "it has heard no time yet\n"));
        assert_eq!(page("/else", &status).code, "404 Not Found");
    }
}

//! Metrics of a monitor's own state: for Prometheus, and for clients of `/healthz`.
//!
//! | metric | what it shows |
//! | --- | --- |
//! | `hitless_port_judged{port,device}` | 1 while it is known whether the port is corrupting, 0 while nobody can judge it |
//! | `hitless_port_corrupting{port,device}` | 1 while the port is corrupting; absent while nobody can judge it |
//! | `hitless_port_loss_ratio{port,device}`, `..._loss_low_ratio{port,device}` | bad frames by all in the window, and the least that it can be (95 %); absent as well |
//! | `hitless_port_signal{port,device}` | 0 while the port is switched off or has no signal |
//! | `hitless_port_frames_total{port,device}`, `..._bad_total{port,device}` | what the device counts |
//! | `hitless_monitor_ports_judged` | ports that are judged |
//! | `hitless_monitor_polls_total` | polls since the start |
//! | `hitless_monitor_source_errors_total{source}` | what sources failed to read |
//! | `hitless_monitor_degraded` | 1 while something is wrong with the monitor itself; `/healthz` says what |
//! | `hitless_bus_up`, `hitless_bus_waiting`, `hitless_bus_published_total` | 1 while the bus answers; messages that wait for it; those that it took |
//! | `hitless_actions_total{action,outcome}` | what was done, would have been, was left, refused, or failed |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;

use linux::metrics::{MetricsPage, counter, counters, gauge, written};
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::daemon::named_port;
use crate::detect::PortRow;
use crate::journal::{ActionKind, ActionOutcome};
use crate::reading::ReceivedFrames;
use bus::message::Condition;
use bus::{OutboxStatus, PortId};

/// All that can be asked about a running monitor.
#[derive(Clone, Debug, Default)]
pub struct MonitorMetrics {
    /// The host of all ports that do not name another.
    pub host: String,
    pub rows: Vec<PortRow>,
    /// Counters as their devices have them.
    pub totals: BTreeMap<String, ReceivedFrames>,
    pub polls: u64,
    pub source_errors: BTreeMap<String, u64>,
    pub outbox: OutboxStatus,
    pub actions: BTreeMap<(ActionKind, ActionOutcome), u64>,
    /// Problems of the monitor itself, one line each, by the part that noticed them.
    pub troubles: BTreeMap<ErrorOrigin, BTreeSet<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorOrigin {
    Sources,
    /// Publishing of messages to others.
    Publishing,
    /// Receiving of messages from others.
    Receiving,
    /// Data on the bus that is not ours.
    Foreign,
    Memory,
    Journal,
}

impl MonitorMetrics {
    /// Sets what is wrong at one place now; an empty set if nothing is. Returns the troubles that are new since the last
    /// time, and those that are over.
    pub(crate) fn set_troubles(&mut self, place: ErrorOrigin, now: BTreeSet<String>) -> (Vec<String>, Vec<String>) {
        let before = self.troubles.remove(&place).unwrap_or_default();
        let news = now.difference(&before).cloned().collect();
        let over = before.difference(&now).cloned().collect();
        if !now.is_empty() {
            self.troubles.insert(place, now);
        }
        (news, over)
    }

    pub fn degraded(&self) -> impl Iterator<Item = &str> {
        let starting = (self.polls == 0).then_some("no port has been polled yet");
        starting.into_iter().chain(self.troubles.values().flatten().map(String::as_str))
    }

    pub fn is_degraded(&self) -> bool {
        self.degraded().next().is_some()
    }

    fn is_bus_up(&self) -> bool {
        ![ErrorOrigin::Publishing, ErrorOrigin::Receiving].iter().any(|place| self.troubles.contains_key(place))
    }

    /// Page at a path.
    pub fn page(&self, path: &str) -> MetricsPage {
        match path {
            "/metrics" | "/" => MetricsPage::metrics(self.metrics()),
            "/healthz" if self.is_degraded() => {
                let reasons: Vec<&str> = self.degraded().collect();
                MetricsPage::text("503 Service Unavailable", format!("{}\n", reasons.join("\n")))
            }
            "/healthz" => MetricsPage::text("200 OK", "ok\n"),
            _ => MetricsPage::text("404 Not Found", "see /metrics and /healthz\n"),
        }
    }

    fn metrics(&self) -> String {
        let mut registry = Registry::default();
        self.register_ports(registry.sub_registry_with_prefix("hitless_port"));
        let one = |is: bool| f64::from(u8::from(is));
        let monitor = registry.sub_registry_with_prefix("hitless_monitor");
        counter(monitor, "polls", "Polls since the start", self.polls);
        let errors: Vec<(&str, u64)> = self.source_errors.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        counters(monitor, "source_errors", "What sources failed to read", "source", &errors);
        gauge(monitor, "degraded", "1 while something is wrong with the monitor itself", one(self.is_degraded()));
        let judged = self.rows.iter().filter(|row| row.is_judged()).count();
        gauge(monitor, "ports_judged", "Ports of which it is known whether they are corrupting", judged as f64);
        let bus = registry.sub_registry_with_prefix("hitless_bus");
        gauge(bus, "up", "1 while the bus answers", one(self.is_bus_up()));
        gauge(bus, "waiting", "Messages that wait for the bus", self.outbox.waiting as f64);
        counter(bus, "published", "Messages that the bus took", self.outbox.published);
        let actions = Family::<ActionLabels, Counter>::default();
        // From the start, or the first of them would not show as an increase.
        for outcome in [ActionOutcome::Failed, ActionOutcome::Refused] {
            actions.get_or_create(&ActionLabels(ActionKind::Protect, outcome)).inc_by(0);
        }
        for ((deed, outcome), count) in &self.actions {
            actions.get_or_create(&ActionLabels(*deed, *outcome)).inc_by(*count);
        }
        registry.register("hitless_actions", "What was done, and what was not", actions);
        written(&registry)
    }

    fn register_ports(&self, registry: &mut Registry) {
        let one = |is: bool| f64::from(u8::from(is));
        let all = self.rows.iter();
        let judged = || self.rows.iter().filter(|row| row.is_judged());
        let corrupting = |row: &PortRow| one(row.condition == Condition::Corrupting);
        self.gauges(registry, "judged", "0 while nobody can judge the port", all.clone(), |row| one(row.is_judged()));
        self.gauges(registry, "signal", "0 while it is off or has no signal", all, |row| one(row.has_signal));
        self.gauges(registry, "corrupting", "1 while the port is corrupting", judged(), corrupting);
        self.gauges(registry, "loss_ratio", "Bad frames by all in the window", judged(), |row| row.evidence.loss);
        self.gauges(registry, "loss_low_ratio", "The least that the loss can be", judged(), |row| row.evidence.low);
        self.counters(registry, "frames", "Frames received, as the device counts", |frames| frames.all);
        self.counters(registry, "bad", "Bad frames received, as the device counts", |frames| frames.bad);
    }

    fn labels(&self, port: &str) -> PortLabels {
        let PortId { host, port } = named_port(&self.host, port);
        PortLabels { port, device: host }
    }

    fn gauges<'a>(
        &self,
        registry: &mut Registry,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = &'a PortRow>,
        value: impl Fn(&PortRow) -> f64,
    ) {
        let family = Family::<PortLabels, Gauge<f64, AtomicU64>>::default();
        rows.for_each(|row| {
            family.get_or_create(&self.labels(&row.port)).set(value(row));
        });
        registry.register(name, help, family);
    }

    fn counters(&self, registry: &mut Registry, name: &str, help: &str, value: fn(&ReceivedFrames) -> u64) {
        let family = Family::<PortLabels, Counter>::default();
        for (port, frames) in &self.totals {
            family.get_or_create(&self.labels(port)).inc_by(value(frames));
        }
        registry.register(name, help, family);
    }
}

/// A port, and the host that it belongs to.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct PortLabels {
    port: String,
    device: String,
}

impl EncodeLabelSet for PortLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        ("port", self.port.as_str()).encode(encoder.encode_label())?;
        ("device", self.device.as_str()).encode(encoder.encode_label())
    }
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct ActionLabels(ActionKind, ActionOutcome);

impl EncodeLabelSet for ActionLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        ("action", self.0.name()).encode(encoder.encode_label())?;
        ("outcome", self.1.name()).encode(encoder.encode_label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::message::Evidence;

    fn board() -> MonitorMetrics {
        let evidence = Evidence { frames: 1_000, bad: 10, loss: 1e-2, low: 5e-3, high: 2e-2, seconds: 1.0 };
        let row = PortRow {
            port: "eth1".into(),
            condition: Condition::Corrupting,
            sticky: false,
            evidence,
            note: String::new(),
            why: String::new(),
            has_signal: true,
        };
        MonitorMetrics {
            host: "leaf1".to_owned(),
            rows: vec![row],
            totals: [("eth1".to_owned(), ReceivedFrames { all: 5_000, bad: 12, bits: 64 })].into(),
            polls: 7,
            source_errors: [("sysfs".to_owned(), 3)].into(),
            outbox: OutboxStatus { published: 4, waiting: 2, ..OutboxStatus::default() },
            actions: [((ActionKind::Protect, ActionOutcome::Done), 1)].into(),
            troubles: BTreeMap::new(),
        }
    }

    #[test]
    fn every_metric_of_the_table_is_there_with_its_value() {
        let MetricsPage { code, body, .. } = board().page("/metrics");
        assert_eq!(code, "200 OK");
        for wanted in [
            "hitless_port_corrupting{port=\"eth1\",device=\"leaf1\"} 1.0",
            "hitless_port_loss_ratio{port=\"eth1\",device=\"leaf1\"} 0.01",
            "hitless_port_loss_low_ratio{port=\"eth1\",device=\"leaf1\"} 0.005",
            "hitless_port_frames_total{port=\"eth1\",device=\"leaf1\"} 5000",
            "hitless_port_bad_total{port=\"eth1\",device=\"leaf1\"} 12",
            "hitless_monitor_polls_total 7",
            "hitless_monitor_source_errors_total{source=\"sysfs\"} 3",
            "hitless_monitor_degraded 0.0",
            "hitless_bus_up 1.0",
            "hitless_bus_waiting 2.0",
            "hitless_bus_published_total 4",
            "hitless_actions_total{action=\"protect\",outcome=\"done\"} 1",
        ] {
            assert!(body.contains(wanted), "{wanted} in\n{body}");
        }
    }

    #[test]
    fn a_port_that_nobody_judges_has_no_sample_that_says_it_is_not_corrupting() {
        let mut board = board();
        let row = board.rows[0].clone();
        let unjudged = |port: &str, has_signal| PortRow {
            port: port.to_owned(),
            condition: Condition::Unknown,
            has_signal,
            ..row.clone()
        };
        board.rows.extend([unjudged("eth2", false), unjudged("leaf3/eth1", true)]);
        let body = board.page("/metrics").body;
        let samples: Vec<&str> = body.lines().filter(|line| line.starts_with("hitless_port_corrupting{")).collect();
        assert_eq!(samples, ["hitless_port_corrupting{port=\"eth1\",device=\"leaf1\"} 1.0"]);
        for wanted in [
            "hitless_port_judged{port=\"eth1\",device=\"leaf1\"} 1.0",
            "hitless_port_judged{port=\"eth2\",device=\"leaf1\"} 0.0",
            "hitless_port_judged{port=\"eth1\",device=\"leaf3\"} 0.0",
            "hitless_port_signal{port=\"eth2\",device=\"leaf1\"} 0.0",
            "hitless_port_signal{port=\"eth1\",device=\"leaf3\"} 1.0",
            "hitless_monitor_ports_judged 1.0",
        ] {
            assert!(body.contains(wanted), "{wanted} in\n{body}");
        }
        assert!(!body.contains("hitless_port_loss_ratio{port=\"eth2\""), "{body}");
    }

    #[test]
    fn before_its_first_poll_a_monitor_is_not_healthy() {
        let mut board = board();
        board.polls = 0;
        assert_eq!(board.page("/healthz").body, "no port has been polled yet\n");
        assert!(board.page("/metrics").body.contains("hitless_monitor_degraded 1.0"));
    }

    #[test]
    fn alert_rules_use_only_metrics_that_exist() {
        let rules = include_str!("../../../../contrib/prometheus/hitless.rules.yml");
        let ours = board().page("/metrics").body;
        let others = [
            ("hitless_link_", include_str!("../../link/src/metrics.rs")),
            ("hitless_rack_", include_str!("../../rack/src/host/metrics.rs")),
            ("hitless_switch_", include_str!("../../rack/src/switch/metrics.rs")),
            ("hitless_clock_", include_str!("../../timekeeper/src/metrics.rs")),
        ];
        let names: BTreeSet<&str> = rules
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|word| word.starts_with("hitless_"))
            .collect();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            let elsewhere = others.iter().find_map(|(prefix, source)| Some((name.strip_prefix(prefix)?, source)));
            let exported = match elsewhere {
                Some((name, source)) => source.contains(&format!("\"{}\"", name.trim_end_matches("_total"))),
                None => ours.contains(name),
            };
            assert!(exported, "{name} is not exported");
        }
    }

    #[test]
    fn health_is_one_line_or_all_the_reasons() {
        let mut board = board();
        assert_eq!(board.page("/healthz"), MetricsPage::text("200 OK", "ok\n"));
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<BTreeSet<_>>();
        board.set_troubles(ErrorOrigin::Publishing, lines(&["redis is away"]));
        let (news, over) = board.set_troubles(ErrorOrigin::Sources, lines(&["sysfs: gone", "sysfs: strange"]));
        assert_eq!((news.len(), over.len()), (2, 0));
        let page = board.page("/healthz");
        assert_eq!(page, MetricsPage::text("503 Service Unavailable", "sysfs: gone\nsysfs: strange\nredis is away\n"));
        let metrics = board.page("/metrics").body;
        assert!(metrics.contains("hitless_bus_up 0.0") && metrics.contains("hitless_monitor_degraded 1.0"));
        let (news, over) = board.set_troubles(ErrorOrigin::Sources, lines(&["sysfs: gone"]));
        assert_eq!((news.len(), over.len()), (0, 1));
        board.set_troubles(ErrorOrigin::Sources, lines(&[]));
        board.set_troubles(ErrorOrigin::Publishing, lines(&[]));
        assert_eq!(board.page("/healthz").code, "200 OK");
        assert_eq!(board.page("/other").code, "404 Not Found");
    }
}

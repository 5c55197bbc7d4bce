//! Metrics for Prometheus, over the plainest HTTP there is.
//!
//! | metric | what it tells |
//! | --- | --- |
//! | `hitless_link_wanted`, `hitless_link_active` | 1 while protection is asked for, and while it is in force |
//! | `hitless_link_wire_loss_ratio{direction}` | share of frames lost on the wire |
//! | `hitless_link_recovered_total`, `..._given_up_total` | missing frames that arrived after all, or never |
//! | `hitless_link_recovery_delay_seconds{quantile}` | from noticing a loss to its repair |
//! | `hitless_link_wire_bytes_total{direction}`, `..._frames_total{direction}` | what the wire carries |
//! | `hitless_link_dropped_total{reason}` | frames dropped here, by reason |
//! | `hitless_link_buffer_bytes{buffer}` | what waits: for the wire, for its acknowledgement, for its turn |
//! | `hitless_link_copies` | copies of each retransmission |

use std::fmt::Write as _;
use std::io::{self, PipeReader};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::run::Handle;
use crate::serve::{self, Protocol};
use crate::status::Status;

pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// As in HTTP: `200 OK`.
    pub code: &'static str,
    pub kind: &'static str,
    pub body: String,
}

impl Page {
    pub fn metrics(body: String) -> Self {
        Self { code: "200 OK", kind: "application/openmetrics-text; version=1.0.0; charset=utf-8", body }
    }

    pub fn text(code: &'static str, body: impl Into<String>) -> Self {
        Self { code, kind: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// Tells the metrics of a link until `stop` has something to read or is closed, or the link ends.
pub fn serve_link(listener: &TcpListener, link: &Handle, stop: &PipeReader) -> io::Result<()> {
    serve(listener, stop, |path| {
        let status = link.status()?;
        Some(match path {
            "/metrics" | "/" => Page::metrics(text(&status)),
            _ => Page::text("404 Not Found", "see /metrics\n"),
        })
    })
}

/// Answers with the page of each path asked for, until `stop` has something to read or is closed, or there is no page.
pub fn serve(listener: &TcpListener, stop: &PipeReader, page: impl FnMut(&str) -> Option<Page>) -> io::Result<()> {
    serve::serve(listener, stop, serve::PATIENCE, &mut Http(page))
}

/// HTTP, as far as a GET needs it.
struct Http<F>(F);

impl<F: FnMut(&str) -> Option<Page>> Protocol for Http<F> {
    const LONGEST: usize = 8_192;

    fn is_whole(request: &[u8]) -> bool {
        request.windows(4).any(|end| end == b"\r\n\r\n")
    }

    fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(request);
        let path = text.strip_prefix("GET ").and_then(|rest| rest.split([' ', '?', '\r', '\n']).next());
        let Page { code, kind, body } = match path {
            Some(path) => (self.0)(path)?,
            None => Page::text("405 Method Not Allowed", "expected GET\n"),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        Some(answer.into_bytes())
    }
}

/// One label, whatever its name.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Label(&'static str, String);

impl EncodeLabelSet for Label {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        (self.0, self.1.as_str()).encode(encoder.encode_label())
    }
}

type Gauges = Family<Label, Gauge<f64, AtomicU64>>;
type Counters = Family<Label, Counter>;

fn text(status: &Status) -> String {
    let mut registry = Registry::with_labels(
        [("name".into(), status.name.clone().into()), ("interface".into(), status.interface.clone().into())]
            .into_iter(),
    );
    let registry_of_link = registry.sub_registry_with_prefix("hitless_link");
    register_gauges(registry_of_link, status);
    register_counters(registry_of_link, status);
    written(&registry)
}

/// A registry as Prometheus reads it.
pub fn written(registry: &Registry) -> String {
    let mut text = String::new();
    if encode(&mut text, registry).is_err() {
        text.clear();
        let _ = writeln!(text, "# EOF");
    }
    text
}

pub fn gauges(registry: &mut Registry, name: &str, help: &str, label: &'static str, values: &[(&str, f64)]) {
    let family = Gauges::default();
    for (value, number) in values {
        family.get_or_create(&Label(label, (*value).to_owned())).set(*number);
    }
    registry.register(name, help, family);
}

pub fn counters(registry: &mut Registry, name: &str, help: &str, label: &'static str, values: &[(&str, u64)]) {
    let family = Counters::default();
    for (value, number) in values {
        family.get_or_create(&Label(label, (*value).to_owned())).inc_by(*number);
    }
    registry.register(name, help, family);
}

pub fn gauge(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Gauge::<f64, AtomicU64>::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

pub fn counter(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let counter: Counter = Counter::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

fn register_gauges(registry: &mut Registry, status: &Status) {
    gauge(registry, "wanted", "1 while protection is asked for", f64::from(u8::from(status.wanted)));
    gauge(registry, "active", "1 while the link is protected", f64::from(u8::from(status.is_active())));
    gauge(registry, "copies", "Copies of each retransmission", f64::from(status.copies));
    let loss = [("in", status.loss_in.unwrap_or(0.0)), ("out", status.loss_out.unwrap_or(0.0))];
    gauges(registry, "wire_loss_ratio", "Share of frames lost on the wire", "direction", &loss);
    let buffers = [
        ("queue", status.queued_bytes as f64),
        ("unacknowledged", status.tx_buffered_bytes as f64),
        ("reorder", status.rx_held_bytes as f64),
    ];
    gauges(registry, "buffer_bytes", "Bytes that wait", "buffer", &buffers);
    let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
    let delays = [("0.5", status.recovery_p50_us), ("0.99", status.recovery_p99_us), ("1", status.recovery_max_us)];
    let delays: Vec<(&str, f64)> =
        delays.iter().filter_map(|(quantile, us)| Some((*quantile, seconds(*us)?))).collect();
    let family = Gauges::default();
    for (quantile, delay) in delays {
        family.get_or_create(&Label("quantile", quantile.to_owned())).set(delay);
    }
    registry.register_with_unit("recovery_delay", "From noticing a loss to its repair", Unit::Seconds, family);
}

/// Reasons for which frames are dropped at this end.
/// Counters of frames that ended here: every place that drops one.
pub const REASONS: [&str; 20] = [
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
];

fn register_counters(registry: &mut Registry, status: &Status) {
    let count = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    counter(registry, "recovered", "Missing frames that arrived after all", status.recovered);
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
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_request_in_pieces_is_answered_as_a_whole_and_anything_but_get_is_refused() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopper) = io::pipe().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, &stop, |path| Some(Page::text("200 OK", format!("you want {path}\n")))));
            let get = |pieces: &[&str]| {
                let mut stream = TcpStream::connect(address).unwrap();
                for piece in pieces {
                    stream.write_all(piece.as_bytes()).unwrap();
                    std::thread::sleep(Duration::from_millis(5));
                }
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                text
            };
            assert!(get(&["GET /he", "re?x=1 HTTP/1.1\r\nHost: a\r", "\n\r\n"]).ends_with("\r\n\r\nyou want /here\n"));
            assert!(get(&["POST / HTTP/1.1\r\n\r\n"]).starts_with("HTTP/1.1 405"));
            drop(stopper);
        });
    }

    #[test]
    fn every_metric_of_the_table_is_there_with_its_value() {
        let status = Status {
            name: "hit0".into(),
            interface: "eth1".into(),
            state: "active".into(),
            recovered: 7,
            loss_in: Some(1e-3),
            recovery_p50_us: Some(50.0),
            counters: [("rx_forged".to_owned(), 3)].into(),
            ..Status::default()
        };
        let text = text(&status);
        let has = |wanted: &str| assert!(text.contains(wanted), "{wanted} in\n{text}");
        let link = "name=\"hit0\",interface=\"eth1\"";
        has(&format!("hitless_link_active{{{link}}} 1.0"));
        has(&format!("hitless_link_recovered_total{{{link}}} 7"));
        has(&format!("hitless_link_wire_loss_ratio{{{link},direction=\"in\"}} 0.001"));
        has(&format!("hitless_link_dropped_total{{{link},reason=\"rx_forged\"}} 3"));
        has(&format!("hitless_link_recovery_delay_seconds{{{link},quantile=\"0.5\"}} 0.00005"));
        assert!(text.ends_with("# EOF\n"));
    }
}

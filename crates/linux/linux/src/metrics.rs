//! Metrics as Prometheus reads them, over the plainest HTTP there is.

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

use crate::serve::{self, ServeProtocol};

pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Page at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsPage {
    /// Status as in HTTP: `200 OK`.
    pub code: &'static str,
    pub kind: &'static str,
    pub body: String,
}

impl MetricsPage {
    pub fn metrics(body: String) -> Self {
        Self { code: "200 OK", kind: "application/openmetrics-text; version=1.0.0; charset=utf-8", body }
    }

    pub fn text(code: &'static str, body: impl Into<String>) -> Self {
        Self { code, kind: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// Answers with the page of each path asked for, until `stop` has something to read or is closed, or there is no page.
pub fn serve(
    listener: &TcpListener,
    stop: &PipeReader,
    page: impl FnMut(&str) -> Option<MetricsPage>,
) -> io::Result<()> {
    serve::serve(listener, stop, serve::PATIENCE, &mut Http(page))
}

/// HTTP, as far as a GET needs it.
struct Http<F>(F);

impl<F: FnMut(&str) -> Option<MetricsPage>> ServeProtocol for Http<F> {
    const LONGEST: usize = 8_192;

    fn is_whole(request: &[u8]) -> bool {
        request.windows(4).any(|end| end == b"\r\n\r\n")
    }

    fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(request);
        let path = text.strip_prefix("GET ").and_then(|rest| rest.split([' ', '?', '\r', '\n']).next());
        let MetricsPage { code, kind, body } = match path {
            Some(path) => (self.0)(path)?,
            None => MetricsPage::text("405 Method Not Allowed", "expected GET\n"),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        Some(answer.into_bytes())
    }
}

/// One label with any name.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct MetricLabel(&'static str, String);

impl EncodeLabelSet for MetricLabel {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        (self.0, self.1.as_str()).encode(encoder.encode_label())
    }
}

type GaugeFamily = Family<MetricLabel, Gauge<f64, AtomicU64>>;
type CounterFamily = Family<MetricLabel, Counter>;

/// A registry as Prometheus reads it.
pub fn written(registry: &Registry) -> String {
    let mut text = String::new();
    if encode(&mut text, registry).is_err() {
        text.clear();
        let _ = writeln!(text, "# EOF");
    }
    text
}

fn family(label: &'static str, values: &[(&str, f64)]) -> GaugeFamily {
    let family = GaugeFamily::default();
    for (value, number) in values {
        family.get_or_create(&MetricLabel(label, (*value).to_owned())).set(*number);
    }
    family
}

pub fn gauges(registry: &mut Registry, name: &str, help: &str, label: &'static str, values: &[(&str, f64)]) {
    registry.register(name, help, family(label, values));
}

/// Registers gauges in seconds; the unit becomes part of the name.
pub fn delays(registry: &mut Registry, name: &str, help: &str, label: &'static str, values: &[(&str, f64)]) {
    registry.register_with_unit(name, help, Unit::Seconds, family(label, values));
}

pub fn counters(registry: &mut Registry, name: &str, help: &str, label: &'static str, values: &[(&str, u64)]) {
    let family = CounterFamily::default();
    for (value, number) in values {
        family.get_or_create(&MetricLabel(label, (*value).to_owned())).inc_by(*number);
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
            scope.spawn(|| {
                serve(&listener, &stop, |path| Some(MetricsPage::text("200 OK", format!("you want {path}\n"))))
            });
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
}

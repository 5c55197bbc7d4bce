//! Transport of meters' reports to collectors: LossRadar, li-thesis §5.2.3, *meters* and *collector*.
//!
//! ```text
//!   meter ──put──▶ ReportQueue ─▶ ReportSender ══TCP══▶ ReportReceiver ──CollectorQueue──▶ Collector
//!                                     ▲  ReportCounts ◀──── what became of them ◀────────────┘
//!   Redis: who collects ──BusNews────▶ FanOut              Announcer ──▶ Redis: who collects, what was found
//! ```
//!
//! This module does not read the contents of reports. Each has the meter's incarnation (`life`), a number that no other run
//! of a meter has, and its place in that incarnation, so a report that comes twice is given once, and those that did not
//! come are counted in [`ReceivedReport::missing`].
//!
//! | file | what it is |
//! | --- | --- |
//! | [`mod@report_queue`] | the meter's side: never waits for the network, drops what finds no room and counts it |
//! | [`report_receiver`] | the collector's side: any number of meters, distinguished by their incarnations |
//! | [`collector`] | what reports come to: losses, and who is silent |
//! | `answer` | what the collector says of them: taken, refused and why |
//! | [`question`], `kept` | what the collector asks of meters, and whole reports that are sent small |
//! | `queue` | reports that wait to be compared, bounded by bytes |
//! | `frame`, `run_length`, `seal` | reports as bytes on a connection, shorter, and with a key |
//! | `tcp`, `listen` | the meter's connection, and who listens at its end |
//! | `fanout`, `bus_watch` | of several collectors, which gets a batch |
//! | [`announcer`] | how a collector is found, and what it publishes |
//!
//! Invariants: memory is bounded on both sides, for anything that a peer sends or does not send; of one incarnation,
//! reports come in order; a meter whose reports nobody takes learns it; with a key nothing is heard that was made, changed or played again by others.

pub mod announcer;
mod answer;
mod bus_watch;
pub mod collector;
mod fanout;
mod frame;
mod kept;
mod listen;
pub mod question;
pub mod queue;
#[cfg(feature = "redis")]
mod redis;
#[cfg(not(feature = "redis"))]
#[path = "digests/no_redis.rs"]
mod redis;
pub mod report_queue;
pub mod report_receiver;
mod run_length;
mod seal;
mod tcp;

use std::fmt;
use std::path::Path;

use bus::BusError;

use redis::RedisAddress;

pub use collector::Collector;
pub use frame::LONGEST;
pub use question::{MeterQuestion, NoResponder, QuestionResponder};
pub use queue::{CollectorQueue, CollectorReports, ReceivedReport, queue};
pub use report_queue::{ReportCounts, ReportQueue, ReportSender, report_queue};
pub use report_receiver::ReportReceiver;

/// Address of a collector, or of the server on which collectors announce themselves, as a user writes it.
#[derive(Clone, Debug)]
pub enum CollectorAddress {
    /// A collector that listens there.
    Tcp(String),
    Redis(Box<RedisCollectorAddress>),
}

/// A Redis server, and the prefix of our keys there.
#[derive(Clone, Debug)]
pub struct RedisCollectorAddress(RedisAddress);

impl fmt::Display for RedisCollectorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for CollectorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Redis(place) => place.fmt(f),
        }
    }
}

impl RedisCollectorAddress {
    /// The place at which flow meters and their collectors find each other, apart from those of digests.
    #[must_use]
    pub fn of_flows(&self) -> Self {
        Self(redis::of_flows(&self.0))
    }
}

impl std::str::FromStr for CollectorAddress {
    type Err = BusError;

    fn from_str(text: &str) -> Result<Self, BusError> {
        Self::parse(text, None)
    }
}

impl CollectorAddress {
    /// `HOST:PORT`, or `redis://…` as for the monitor's bus; with a certificate authority to trust in PEM.
    pub fn parse(text: &str, ca: Option<&Path>) -> Result<Self, BusError> {
        if text.contains("://") {
            return Ok(Self::Redis(Box::new(RedisCollectorAddress(RedisAddress::parse(text, ca)?))));
        }
        if let Some(ca) = ca {
            return Err(BusError::Address(format!("bus-ca {}: only a rediss:// bus has certificates", ca.display())));
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(Self::Tcp(text.to_owned())),
            _ => Err(BusError::Address(format!("`{text}`: expected HOST:PORT of a collector, or redis://HOST[:PORT]"))),
        }
    }
}

/// One report on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Envelope {
    /// Incarnation of the meter.
    life: u64,
    /// Number of reports of that incarnation before this one.
    number: u64,
    /// Its marks: [`ReportMarks`](radar::segment::ReportMarks) as bits.
    flags: u8,
    /// The batch that it is about, if that is known.
    subject: Option<ReportSubject>,
    report: Vec<u8>,
}

/// The batch of a segment that a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReportSubject {
    segment: String,
    batch: u64,
    /// Nanoseconds that a batch lasts.
    length: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_people_write_it() {
        let shown = |text: &str| {
            text.parse::<CollectorAddress>().map_or_else(|error| error.to_string(), |place| place.to_string())
        };
        assert_eq!(shown("collector.example:7878"), "collector.example:7878");
        assert_eq!(shown("[::1]:7878"), "[::1]:7878");
        assert_eq!(shown("redis://10.0.0.1?prefix=lab"), "redis://10.0.0.1:6379/0");
        for (text, why) in [
            ("collector", "expected HOST:PORT"),
            (":7878", "expected HOST:PORT"),
            ("collector:http", "expected HOST:PORT"),
            ("http://collector", "expected redis://"),
        ] {
            assert!(shown(text).contains(why), "{text}: {}", shown(text));
        }
    }
}

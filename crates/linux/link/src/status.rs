//! Status that a link reports about itself: to `status`, to `watch`, to metrics.

use std::collections::BTreeMap;

use guard::auto::Level;
use guard::session::SessionState;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use units::{Span, Time};

use crate::datapath::Link;
use daemon::keeper::KeeperStatus;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// The stand-in interface and the one it stands in for.
    pub name: String,
    pub interface: String,
    /// The daemon's process.
    pub pid: u32,
    /// dormant, asking, answering, active or closing.
    pub state: String,
    /// True if protection is asked for.
    pub wanted: bool,
    /// Mode that was asked for: ordered, nonblocking or auto.
    pub mode: String,
    /// Mode in force where that is chosen automatically.
    pub level: Option<String>,
    pub peer: Option<String>,
    pub host_backend: String,
    pub wire_backend: String,
    pub seal: String,
    #[serde(default)]
    pub stamp: StampStatus,
    #[serde(default)]
    pub keeper: KeeperStatus,
    pub mtu: u32,
    pub up_seconds: f64,
    /// Problem that keeps the link from being protected, in one line.
    pub problem: Option<String>,
    /// Share of frames lost on the wire, found missing here and reported missing by the peer.
    pub loss_in: Option<f64>,
    pub loss_out: Option<f64>,
    /// Copies of each retransmission.
    pub copies: u8,
    pub recovered: u64,
    pub given_up: u64,
    pub recovery_p50_us: Option<f64>,
    pub recovery_p99_us: Option<f64>,
    pub recovery_max_us: Option<f64>,
    pub tx_buffered_bytes: u64,
    pub rx_held_bytes: u64,
    pub queued_bytes: u64,
    /// Bits a second over the wire, header and copies included, averaged over the last second.
    pub tx_bits_per_second: f64,
    pub rx_bits_per_second: f64,
    pub counters: BTreeMap<String, u64>,
}

/// Use of stamps: frames with their numbers in their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampStatus {
    /// off, probing, used or unanswered.
    pub state: String,
    /// Reason why they are not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Properties that do not change while a link is up.
#[derive(Clone, Debug, Default)]
pub struct LinkIdentity {
    pub name: String,
    pub interface: String,
    pub mode: String,
    pub host_backend: String,
    pub wire_backend: String,
    pub seal: String,
    pub mtu: u32,
}

/// Bytes over the wire, looked at once a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct WireThroughput {
    at: Time,
    bytes: (u64, u64),
    rates: (f64, f64),
}

impl WireThroughput {
    pub fn look(&mut self, now: Time, link: &Link) {
        let tally = &link.context().statistics.tally;
        let bytes = (tally.wire_tx_bytes, tally.wire_rx_bytes);
        let seconds = now.since(self.at).as_secs();
        // The first look comes at once, and would divide by next to nothing.
        if seconds > 0.1 {
            let rate = |now: u64, before: u64| (now - before) as f64 * 8.0 / seconds;
            self.rates = (rate(bytes.0, self.bytes.0), rate(bytes.1, self.bytes.1));
        }
        (self.at, self.bytes) = (now, bytes);
    }
}

/// The state of a link whose daemon waits for its interface.
pub(crate) const WAITING: &str = "waiting";

impl LinkStatus {
    pub fn of(
        link: &Link,
        identity: &LinkIdentity,
        now: Time,
        throughput: &WireThroughput,
        problem: Option<String>,
    ) -> Self {
        let (endpoint, context) = (link.endpoint(), link.context());
        let counters = endpoint.counters();
        let (copies, level) = endpoint.copies();
        let frames_in = counters.rx_expected_seq_good + counters.rx_missing_seq;
        let lost_in = counters.rx_missing_seq.saturating_sub(context.statistics.tally.ring_overflow);
        let identity = identity.clone();
        Self {
            name: identity.name,
            interface: identity.interface,
            pid: std::process::id(),
            state: state(endpoint.state()).into(),
            wanted: link.wants_protection(),
            mode: identity.mode,
            level: level.map(|level| self::level(level).into()),
            peer: context.framing.peer().map(|peer| peer.to_string()),
            host_backend: identity.host_backend,
            wire_backend: identity.wire_backend,
            seal: identity.seal,
            stamp: stamp(link),
            keeper: KeeperStatus::default(),
            mtu: identity.mtu,
            up_seconds: now.since(Time::ZERO).as_secs(),
            problem,
            loss_in: share(lost_in, frames_in),
            loss_out: share(counters.tx_missing, counters.tx_ok),
            copies,
            recovered: counters.recovered,
            given_up: counters.given_up,
            recovery_p50_us: percentile(context.statistics.recovery(), 50.0),
            recovery_p99_us: percentile(context.statistics.recovery(), 99.0),
            recovery_max_us: percentile(context.statistics.recovery(), 100.0),
            tx_buffered_bytes: endpoint.tx_buffered().get(),
            rx_held_bytes: endpoint.rx_held().get(),
            queued_bytes: context.memory.queued().get(),
            tx_bits_per_second: throughput.rates.0,
            rx_bits_per_second: throughput.rates.1,
            counters: all_counters(link),
        }
    }

    /// True if the daemon waits for its interface.
    pub fn is_waiting(&self) -> bool {
        self.state == WAITING
    }

    pub fn is_active(&self) -> bool {
        self.state == state(SessionState::Active)
    }
}

fn all_counters(link: &Link) -> BTreeMap<String, u64> {
    let protocol = link.endpoint().counters().iter().map(|(name, value)| (name.to_owned(), value));
    let live = link.context().statistics.tally.iter().map(|(name, value)| (name.to_owned(), value));
    protocol.chain(live).collect()
}

fn stamp(link: &Link) -> StampStatus {
    let (state, why) = link.context().stamper.describe();
    StampStatus { state: state.to_owned(), why: why.map(str::to_owned) }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Percentile in microseconds; none if there is nothing to take it of.
pub fn percentile(delays: &Histogram<u64>, percent: f64) -> Option<f64> {
    (!delays.is_empty()).then(|| Span::from_ns(delays.value_at_quantile(percent / 100.0)).as_us())
}

fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Dormant => "dormant",
        SessionState::Asking => "asking",
        SessionState::Answering => "answering",
        SessionState::Active => "active",
        SessionState::Closing => "closing",
    }
}

pub fn level(level: Level) -> &'static str {
    match level {
        Level::Ordered => "ordered",
        Level::NonBlocking => "nonblocking",
        Level::Off => "off",
    }
}

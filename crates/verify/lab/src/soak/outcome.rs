//! Results of a soak.

use serde::Serialize;

use super::verdict::{self, MemoryUse, SoakVerdict};
use super::{SoakPlan, TrafficCounters, TrafficTotals};
use crate::stage::WireCount;
use link::status::LinkStatus;
use linux::net::NetworkPrivilege;

/// State at a moment; counts since the start, of both ends together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SoakSnapshot {
    pub at_seconds: f64,
    /// Memory of this program: both daemons, a wire that is not in the kernel, and the clients.
    pub resident_bytes: u64,
    pub wire: WireCount,
    /// Protected frames that arrived or should have.
    pub frames: u64,
    pub recovered: u64,
    pub given_up: u64,
    pub copies: u8,
    pub active: bool,
}

/// Results of a soak.
#[derive(Clone, Debug, Serialize)]
pub struct Soak {
    /// False if it was interrupted.
    pub complete: bool,
    pub seconds: f64,
    pub loss: f64,
    pub burst: f64,
    pub rate_gbps: Option<f64>,
    pub mode: String,
    pub backend: String,
    pub rootless: bool,
    /// Programs that are not installed.
    pub missing: Vec<&'static str>,
    pub traffic: Vec<TrafficTotals>,
    pub wire: WireCount,
    /// Frames that found no room before the wire.
    pub wire_overflowed: u64,
    pub frames: u64,
    pub recovered: u64,
    pub given_up: u64,
    /// Frames given up by Eq. 1, for independent losses.
    pub given_up_predicted: Option<f64>,
    pub give_up_after_ms: f64,
    pub recovery_p50_us: Option<f64>,
    pub recovery_p99_us: Option<f64>,
    pub recovery_max_us: Option<f64>,
    /// Frames that came off the wire faster than an end took them.
    pub ring_overflow: u64,
    /// Frames of the hosts' that found the queue before the link full: congestion, which TCP has to deal with.
    pub queue_dropped: u64,
    pub memory: MemoryUse,
    /// The last status on the left and on the right.
    pub ends: [LinkStatus; 2],
    pub looks: Vec<SoakSnapshot>,
    pub verdicts: Vec<SoakVerdict>,
}

impl Soak {
    pub fn holds(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.holds)
    }
}

/// Record of a soak.
pub(super) struct SoakRecord {
    pub complete: bool,
    pub backend: String,
    pub missing: Vec<&'static str>,
    pub looks: Vec<SoakSnapshot>,
    pub wire_overflowed: u64,
    pub ends: [LinkStatus; 2],
}

fn counter(status: &LinkStatus, name: &str) -> u64 {
    status.counters.get(name).copied().unwrap_or(0)
}

/// Protected frames that arrived or should have.
pub(super) fn frames(status: &LinkStatus) -> u64 {
    counter(status, "rx_expected_seq_good") + counter(status, "rx_missing_seq")
}

impl SoakRecord {
    pub(super) fn conclude(self, plan: &SoakPlan, standing: NetworkPrivilege, tallies: &TrafficCounters) -> Soak {
        let TrafficCounters { transfers, memcached, http, iperf3 } = tallies;
        let traffic = [(transfers, ""), (memcached, "memcached"), (http, "python3"), (iperf3, "iperf3")];
        let used = traffic.iter().filter(|(_, program)| !self.missing.contains(program));
        let [left, right] = &self.ends;
        let both = |of: fn(&LinkStatus) -> u64| of(left) + of(right);
        let slower = |of: fn(&LinkStatus) -> Option<f64>| of(left).into_iter().chain(of(right)).reduce(f64::max);
        let last = self.looks.last().cloned().unwrap_or_default();
        let loss = plan.loss.get();
        let mut soak = Soak {
            complete: self.complete,
            seconds: last.at_seconds,
            loss,
            burst: plan.burst,
            rate_gbps: plan.rate.map(|rate| rate.bits_per_second() as f64 / 1e9),
            mode: left.mode.clone(),
            backend: self.backend,
            rootless: standing == NetworkPrivilege::Rootless,
            traffic: used.map(|(tally, _)| tally.traffic()).collect(),
            missing: self.missing,
            wire: last.wire,
            wire_overflowed: self.wire_overflowed,
            frames: both(frames),
            recovered: both(|status| status.recovered),
            given_up: both(|status| status.given_up),
            given_up_predicted: (!plan.has_bursts()).then(|| verdict::predicted(&self.looks, loss)),
            give_up_after_ms: plan.link(0).give_up_after.as_us() / 1e3,
            recovery_p50_us: slower(|status| status.recovery_p50_us),
            recovery_p99_us: slower(|status| status.recovery_p99_us),
            recovery_max_us: slower(|status| status.recovery_max_us),
            ring_overflow: both(|status| counter(status, "ring_overflow")),
            queue_dropped: both(|status| counter(status, "queue_dropped") + counter(status, "host_overflow")),
            memory: MemoryUse::of(&self.looks),
            ends: self.ends.clone(),
            looks: self.looks,
            verdicts: Vec::new(),
        };
        soak.verdicts = verdict::verdicts(&soak);
        soak
    }
}

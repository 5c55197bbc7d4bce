//! Status of a switch.

use std::collections::BTreeMap;

use reserve::SchedulerKind;
use serde::{Deserialize, Serialize};
use units::Time;

use super::core::SwitchPortCounters;
use super::run::RackSwitch;

/// Status of a switch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SwitchStatus {
    /// Name of the switch.
    pub name: String,
    /// The process.
    pub pid: u32,
    /// Bits a second that each port carries.
    pub rate_bps: u64,
    /// Bytes that may wait at each port.
    pub buffer_bytes: u64,
    /// Uptime.
    pub up_seconds: f64,
    /// Processor time of the loop's turns that had something to do.
    pub busy_seconds: f64,
    /// Scheduler that decides when hosts that reserve may send; none if nobody can reserve.
    pub scheduler: Option<String>,
    /// The most that waits at a port if all hosts reserve, or if there is a share for those that do not; none if nobody can
    /// reserve, or if the scheduler gives no bound.
    pub bound_bytes: Option<u64>,
    /// Part of each port that is kept for frames without a reservation.
    #[serde(default)]
    pub ingress_share: f64,
    /// Counters of reservations, by name.
    pub reservations: BTreeMap<String, u64>,
    /// Ports, in the order in which they were given.
    pub ports: Vec<PortStatus>,
}

/// Status of a port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PortStatus {
    /// The interface.
    pub interface: String,
    /// True if frames can leave by it.
    pub up: bool,
    /// Addresses known behind it.
    pub addresses: usize,
    /// Bytes that wait.
    pub held_bytes: u64,
    /// The most bytes that have waited.
    pub peak_bytes: u64,
    /// Share of the port's rate that was used during the last second.
    pub utilisation: f64,
    /// Bits a second during the last second, from the host and to it.
    pub rx_bits_per_second: f64,
    /// See above.
    pub tx_bits_per_second: f64,
    /// Every counter, by name.
    pub counters: BTreeMap<String, u64>,
}

impl PortStatus {
    /// A counter by its name; 0 for an unknown name.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }
}

/// Bytes through a port, looked at once a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortRates {
    at: Time,
    before: SwitchPortCounters,
    rx: f64,
    tx: f64,
    /// Bits a second of the wire, gaps and preambles included.
    wire: f64,
}

impl PortRates {
    pub(super) fn look(&mut self, now: Time, counters: &SwitchPortCounters) {
        let seconds = now.since(self.at).as_secs();
        // The first look comes at once, and would divide by next to nothing.
        if seconds > 0.1 {
            let passed = counters.since(&self.before);
            let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
            (self.rx, self.tx, self.wire) =
                (rate(passed.received_bytes), rate(passed.passed_bytes), rate(passed.wire_bytes));
        }
        (self.at, self.before) = (now, *counters);
    }
}

impl SwitchStatus {
    pub(super) fn of(switch: &mut RackSwitch, now: Time) -> Self {
        switch.count_overflow();
        let first = &switch.config.ports[0];
        let params = switch.config.reserve.as_ref();
        let bounded = params.filter(|params| params.scheduler != SchedulerKind::Paper);
        let reservations = switch.core.reservations().map(|reserving| by_name(reserving.counters().iter()));
        Self {
            name: switch.config.name.clone(),
            pid: std::process::id(),
            rate_bps: first.rate.bits_per_second(),
            buffer_bytes: first.buffer.get(),
            up_seconds: now.since(Time::ZERO).as_secs(),
            busy_seconds: switch.busy.as_secs_f64(),
            scheduler: params.map(|params| params.scheduler.name().to_owned()),
            bound_bytes: bounded.map(|params| params.bound(params.ports - 1).total().get()),
            ingress_share: params.map_or(0.0, |params| params.ingress_share.get()),
            reservations: reservations.unwrap_or_default(),
            ports: (0..switch.config.ports.len()).map(|port| port_status(switch, port)).collect(),
        }
    }

    /// Share of its time that the loop had something to do.
    pub fn busy_share(&self) -> f64 {
        if self.up_seconds > 0.0 { self.busy_seconds / self.up_seconds } else { 0.0 }
    }
}

fn port_status(switch: &RackSwitch, port: usize) -> PortStatus {
    let (config, rates) = (&switch.config.ports[port], &switch.rates[port]);
    let (held_bytes, peak_bytes) = switch.core.occupancy(port);
    PortStatus {
        interface: config.name.clone(),
        up: !switch.down[port],
        addresses: switch.core.addresses(port),
        held_bytes,
        peak_bytes,
        utilisation: rates.wire / config.rate.bits_per_second() as f64,
        rx_bits_per_second: rates.rx,
        tx_bits_per_second: rates.tx,
        counters: by_name(switch.core.counters(port).iter()),
    }
}

fn by_name(counters: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counters.map(|(name, value)| (name.to_owned(), value)).collect()
}

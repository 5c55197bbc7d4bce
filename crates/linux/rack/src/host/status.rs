//! Status of a host that has joined.

use std::collections::BTreeMap;

use daemon::keeper::KeeperStatus;
use reserve::RackParams;
use serde::{Deserialize, Serialize};
use units::Time;

use super::datapath::JoinedHost;

/// Properties that do not change while a host has joined.
#[derive(Clone, Debug)]
pub struct JoinIdentity {
    /// The stand-in.
    pub name: String,
    /// Interface that it stands in for.
    pub interface: String,
    /// MTU of the stand-in.
    pub mtu: u32,
    /// Backends with which the two are opened.
    pub backends: [String; 2],
    /// Parameters of the reservations.
    pub rack: RackParams,
}

/// Status of a host that has joined.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostStatus {
    /// The stand-in interface.
    pub name: String,
    /// The one that it stands in for.
    pub interface: String,
    /// The daemon's process.
    pub pid: u32,
    /// MTU of the stand-in.
    pub mtu: u32,
    /// Backend of the kernel's side.
    pub host_backend: String,
    /// Backend of the cable's side.
    pub wire_backend: String,
    /// Scheduler that the switch is expected to use.
    pub scheduler: String,
    /// Full frames of a reservation.
    pub k: u8,
    /// Most reservations that this host may have open.
    pub contexts: u16,
    /// True if the switch answers, so that frames wait for their turn and not in the switch.
    pub guaranteed: bool,
    /// Reason if not.
    pub problem: Option<String>,
    /// The smallest round trip to the switch of late.
    pub round_trip_us: Option<f64>,
    /// The process that passes frames if the daemon is killed.
    #[serde(default)]
    pub keeper: KeeperStatus,
    /// Uptime.
    pub up_seconds: f64,
    /// Bytes that wait for a reservation.
    pub queued_bytes: u64,
    /// Frames that are asked for or granted and have not left.
    pub held_frames: u64,
    /// Frames that found no room in this host's own queues, or that the cable did not take.
    pub refused: u64,
    /// Every counter, by name.
    pub counters: BTreeMap<String, u64>,
}

/// Counters of frames that the host sent and that never left.
pub(super) const REFUSED: [&str; 4] = ["queue_dropped", "host_overflow", "no_buffer", "wire_refused"];

impl HostStatus {
    /// Status of a host that waits for its interface.
    pub(super) fn waiting(name: &str, interface: &str) -> Self {
        let (name, interface) = (name.to_owned(), interface.to_owned());
        Self { name, interface, pid: std::process::id(), ..Self::default() }
    }

    /// True if it waits for its interface: nothing else is known of it then.
    pub fn is_waiting(&self) -> bool {
        self.mtu == 0
    }

    pub(super) fn of(host: &mut JoinedHost, identity: &JoinIdentity, now: Time) -> Self {
        host.look_at_kernel();
        host.shell.tally.queue_dropped = host.shell.dropped();
        let machine = &host.machine;
        let counters = machine.counters().iter().chain(host.shell.tally.iter());
        let counters: BTreeMap<String, u64> = counters.map(|(name, value)| (name.to_owned(), value)).collect();
        let problem = problem(machine.is_guaranteed(), machine.counters().grants);
        let [host_backend, wire_backend] = identity.backends.clone();
        Self {
            name: identity.name.clone(),
            interface: identity.interface.clone(),
            pid: std::process::id(),
            mtu: identity.mtu,
            host_backend,
            wire_backend,
            scheduler: identity.rack.scheduler.name().to_owned(),
            k: identity.rack.k,
            contexts: identity.rack.contexts,
            guaranteed: problem.is_none(),
            problem: problem.map(str::to_owned),
            round_trip_us: machine.round_trip().map(|span| span.as_us()),
            keeper: KeeperStatus::default(),
            up_seconds: now.since(Time::ZERO).as_secs(),
            queued_bytes: host.shell.queued().get(),
            held_frames: machine.held_frames() as u64,
            refused: REFUSED.iter().filter_map(|name| counters.get(*name)).sum(),
            counters,
        }
    }
}

fn problem(answered: bool, grants: u64) -> Option<&'static str> {
    match (answered, grants) {
        (false, _) => Some("the switch does not answer: frames pass without a reservation, and nothing is guaranteed"),
        (true, 0) => Some("the switch has granted nothing yet: nothing is guaranteed"),
        (true, _) => None,
    }
}

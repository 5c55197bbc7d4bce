//! Counters of daemons, kept beyond their end.

use std::collections::BTreeMap;
use std::time::Duration;

use rack::host::HostStatus;
use rack::switch::SwitchStatus;

use crate::soak::{MemoryUse, SoakSnapshot};

/// The last known counts of every process.
#[derive(Debug, Default)]
pub(super) struct RackLedger {
    /// Dropped and overflowed of every switch, by process.
    switches: BTreeMap<u32, [u64; 2]>,
    pub peak_bytes: u64,
    pub bound_bytes: Option<u64>,
    /// Frames that hosts refused, by host and process.
    refused: BTreeMap<(usize, u32), u64>,
    memory: Vec<SoakSnapshot>,
}

impl RackLedger {
    pub(super) fn heard_of_switch(&mut self, status: &SwitchStatus) {
        let sum = |name: &str| status.ports.iter().map(|port| port.count(name)).sum();
        self.switches.insert(status.pid, [sum("dropped"), sum("ring_overflow")]);
        let peak = status.ports.iter().map(|port| port.peak_bytes).max().unwrap_or(0);
        self.peak_bytes = self.peak_bytes.max(peak);
        self.bound_bytes = status.bound_bytes;
    }

    pub(super) fn heard_of_host(&mut self, host: usize, status: &HostStatus) {
        self.refused.insert((host, status.pid), status.refused);
    }

    pub(super) fn saw_memory(&mut self, at: Duration, resident_bytes: u64) {
        self.memory.push(SoakSnapshot { at_seconds: at.as_secs_f64(), resident_bytes, ..SoakSnapshot::default() });
    }

    /// Frames dropped at the switch, and not read in time.
    pub(super) fn lost_at_switch(&self) -> [u64; 2] {
        self.switches.values().fold([0; 2], |sum, counts| [sum[0] + counts[0], sum[1] + counts[1]])
    }

    /// Frames that all daemons of a host refused.
    pub(super) fn refused(&self, host: usize) -> u64 {
        self.refused.iter().filter(|((of, _), _)| *of == host).map(|(_, refused)| refused).sum()
    }

    pub(super) fn memory(&self) -> MemoryUse {
        MemoryUse::of(&self.memory)
    }
}

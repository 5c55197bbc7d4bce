//! Results of a fault bench.

use std::time::Duration;

use serde::Serialize;

use super::ledger::{DatagramTotals, EpisodeResult};
use super::plan::PlannedFault;
use super::side;

/// A fault, as it came.
#[derive(Clone, Copy, Debug)]
pub struct InflictedFault {
    pub fault: PlannedFault,
    /// Time on the act's clock.
    pub at: Duration,
    pub protected_after: Duration,
}

/// One fault, and the account of the datagrams around it.
#[derive(Clone, Debug, Serialize)]
pub struct FaultReport {
    pub kind: &'static str,
    pub end: &'static str,
    /// True if frames were sealed with a key.
    pub keyed: bool,
    pub at_s: f64,
    /// The longest time without an arrival, of the worse direction.
    pub silence_ms: f64,
    /// Time from the fault's end until both ends were protected and datagrams flowed again.
    pub protected_after_ms: f64,
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    /// Lost datagrams that counters explain; the others were lost while nobody served, while the wire was down, within a
    /// window of a restart, or are unaccounted for.
    pub counted: u64,
    pub unaccounted: u64,
}

impl FaultReport {
    pub fn new(inflicted: &InflictedFault, keyed: bool, begun: Duration, settled: &EpisodeResult) -> Self {
        let InflictedFault { fault, at, protected_after } = inflicted;
        Self {
            kind: fault.kind.name(),
            end: side(fault.end),
            keyed,
            at_s: (begun + *at).as_secs_f64(),
            protected_after_ms: protected_after.as_secs_f64() * 1e3,
            silence_ms: settled.silence.as_secs_f64() * 1e3,
            lost: settled.lost,
            duplicated: settled.duplicated,
            reordered: settled.reordered,
            counted: settled.counted.sum(),
            unaccounted: settled.unaccounted,
        }
    }

    pub fn is_clean(&self) -> bool {
        [self.unaccounted, self.duplicated, self.reordered] == [0; 3]
    }
}

/// Results of a fault bench.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FaultBench {
    pub seed: u64,
    pub seconds: f64,
    /// False if it was interrupted.
    pub complete: bool,
    pub rootless: bool,
    pub faults: Vec<FaultReport>,
    pub totals: DatagramTotals,
    /// Transfers and requests over TCP that were completed.
    pub transfers: u64,
    pub requests: u64,
    /// Things still there after both daemons had ended, a line each.
    pub left_behind: Vec<String>,
    /// All other problems, a line each.
    pub problems: Vec<String>,
}

impl FaultBench {
    pub fn holds(&self) -> bool {
        self.totals.is_clean() && self.left_behind.is_empty() && self.problems.is_empty()
    }

    /// Adds what another act came to, which began after all of this.
    pub fn append(&mut self, act: Self) {
        self.faults.extend(act.faults);
        self.totals += act.totals;
        self.transfers += act.transfers;
        self.requests += act.requests;
        self.left_behind.extend(act.left_behind);
        self.problems.extend(act.problems);
    }
}

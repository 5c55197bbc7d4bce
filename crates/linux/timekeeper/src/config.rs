//! Configuration of a clock's daemon.

use std::net::SocketAddr;
use std::path::PathBuf;

use clock::bound::{DriftBound, PerHop};
use clock::node::{DepthRule, NodeParams, TimeoutRule, ValidityRule};
use units::Span;

use crate::duties::ClockDuties;

/// Waves that may be missed before a node turns: two and a half, so that neither one wave more nor a late one matters.
const FIRST_TIMEOUT_HALVES: u64 = 5;
/// Waves that the backup root waits for after that. More than a switch chip would: a program may not run for some
/// milliseconds though its machine is well, and a second root is worse than a few milliseconds without one.
const SECOND_TIMEOUT: u64 = 28;

/// The machine's parameters for waves of this many nanoseconds, in ticks of one nanosecond.
pub fn live_params(interval_ns: u64) -> NodeParams {
    let interval = Span::from_ps(interval_ns);
    NodeParams {
        interval,
        first_timeout: Span::from_ps(interval_ns * FIRST_TIMEOUT_HALVES / 2),
        second_timeout: interval * SECOND_TIMEOUT,
        drift: DriftBound::THESIS,
        // All of it is in the intervals that are measured.
        per_hop: PerHop { measurement: Span::ZERO, dwell: Span::ZERO },
        depth: DepthRule::Measured,
        timeout: TimeoutRule::KeepLarger,
        validity: ValidityRule::Overlap,
    }
}

/// A link to a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockLink {
    /// The node at its other end.
    pub neighbour: String,
    /// The interface here.
    pub interface: String,
}

/// A clock.
#[derive(Clone, Debug)]
pub struct ClockConfig {
    /// This node's part of the plan.
    pub duties: ClockDuties,
    /// The links to its neighbours, each neighbour once.
    pub links: Vec<ClockLink>,
    /// Timeouts and bounds.
    pub params: NodeParams,
    /// Frequency by which the node's oscillator is made faster than the machine's, in parts per billion: other than zero
    /// only to try out drift.
    pub oscillator_ppb: i64,
    /// Address at which Prometheus finds the daemon.
    pub metrics: Option<SocketAddr>,
    /// The page; in the run directory if not given.
    pub page: Option<PathBuf>,
    /// The file with the key that waves are sealed with, if they are.
    pub key: Option<PathBuf>,
    /// The system's clock follows.
    pub sets_system_clock: bool,
}

//! Replaying switch queues: li-thesis §6.3.4.
//!
//! [`record`] runs a network and keeps of every packet when it left its host, its length and its fate; and of some
//! packets what each queue that they joined held, flow by flow. [`replay`] sends packets at given times through the same network,
//! with nobody at the ends who could react. [`compare`] says how far the queues and the drops of the two are apart.
//!
//! | file | what it is |
//! | --- | --- |
//! | `contents` | what queues hold by flow, and what packets see of it |
//! | `recording` | the program of switches and hosts that records |
//! | `replaying` | the program that sends recorded packets, and drops those that were dropped |
//! | `comparison` | queue content difference, drop error |
//!
//! Drops are no continuous function of send times, so hosts tag the packets that were dropped. A tagged packet is dropped where
//! the queue that it is to join is within [`NEAR_LIMIT`] of its limit at that moment, dynamic threshold included, and passes
//! otherwise (*false accept*); one without a tag is never dropped, and counted if there was no room (*overflow*). A packet that was
//! corrupted meets no full queue: its tag says so, and it ends behind the first corrupting link of its way.

mod comparison;
mod contents;
mod recording;
mod replaying;

pub use comparison::{DropDifference, QueueComparison, QueueDifference, compare};
pub use contents::{FlowBytes, QueueQuestion, QueueView, QueueViews, StreamId};
pub use recording::{PacketFate, QueueRecording, RecordedConnection, RecordedPacket, record, record_asked};
pub use replaying::{QueueReplay, ReplayOptions, ReplayTags, replay};

use std::fmt;

use super::setup::NetworkSetup;
use crate::topology::Unreachable;

/// Frame of the thesis's MTU, the unit of differences: 1,500 bytes, header and check.
pub const MTU_FRAME: u32 = 1_518;
/// Free room of a queue below which tagged packets are dropped: five packets of 1,500 bytes with their headers.
pub const NEAR_LIMIT: u64 = 5 * 1_538;

/// Reason why queues cannot be replayed.
#[derive(Debug)]
pub enum ReplayError {
    /// The setup changes packets on their way, or holds them back outside of queues.
    Unsupported(&'static str),
    Unreachable(Unreachable),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(what) => write!(f, "queues of a network with {what} cannot be replayed"),
            Self::Unreachable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

impl From<Unreachable> for ReplayError {
    fn from(error: Unreachable) -> Self {
        Self::Unreachable(error)
    }
}

/// Refuses what cannot be replayed.
fn check(setup: &NetworkSetup) -> Result<(), ReplayError> {
    let protected = setup.topology.link_ids().any(|link| setup.protects(link));
    let reasons = [
        (protected, "a link protocol"),
        (setup.rack.is_some(), "reservations"),
        (setup.int.is_some(), "telemetry"),
        (setup.repeat.is_some(), "switches that repeat packets"),
        (!setup.rules.is_empty(), "wrong rules in its switches"),
        (setup.traffic.iter().any(|traffic| traffic.queue_pairs.is_some()), "queue pairs that flows share"),
    ];
    match reasons.into_iter().find(|(applies, _)| *applies) {
        Some((_, what)) => Err(ReplayError::Unsupported(what)),
        None => Ok(()),
    }
}

//! Counters in, corrupting links out: LinkGuardian (SIGCOMM'23) App. C, done so that a pager can rely on it.
//!
//! ```text
//!   Source ──Reading──▶ Detector ──Change──▶ Message ──▶ Outbox ──▶ Bus ──▶ the host that sends on that link
//!   (counters)          (one a port)                                        (protect, unprotect, alert)
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `reading`, `source` | what a port's counters say, and where they come from |
//! | `detect` | when a port is corrupting and when it is healthy again |
//! | `config` | what a monitor is to do, checked once |
//! | `act` | what is done about a corrupting port, and undone |
//! | `daemon` | the monitor itself: polls, publishes, acts |
//! | `journal`, `metrics` | what happened, and how it is going |

pub mod act;
pub mod config;
pub mod daemon;
pub mod detect;
pub mod journal;
pub mod metrics;
mod reading;
pub mod source;

pub use reading::{CarrierState, Phy, Reading, ReceivedFrames};

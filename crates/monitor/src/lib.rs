//! Counters in, corrupting links out: LinkGuardian (SIGCOMM'23) App. C, done so that a pager can rely on it.
//!
//! ```text
//!   Source ──Reading──▶ Detector ──Change──▶ Message ──▶ Outbox ──▶ Bus ──▶ whoever sends on that link
//!   (counters)          (one a port)                                        (protect, unprotect, alert)
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `reading`, `source` | what a port's counters say, and where they come from |
//! | `detect` | when a port is corrupting and when it is healthy again |
//! | `message`, `bus` | what is told to others, and how it gets there |

pub mod bus;
pub mod detect;
pub mod message;
pub mod reading;
pub mod source;

pub use message::{Condition, Evidence, Message, Order, OrderKind, PortId, PortState};
pub use reading::{Carrier, Frames, Phy, Reading};

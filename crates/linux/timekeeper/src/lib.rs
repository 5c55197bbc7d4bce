//! The clock of a host on real interfaces: it knows the time, and by how much it may be wrong.
//!
//! Sundial (Y. Li's thesis, ch. 3) on hosts, whose links take an unknown time: each exchange of frames proves an interval.
//!
//! | file | what it is |
//! | --- | --- |
//! | `duties` | what a plan asks of one node |
//! | `bounds`, `neighbour` | what frames of a neighbour prove |
//! | `core` | the clock without sockets: frames and readings of the oscillator in, frames out |
//! | `oscillator`, `stamping` | CLOCK_MONOTONIC_RAW, and the kernel's time stamps on it |
//! | `page` | the page that programs read the time from |
//! | `discipline` | the system's clock, where it is to follow |
//! | `port`, `seal`, `run` | sockets around it, frames with and without a key, and the loop |
//! | `daemon`, `control`, `status`, `reports`, `metrics`, `config` | the daemon |
#![warn(missing_docs)]

mod bounds;
mod config;
mod control;
mod core;
mod daemon;
mod discipline;
mod duties;
mod metrics;
mod neighbour;
mod oscillator;
mod page;
mod port;
mod reports;
mod run;
mod seal;
mod stamping;
mod status;

pub use config::{ClockConfig, ClockLink, live_params};
pub use control::{
    ClockControlReply, ClockControlRequest, ClockRequest, ask_clock, clock_names, clock_page, read_duties, read_plan,
};
pub use daemon::ClockDaemon;
pub use duties::{ClockDuties, DutyError};
pub use page::{ClockPageEntry, ClockPageWriter, ClockReader, ClockReading, ClockState, ReadingError};
pub use status::{ClockLinkStatus, ClockStatus};

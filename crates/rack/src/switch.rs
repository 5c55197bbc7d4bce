//! The switch: learns addresses, forwards by them, and serves each port at a rate of its own.

mod arrivals;
mod class;
mod core;
mod daemon;
mod metrics;
mod port;
pub(crate) mod reserving;
mod run;
mod status;
mod table;

use reserve::RackParams;
use units::Span;

use crate::control::RackRequest;

pub use self::core::{SwitchCore, SwitchPortCounters};
pub use self::daemon::{SwitchDaemon, open_ports};
pub use self::metrics::DROP_REASONS;
pub use self::port::PortConfig;
pub use self::run::RackSwitch;
pub use self::status::{PortStatus, SwitchStatus};

/// Frames that the ring of a port holds.
pub(crate) const RING_FRAMES: usize = 4_096;

/// What a switch is made with.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// What it is called.
    pub name: String,
    /// At least two.
    pub ports: Vec<PortConfig>,
    /// An address that has been silent for this long is forgotten.
    pub aging: Span,
    /// What hosts that reserve and the switch agree on; without it nobody can reserve.
    pub reserve: Option<RackParams>,
}

/// What can be asked of a running switch.
pub type SwitchRequest = RackRequest<SwitchStatus>;

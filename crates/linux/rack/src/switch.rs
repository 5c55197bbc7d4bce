//! The switch: learns addresses, forwards by them, and serves each port at a rate of its own.

mod arrivals;
mod class;
mod core;
mod daemon;
mod metrics;
mod move_log;
mod port;
pub(crate) mod reserving;
mod run;
mod status;
mod table;

use reserve::RackParams;
use units::Span;

use crate::control::RackRequest;

pub use self::core::{AddressMove, SwitchCore, SwitchPortCounters};
pub use self::daemon::{SwitchDaemon, open_ports};
pub use self::metrics::DROP_REASONS;
pub use self::port::PortConfig;
pub use self::reserving::SWITCH_ADDRESS;
pub use self::run::RackSwitch;
pub use self::status::{PortStatus, SwitchStatus};

/// Frames that the ring of a port holds.
pub(crate) const RING_FRAMES: usize = 4_096;

/// Configuration of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Name of the switch.
    pub name: String,
    /// Ports, at least two.
    pub ports: Vec<PortConfig>,
    /// An address that has been silent for this long is forgotten.
    pub aging: Span,
    /// Addresses that belong to a port permanently, with its number.
    pub bound: Vec<([u8; 6], usize)>,
    /// Parameters on which hosts that reserve and the switch agree; without them nobody can reserve.
    pub reserve: Option<RackParams>,
}

/// Request to a running switch.
pub type SwitchRequest = RackRequest<SwitchStatus>;

//! A host's part of a live rack: a stand-in interface, and under it [`reserve::ReservingHost`].
//!
//! ```text
//!   kernel ──▶ cut ──▶ a queue for each destination ──▶ ReservingHost ──▶ cable      RSVs, marked frames
//!   kernel ◀── join ◀────────────────────────────────── ReservingHost ◀── cable      GRTs, marked frames
//! ```
//!
//! Frames that exceed a host's share are refused in its own queue, and nowhere else: that is the promise. The queue is fair
//! among flows ([`standin::FrameQueue`]) and stands before the reservation.

mod daemon;
mod datapath;
mod framing;
mod lanes;
mod metrics;
mod run;
mod shell;
mod status;

use crate::control::RackRequest;

pub use self::daemon::{HostDaemon, JoinConfig, bring_up};
pub use self::datapath::JoinedHost;
pub use self::run::HostLoop;
pub use self::status::{HostStatus, JoinIdentity};

/// Request to a host that has joined.
pub type HostRequest = RackRequest<HostStatus>;

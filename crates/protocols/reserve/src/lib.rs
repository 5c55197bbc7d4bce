//! Reservations in a rack: hosts ask their switch before they send, so that its queues do not overflow.
//!
//! PL2 ("Packet-Level Lossless" racks by reservation). Where its parts are:
//!
//! | of the paper | here |
//! | --- | --- |
//! | §2, App. D.1: Algorithms 1 and 2, the switch | [`switch`], `switch::paper` |
//! | App. D.1.1: one access per array and frame | [`registers`] |
//! | §2, App. D.2: the host; when a burst may go | [`host`] |
//! | App. D.3: K; D.4: t and T; §G: other racks | [`params`] |
//! | App. D.4, Algorithm 3: unsolicited bursts | `host::context`, `switch::data` |
//! | App. D.5: copies of GRTs, resets | `host::receiver`, `switch` |
//!
//! Points that the paper leaves open, and our decisions: messages have identities, a refusal has a reason, three schedulers
//! beside the paper's have a bound on what a port queues. The bytes on the wire are [`wire::reserve`].
//!
//! Nothing here has a clock or a socket: [`ReservingHost`] is a [`machine::Machine`], [`ReservingSwitch`] is called for each
//! message and each frame.

#![warn(missing_docs)]

pub mod frame;
pub mod host;
pub mod params;
pub mod registers;
pub mod switch;
pub mod theory;

pub use frame::{RackFrame, ReservePacket};
pub use host::{HostCommand, HostCounters, HostParams, HostTimer, ReservingHost};
pub use params::{RackBound, RackParamError, RackParams, SchedulerKind, SlotUnit};
pub use switch::{
    Charge, ContextReservation, DataAnswer, FrameVisit, LateAnswer, MessageAnswer, MessageVisit, PortReservation,
    ReservingSwitch, SwitchCounters,
};

//! The protected link: lost frames are sent again across the one link that lost them, within
//! microseconds, so that nothing above notices.
//!
//! LinkGuardian (SIGCOMM'23) is [`Endpoint`], one for each end of a link. Where its parts are:
//!
//! | of the paper | here |
//! | --- | --- |
//! | §3, App. A.2: sender, Tx buffer, retransmission | `sender` |
//! | §3.1: acknowledgements; App. A.1: gaps and notices | `receiver`, `losses` |
//! | §3.2: dummies against tail loss | [`dummies`] |
//! | §3.3, Alg. 1: order kept, duplicates dropped | `order`, [`reorder`] |
//! | §3.3, Alg. 2: backpressure | [`backpressure`] |
//! | §3.4, Eq. 1–2: copies | [`copies`] |
//! | App. B.1: parameters | [`params`] |
//! | §3.5: priorities; §5: both directions, both modes at once | [`endpoint`] |
//! | §5: automatic fallback | [`auto`] |
//! | §5: several links on one switch | [`pool`] |
//! | activation (§3, App. C), which the paper leaves to its control plane | [`session`] |
//!
//! [`llr`] is the Ultra Ethernet Consortium's link-layer retry and [`fec`] Wharf's link-local error correction, to
//! compare with.
//!
//! Everything here is a machine without I/O: see [`machine::Machine`].

#![warn(missing_docs)]

pub mod auto;
pub mod backpressure;
pub mod copies;
mod counters;
pub mod dummies;
pub mod endpoint;
pub mod fec;
pub mod llr;
mod losses;
mod order;
mod packet;
pub mod params;
pub mod pool;
mod receiver;
pub mod reorder;
mod round_trip;
mod sender;
pub mod session;
mod silence;

pub use copies::copies_for;
pub use counters::Counters;
pub use endpoint::{Endpoint, EndpointCommand, EndpointEvent, EndpointNote, EndpointTimer, WIRE};
pub use packet::LinkPacket;
pub use params::{LinkTiming, Params};
pub use session::{SessionIdentity, SessionState};

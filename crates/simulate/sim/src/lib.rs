//! The deterministic simulator.
//!
//! Time is integer picoseconds; events are totally ordered, by time and then by the order in which they
//! were scheduled; the same configuration and seed give the same result, byte for byte. [`engine`] is
//! the event queue, [`link`] two nodes and the link between them, [`net`] a whole network: of a [`topology`], with a
//! [`workload`]. [`protocols`] has what can protect a link.
//!
//! The crate `scenario` reads files that describe networks; the keys of each transport and each link protocol are read
//! here, in the file of the transport or protocol.

pub mod engine;
mod hardware;
pub mod histogram;
pub mod link;
pub mod net;
pub mod protocols;

pub use traffic::{topology, workload};

//! The deterministic simulator.
//!
//! Time is integer picoseconds; events are totally ordered, by time and then by the order in which they
//! were scheduled; the same configuration and seed give the same result, byte for byte. [`engine`] is
//! the event queue, [`link`] two nodes and the link between them, [`net`] a whole network: of a [`topology`], with a
//! [`workload`], as a [`scenario`] file describes it. [`mod@bench`] has networks to measure the simulator with.

pub mod bench;
pub mod engine;
mod hardware;
pub mod link;
pub mod net;
mod protocols;
pub mod scenario;

pub use traffic::{topology, workload};

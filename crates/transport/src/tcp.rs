//! TCP.

pub mod cc;
mod segment;

pub use segment::{MAX_SACKS, Sack, Segment};

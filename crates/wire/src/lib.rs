//! Frames as bytes: parse and emit, never panic.
//!
//! [`link`] is the header that a protected link puts before each frame; [`Seq`] is its sequence
//! number; [`ethernet`] holds the sizes that every wire shares.

pub mod ethernet;
pub mod ip;
pub mod link;
mod seq;

pub use seq::Seq;

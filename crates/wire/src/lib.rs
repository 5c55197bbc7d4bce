//! Frames as bytes: parse and emit, never panic.
//!
//! [`link`] is the header that a protected link puts before each frame; [`Seq`] is its sequence
//! number; [`ethernet`] holds the sizes that every wire shares. [`ipv4`], [`tcp`], [`udp`] and [`roce`] emit
//! headers for captures of simulated traffic; [`roce`] also reads RoCEv2 out of real frames, by way of [`udp::find`],
//! [`ipv4`] and [`ipv6`].

pub mod ethernet;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod link;
pub mod roce;
mod seq;
pub mod tcp;
pub mod udp;

pub use seq::Seq;

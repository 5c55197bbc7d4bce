//! Frames as bytes: parse and emit, never panic.
//!
//! [`link`] is the header that a protected link puts before each frame; [`Seq`] is its sequence
//! number; [`ethernet`] holds the sizes that every wire shares. [`layers`] finds the headers of real frames, and
//! [`checksum`] is the Internet's. [`ipv4`], [`tcp`], [`udp`] and [`roce`] emit headers for captures of simulated
//! traffic; [`roce`] also reads RoCEv2 out of real frames, by way of [`udp::find`].
//! [`gso`] makes the headers of the packets that a super-frame stands for. [`int`] is the telemetry that switches write
//! on packets, [`reserve`] what a rack with reservations says, [`sync`] and [`exchange`] what clocks say to each other.

#![warn(missing_docs)]

pub mod checksum;
pub mod ethernet;
pub mod exchange;
pub mod gso;
pub mod int;
pub mod ip;
pub mod ipv4;
pub mod layers;
pub mod link;
pub mod reserve;
pub mod roce;
mod seq;
pub mod sync;
pub mod tcp;
pub mod udp;

pub use seq::Seq;

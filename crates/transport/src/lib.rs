//! The endpoints: what hosts run over a network, as machines.
//!
//! [`tcp`] is a connection with SACK, RACK-TLP and a choice of congestion controls; [`roce`] a reliable connection of
//! RoCEv2. Both are established from the start and full duplex: the same type stands at both ends. Like every machine they have no clock and no random source; the network interface pulls segments from them when its wire is free.

#![warn(missing_docs)]

pub mod roce;
pub mod tcp;

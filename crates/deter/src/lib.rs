//! Logs of TCP connections, and their exact replay: DETER.

#![warn(missing_docs)]

pub mod sampling;

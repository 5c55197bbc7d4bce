//! The rack: a software switch between several interfaces, with a rate and a buffer for each of its ports, and hosts that
//! ask it before they send.
//!
//! | file | what it is |
//! | --- | --- |
//! | `switch::core` | the switch without I/O: frames and times in, frames out |
//! | `switch::port` | one output port: two classes, a rate, a buffer |
//! | `switch::table` | which address is behind which port |
//! | `switch::class` | what a frame is to the switch: its addresses and its class |
//! | `switch::reserving` | messages and marks of hosts that reserve, read for `reserve` |
//! | `switch::arrivals`, `switch::run` | packet sockets around it, and the loop |
//! | `switch::daemon`, `switch::status`, `switch::metrics` | the daemon |
//! | `host` | a host's part on a stand-in: `reserve`'s machine between the kernel and the cable |
//! | `agreement` | what both must agree on |
//! | `presence` | how a host says that it is there |
//! | `control`, `metrics` | the control sockets of both, and how Prometheus asks them |
#![warn(missing_docs)]

pub mod agreement;
pub mod control;
pub mod host;
mod metrics;
mod presence;
pub mod switch;

//! TCP judged from outside: scripts in packetdrill's language, run on our TCP and on this host's.
//!
//! | file | what it is |
//! | --- | --- |
//! | `language` | what a script says: events, calls, segments, statements, commands |
//! | `segment` | a TCP segment as scripts write it |
//! | `subject`, `runner` | what a script is run against, and how |
//! | `machine_subject` | our TCP in simulated time, with sockets and a handshake around it |
//! | `kernel` | this host's TCP in real time, behind a TUN interface in a network namespace of its own |
//! | `batch` | many scripts at a time, and their results |
//! | `random` | scripts made at random, on which both must agree |
//!
//! Invariant: a script passes only if every line of it was understood and held.

pub mod batch;
mod kernel;
mod language;
mod machine_subject;
pub mod random;
mod runner;
mod segment;
mod subject;

//! The lab: two hosts and a wire on one machine, and what to show and to measure there. Nothing of it is part of a daemon.
//!
//! | file | what it is |
//! | --- | --- |
//! | `stage` | namespaces, cables, daemons |
//! | `load` | traffic to try them with |
//! | `demo`, `bench`, `soak` | what protection gains, what it costs, and whether it lasts |
//! | `rack_demo` | GETs beside incast, around a software switch |
//!
//! The demonstration runs in the simulator where namespaces are forbidden.

pub mod bench;
pub mod clock_demo;
pub mod demo;
pub mod rack_demo;
pub mod rack_soak;
pub mod soak;
pub mod stage;

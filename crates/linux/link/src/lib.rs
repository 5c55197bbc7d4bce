//! The protected link on Linux: `guard`'s endpoint on real interfaces, under the kernel's own TCP.
//!
//! | file | what it is |
//! | --- | --- |
//! | `datapath`, `context` | one link: frames between the host, the endpoint and the wire |
//! | `run`, `log_topics` | its loop, how to ask something of it, and what it logs |
//! | `frame`, `seal`, `stamp` | frames on the wire, their seals, and whether their numbers are in their addresses |
//! | `bring_up` | the link on a stand-in that is up |
//! | `daemon`, `config`, `control`, `status`, `metrics` | the daemon around it |
//!
//! What it shares with other daemons is the crate `daemon`, what it shares with hosts of a rack the crate `standin`.

mod bring_up;
mod log_topics;

pub mod config;
pub mod context;
pub mod control;
pub mod daemon;
pub mod datapath;
pub mod frame;
pub mod metrics;
pub mod run;
pub mod seal;
pub mod stamp;
pub mod status;

pub use bring_up::bring_up;

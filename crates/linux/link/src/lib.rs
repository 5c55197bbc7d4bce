//! The protected link on Linux: `guard`'s endpoint on real interfaces, under the kernel's own TCP.
//!
//! | file | what it is |
//! | --- | --- |
//! | `datapath`, `context` | one link: frames between the host, the endpoint and the wire |
//! | `run`, `log_topics` | its loop, how to ask something of it, and what it logs |
//! | `backend` | TAP, veth, packet sockets |
//! | `pool` | frames in memory |
//! | `pace` | a wire that is slower than its socket |
//! | `queue` | what waits for the wire, by flow |
//! | `frame`, `seal`, `stamp` | frames on the wire, their seals, and whether their numbers are in their addresses |
//! | `daemon`, `standin`, `config`, `control`, `status`, `metrics` | the daemon around it; what it shares with others is the crate `daemon` |

mod log_topics;

pub mod backend;
pub mod config;
pub mod context;
pub mod control;
pub mod daemon;
pub mod datapath;
pub mod frame;
pub mod metrics;
pub mod pace;
pub mod pool;
pub mod queue;
pub mod run;
pub mod seal;
pub mod stamp;
pub mod standin;
pub mod status;
pub mod tally;

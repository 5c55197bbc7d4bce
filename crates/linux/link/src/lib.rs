//! The protected link on Linux: `guard`'s endpoint on real interfaces, under the kernel's own TCP.
//!
//! | file | what it is |
//! | --- | --- |
//! | `datapath`, `context` | one link: frames between the host, the endpoint and the wire |
//! | `run`, `tell`, `limiter` | its loop, how to ask something of it, and what it reports how often |
//! | `backend` | TAP, veth, packet sockets, AF_XDP |
//! | `pool` | frames in memory |
//! | `queue` | what waits for the wire, by flow |
//! | `frame`, `seal`, `stamp` | frames on the wire, their seals, and whether their numbers are in their addresses |
//! | `daemon`, `standin`, `keeper`, `config`, `control`, `status`, `metrics` | the daemon around it |
//! | `directory`, `identity` | what it keeps in files, and of which network namespace that is |

pub mod backend;
pub mod config;
pub mod context;
pub mod control;
pub mod daemon;
pub mod datapath;
pub mod directory;
pub mod frame;
pub mod identity;
pub mod keeper;
pub mod limiter;
pub mod metrics;
pub mod pool;
pub mod queue;
pub mod run;
pub mod seal;
pub mod service;
pub mod stamp;
pub mod standin;
pub mod status;
pub mod tally;
pub mod tell;

//! The protected link on Linux: `guard`'s endpoint on real interfaces, under the kernel's own TCP.
//!
//! | file | what it is |
//! | --- | --- |
//! | `link`, `shell` | one link: frames between the host, the endpoint and the wire |
//! | `run`, `tell` | its loop, how to ask something of it, and what it reports |
//! | `backend` | TAP, veth, packet sockets, AF_XDP |
//! | `offload` | cutting super-frames and joining them again |
//! | `queue` | what waits for the wire, by flow |
//! | `frame`, `seal`, `pool` | frames on the wire, their seals, frames in memory |
//! | `daemon`, `standin`, `keeper`, `config`, `directory`, `control`, `status`, `metrics`, `serve` | the daemon around it |
//! | `stage`, `demo`, `soak` | two hosts and a wire on one machine, and what to show there |
//! | `medium` | the corrupting wire, and the repeater on it |
//! | `meter` | what passes an interface, in digests, to find what was lost |
//! | `net` | interfaces, addresses, traffic control, namespaces |
//! | `load` | traffic to try it with |

pub mod backend;
pub mod bench;
pub mod capture;
pub mod clock;
pub mod config;
pub mod control;
pub mod daemon;
pub mod demo;
pub mod directory;
pub mod frame;
pub mod keeper;
pub mod link;
pub mod load;
pub mod medium;
pub mod meter;
pub mod metrics;
pub mod net;
pub mod offload;
pub mod poll;
pub mod pool;
pub mod queue;
pub mod reality;
pub mod run;
pub mod seal;
pub mod serve;
pub mod shell;
pub mod soak;
pub mod stage;
pub mod standin;
pub mod status;
pub mod tally;
pub mod tell;

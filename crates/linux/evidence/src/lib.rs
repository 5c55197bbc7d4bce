//! Recorder of the kernel's events about its own TCP connections, beside their headers.
//!
//! | file | what it is |
//! | --- | --- |
//! | `tracefs` | a tracing instance of our own, in a mount namespace of our own |
//! | `leftovers` | instances of recorders that were killed |
//! | `layout` | where the fields of an event are, as the running kernel says |
//! | `pages` | the kernel's ring buffer, page by page |
//! | `sockets` | raw events as events of connections |
//! | `record` | the loop: frames and events into one file |
//! | [`cost`] | what that costs, measured |
//!
//! Everything comes from tracepoints that any kernel since 6.3 has; nothing is loaded into it, and nothing is patched. The
//! format of what is written, and what is made of it, is `explain::evidence`.
//!
//! Invariants: nothing is mounted outside of our own namespace, and the instance goes with the recorder, or with the next one if
//! it was killed; no payload is kept; an event that was
//! lost is counted in the file.

pub mod cost;
mod layout;
mod leftovers;
mod pages;
mod record;
mod sockets;
mod tracefs;

pub use record::{RecordConfig, RecordSummary, record};

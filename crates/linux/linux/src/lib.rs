//! Interfaces to Linux for hitless, and all code that talks to the kernel on behalf of more than one crate.
//!
//! | file | what it is |
//! | --- | --- |
//! | `net` | interfaces, addresses, traffic control, namespaces |
//! | `packet`, `socket` | packet sockets with a ring |
//! | `offload` | cutting super-frames and joining them again |
//! | `tun`, `stream` | a program in place of the network behind an interface; TCP sockets call by call |
//! | `poll`, `clock` | waiting, and the time |
//! | `mailbox` | requests to a loop from other threads |
//! | `serve`, `metrics` | answering on sockets, with a deadline for each conversation |
//! | `capture`, `input` | frames as pcapng; files that a user names |
//! | `trust` | files that other users cannot have put there |
//! | `version` | how new the kernel is |
//! | `stamps`, `shared` | frames with the kernel's time stamps; memory that processes share |

pub mod capture;
pub mod clock;
mod error;
pub mod input;
pub mod mailbox;
pub mod metrics;
pub mod net;
pub mod offload;
pub mod packet;
pub mod poll;
pub mod serve;
pub mod shared;
pub mod socket;
pub mod stamps;
pub mod stream;
pub mod trust;
pub mod tun;
pub mod version;

pub use error::{SystemError, no_permission};

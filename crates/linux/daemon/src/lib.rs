//! Parts that every daemon of hitless has, whatever it does.
//!
//! | file | what it is |
//! | --- | --- |
//! | [`directory`], [`identity`] | the run directory: sockets, locks, notes; and which network namespace they are of |
//! | [`control`] | the control socket: a line of JSON each way |
//! | [`keeper`] | the process that lets an interface fail open if its daemon is killed |
//! | [`service`] | messages to systemd |
//! | [`limiter`], [`log`] | log lines: how often, and without waiting for their reader |
//! | [`options`], [`key`] | files of options, addresses, files with a key |
//! | `end` | why a daemon ended |

pub mod control;
pub mod directory;
mod end;
pub mod identity;
pub mod keeper;
pub mod key;
pub mod limiter;
pub mod log;
pub mod options;
pub mod service;

pub use control::ControlSocket;
pub use directory::RunDirectory;
pub use end::{DaemonEnd, bind_metrics};

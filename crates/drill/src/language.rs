//! packetdrill's language: what a script says, before anything runs.
//!
//! A script is a list of [`Event`]s: a time, and a system call with its expected result, a segment that comes in (`<`), a
//! segment that must leave (`>`), statements about TCP_INFO (`%{ }%`), or a command of the shell (backticks). Only the
//! part of the language that a TCP connection needs is read; the first line that is not understood makes the whole script
//! not applicable.

pub(crate) mod call;
mod cursor;
pub(crate) mod expression;
mod packet;
mod script;
mod shell;
mod values;

pub use call::{CallResult, ExpectedResult, SocketCall, SocketOption};
pub use expression::{Statement, TcpInfoFields};
pub use script::{Event, EventAction, EventTime, Script, Tolerance};
pub(crate) use shell::default_settings;
pub use shell::{Setting, TunQueue};

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

pub(crate) use call::{CallResult, ExpectedResult, SocketCall, SocketOption};
pub(crate) use expression::TcpInfoFields;
pub(crate) use script::{DrillScript, Event, EventAction, EventTime};
pub(crate) use shell::default_settings;
pub(crate) use shell::{Setting, TunQueue};

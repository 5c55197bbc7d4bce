//! The control sockets of switches and of hosts that have joined: one line of JSON each way, as links have it.

use std::io::{self, PipeReader};
use std::path::PathBuf;
use std::sync::mpsc::Sender;

use daemon::{ControlSocket, RunDirectory};
use linux::mailbox::{Mailbox, NoAnswer};
use linux::serve;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Owner of a control socket, known by the suffix of the socket's name. Links have other suffixes, so that nobody takes one
/// for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackRole {
    /// A switch.
    Switch,
    /// A host that has joined.
    Host,
}

impl RackRole {
    const fn end(self) -> &'static str {
        match self {
            Self::Switch => ".switch",
            Self::Host => ".host",
        }
    }
}

/// Request to a running loop, which answers with its status.
#[derive(Debug)]
pub enum RackRequest<S> {
    /// Asks for the status.
    Status(Sender<S>),
    /// Resets the peaks to the bytes that wait now; a host has none.
    ResetPeaks,
    /// Ends the loop.
    Stop,
}

/// Request from another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RackControlRequest {
    /// Asks for the status.
    Status,
    /// Ends the daemon.
    Down,
}

/// Answer to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RackControlReply<S> {
    /// The status.
    Status(Box<S>),
    /// The daemon will do it.
    Done,
    /// The daemon refuses, and says why.
    Refused(String),
}

/// Path of the control socket of a name.
pub fn control_path(directory: &RunDirectory, role: RackRole, name: &str) -> PathBuf {
    directory.path().join(format!("{name}{}", role.end()))
}

/// Names that seem to run in this network namespace.
pub fn names(directory: &RunDirectory, role: RackRole) -> io::Result<Vec<String>> {
    directory.sockets(role.end())
}

/// Sends a request to a daemon. An error of kind `NotFound` or `ConnectionRefused` means that it does not run.
pub fn ask<S: DeserializeOwned>(
    directory: &RunDirectory,
    role: RackRole,
    name: &str,
    request: RackControlRequest,
) -> io::Result<RackControlReply<S>> {
    daemon::control::ask(&control_path(directory, role, name), &request)
}

/// An error of kind `AddrInUse` means that one of this name runs already.
pub(crate) fn bind(directory: &RunDirectory, role: RackRole, name: &str) -> io::Result<ControlSocket> {
    ControlSocket::at(control_path(directory, role, name), serve::PATIENCE)
}

/// Answers for a loop until `stop` has something to read or is closed.
pub(crate) fn listen<S: Serialize>(
    control: &ControlSocket,
    asked: &Mailbox<RackRequest<S>>,
    stop: &PipeReader,
) -> io::Result<()> {
    control.listen(stop, |line| serde_json::to_string(&answer(line, asked)))
}

fn answer<S>(line: &str, asked: &Mailbox<RackRequest<S>>) -> RackControlReply<S> {
    let refused = |why: &str| RackControlReply::Refused(why.to_owned());
    match serde_json::from_str(line) {
        Ok(RackControlRequest::Status) => match asked.ask(RackRequest::Status) {
            Ok(status) => RackControlReply::Status(Box::new(status)),
            Err(NoAnswer::Late) => refused("it does not answer; it may be stopped"),
            Err(NoAnswer::Ended) => refused("it has ended"),
        },
        Ok(RackControlRequest::Down) if asked.send(RackRequest::Stop) => RackControlReply::Done,
        Ok(RackControlRequest::Down) => refused("it has ended"),
        Err(error) => refused(&format!("not a request: {error}")),
    }
}

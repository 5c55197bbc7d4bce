//! The control socket of a clock: one line of JSON each way, as links have it.

use std::io::{self, PipeReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

use clock::plan::PlanFile;
use daemon::RunDirectory;
use daemon::control::{ControlSocket, LONGEST_REQUEST};
use linux::input::read_text;
use linux::mailbox::{Mailbox, NoAnswer};
use serde::{Deserialize, Serialize};
use units::StopFlag;

use crate::duties::ClockDuties;
use crate::status::ClockStatus;

/// End of the names of sockets.
const SOCKET: &str = ".clock";
/// End of the names of pages.
const PAGE: &str = ".page";

/// The longest plan that is read: what has no end must not fill the memory.
const LONGEST_PLAN: usize = 256 << 20;
/// Longest silence of a pipe that a plan is to come from.
const PLAN_PATIENCE: Duration = Duration::from_secs(10);

/// Requests to a running clock.
#[derive(Debug)]
pub enum ClockRequest {
    /// Asks for the clock's state.
    Status(Sender<ClockStatus>),
    /// Gives the node another plan, or the same again: a node that turned goes back to its parent.
    Plan(Box<ClockDuties>, Sender<Result<(), String>>),
    /// Ends the loop.
    Stop,
}

/// Requests from another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockControlRequest {
    /// Asks for the clock's state.
    Status,
    /// Duties of the node in a plan. Who asks has read the plan: a daemon opens no file that others name.
    Plan(Box<ClockDuties>),
    /// Ends the daemon.
    Down,
}

/// Answers to those.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockControlReply {
    /// The clock's state.
    Status(Box<ClockStatus>),
    /// The daemon has done it, or will.
    Done,
    /// The daemon refuses, and says why.
    Refused(String),
}

/// A node's name as the name of a file: nodes of fabrics have slashes in theirs.
fn file_name(node: &str, end: &str) -> String {
    format!("{}{end}", node.replace('/', "_"))
}

/// Path of a node's control socket.
pub(crate) fn clock_socket(directory: &RunDirectory, node: &str) -> PathBuf {
    directory.path().join(file_name(node, SOCKET))
}

/// Path of a node's page, unless its daemon was told otherwise.
pub fn clock_page(directory: &RunDirectory, node: &str) -> PathBuf {
    directory.path().join(file_name(node, PAGE))
}

/// The clocks that have a page or a socket here, by their files: the page may be elsewhere, and the daemon may have been killed.
pub fn clock_names(directory: &RunDirectory) -> io::Result<Vec<String>> {
    let mut names = [directory.sockets(PAGE)?, directory.sockets(SOCKET)?].concat();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Asks the daemon of a node. An error of kind `NotFound` or `ConnectionRefused` means there is none.
pub fn ask_clock(directory: &RunDirectory, node: &str, request: &ClockControlRequest) -> io::Result<ClockControlReply> {
    if serde_json::to_string(request)?.len() >= LONGEST_REQUEST {
        return Err(io::Error::other("the node has more neighbours than fit into a request"));
    }
    daemon::control::ask(&clock_socket(directory, node), request)
}

/// Reads a node's part of a plan; see [`read_plan`].
pub fn read_duties(path: &Path, node: &str, stop: &StopFlag) -> Result<ClockDuties, String> {
    ClockDuties::of(&read_plan(path, stop)?, node).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a plan from a file or a pipe; the error names the file, and the line where there is one.
pub fn read_plan(path: &Path, stop: &StopFlag) -> Result<PlanFile, String> {
    let place = path.display();
    let text = read_text(path, LONGEST_PLAN, PLAN_PATIENCE, stop).map_err(|error| format!("{place}: {error}"))?;
    PlanFile::parse(&text).map_err(|error| match error.line {
        Some(line) => format!("{place}:{line}: {error}"),
        None => format!("{place}: {error}"),
    })
}

/// Answers for a clock until `stop` has something to read or is closed.
pub(crate) fn listen(control: &ControlSocket, asked: &Mailbox<ClockRequest>, stop: &PipeReader) -> io::Result<()> {
    control.listen(stop, |line| serde_json::to_string(&answer(line, asked)))
}

fn answer(line: &str, asked: &Mailbox<ClockRequest>) -> ClockControlReply {
    let silent = |why: NoAnswer| match why {
        NoAnswer::Late => "it does not answer; it may be stopped".to_owned(),
        NoAnswer::Ended => "it has ended".to_owned(),
    };
    let answered = match serde_json::from_str(line) {
        Ok(ClockControlRequest::Status) => {
            asked.ask(ClockRequest::Status).map(|status| ClockControlReply::Status(Box::new(status))).map_err(silent)
        }
        Ok(ClockControlRequest::Plan(duties)) => {
            let changed = asked.ask(|answer| ClockRequest::Plan(duties, answer)).map_err(silent);
            changed.and_then(|changed| changed.map(|()| ClockControlReply::Done))
        }
        Ok(ClockControlRequest::Down) => {
            asked.send(ClockRequest::Stop).then_some(ClockControlReply::Done).ok_or_else(|| silent(NoAnswer::Ended))
        }
        Err(error) => Err(format!("not a request: {error}")),
    };
    answered.unwrap_or_else(ClockControlReply::Refused)
}

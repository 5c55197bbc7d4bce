//! The monitor's own socket in the run directory: how a person reaches it while it runs.
//!
//! One line of JSON each way, as links have it. The file's name does not end like theirs, so that nobody takes the
//! monitor for a link.

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use daemon::{ControlSocket, RunDirectory};
use serde::{Deserialize, Serialize};

use super::PortAssessment;

/// Longest time for a request.
const PATIENCE: Duration = Duration::from_millis(500);
/// The monitor may be in the middle of a poll.
const ANSWER: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MonitorRequest {
    /// A person says that a port is healthy.
    Clear(String),
    Status,
}

/// State of a running monitor: what is wrong with it, and what it knows of each port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MonitorStatus {
    pub degraded: Vec<String>,
    pub ports: Vec<PortAssessment>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MonitorReply {
    Done,
    Refused(String),
    Status(MonitorStatus),
}

pub(super) enum ControlRequest {
    Clear { port: String, answer: Sender<Result<(), String>> },
    Status { answer: Sender<MonitorStatus> },
}

/// The way to ask something of the loop.
pub(super) struct ControlClient {
    queue: Sender<ControlRequest>,
    wake: PipeWriter,
}

/// Receiving end of control requests.
pub(super) struct ControlRequests {
    pub queue: Receiver<ControlRequest>,
    pub wake: PipeReader,
}

pub(super) fn requests() -> io::Result<(ControlClient, ControlRequests)> {
    let (queue, asked) = mpsc::channel();
    let (reader, writer) = io::pipe()?;
    Ok((ControlClient { queue, wake: writer }, ControlRequests { queue: asked, wake: reader }))
}

impl ControlClient {
    fn clear(&self, port: String) -> Result<(), String> {
        self.ask(|answer| ControlRequest::Clear { port, answer })?
    }

    fn status(&self) -> Result<MonitorStatus, String> {
        self.ask(|answer| ControlRequest::Status { answer })
    }

    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> ControlRequest) -> Result<T, String> {
        let (answer, answered) = mpsc::channel();
        let asked = self.queue.send(request(answer)).is_ok() && (&self.wake).write_all(&[1]).is_ok();
        let received = if asked { answered.recv_timeout(ANSWER).ok() } else { None };
        received.ok_or_else(|| "the monitor ends".to_owned())
    }
}

fn path(directory: &RunDirectory) -> PathBuf {
    directory.path().join("monitor.control")
}

/// The socket.
#[derive(Debug)]
pub struct MonitorControl(ControlSocket);

impl MonitorControl {
    /// An error of kind `AddrInUse` means that a monitor runs already.
    pub fn bind(directory: &RunDirectory) -> io::Result<Self> {
        directory.make()?;
        ControlSocket::at(path(directory), PATIENCE).map(Self)
    }

    /// Answers until `stop` has something to read or is closed.
    pub(super) fn serve(&self, asker: &ControlClient, stop: &PipeReader) {
        // Without it a monitor still does its work.
        let _ = self.0.listen(stop, |line| serde_json::to_string(&answer(line, asker)));
    }
}

fn answer(line: &str, asker: &ControlClient) -> MonitorReply {
    match serde_json::from_str(line) {
        Ok(MonitorRequest::Clear(port)) => {
            asker.clear(port).map_or_else(MonitorReply::Refused, |()| MonitorReply::Done)
        }
        Ok(MonitorRequest::Status) => asker.status().map_or_else(MonitorReply::Refused, MonitorReply::Status),
        Err(error) => MonitorReply::Refused(format!("not a request: {error}")),
    }
}

/// Tells the monitor of this host that a port is healthy. An error is one line for people.
pub fn ask_to_clear(directory: &RunDirectory, port: &str) -> Result<(), String> {
    match ask(directory, &MonitorRequest::Clear(port.to_owned()))? {
        MonitorReply::Done => Ok(()),
        other => Err(format!("not understood: {other:?}")),
    }
}

/// Asks the monitor of this host how it is doing. An error is one line for people.
pub fn ask_for_status(directory: &RunDirectory) -> Result<MonitorStatus, String> {
    match ask(directory, &MonitorRequest::Status)? {
        MonitorReply::Status(status) => Ok(status),
        other => Err(format!("not understood: {other:?}")),
    }
}

fn ask(directory: &RunDirectory, request: &MonitorRequest) -> Result<MonitorReply, String> {
    let path = path(directory);
    let asked = || -> io::Result<MonitorReply> {
        let mut stream = UnixStream::connect(&path)?;
        stream.set_read_timeout(Some(ANSWER + PATIENCE))?;
        writeln!(stream, "{}", serde_json::to_string(request)?)?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    };
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    match asked() {
        Ok(MonitorReply::Refused(why)) => Err(why),
        Ok(reply) => Ok(reply),
        Err(error) => Err(match error.kind() {
            NotFound | ConnectionRefused => format!("no monitor runs here ({})", path.display()),
            PermissionDenied => format!("permission denied; ask as root, or with sudo ({})", path.display()),
            _ => format!("{error} ({})", path.display()),
        }),
    }
}

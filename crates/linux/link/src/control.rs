//! The control socket: how `hitless link status` and its siblings reach a running daemon.
//!
//! One line of JSON each way over a Unix socket in the run directory, which only its owner and group may
//! enter. A socket file that nobody listens on is a leftover and is replaced.

use std::fs;
use std::io::{self, PipeReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::Prob;

pub use crate::directory::RunDirectory;
use crate::run::{LinkHandle, LoopRequest};
use crate::status::LinkStatus;
use linux::mailbox::NoAnswer;
use linux::serve::{self, ServeProtocol};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkRequest {
    Status,
    Activate,
    /// The same, and the loss of what is sent here as somebody measured it.
    Protect {
        loss: f64,
    },
    Deactivate,
    /// Ends the link.
    Down,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkReply {
    Status(Box<LinkStatus>),
    Done,
    Refused(String),
}

/// The longest request that makes sense: what a plan asks of a node with a thousand neighbours.
pub const LONGEST_REQUEST: usize = 1 << 16;

/// A socket on which a daemon is asked, a line each way. Gone when dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    patience: Duration,
}

impl ControlSocket {
    pub fn bind(directory: &RunDirectory, name: &str) -> io::Result<Self> {
        Self::at(directory.socket(name), serve::PATIENCE)
    }

    /// A client has `patience` for its request. An error of kind `AddrInUse` means that another process listens there.
    pub fn at(path: PathBuf, patience: Duration) -> io::Result<Self> {
        let listener = match UnixListener::bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if UnixStream::connect(&path).is_ok() {
                    return Err(error);
                }
                fs::remove_file(&path)?;
                UnixListener::bind(&path)?
            }
            bound => bound?,
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o660))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path, patience })
    }

    /// Answers for a link until `stop` has something to read.
    pub fn serve(&self, link: &LinkHandle, stop: &PipeReader) -> io::Result<()> {
        self.listen(stop, |line| serde_json::to_string(&answer(line, link)))
    }

    /// Answers every line with another until `stop` has something to read or is closed.
    pub fn listen(&self, stop: &PipeReader, answer: impl Fn(&str) -> serde_json::Result<String>) -> io::Result<()> {
        serve::serve(&self.listener, stop, self.patience, &mut LineProtocol(answer))
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A line each way.
struct LineProtocol<F>(F);

impl<F: Fn(&str) -> serde_json::Result<String>> ServeProtocol for LineProtocol<F> {
    const LONGEST: usize = LONGEST_REQUEST;

    fn is_whole(question: &[u8]) -> bool {
        question.contains(&b'\n')
    }

    fn answer(&mut self, question: &[u8]) -> Option<Vec<u8>> {
        let line = String::from_utf8_lossy(question);
        // An answer that cannot be written down is none; the one who asked sees the end of the conversation.
        Some((self.0)(&line).map(|answer| format!("{answer}\n").into_bytes()).unwrap_or_default())
    }
}

fn answer(line: &str, link: &LinkHandle) -> LinkReply {
    let done = |alive: bool| if alive { LinkReply::Done } else { LinkReply::Refused("the link has ended".to_owned()) };
    match serde_json::from_str(line) {
        Ok(LinkRequest::Status) => match link.prompt_status() {
            Ok(status) => LinkReply::Status(Box::new(status)),
            Err(NoAnswer::Late) => LinkReply::Refused("the link does not answer; its daemon may be stopped".to_owned()),
            Err(NoAnswer::Ended) => done(false),
        },
        Ok(LinkRequest::Activate) => done(link.ask(LoopRequest::Activate(None))),
        Ok(LinkRequest::Protect { loss }) => match Prob::new(loss) {
            Some(loss) => done(link.ask(LoopRequest::Activate(Some(loss)))),
            None => LinkReply::Refused(format!("loss {loss}: expected a share between 0 and 1")),
        },
        Ok(LinkRequest::Deactivate) => done(link.ask(LoopRequest::Deactivate)),
        Ok(LinkRequest::Down) => done(link.ask(LoopRequest::Stop)),
        Err(error) => LinkReply::Refused(format!("not a request: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_reads_as_it_always_did() {
        for (ask, line) in [
            (LinkRequest::Status, r#""status""#),
            (LinkRequest::Activate, r#""activate""#),
            (LinkRequest::Protect { loss: 1e-4 }, r#"{"protect":{"loss":0.0001}}"#),
        ] {
            assert_eq!(serde_json::to_string(&ask).unwrap(), line);
            assert_eq!(serde_json::from_str::<LinkRequest>(line).unwrap(), ask);
        }
    }
}

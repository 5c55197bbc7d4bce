//! Requests to the daemon of a link, and its answers, over its control socket.

use std::io::{self, PipeReader};

use daemon::ControlSocket;
use linux::mailbox::NoAnswer;
use serde::{Deserialize, Serialize};
use units::Prob;

use crate::run::{LinkHandle, LoopRequest};
use crate::status::LinkStatus;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkRequest {
    Status,
    Activate,
    /// Activates protection, with the loss of this end's direction as somebody measured it.
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

/// Answers on a socket for a link until `stop` has something to read.
pub fn serve(socket: &ControlSocket, link: &LinkHandle, stop: &PipeReader) -> io::Result<()> {
    socket.listen(stop, |line| serde_json::to_string(&answer(line, link)))
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

//! Requests to a loop from other threads: a channel, and a pipe that wakes the loop.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use crate::poll;

/// Longest wait for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// The way to ask something of a loop, from any thread.
#[derive(Debug)]
pub struct Mailbox<R> {
    requests: Sender<R>,
    wake: PipeWriter,
}

/// Reason why a loop gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    Ended,
    /// The loop did not answer in time: the machine may have been stopped for a while.
    Late,
}

/// The loop's end of a [`Mailbox`].
#[derive(Debug)]
pub struct MailboxReader<R> {
    requests: Receiver<R>,
    wake: PipeReader,
}

pub fn mailbox<R>() -> io::Result<(Mailbox<R>, MailboxReader<R>)> {
    let (requests, receiver) = mpsc::channel();
    let (reader, writer) = io::pipe()?;
    // A client writes after its request and may be delayed in between; the loop does not wait for that.
    poll::set_nonblocking(reader.as_raw_fd())?;
    Ok((Mailbox { requests, wake: writer }, MailboxReader { requests: receiver, wake: reader }))
}

impl<R> Mailbox<R> {
    /// False if the loop has ended.
    pub fn send(&self, request: R) -> bool {
        self.requests.send(request).is_ok() && (&self.wake).write_all(&[1]).is_ok()
    }

    /// Sends a request that carries the way back for its answer, and waits for that.
    pub fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> R) -> Result<T, NoAnswer> {
        let (answer, answered) = mpsc::channel();
        if !self.send(request(answer)) {
            return Err(NoAnswer::Ended);
        }
        answered.recv_timeout(ANSWERED_WITHIN).map_err(|error| match error {
            RecvTimeoutError::Timeout => NoAnswer::Late,
            RecvTimeoutError::Disconnected => NoAnswer::Ended,
        })
    }

    pub fn another(&self) -> io::Result<Self> {
        Ok(Self { requests: self.requests.clone(), wake: self.wake.try_clone()? })
    }
}

impl<R> MailboxReader<R> {
    /// The next request, if there is one.
    pub fn next(&self) -> Option<R> {
        self.requests.try_recv().ok()
    }

    /// Readable when there may be a request.
    pub fn fd(&self) -> RawFd {
        self.wake.as_raw_fd()
    }

    /// Call it after waiting. A byte is written after each request; one that comes late, after the request was served, wakes
    /// the loop once more.
    pub fn awake(&mut self) {
        let _ = self.wake.read(&mut [0; 64]);
    }
}

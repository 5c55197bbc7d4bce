//! The control socket: how `hitless link status` and its siblings reach a running daemon.
//!
//! One line of JSON each way over a Unix socket in the run directory, which only its owner and group may
//! enter. A socket file that nobody listens on is a leftover and is replaced.

use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::Prob;

use crate::poll::{self, Readiness};
use crate::run::{Handle, Request};
use crate::status::Status;

/// Nobody needs longer to ask or to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longer than any line that makes sense.
const LONGEST_LINE: u64 = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
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
pub enum Answer {
    Status(Box<Status>),
    Done,
    Refused(String),
}

/// Where sockets and notes about what was changed are kept.
#[derive(Clone, Debug)]
pub struct RunDirectory(PathBuf);

impl RunDirectory {
    /// `HITLESS_RUN_DIR` if set, else where the system has such things: for each network namespace its own, since
    /// interfaces of the same name in two of them are not the same.
    pub fn of_this_system() -> Self {
        if let Some(path) = std::env::var_os("HITLESS_RUN_DIR") {
            return Self(path.into());
        }
        let namespace = |process: &str| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(format!("/proc/{process}/ns/net")).map(|file| file.ino()).ok()
        };
        match (namespace("self"), namespace("1")) {
            (Some(ours), Some(first)) if ours != first => Self(format!("/run/hitless/netns-{ours}").into()),
            _ => Self("/run/hitless".into()),
        }
    }

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o750).create(&self.0)
    }

    /// Makes sure that nobody else has, or is about to have, a link of this name or on this interface. Held until dropped.
    /// Otherwise which of the two it is.
    pub fn lock<'a>(&self, name: &'a str, interface: &'a str) -> io::Result<Result<Lock, &'a str>> {
        let mut files = Vec::new();
        for (taken, file) in [(interface, format!("{interface}.wire.lock")), (name, format!("{name}.lock"))] {
            let file = fs::File::options().create(true).truncate(false).write(true).open(self.0.join(file))?;
            match file.try_lock() {
                Ok(()) => files.push(file),
                Err(fs::TryLockError::WouldBlock) => return Ok(Err(taken)),
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(Ok(Lock { _files: files }))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn socket(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.sock"))
    }

    pub fn notes(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// Links that seem to be up, by their sockets.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".sock").map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// Asks the daemon of a link. An error of kind `NotFound` or `ConnectionRefused` means there is none.
    pub fn ask(&self, name: &str, ask: Ask) -> io::Result<Answer> {
        let mut stream = UnixStream::connect(self.socket(name))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        writeln!(stream, "{}", serde_json::to_string(&ask)?)?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

/// What keeps two daemons from the same link.
#[derive(Debug)]
pub struct Lock {
    _files: Vec<fs::File>,
}

/// A socket on which a daemon is asked, a line each way. Gone when dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    patience: Duration,
}

impl ControlSocket {
    pub fn bind(directory: &RunDirectory, name: &str) -> io::Result<Self> {
        Self::at(directory.socket(name), PATIENCE)
    }

    /// Whoever asks has so long to do it. An error of kind `AddrInUse` means that somebody listens there already.
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
    pub fn serve(&self, link: &Handle, stop: &PipeReader) -> io::Result<()> {
        self.listen(stop, |line| serde_json::to_string(&answer(line, link)))
    }

    /// Answers every line with another until `stop` has something to read or is closed.
    pub fn listen(&self, stop: &PipeReader, answer: impl Fn(&str) -> serde_json::Result<String>) -> io::Result<()> {
        loop {
            let fds = [(self.listener.as_raw_fd(), false), (stop.as_raw_fd(), false)];
            let ready = poll::wait(&fds, Duration::from_secs(60))?;
            if ready[1] != Readiness::Nothing {
                return Ok(());
            }
            if let Ok((stream, _)) = self.listener.accept() {
                // Whoever asks badly, or goes away, harms only themselves.
                let _ = converse(stream, self.patience, &answer);
            }
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn converse(
    mut stream: UnixStream,
    patience: Duration,
    answer: impl Fn(&str) -> serde_json::Result<String>,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut line = String::new();
    BufReader::new(io::Read::take(&stream, LONGEST_LINE)).read_line(&mut line)?;
    writeln!(stream, "{}", answer(&line)?)
}

fn answer(line: &str, link: &Handle) -> Answer {
    let done = |alive: bool| if alive { Answer::Done } else { Answer::Refused("the link has ended".to_owned()) };
    match serde_json::from_str(line) {
        Ok(Ask::Status) => match link.status() {
            Some(status) => Answer::Status(Box::new(status)),
            None => done(false),
        },
        Ok(Ask::Activate) => done(link.ask(Request::Activate(None))),
        Ok(Ask::Protect { loss }) => match Prob::new(loss) {
            Some(loss) => done(link.ask(Request::Activate(Some(loss)))),
            None => Answer::Refused(format!("loss {loss}: expected a share between 0 and 1")),
        },
        Ok(Ask::Deactivate) => done(link.ask(Request::Deactivate)),
        Ok(Ask::Down) => done(link.ask(Request::Stop)),
        Err(error) => Answer::Refused(format!("not a request: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_reads_as_it_always_did() {
        for (ask, line) in [
            (Ask::Status, r#""status""#),
            (Ask::Activate, r#""activate""#),
            (Ask::Protect { loss: 1e-4 }, r#"{"protect":{"loss":0.0001}}"#),
        ] {
            assert_eq!(serde_json::to_string(&ask).unwrap(), line);
            assert_eq!(serde_json::from_str::<Ask>(line).unwrap(), ask);
        }
    }
}

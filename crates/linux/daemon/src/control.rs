//! The control socket: a program asks a running daemon, and hears its answer.
//!
//! One line of JSON each way over a Unix socket in the run directory, which only its owner and group may
//! enter. A socket file that nobody listens on is a leftover and is replaced.

use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linux::serve::{self, ServeProtocol};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::directory::RunDirectory;

/// Time that a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
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

    /// Binds the socket. Each client has `patience` to send its request. An error of kind `AddrInUse` means that another
    /// process listens there.
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

/// Asks the process that listens on a control socket: a line of JSON each way.
pub fn ask<A: DeserializeOwned>(socket: &Path, request: &impl Serialize) -> io::Result<A> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    if BufReader::new(stream).read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its daemon ended before it answered"));
    }
    Ok(serde_json::from_str(&line)?)
}

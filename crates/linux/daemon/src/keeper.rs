//! The keeper of a link: a small process beside the daemon that outlives it, so that a daemon that is gone does not mean
//! a host without network.
//!
//! ```text
//!   daemon ──pipe──▶ keeper      "dismissed": all is put back, and the keeper ends
//!     ▲                │         the pipe closes without it: the daemon is gone, and the link fails open
//!     └─ once a second ┤
//!        is it there?  ▼
//!                   passes frames until the next daemon, or `hitless link down`, relieves it and says so (`vigil`)
//! ```
//!
//! Failing open is a matter of two filters in the kernel ([`FailsOpen`]). They pass nothing to an
//! interface without a carrier, and a TAP has one only while a process has it open: so the keeper holds it, from the start
//! on (as its standard output, since every process has one), and gives it to the daemon that relieves it. The carrier
//! never goes, and neighbours and queues stay as they are.
//!
//! Neither of the two ends unnoticed: the daemon starts another keeper if its own has ended (`watch`), and a keeper ends only when
//! a successor has said that it has taken over.
//!
//! A link that must not pass unprotected frames (with a key, or with an `init-action` other than best-effort) has no
//! keeper: it fails closed.

mod descriptor;
mod vigil;
mod watch;

use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linux::SystemError;

use crate::directory::RunDirectory;

pub use watch::{KeeperProgram, KeeperStatus, KeeperWatch};

const DISMISSED: &[u8] = b"dismissed";
/// Number of looks for the end of a dismissed keeper, every 10 ms.
const LOOKS: u32 = 100;
/// Message of a successor that has taken over.
const TAKEN: &[u8] = b"taken";
/// Time that a keeper may take to let go.
const PATIENCE: Duration = Duration::from_secs(1);

/// The daemon's end of the pipe.
#[derive(Debug)]
struct Keeper {
    pipe: PipeWriter,
    process: Child,
}

impl Keeper {
    /// Starts a program that calls [`keep`] with its standard input. `carrier` is what it holds.
    fn start(mut program: Command, carrier: Option<OwnedFd>) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        program.stdin(reader).stdout(carrier.map_or_else(Stdio::null, Stdio::from)).stderr(Stdio::null());
        // A signal from the terminal that ends the daemon must not reach the keeper.
        std::os::unix::process::CommandExt::process_group(&mut program, 0);
        Ok(Self { pipe, process: program.spawn()? })
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Everything is put back, or left to be adopted on purpose.
    fn dismiss(mut self) {
        let _ = self.pipe.write_all(DISMISSED);
        drop(self.pipe);
        for _ in 0..LOOKS {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// An interface that passes frames although its daemon is gone, by the notes of what was changed.
pub trait FailsOpen {
    /// Lets it pass frames; false if there is nothing to let pass. The caller has the name's lock.
    fn fail_open(&self, directory: &RunDirectory, name: &str) -> Result<bool, SystemError>;

    /// Gives up the name of an interface that is gone, so that it can be made again.
    fn release_name(&self, directory: &RunDirectory, name: &str) -> Result<(), SystemError>;
}

/// Waits for the daemon of a link to end. If it did not take leave, the link fails open until this keeper is relieved.
pub fn keep(
    mut pipe: impl Read,
    directory: &RunDirectory,
    name: &str,
    interface: &dyn FailsOpen,
) -> Result<(), SystemError> {
    let mut heard = Vec::new();
    let _ = pipe.read_to_end(&mut heard);
    if heard == DISMISSED { Ok(()) } else { vigil::stand(directory, name, interface) }
}

/// The process id of a lab or a test whose network namespaces end with it, unless a keeper holds on to them.
pub const LAB: &str = "HITLESS_LAB";

/// A keeper of a daemon that is gone, which ends when it hears that its successor has taken over.
#[derive(Debug)]
pub struct KeeperRelief {
    keeper: UnixStream,
    /// Descriptor that the keeper held; the one of a veth is not needed.
    held: Option<OwnedFd>,
}

impl KeeperRelief {
    pub fn take_held(&mut self) -> Option<OwnedFd> {
        self.held.take()
    }

    /// The successor, which has the lock of the name, has what it needs, and a keeper of its own.
    pub fn acknowledge(mut self) -> UnixStream {
        // A keeper of an earlier version does not wait for it, and is gone.
        let _ = self.keeper.write_all(TAKEN);
        self.keeper
    }

    /// Tells the keeper that its successor has taken over, and waits until the keeper has ended.
    pub fn end(self) {
        let _ = self.acknowledge().read(&mut [0]);
    }
}

/// Asks the keeper of a daemon that is gone, if there is one, for what it holds. It goes on until it hears more.
pub fn relieve(directory: &RunDirectory, name: &str) -> Option<KeeperRelief> {
    let path = directory.keeper(name);
    let asked = UnixStream::connect(&path).and_then(|keeper| {
        keeper.set_read_timeout(Some(PATIENCE))?;
        let held = descriptor::receive(&keeper)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(KeeperRelief { keeper, held: Some(held) })
    });
    if asked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        // It was killed.
        let _ = std::fs::remove_file(path);
    }
    asked.ok()
}

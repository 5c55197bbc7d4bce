//! The keeper of a link: a small process beside the daemon that outlives it, so that a daemon that is gone does not mean
//! a host without network.
//!
//! ```text
//!   daemon ──pipe──▶ keeper      "dismissed": all is put back, and the keeper ends
//!                      │         the pipe closes without it: the daemon is gone, and the link fails open
//!                      ▼
//!                   passes frames until the next daemon, or `hitless link down`, relieves it
//! ```
//!
//! Failing open is a matter of two filters in the kernel (`crate::standin::fail_open`). They pass nothing to an
//! interface without a carrier, and a TAP has one only while a process has it open: so the keeper holds it, from the start
//! on (as its standard output, since every process has one), and gives it to the daemon that relieves it. The carrier
//! never goes, and neighbours and queues stay as they are.
//!
//! A link that must not pass unprotected frames (with a key, or with an `init-action` other than best-effort) has no
//! keeper: it fails closed.

mod descriptor;

use std::fs;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::config::{LinkConfig, Sealing};
use crate::datapath::InitAction;
use crate::directory::{Lock, RunDirectory};
use crate::standin;
use linux::LinkError;
use linux::poll::{self, Readiness};

const DISMISSED: &[u8] = b"dismissed";
/// How often the end of a dismissed keeper is looked for, every 10 ms.
const LOOKS: u32 = 100;
/// Every 2 ms: a process that was killed takes its time to close what it had open.
const LOCK_ATTEMPTS: u32 = 500;
/// Between two looks whether there is still anything to keep.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a keeper may take to let go.
const PATIENCE: Duration = Duration::from_secs(1);

/// The daemon's end of the pipe.
#[derive(Debug)]
pub struct Keeper {
    pipe: PipeWriter,
    process: Child,
}

impl Keeper {
    /// Whether a link may pass frames unprotected when nobody serves it.
    pub(crate) fn is_wanted(config: &LinkConfig) -> bool {
        config.init_action == InitAction::BestEffort && !matches!(config.sealing, Sealing::Key(_))
    }

    /// Starts a program that calls [`keep`] with its standard input. `carrier` is what it holds.
    pub fn start(mut program: Command, carrier: Option<OwnedFd>) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        program.stdin(reader).stdout(carrier.map_or_else(Stdio::null, Stdio::from)).stderr(Stdio::null());
        // What ends the daemon from a terminal is not for the keeper.
        std::os::unix::process::CommandExt::process_group(&mut program, 0);
        Ok(Self { pipe, process: program.spawn()? })
    }

    /// Everything is put back, or left to be adopted on purpose.
    pub fn dismiss(mut self) {
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

/// Waits for the daemon of a link to end. If it did not take leave, the link fails open until this keeper is relieved.
pub fn keep(mut pipe: impl Read, directory: &RunDirectory, name: &str) -> Result<(), LinkError> {
    let mut heard = Vec::new();
    let _ = pipe.read_to_end(&mut heard);
    if heard == DISMISSED {
        return Ok(());
    }
    let failed = |error: io::Error| LinkError(format!("{}: {error}", directory.keeper(name).display()));
    let relief = {
        let Some(_lock) = wait_for_lock(directory, name)? else { return Ok(()) };
        let _ = fs::remove_file(directory.keeper(name));
        let relief = UnixListener::bind(directory.keeper(name)).map_err(failed)?;
        if !standin::fail_open(directory, name)? {
            return fs::remove_file(directory.keeper(name)).map_err(failed);
        }
        relief
    };
    // Every process that connects does so to relieve this keeper.
    while directory.keeper(name).exists() && is_of_use() {
        let ready = poll::wait(&[(relief.as_raw_fd(), false)], LOOK_EVERY).map_err(failed)?;
        if ready == [Readiness::Ready] {
            let (relieved, _) = relief.accept().map_err(failed)?;
            let _ = fs::remove_file(directory.keeper(name));
            return descriptor::send(&relieved, io::stdout().as_fd()).map_err(failed);
        }
    }
    // Somebody cleaned up by hand.
    Ok(())
}

/// The process id of a lab or a test whose network namespaces end with it, unless a keeper holds on to them.
pub const LAB: &str = "HITLESS_LAB";

fn is_of_use() -> bool {
    std::env::var(LAB).map_or(true, |pid| fs::exists(format!("/proc/{pid}")).unwrap_or(true))
}

/// The daemon's lock, which it may not have let go of yet; none if the next daemon has it: then the link is that one's.
fn wait_for_lock(directory: &RunDirectory, name: &str) -> Result<Option<Lock>, LinkError> {
    for _ in 0..LOCK_ATTEMPTS {
        if let Some(lock) = directory.lock_name(name).map_err(|error| LinkError(error.to_string()))? {
            return Ok(Some(lock));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(None)
}

/// Ends the keeper of a daemon that is gone, if there is one; what it held. For a veth it holds nothing of use.
pub(crate) fn relieve(directory: &RunDirectory, name: &str) -> Option<OwnedFd> {
    let stream = UnixStream::connect(directory.keeper(name));
    let held = stream.and_then(|stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        descriptor::receive(&stream)
    });
    let _ = fs::remove_file(directory.keeper(name));
    held.ok().flatten()
}

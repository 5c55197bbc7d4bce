//! The daemons of the rack, as processes of their own: so that a kill is one.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use daemon::RunDirectory;
use link::control::{LinkReply, LinkRequest};
use linux::SystemError;
use linux::clock::Clock;
use linux::net::Namespace;
use rack::control::{self, RackControlReply, RackControlRequest, RackRole};
use serde::de::DeserializeOwned;
use units::StopFlag;

use crate::soak::process::{self, DaemonPlace};

/// `RestartSec` of the unit.
pub(super) const RESTART_AFTER: Duration = Duration::from_millis(50);
/// A daemon that was asked to end has this long.
const END_WITHIN: Duration = Duration::from_secs(5);
/// One that was started answers within this, on a machine that is busy with other things.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
/// File in a daemon's folder for its output.
const LOG: &str = "said";
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Command that starts a daemon, and the namespace to start it in.
#[derive(Debug)]
pub(super) struct DaemonCommand<'a> {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub namespace: &'a Namespace,
    /// Folder of its output and its control socket.
    pub folder: PathBuf,
    pub name: String,
}

/// A daemon that runs. It is asked to end when dropped, and killed if it does not.
#[derive(Debug)]
pub(super) struct RackDaemon<'a> {
    command: &'a DaemonCommand<'a>,
    child: Child,
}

impl<'a> DaemonCommand<'a> {
    /// Starts it; it is killed when the calling thread ends.
    pub(super) fn start(&'a self) -> Result<RackDaemon<'a>, SystemError> {
        let trouble = |error: io::Error| SystemError(format!("start {}: {error}", self.program.display()));
        fs::create_dir_all(&self.folder).map_err(trouble)?;
        let (run_directory, log) = (self.folder.join("run"), self.folder.join(LOG));
        let mut command = self.place(&run_directory, &log).command(&self.arguments)?;
        Ok(RackDaemon { command: self, child: command.spawn().map_err(trouble)? })
    }

    fn place<'b>(&'b self, run_directory: &'b Path, log: &'b Path) -> DaemonPlace<'b> {
        DaemonPlace { program: &self.program, run_directory, log, namespace: self.namespace }
    }

    /// Last output of the daemon.
    fn last_words(&self) -> String {
        self.place(Path::new(""), &self.folder.join(LOG)).last_words()
    }

    fn directory(&self) -> RunDirectory {
        RunDirectory::at(self.folder.join("run"))
    }

    /// True if an end of a link protects frames.
    pub(super) fn link_is_active(&self) -> bool {
        matches!(self.directory().ask(&self.name, LinkRequest::Status), Ok(LinkReply::Status(status)) if status.is_active())
    }

    /// Status of the switch or host; none if nobody answers.
    pub(super) fn status<S: DeserializeOwned>(&self, role: RackRole) -> Option<S> {
        match control::ask(&self.directory(), role, &self.name, RackControlRequest::Status) {
            Ok(RackControlReply::Status(status)) => Some(*status),
            _ => None,
        }
    }
}

impl RackDaemon<'_> {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `up` holds; false if stopped before.
    pub(super) fn wait_until(&mut self, up: impl Fn() -> bool, stop: &StopFlag) -> Result<bool, SystemError> {
        let clock = Clock::start();
        while !up() {
            if stop.is_stopped() {
                return Ok(false);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let (name, said) = (&self.command.name, self.command.last_words());
                return Err(SystemError(format!("{name} ended, {status}: {said}")));
            }
            if clock.elapsed() > ANSWERS_WITHIN {
                let (name, said) = (&self.command.name, self.command.last_words());
                return Err(SystemError(format!("{name} does not answer: {said}")));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// Kills the daemon, as kill -9 does.
    pub(super) fn kill(&mut self) {
        // It fails only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, and waits.
    pub(super) fn end(mut self) {
        self.ask_to_end();
    }

    fn ask_to_end(&mut self) {
        let clock = Clock::start();
        let asked = process::signal(&self.child, libc::SIGTERM);
        while asked.is_ok() && clock.elapsed() < END_WITHIN {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for RackDaemon<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.ask_to_end();
        }
    }
}

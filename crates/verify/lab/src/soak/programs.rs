//! The programs whose traffic goes through the link: found, started in a namespace, and ended.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linux::SystemError;
use linux::clock::{Clock, instance};
use linux::net::Namespace;
use units::StopFlag;

/// Time that a server may take to listen, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of our own, gone when dropped.
#[derive(Debug)]
pub(crate) struct Workshop(PathBuf);

impl Workshop {
    pub(crate) fn new() -> Result<Self, SystemError> {
        let path = std::env::temp_dir().join(format!("hitless-soak-{}-{:08x}", std::process::id(), instance()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| SystemError(format!("make {}: {error}", path.display())))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // An error cannot be reported to anybody here.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running program. It ends when dropped.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    pub name: &'static str,
    pub child: Child,
    output: PathBuf,
}

impl RunningProgram {
    /// `None` if it is not installed. What it says goes to a file `output`: a pipe that nobody reads may fill up.
    pub(crate) fn start(
        name: &'static str,
        args: &[&str],
        output: &str,
        place: &Namespace,
        shop: &Workshop,
    ) -> Result<Option<Self>, SystemError> {
        let failed = |error: io::Error| SystemError(format!("start {name}: {error}"));
        let output = shop.path().join(output);
        let file = File::create(&output).map_err(failed)?;
        let mut command = Command::new(name);
        command.args(args).stdin(Stdio::null()).stdout(file.try_clone().map_err(failed)?).stderr(file);
        // In a group of its own, Ctrl-C leaves it to us to end it.
        command.process_group(0);
        place.prepare(&mut command)?;
        match command.spawn() {
            Ok(child) => Ok(Some(Self { name, child, output })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Waits until it listens on a port; false if called off before.
    pub(crate) fn wait_until_listening(
        &mut self,
        port: u16,
        place: &Namespace,
        stop: &StopFlag,
    ) -> Result<bool, SystemError> {
        let clock = Clock::start();
        while !place.with(|| is_listening(port))? {
            if stop.is_stopped() {
                return Ok(false);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(SystemError(format!("{} ended at once, {status}: {}", self.name, self.last_words())));
            }
            if clock.elapsed() > PATIENCE {
                let waited = PATIENCE.as_secs();
                return Err(SystemError(format!("{} does not listen on port {port} after {waited} s", self.name)));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(true)
    }

    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    pub(crate) fn last_words(&self) -> String {
        self.output().lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True if a server listens at this port in the namespace of the calling thread. Connecting to find out would be traffic.
fn is_listening(port: u16) -> bool {
    const LISTENING: &str = "0A";
    let sockets = fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
    let port = format!(":{port:04X}");
    sockets.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _remote, state) = (fields.next(), fields.next(), fields.next());
        local.is_some_and(|local| local.ends_with(&port)) && state == Some(LISTENING)
    })
}

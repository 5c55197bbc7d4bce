//! A host beside the link that ends with all its processes, as a container does, and the one after it, which the kernel gives the same
//! number: nothing of the dead one may show up there.
//!
//! Both use the same run directory, also where the number cannot be had again: nothing but the notes tells the second host that they
//! are of another.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use daemon::RunDirectory;
use faults::Random;
use link::control::{LinkReply, LinkRequest};
use link::status::LinkStatus;
use linux::SystemError;
use linux::clock::Clock;

use super::actions::PATIENCE;
use super::supervisor::{STAND_IN, Supervisor};
use crate::soak::process::{self, DaemonPlace};
use crate::stage::GuestHost;

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Place of the daemons of guests, and their log.
struct GuestPlace<'a> {
    daemon: &'a Supervisor<'a>,
    run_directory: PathBuf,
    log: PathBuf,
}

/// Ends a host and begins another with its number; what was wrong, a line each.
pub(super) fn reuse_a_number(daemon: &Supervisor<'_>, seed: u64) -> Vec<String> {
    let run_directory = daemon.directory.path().with_extension("guest");
    let log = run_directory.with_extension("log");
    let place = GuestPlace { daemon, run_directory, log };
    let wrong = place.play(seed).unwrap_or_else(|trouble| vec![format!("a guest: {trouble}", trouble = trouble.0)]);
    let _ = fs::remove_dir_all(&place.run_directory);
    let _ = fs::remove_file(&place.log);
    wrong
}

impl GuestPlace<'_> {
    fn play(&self, seed: u64) -> Result<Vec<String>, SystemError> {
        let mut random = Random::new(seed, 31);
        let mut address =
            |network: u8| Ipv4Addr::new(10, network, random.below(256) as u8, 2 + random.below(250) as u8);
        let (dead, own) = (address(66), address(67));
        let guest = GuestHost::new(dead)?;
        let number = guest.namespace.number()?;
        let (mut child, status) = self.up(&guest)?;
        // One that is stopped starts no other keeper, and a keeper that is dead does not act.
        process::signal(&child, libc::SIGSTOP).map_err(|error| SystemError(error.to_string()))?;
        status.keeper.pid.into_iter().for_each(process::kill);
        kill(&mut child);
        drop(guest);
        let guest = GuestHost::numbered(number, own)?;
        let (mut child, _) = self.up(&guest)?;
        let taken = guest.holdings(STAND_IN).inspect_err(|_| kill(&mut child))?;
        let ended =
            process::signal(&child, libc::SIGTERM).is_ok() && self.wait(|| !matches!(child.try_wait(), Ok(None)));
        kill(&mut child);
        let left = guest.holdings(GuestHost::PLUG)?;
        let mut wrong = Vec::new();
        for (interface, holdings) in [(STAND_IN, taken), (GuestHost::PLUG, left)] {
            if holdings.iter().any(|held| held.contains("10.66.")) || holdings.len() != 2 {
                wrong.push(format!("{interface} of {own} after {dead} had {}", holdings.join(", ")));
            }
        }
        if !ended {
            wrong.push("the daemon of a guest did not end".to_owned());
        }
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        if !said.contains("another network namespace") {
            wrong.push("no line says that notes of another namespace were put aside".to_owned());
        }
        let files = fs::read_dir(&self.run_directory).into_iter().flatten().flatten();
        wrong.extend(files.map(|file| format!("a guest left {}", file.file_name().display())));
        Ok(wrong)
    }

    /// A daemon that has taken over the interface of a guest.
    fn up(&self, guest: &GuestHost) -> Result<(Child, LinkStatus), SystemError> {
        let Self { daemon, run_directory, log } = self;
        let place = DaemonPlace { program: &daemon.program, run_directory, log, namespace: &guest.namespace };
        let arguments = ["link", "up", GuestHost::PLUG, "--take-over"].map(Into::into);
        let child = place.command(&arguments)?.spawn();
        let mut child = child.map_err(|error| SystemError(format!("start {}: {error}", daemon.program.display())))?;
        let mut status = None;
        let directory = RunDirectory::at(run_directory);
        self.wait(|| {
            status = match directory.ask(STAND_IN, LinkRequest::Status) {
                Ok(LinkReply::Status(found)) if found.keeper.is_ready() => Some(*found),
                _ => None,
            };
            status.is_some() || !matches!(child.try_wait(), Ok(None))
        });
        match status {
            Some(status) => Ok((child, status)),
            None => {
                kill(&mut child);
                Err(SystemError(format!("its daemon did not begin: {}", place.last_words())))
            }
        }
    }

    /// False if it takes too long.
    fn wait(&self, mut holds: impl FnMut() -> bool) -> bool {
        let clock = Clock::start();
        while !holds() {
            if clock.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        true
    }
}

fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

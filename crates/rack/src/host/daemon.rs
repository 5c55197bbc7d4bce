//! `hitless rack join`: a stand-in, the loop of a host under it, its control socket, until asked to leave.
//!
//! Locks, notes and the keeper are those of `hitless link`: if the daemon is killed, the keeper passes frames without
//! reservations, the next daemon adopts the stand-in, and `hitless rack leave` puts everything back. A switch goes on to mark
//! frames for the killed host until it has been silent for two seconds; these frames the kernel cannot read.

use std::fmt;
use std::io;
use std::process::Command;
use std::time::Duration;

use link::config::LinkConfig;
use link::control::RunDirectory;
use link::daemon::DaemonEnd;
use link::directory::Lock;
use link::keeper::Keeper;
use link::standin::{self, InterfaceState, StandIn};
use linux::LinkError;
use linux::mailbox::{Mailbox, MailboxReader};
use reserve::SchedulerKind;
use units::Rate;
use wire::reserve::MARK_LEN;

use super::status::JoinIdentity;
use super::{HostLoop, HostRequest, HostStatus, JoinedHost};
use crate::agreement::RackAgreement;
use crate::control::{self, RackRole};

/// A daemon that is about to end has the lock for a moment.
const LOCK_ATTEMPTS: u32 = 50;
/// For the paper's scheduler a host must know how long a slot is; the others tell it with every grant.
const RATE_IF_UNKNOWN: Rate = Rate::gbps(1);

/// What a host joins with.
#[derive(Clone, Debug)]
pub struct JoinConfig {
    /// The stand-in; what concerns protection is ignored.
    pub link: LinkConfig,
    /// As at the switch.
    pub scheduler: SchedulerKind,
    /// The most full frames of a burst.
    pub k: u8,
    /// Reservations that may be open; one for each destination if there is no number.
    pub contexts: Option<u16>,
}

impl JoinConfig {
    /// What was agreed on, on a wire of this MTU and rate.
    fn agreement(&self, wire_mtu: u32, rate: Option<Rate>) -> RackAgreement {
        let rate = rate.unwrap_or(RATE_IF_UNKNOWN);
        RackAgreement { scheduler: self.scheduler, rate, wire_mtu, k: self.k, contexts: self.contexts }
    }
}

/// A host on its stand-in, ready to run. Without a directory nothing is written down: for namespaces that end with the
/// program.
pub fn bring_up(
    config: &JoinConfig,
    directory: Option<&RunDirectory>,
) -> Result<(JoinedHost, JoinIdentity, StandIn), LinkError> {
    let (sides, mut stand_in) = standin::bring_up_for(&config.link, directory, MARK_LEN)?;
    let backends = [sides.host_backend.clone(), sides.wire_backend.clone()];
    let mtu = sides.mtu;
    let joined = config
        .agreement(sides.wire_mtu, sides.rate)
        .at_host()
        .and_then(|rack| Ok((JoinedHost::new(rack, sides)?, rack)))
        .map_err(|error| LinkError(error.to_string()));
    match joined {
        Ok((host, rack)) => {
            let (name, interface) = (config.link.name.clone(), config.link.interface.clone());
            Ok((host, JoinIdentity { name, interface, mtu, backends, rack }, stand_in))
        }
        Err(trouble) => {
            stand_in.down();
            Err(trouble)
        }
    }
}

/// A host that is about to join.
pub struct HostDaemon<'a> {
    /// How.
    pub config: &'a JoinConfig,
    /// Where its control socket, its lock and its notes are.
    pub directory: &'a RunDirectory,
    /// A program that calls [`link::keeper::keep`].
    pub keeper: &'a dyn Fn() -> Command,
    /// Hears what happens, a line each.
    pub tell: &'a mut dyn FnMut(&str),
}

impl fmt::Debug for HostDaemon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostDaemon").field("config", &self.config).finish_non_exhaustive()
    }
}

impl HostDaemon<'_> {
    /// Has joined until asked to leave; the last status.
    pub fn run(
        mut self,
        mailbox: Mailbox<HostRequest>,
        requests: MailboxReader<HostRequest>,
    ) -> Result<HostStatus, DaemonEnd> {
        // Everything that can fail without touching the network comes first.
        let interface = &self.config.link.interface;
        let wire_mtu = match standin::find(interface)? {
            InterfaceState::Ready(found) => found.mtu,
            InterfaceState::Absent(why) => return Err(DaemonEnd::Arguments(why)),
            InterfaceState::Down(why) | InterfaceState::Unsuitable(why) => return Err(DaemonEnd::Trouble(why)),
        };
        let agreed = self.config.agreement(wire_mtu, self.config.link.rate).at_host();
        agreed.map_err(|error| DaemonEnd::Arguments(error.to_string()))?;
        let lock = self.lock()?;
        let ended = self.serve(mailbox, requests);
        drop(lock);
        self.directory.tidy(&self.config.link.name);
        ended
    }

    fn lock(&self) -> Result<Lock, DaemonEnd> {
        let (name, interface) = (&self.config.link.name, &self.config.link.interface);
        let failed = |error: io::Error| outside(self.directory.path().display(), error);
        let mut taken = "";
        for _ in 0..LOCK_ATTEMPTS {
            self.directory.make().map_err(failed)?;
            match self.directory.lock(name, interface).map_err(failed)? {
                Ok(lock) => return Ok(lock),
                Err(by) => taken = by,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(DaemonEnd::Trouble(format!(
            "{taken} is taken: a stand-in is up already; `hitless rack status` and `hitless link status` show them"
        )))
    }

    fn serve(
        &mut self,
        mailbox: Mailbox<HostRequest>,
        requests: MailboxReader<HostRequest>,
    ) -> Result<HostStatus, DaemonEnd> {
        let (directory, name) = (self.directory, &self.config.link.name);
        let (stop, stopper) = io::pipe().map_err(|error| outside("a pipe", error))?;
        let (host, identity, mut stand_in) = bring_up(self.config, Some(directory))?;
        let keeper = Keeper::start((self.keeper)(), host.carrier());
        for remark in &stand_in.remarks {
            (self.tell)(remark);
        }
        (self.tell)(&format!("{name} stands in for {}: MTU {}; Ctrl-C leaves", identity.interface, identity.mtu));
        let ended = match control::bind(directory, RackRole::Host, name) {
            Ok(socket) => std::thread::scope(|scope| {
                scope.spawn(|| control::listen(&socket, &mailbox, &stop));
                let ended = HostLoop::new(host, identity, self.tell).run(requests);
                drop(stopper);
                ended
            }),
            Err(error) => Err(error),
        };
        for what in stand_in.down() {
            (self.tell)(&format!("could not be put back: {what}"));
        }
        match keeper {
            Ok(keeper) => keeper.dismiss(),
            Err(error) => (self.tell)(&format!("there was no keeper: {error}")),
        }
        ended.map_err(|error| outside(&self.config.link.interface, error))
    }
}

fn outside(what: impl fmt::Display, error: io::Error) -> DaemonEnd {
    DaemonEnd::Trouble(format!("{what}: {error}"))
}

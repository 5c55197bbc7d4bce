//! `hitless rack join`: a stand-in, the loop of a host under it, its control socket and its metrics, until asked to leave.
//!
//! Locks, notes and the keeper are those of `hitless link`: if the daemon is killed, the keeper passes frames without
//! reservations, the next daemon adopts the stand-in, and `hitless rack leave` puts everything back. A switch goes on to mark
//! frames for the killed host until it has been silent for two seconds; these frames the kernel cannot read.

use std::fmt;
use std::io;
use std::time::Duration;

use daemon::RunDirectory;
use daemon::directory::Lock;
use daemon::keeper::{KeeperProgram, KeeperWatch};
use daemon::service;
use daemon::{DaemonEnd, bind_metrics};
use linux::SystemError;
use linux::mailbox::{Mailbox, MailboxReader};
use reserve::SchedulerKind;
use standin::{StandIn, StandInConfig, StandInDemands, check_interface, wait_until_ready};
use units::Rate;
use wire::reserve::MARK_LEN;

use super::status::JoinIdentity;
use super::{HostLoop, HostRequest, HostStatus, JoinedHost, metrics};
use crate::agreement::RackAgreement;
use crate::control::{self, RackRole};
use crate::metrics::serve_status;

/// A daemon that is about to end has the lock for a moment.
const LOCK_ATTEMPTS: u32 = 50;
/// Rate where none is known. For the paper's scheduler a host must know the length of a slot; the others tell it with every
/// grant.
const RATE_IF_UNKNOWN: Rate = Rate::gbps(1);

/// Frames for which there is room as they come off the cable.
const CABLE_RING: usize = 2_048;

/// MTU to check parameters by, before the interface is there.
const ANY_MTU: u32 = 1_500;

/// Configuration with which a host joins.
#[derive(Clone, Debug)]
pub struct JoinConfig {
    /// The stand-in through which the host joins.
    pub stand_in: StandInConfig,
    /// Scheduler, the same as at the switch.
    pub scheduler: SchedulerKind,
    /// The most full frames of a burst.
    pub k: u8,
    /// Reservations that may be open; one for each destination if there is no number.
    pub contexts: Option<u16>,
}

impl JoinConfig {
    /// Settings that the host shares with the switch, on a wire of this MTU and rate.
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
) -> Result<(JoinedHost, JoinIdentity, StandIn), SystemError> {
    let demands =
        StandInDemands { overhead: MARK_LEN, ring: CABLE_RING, no_super_frames: Some("marks are on each frame") };
    let (sides, mut stand_in) = standin::bring_up(&config.stand_in, directory, &demands)?;
    let backends = [sides.host_backend.clone(), sides.wire_backend.clone()];
    let mtu = sides.mtu;
    let joined = config
        .agreement(sides.wire_mtu, sides.rate)
        .at_host()
        .and_then(|rack| Ok((JoinedHost::new(rack, sides)?, rack)))
        .map_err(|error| SystemError(error.to_string()));
    match joined {
        Ok((host, rack)) => {
            let (name, interface) = (config.stand_in.name.clone(), config.stand_in.interface.clone());
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
    /// Configuration of the host.
    pub config: &'a JoinConfig,
    /// Directory of its control socket, its lock and its notes.
    pub directory: &'a RunDirectory,
    /// A program that calls [`daemon::keeper::keep`].
    pub keeper: KeeperProgram<'a>,
    /// Hears what happens, a line each.
    pub tell: &'a mut dyn FnMut(&str),
}

impl fmt::Debug for HostDaemon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostDaemon").field("config", &self.config).finish_non_exhaustive()
    }
}

/// End of one incarnation.
enum ServeEnd {
    Left(Box<HostStatus>),
    /// The interface is gone; requests can still be made.
    InterfaceGone(MailboxReader<HostRequest>),
}

impl HostDaemon<'_> {
    /// Joins and runs until asked to leave; returns the last status.
    pub fn run(
        mut self,
        mailbox: &Mailbox<HostRequest>,
        requests: MailboxReader<HostRequest>,
    ) -> Result<HostStatus, DaemonEnd> {
        // Everything that can fail without touching the network comes first.
        let stand_in = &self.config.stand_in;
        standin::settle_name(self.directory, &stand_in.name, &stand_in.interface)?;
        let wire_mtu = if stand_in.wait { ANY_MTU } else { check_interface(&stand_in.interface)?.mtu };
        let agreed = self.config.agreement(wire_mtu, stand_in.rate).at_host();
        agreed.map_err(|error| DaemonEnd::Arguments(error.to_string()))?;
        let lock = self.lock()?;
        let aside = self.directory.put_aside(&stand_in.name);
        let aside = aside.map_err(|error| outside(self.directory.path().display(), error))?;
        aside.iter().for_each(|line| (self.tell)(line));
        let ended = self.run_alone(mailbox, requests);
        drop(lock);
        match ended {
            Ok(_) => self.directory.tidy(&self.config.stand_in.name),
            // Its log says why.
            Err(_) => self.directory.sweep(),
        }
        ended
    }

    fn lock(&mut self) -> Result<Lock, DaemonEnd> {
        let (name, interface) = (&self.config.stand_in.name, &self.config.stand_in.interface);
        let failed = |error: io::Error| outside(self.directory.path().display(), error);
        let mut taken = "";
        for _ in 0..LOCK_ATTEMPTS {
            self.directory.make().map_err(failed)?.iter().for_each(|line| (self.tell)(line));
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

    /// Runs with no other process on this interface or of this name.
    fn run_alone(
        &mut self,
        mailbox: &Mailbox<HostRequest>,
        requests: MailboxReader<HostRequest>,
    ) -> Result<HostStatus, DaemonEnd> {
        let StandInConfig { name, metrics, .. } = &self.config.stand_in;
        let listener = bind_metrics(*metrics)?;
        let socket = control::bind(self.directory, RackRole::Host, name);
        let socket = socket.map_err(|error| outside("the control socket", error))?;
        let (stop, stopper) = io::pipe().map_err(|error| outside("a pipe", error))?;
        std::thread::scope(|scope| {
            scope.spawn(|| control::listen(&socket, mailbox, &stop));
            scope.spawn(|| service::feed_watchdog(&stop, || mailbox.ask(HostRequest::Status).is_ok()));
            if let Some(listener) = &listener {
                // Metrics are the least important thing here: if they end, the host goes on.
                scope.spawn(|| serve_status(listener, mailbox, &stop, metrics::text));
            }
            let ended = self.serve_until_stopped(requests);
            drop(stopper);
            ended
        })
    }

    /// Runs one incarnation after the other, as long as the interface comes back.
    fn serve_until_stopped(&mut self, mut requests: MailboxReader<HostRequest>) -> Result<HostStatus, DaemonEnd> {
        loop {
            if self.config.stand_in.wait
                && let Some(status) = self.wait_for_interface(&mut requests)?
            {
                // Something may be left from before the interface went away.
                standin::clean_up(self.directory, &self.config.stand_in.name)?;
                return Ok(status);
            }
            match self.serve(requests)? {
                ServeEnd::Left(status) => return Ok(*status),
                ServeEnd::InterfaceGone(reader) => requests = reader,
            }
        }
    }

    /// Waits for the interface. `None` once it is there; the last status if asked to stop before.
    fn wait_for_interface(
        &mut self,
        requests: &mut MailboxReader<HostRequest>,
    ) -> Result<Option<HostStatus>, DaemonEnd> {
        let StandInConfig { name, interface, .. } = &self.config.stand_in;
        let mut status = HostStatus::waiting(name, interface);
        let is_ready = wait_until_ready(interface, self.tell, |why| {
            status.problem = Some(why.to_owned());
            let mut go_on = true;
            while let Some(request) = requests.next() {
                match request {
                    HostRequest::Status(answer) => drop(answer.send(status.clone())),
                    HostRequest::ResetPeaks => {}
                    HostRequest::Stop => go_on = false,
                }
            }
            go_on
        })?;
        Ok((!is_ready).then_some(status))
    }

    /// Runs one incarnation, from bringing up the stand-in to putting everything back. If the interface is gone and is to
    /// be waited for, the stand-in keeps addresses and routes for its return. Once the loop has ended, nobody waits for its
    /// answers.
    fn serve(&mut self, mut requests: MailboxReader<HostRequest>) -> Result<ServeEnd, DaemonEnd> {
        let StandInConfig { name, interface, wait, .. } = &self.config.stand_in;
        let (stop, stopper) = io::pipe().map_err(|error| outside("a pipe", error))?;
        let (host, identity, mut stand_in) = bring_up(self.config, Some(self.directory))?;
        let keeper = KeeperWatch::start(Some(self.keeper), host.carrier());
        if keeper.is_settled() {
            stand_in.dismiss_former_keeper();
        }
        for remark in &stand_in.remarks {
            (self.tell)(remark);
        }
        (self.tell)(&format!("{name} stands in for {interface}: MTU {}; Ctrl-C leaves", identity.mtu));
        service::report_ready("joined");
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| keeper.watch(&stop));
            let ended = HostLoop::new(host, identity, self.tell).with_keeper(&keeper).run(&mut requests);
            drop(stopper);
            ended
        });
        let is_gone = *wait && ended.is_err() && stand_in.is_interface_gone();
        let requests = is_gone.then_some(requests);
        let mut left = Vec::new();
        if is_gone {
            left.extend(standin::release_name(interface).err().map(|trouble| trouble.0));
            (self.tell)(&format!("{interface} is gone; {name} keeps its addresses and routes"));
        } else {
            service::report_stopping();
            left = stand_in.down();
        }
        for what in &left {
            (self.tell)(&format!("could not be put back: {what}"));
        }
        keeper.dismiss();
        match (ended, requests) {
            (Err(_), Some(requests)) => Ok(ServeEnd::InterfaceGone(requests)),
            (Ok(_), _) if !left.is_empty() => {
                Err(DaemonEnd::Trouble(format!("{name}: not everything could be put back")))
            }
            (ended, _) => {
                ended.map(|status| ServeEnd::Left(Box::new(status))).map_err(|error| outside(interface, error))
            }
        }
    }
}

fn outside(what: impl fmt::Display, error: io::Error) -> DaemonEnd {
    DaemonEnd::Trouble(format!("{what}: {error}"))
}

//! `hitless link up`: a link, its control socket and its metrics, until asked to stop.
//!
//! ```text
//!   lock ─▶ wait for the interface ─▶ bring up ─▶ serve ─▶ put back
//!                  ▲                                │
//!                  └──── the interface is gone ─────┘   with `--wait`
//! ```
//!
//! The loop has a thread to itself, the caller's; the others only wait, and nothing waits for them: however the loop ends,
//! what was changed is put back at once. If the whole program is killed, a keeper lets the link fail open, and the
//! next daemon finds notes of what was changed.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daemon::directory::Lock;
use daemon::keeper::{KeeperProgram, KeeperWatch};
use daemon::{ControlSocket, DaemonEnd, RunDirectory, bind_metrics, service};

use crate::bring_up::bring_up;
use crate::config::{LinkConfig, Sealing};
use crate::control::{self, LinkReply, LinkRequest};
use crate::datapath::InitAction;
use crate::metrics;
use crate::run::{self, LinkHandle, Loop, LoopRequest};
use crate::status::{LinkStatus, WAITING};
use linux::SystemError;
use linux::poll;
use standin::{InterfaceState, StandIn, check_interface, wait_until_ready};

/// A keeper, or a daemon that is about to end, has the lock for a moment.
const LOCK_ATTEMPTS: u32 = 50;

/// Asks a daemon to stop, at any moment while it runs and from any thread.
#[derive(Clone, Debug, Default)]
pub struct DaemonStopper(Arc<Mutex<StopState>>);

#[derive(Debug, Default)]
struct StopState {
    handle: Option<LinkHandle>,
    asked: bool,
}

impl DaemonStopper {
    pub fn stop(&self) {
        let mut stop = self.lock();
        stop.asked = true;
        if let Some(handle) = &stop.handle {
            handle.ask(LoopRequest::Stop);
        }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.lock().asked
    }

    /// Sets the link that is asked to stop from now on.
    fn watch(&self, handle: LinkHandle) {
        self.lock().handle = Some(handle);
        if self.is_asked() {
            self.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, StopState> {
        lock(&self.0)
    }
}

/// A daemon that is about to run.
pub struct LinkDaemon<'a> {
    pub config: &'a LinkConfig,
    pub directory: &'a RunDirectory,
    /// A program that calls [`daemon::keeper::keep`]; without one, the link does not fail open.
    pub keeper: Option<KeeperProgram<'a>>,
    /// Hears what happens, a line each; it must not wait.
    pub tell: &'a mut dyn FnMut(&str),
    pub stopper: DaemonStopper,
}

impl fmt::Debug for LinkDaemon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("config", &self.config).finish_non_exhaustive()
    }
}

/// End of a link.
enum LinkEnding {
    Stopped,
    /// Its interface is gone; what was changed waits for it to come back.
    Gone,
}

impl LinkDaemon<'_> {
    /// Runs the link until it is asked to stop.
    pub fn run(mut self) -> Result<(), DaemonEnd> {
        // Everything that can fail without touching the network comes first.
        self.config.sealing.seal().map_err(DaemonEnd::Arguments)?;
        standin::settle_name(self.directory, &self.config.stand_in.name, &self.config.stand_in.interface)?;
        if !self.config.stand_in.wait {
            check_interface(&self.config.stand_in.interface)?;
        }
        let lock = self.lock()?;
        let aside = self.directory.put_aside(&self.config.stand_in.name);
        let aside = aside.map_err(|error| DaemonEnd::in_words(self.directory.path().display(), error))?;
        aside.iter().for_each(|line| (self.tell)(line));
        let ended = self.run_alone();
        drop(lock);
        match ended {
            Ok(()) => self.directory.tidy(&self.config.stand_in.name),
            // Its log says why.
            Err(_) => self.directory.sweep(),
        }
        ended
    }

    /// Runs the link while this process holds the locks of its interface and its name.
    fn run_alone(&mut self) -> Result<(), DaemonEnd> {
        let listener = bind_metrics(self.config.stand_in.metrics)?;
        if let Some(cpu) = self.config.pin {
            poll::pin(cpu).map_err(|error| DaemonEnd::in_words(format!("--pin {cpu}"), error))?;
        }
        loop {
            if self.config.stand_in.wait && !self.wait_for_interface()? {
                // Something may be left of a link whose interface went away.
                standin::clean_up(self.directory, &self.config.stand_in.name)?;
                break;
            }
            match self.serve(listener.as_ref())? {
                LinkEnding::Gone if self.config.stand_in.wait => {}
                LinkEnding::Gone => {
                    return Err(DaemonEnd::in_words(self.config.stand_in.interface.clone(), "it is gone"));
                }
                LinkEnding::Stopped => break,
            }
        }
        Ok(())
    }

    fn lock(&mut self) -> Result<Lock, DaemonEnd> {
        let directory = self.directory;
        let in_directory = |error: io::Error| {
            let text = format!("{}: {error}", directory.path().display());
            match error.kind() {
                io::ErrorKind::PermissionDenied => linux::no_permission(&text),
                _ => SystemError(text),
            }
        };
        let (name, interface) = (&self.config.stand_in.name, &self.config.stand_in.interface);
        for attempt in 1.. {
            directory.make().map_err(in_directory)?.iter().for_each(|line| (self.tell)(line));
            match directory.lock(name, interface).map_err(in_directory)? {
                Ok(lock) => return Ok(lock),
                Err(taken) if attempt == LOCK_ATTEMPTS => return Err(already(self.config, taken)),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// False if the daemon is to stop instead. It can be asked how it is, and to stop, meanwhile.
    fn wait_for_interface(&mut self) -> Result<bool, DaemonEnd> {
        if let InterfaceState::Ready(_) = standin::find(&self.config.stand_in.interface)? {
            return Ok(true);
        }
        let sockets = (|| Ok((ControlSocket::bind(self.directory, &self.config.stand_in.name)?, io::pipe()?)))();
        let (control, (stop, stopper)) =
            sockets.map_err(|error: io::Error| DaemonEnd::in_words("the control socket", error))?;
        let waiting = WaitingDaemon { config: self.config, stopper: self.stopper.clone(), why: Mutex::default() };
        std::thread::scope(|scope| {
            scope.spawn(|| control.listen(&stop, |line| serde_json::to_string(&waiting.answer(line))));
            let found = wait_until_ready(&self.config.stand_in.interface, self.tell, |why| {
                why.clone_into(&mut lock(&waiting.why));
                !self.stopper.is_asked()
            });
            drop(stopper);
            found
        })
    }

    /// One incarnation of the link, from bringing it up to putting everything back.
    fn serve(&mut self, listener: Option<&TcpListener>) -> Result<LinkEnding, DaemonEnd> {
        let pipes = (|| Ok((run::handle()?, io::pipe()?)))();
        let ((handle, requests), (stop, stopper)) =
            pipes.map_err(|error: io::Error| DaemonEnd::in_words("a pipe", error))?;
        let (config, directory) = (self.config, self.directory);
        let (link, identity, mut stand_in) = bring_up(config, Some(directory))?;
        let keeper = KeeperWatch::start(self.keeper.filter(|_| fails_open(config)), link.carrier());
        if keeper.is_settled() {
            stand_in.dismiss_former_keeper();
        }
        for remark in &stand_in.remarks {
            (self.tell)(remark);
        }
        let waits = if config.dormant { "dormant until asked for protection" } else { "looking for its peer" };
        (self.tell)(&format!(
            "{} stands in for {}: MTU {}, {} and {}; {waits}",
            identity.name, identity.interface, identity.mtu, identity.host_backend, identity.wire_backend
        ));
        service::report_ready(waits);
        let sockets = (|| {
            let control = ControlSocket::bind(directory, &config.stand_in.name)?;
            let stops = [stop.try_clone()?, stop.try_clone()?, stop.try_clone()?];
            Ok((control, [handle.another()?, handle.another()?], stops))
        })();
        let (control, [for_control, for_metrics], [stop_metrics, stop_watchdog, stop_keeper]) = match sockets {
            Ok(sockets) => sockets,
            Err(error) => return self.put_back(Err(error), &mut stand_in, &keeper),
        };
        self.stopper.watch(handle);
        let beats = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| control::serve(&control, &for_control, &stop));
            scope.spawn(|| keeper.watch(&stop_keeper));
            scope.spawn(|| {
                let mut seen = u64::MAX;
                service::feed_watchdog(&stop_watchdog, || {
                    let beat = beats.load(Ordering::Relaxed);
                    std::mem::replace(&mut seen, beat) != beat
                });
            });
            if let Some(listener) = listener {
                // Metrics are the least important thing here: if they end, the link goes on.
                scope.spawn(|| metrics::serve_link(listener, &for_metrics, &stop_metrics));
            }
            let link = Loop::new(link, identity, requests, self.tell).with_beats(&beats).with_keeper(&keeper);
            let ended = link.run(!config.dormant);
            service::report_stopping();
            let over = self.put_back(ended, &mut stand_in, &keeper);
            drop(stopper);
            over
        })
    }

    /// Puts everything back, before anything else is waited for. If the interface is gone and will be waited for, the
    /// stand-in keeps addresses and routes for its return.
    fn put_back(
        &mut self,
        ended: io::Result<LinkStatus>,
        stand_in: &mut StandIn,
        keeper: &KeeperWatch<'_>,
    ) -> Result<LinkEnding, DaemonEnd> {
        let interface = &self.config.stand_in.interface;
        let is_gone = ended.is_err() && stand_in.is_interface_gone();
        let mut left = Vec::new();
        if is_gone && self.config.stand_in.wait {
            left.extend(standin::release_name(interface).err().map(|trouble| trouble.0));
            (self.tell)(&format!("{interface} is gone; {} keeps its addresses and routes", self.config.stand_in.name));
        } else {
            left = stand_in.down();
        }
        for what in &left {
            (self.tell)(&format!("could not be put back: {what}"));
        }
        keeper.dismiss();
        match ended {
            Ok(_) if left.is_empty() => Ok(LinkEnding::Stopped),
            Ok(_) => Err(DaemonEnd::in_words(self.config.stand_in.name.clone(), "not everything could be put back")),
            Err(_) if is_gone => Ok(LinkEnding::Gone),
            Err(error) => Err(DaemonEnd::in_words(interface.clone(), error)),
        }
    }
}

/// A daemon that waits for its interface, as others see it.
struct WaitingDaemon<'a> {
    config: &'a LinkConfig,
    stopper: DaemonStopper,
    /// Problem of the interface.
    why: Mutex<String>,
}

impl WaitingDaemon<'_> {
    fn answer(&self, line: &str) -> LinkReply {
        let why = || lock(&self.why).clone();
        match serde_json::from_str(line) {
            Ok(LinkRequest::Status) => LinkReply::Status(Box::new(LinkStatus {
                name: self.config.stand_in.name.clone(),
                interface: self.config.stand_in.interface.clone(),
                pid: std::process::id(),
                state: WAITING.to_owned(),
                wanted: !self.config.dormant,
                mode: self.config.mode.to_string(),
                seal: self.config.sealing.to_string(),
                problem: Some(why()),
                ..LinkStatus::default()
            })),
            Ok(LinkRequest::Down) => {
                self.stopper.stop();
                LinkReply::Done
            }
            Ok(_) => LinkReply::Refused(format!("{} waits for its interface: {}", self.config.stand_in.name, why())),
            Err(error) => LinkReply::Refused(format!("not a request: {error}")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if a link may pass frames unprotected when nobody serves it.
fn fails_open(config: &LinkConfig) -> bool {
    config.init_action == InitAction::BestEffort && !matches!(config.sealing, Sealing::Key(_))
}

/// Error: another process has the interface, or the name.
fn already(config: &LinkConfig, taken: &str) -> DaemonEnd {
    DaemonEnd::Trouble(if taken == config.stand_in.interface {
        format!("{taken} is protected already; `hitless link status` shows it")
    } else {
        format!("{taken} is up already, for another interface; choose another name with --name")
    })
}

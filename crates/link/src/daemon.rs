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
use std::io::{self, PipeReader};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::LinkConfig;
use crate::control::{Answer, Ask, ControlSocket};
use crate::directory::{Lock, RunDirectory};
use crate::keeper::Keeper;
use crate::metrics;
use crate::run::{self, Handle, Loop, Request};
use crate::standin::{self, StandIn, Wire};
use crate::status::{Status, WAITING};
use linux::Trouble;
use linux::poll::{self, Readiness};

/// Between two looks at an interface that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A keeper, or a daemon that is about to end, has the lock for a moment.
const LOCK_ATTEMPTS: u32 = 50;

/// Why a daemon ended, or did not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// What was asked for makes no sense here, and asking again does not help.
    Arguments(String),
    Trouble(String),
}

impl From<Trouble> for Ended {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble.0)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(what) | Self::Trouble(what) => f.write_str(what),
        }
    }
}

/// Asks a daemon to stop, at any moment of its life and from any thread.
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<Mutex<Stop>>);

#[derive(Debug, Default)]
struct Stop {
    handle: Option<Handle>,
    asked: bool,
}

impl Stopper {
    pub fn stop(&self) {
        let mut stop = self.lock();
        stop.asked = true;
        if let Some(handle) = &stop.handle {
            handle.ask(Request::Stop);
        }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.lock().asked
    }

    /// Who is to be asked from now on.
    fn watch(&self, handle: Handle) {
        self.lock().handle = Some(handle);
        if self.is_asked() {
            self.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stop> {
        lock(&self.0)
    }
}

/// A daemon that is about to run.
pub struct Daemon<'a> {
    pub config: &'a LinkConfig,
    pub directory: &'a RunDirectory,
    /// A program that calls [`crate::keeper::keep`]; without one, the link does not fail open.
    pub keeper: Option<&'a dyn Fn() -> Command>,
    /// Hears what happens, a line each; it must not wait.
    pub tell: &'a mut dyn FnMut(&str),
    pub stopper: Stopper,
}

impl fmt::Debug for Daemon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("config", &self.config).finish_non_exhaustive()
    }
}

/// How a link ended.
enum Over {
    Stopped,
    /// Its interface is gone; what was changed waits for it to come back.
    Gone,
}

impl Daemon<'_> {
    /// Runs the link until it is asked to stop.
    pub fn run(mut self) -> Result<(), Ended> {
        // Everything that can fail without touching the network comes first.
        self.config.sealing.seal().map_err(Ended::Arguments)?;
        if !self.config.wait {
            self.check_interface()?;
        }
        let lock = self.lock()?;
        let ended = self.run_alone();
        drop(lock);
        match ended {
            Ok(()) => self.directory.tidy(&self.config.name),
            // Its log says why.
            Err(_) => self.directory.sweep(),
        }
        ended
    }

    /// The same, with nobody else on this interface or of this name.
    fn run_alone(&mut self) -> Result<(), Ended> {
        let listener = match self.config.metrics {
            Some(address) => {
                Some(linux::metrics::bind(address).map_err(|error| in_words(format!("metrics on {address}"), error))?)
            }
            None => None,
        };
        if let Some(cpu) = self.config.pin {
            poll::pin(cpu).map_err(|error| in_words(format!("--pin {cpu}"), error))?;
        }
        loop {
            if self.config.wait && !self.wait_for_interface()? {
                // Something may be left of a link whose interface went away.
                standin::clean_up(self.directory, &self.config.name)?;
                break;
            }
            match self.serve(listener.as_ref())? {
                Over::Gone if self.config.wait => {}
                Over::Gone => return Err(in_words(self.config.interface.clone(), "it is gone")),
                Over::Stopped => break,
            }
        }
        Ok(())
    }

    fn check_interface(&self) -> Result<(), Ended> {
        match standin::find(&self.config.interface)? {
            Wire::Ready(_) => Ok(()),
            Wire::Absent(why) => Err(Ended::Arguments(why)),
            Wire::Down(why) | Wire::Unsuitable(why) => Err(Ended::Trouble(why)),
        }
    }

    fn lock(&self) -> Result<Lock, Ended> {
        let directory = self.directory;
        let in_directory = |error: io::Error| {
            let text = format!("{}: {error}", directory.path().display());
            match error.kind() {
                io::ErrorKind::PermissionDenied => linux::no_permission(&text),
                _ => Trouble(text),
            }
        };
        let (name, interface) = (&self.config.name, &self.config.interface);
        for attempt in 1.. {
            directory.make().map_err(in_directory)?;
            match directory.lock(name, interface).map_err(in_directory)? {
                Ok(lock) => return Ok(lock),
                Err(taken) if attempt == LOCK_ATTEMPTS => return Err(already(self.config, taken)),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// False if the daemon is to stop instead. It can be asked how it is, and to stop, meanwhile.
    fn wait_for_interface(&mut self) -> Result<bool, Ended> {
        if let Wire::Ready(_) = standin::find(&self.config.interface)? {
            return Ok(true);
        }
        let sockets = (|| Ok((ControlSocket::bind(self.directory, &self.config.name)?, io::pipe()?)))();
        let (control, (stop, stopper)) = sockets.map_err(|error: io::Error| in_words("the control socket", error))?;
        let waiting = Waiting { config: self.config, stopper: self.stopper.clone(), why: Mutex::default() };
        std::thread::scope(|scope| {
            scope.spawn(|| control.listen(&stop, |line| serde_json::to_string(&waiting.answer(line))));
            let found = self.look_out(&waiting.why);
            drop(stopper);
            found
        })
    }

    fn look_out(&mut self, told: &Mutex<String>) -> Result<bool, Ended> {
        while !self.stopper.is_asked() {
            match standin::find(&self.config.interface)? {
                Wire::Ready(_) => return Ok(true),
                Wire::Absent(why) | Wire::Down(why) if *lock(told) != why => {
                    let text = format!("{why}; waiting for it");
                    // Whatever is ordered behind this service need not wait as well.
                    notify(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::Status(&text)]);
                    (self.tell)(&text);
                    *lock(told) = why;
                }
                Wire::Absent(_) | Wire::Down(_) => {}
                Wire::Unsuitable(why) => return Err(Ended::Trouble(why)),
            }
            notify(&[sd_notify::NotifyState::Watchdog]);
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(false)
    }

    /// One life of the link, from bringing it up to putting everything back.
    fn serve(&mut self, listener: Option<&TcpListener>) -> Result<Over, Ended> {
        let pipes = (|| Ok((run::handle()?, io::pipe()?)))();
        let ((handle, requests), (stop, stopper)) = pipes.map_err(|error: io::Error| in_words("a pipe", error))?;
        let (config, directory) = (self.config, self.directory);
        let (link, identity, mut stand_in) = standin::bring_up(config, Some(directory))?;
        let keeper = self.start_keeper(link.carrier());
        for remark in &stand_in.remarks {
            (self.tell)(remark);
        }
        let waits = if config.dormant { "dormant until asked for protection" } else { "looking for its peer" };
        (self.tell)(&format!(
            "{} stands in for {}: MTU {}, {} and {}; {waits}",
            identity.name, identity.interface, identity.mtu, identity.host_backend, identity.wire_backend
        ));
        notify(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::Status(waits)]);
        let sockets = (|| {
            let control = ControlSocket::bind(directory, &config.name)?;
            Ok((control, [handle.another()?, handle.another()?], [stop.try_clone()?, stop.try_clone()?]))
        })();
        let (control, [for_control, for_metrics], [stop_metrics, stop_watchdog]) = match sockets {
            Ok(sockets) => sockets,
            Err(error) => return self.put_back(Err(error), &mut stand_in, keeper),
        };
        self.stopper.watch(handle);
        let beats = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| control.serve(&for_control, &stop));
            scope.spawn(|| feed_watchdog(&beats, &stop_watchdog));
            if let Some(listener) = listener {
                // Metrics are the least important thing here: if they end, the link goes on.
                scope.spawn(|| metrics::serve_link(listener, &for_metrics, &stop_metrics));
            }
            let ended = Loop::new(link, identity, requests, self.tell).with_beats(&beats).run(!config.dormant);
            notify(&[sd_notify::NotifyState::Stopping]);
            let over = self.put_back(ended, &mut stand_in, keeper);
            drop(stopper);
            over
        })
    }

    fn start_keeper(&mut self, carrier: Option<OwnedFd>) -> Option<Keeper> {
        let program = self.keeper.filter(|_| Keeper::is_wanted(self.config))?;
        match Keeper::start(program(), carrier) {
            Ok(keeper) => Some(keeper),
            Err(error) => {
                (self.tell)(&format!("no keeper: {error}; if this daemon is killed, the link does not fail open"));
                None
            }
        }
    }

    /// Puts everything back, before anything else is waited for. If the interface is gone and will be waited for, the
    /// stand-in keeps addresses and routes for its return.
    fn put_back(
        &mut self,
        ended: io::Result<Status>,
        stand_in: &mut StandIn,
        keeper: Option<Keeper>,
    ) -> Result<Over, Ended> {
        let interface = &self.config.interface;
        let is_gone = ended.is_err() && matches!(standin::find(interface), Ok(Wire::Absent(_)));
        if is_gone && self.config.wait {
            (self.tell)(&format!("{interface} is gone; {} keeps its addresses and routes", self.config.name));
        } else {
            for what in stand_in.down() {
                (self.tell)(&format!("could not be put back: {what}"));
            }
        }
        if let Some(keeper) = keeper {
            keeper.dismiss();
        }
        match ended {
            Ok(_) => Ok(Over::Stopped),
            Err(_) if is_gone => Ok(Over::Gone),
            Err(error) => Err(in_words(interface.clone(), error)),
        }
    }
}

/// A daemon that waits for its interface, as others see it.
struct Waiting<'a> {
    config: &'a LinkConfig,
    stopper: Stopper,
    /// What is wrong with the interface.
    why: Mutex<String>,
}

impl Waiting<'_> {
    fn answer(&self, line: &str) -> Answer {
        let why = || lock(&self.why).clone();
        match serde_json::from_str(line) {
            Ok(Ask::Status) => Answer::Status(Box::new(Status {
                name: self.config.name.clone(),
                interface: self.config.interface.clone(),
                pid: std::process::id(),
                state: WAITING.to_owned(),
                wanted: !self.config.dormant,
                mode: self.config.mode.to_string(),
                seal: self.config.sealing.to_string(),
                problem: Some(why()),
                ..Status::default()
            })),
            Ok(Ask::Down) => {
                self.stopper.stop();
                Answer::Done
            }
            Ok(_) => Answer::Refused(format!("{} waits for its interface: {}", self.config.name, why())),
            Err(error) => Answer::Refused(format!("not a request: {error}")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_words(what: impl fmt::Display, error: impl fmt::Display) -> Ended {
    Ended::Trouble(format!("{what}: {error}"))
}

/// Somebody else has the interface, or the name.
fn already(config: &LinkConfig, taken: &str) -> Ended {
    Ended::Trouble(if taken == config.interface {
        format!("{taken} is protected already; `hitless link status` shows it")
    } else {
        format!("{taken} is up already, for another interface; choose another name with --name")
    })
}

/// Tells the service manager that the loop goes round, as long as it does.
fn feed_watchdog(beats: &AtomicU64, stop: &PipeReader) {
    use std::os::fd::AsRawFd;
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    let mut seen = u64::MAX;
    loop {
        let beat = beats.load(Ordering::Relaxed);
        if beat != seen {
            notify(&[sd_notify::NotifyState::Watchdog]);
        }
        seen = beat;
        match poll::wait(&[(stop.as_raw_fd(), false)], limit / 4) {
            Ok([Readiness::Nothing]) => {}
            _ => return,
        }
    }
}

/// Reports to the service manager what happened, if there is one. It may have to wait for it.
pub fn report_status(text: &str) {
    notify(&[sd_notify::NotifyState::Status(text)]);
}

/// Tells the service manager, if there is one.
fn notify(states: &[sd_notify::NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}

//! A daemon at one end of the bench, and systemd's part: a daemon that ends without being asked to is started again.
//!
//! ```text
//!   started ──▶ serves ──▶ SIGTERM, asked for ──▶ ended ──▶ started at once
//!                  └─────▶ killed, crashed ─────▶ ended ──▶ started 50 ms later, as the unit says
//! ```
//!
//! Two threads: [`Supervisor::supervise`] starts and waits, [`Supervisor::poll`] asks the daemon for its status many times a
//! second. Counters die with a daemon, so the last known ones of each incarnation are kept. An end is *served* again
//! when the daemon that was started last answers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ledger::{EndCounters, HOST_RX_DROPPED, HOST_TX_DROPPED, TimeInterval, WIRE_TX_DROPPED};
use crate::soak::process::{self, DaemonPlace};
use crate::stage;
use daemon::RunDirectory;
use link::control::{LinkReply, LinkRequest};
use link::status::LinkStatus;
use linux::SystemError;
use linux::clock::Clock;
use linux::net::{self, InterfaceInfo, Namespace, Netlink};
use units::StopFlag;

/// The stand-in's name.
pub(crate) const STAND_IN: &str = "hit0";
/// `RestartSec` of the unit.
const RESTART_AFTER: Duration = Duration::from_millis(50);
/// `TimeoutStopSec` of the unit, and the same on a machine that may be busy.
const STOP_WITHIN: Duration = Duration::from_secs(5);
const STOP_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(2);
const POLL_EVERY: Duration = Duration::from_millis(25);
/// Wrong arguments; the unit does not restart after it.
const USAGE: i32 = 2;

/// Options with which a daemon is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Launch {
    pub dormant: bool,
    /// Seconds by which its clock is set back.
    pub clock_back: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Supervisor<'a> {
    pub end: usize,
    pub namespace: &'a Namespace,
    pub directory: RunDirectory,
    /// The program and what it is asked.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub log: PathBuf,
    pub clock: Clock,
    state: Mutex<SupervisorState>,
}

#[derive(Debug, Default)]
struct SupervisorState {
    child: Option<Child>,
    /// Start one then.
    start_at: Option<Duration>,
    launch: Launch,
    /// Time at which it was asked to end, by SIGTERM.
    leaving: Option<Duration>,
    /// True if it is not to be started again.
    finished: bool,
    /// True if it is not to be started for now.
    held: bool,
    starts: u64,
    /// Time since which no daemon serves this end.
    unserved: Option<Duration>,
    outages: Vec<TimeInterval>,
    /// The last that was heard, and when it was asked for.
    last: Option<(Duration, LinkStatus)>,
    lives: BTreeMap<u32, BTreeMap<String, u64>>,
    interfaces: BTreeMap<u32, (u64, u64)>,
    wires: BTreeMap<u32, u64>,
    problems: Vec<String>,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(
        end: usize,
        namespace: &'a Namespace,
        directory: RunDirectory,
        program: PathBuf,
        arguments: Vec<OsString>,
        log: PathBuf,
        clock: Clock,
    ) -> Self {
        let state = SupervisorState {
            start_at: Some(Duration::ZERO),
            unserved: Some(Duration::ZERO),
            ..SupervisorState::default()
        };
        Self { end, namespace, directory, program, arguments, log, clock, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, SupervisorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn side(&self) -> &'static str {
        super::side(self.end)
    }

    /// Starts the daemon and starts it again, until `over`; call it on a thread of its own.
    pub(crate) fn supervise(&self, over: &StopFlag) -> Result<(), SystemError> {
        self.namespace.enter()?;
        let netlink = Netlink::open()?;
        let mut neighbours = Neighbours::default();
        for look in 0u64.. {
            if over.is_stopped() {
                break;
            }
            self.look()?;
            if look.is_multiple_of(5) {
                neighbours.look(&netlink, self.end);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn look(&self) -> Result<(), SystemError> {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        if let Some(child) = &mut state.child {
            if let Ok(Some(status)) = child.try_wait() {
                self.ended(&mut state, now, status);
            } else if state.leaving.is_some_and(|since| now > since + STOP_PATIENCE) {
                let (side, seconds) = (self.side(), STOP_PATIENCE.as_secs());
                state.problems.push(format!("the daemon on the {side} did not end within {seconds} s of SIGTERM"));
                state.leaving = Some(now + Duration::from_hours(1));
                state.signal(libc::SIGKILL);
            }
        }
        if state.child.is_none() && !state.held && state.start_at.is_some_and(|at| at <= now) {
            state.start_at = None;
            let launch = std::mem::take(&mut state.launch);
            state.starts += 1;
            state.child = Some(self.spawn(launch)?);
        }
        Ok(())
    }

    fn ended(&self, state: &mut SupervisorState, now: Duration, status: ExitStatus) {
        state.child = None;
        state.unserved.get_or_insert(now);
        let leaving = state.leaving.take();
        let asked = leaving.is_some();
        if let Some(took) = leaving.map(|since| now.saturating_sub(since)).filter(|took| *took > STOP_WITHIN) {
            let (side, seconds) = (self.side(), took.as_secs_f64());
            state.problems.push(format!("the daemon on the {side} ended only after {seconds:.1} s of SIGTERM"));
        }
        let problem = format!("the daemon on the {} ended with exit code 2", self.side());
        // It is tried again ten times a second; once is enough.
        if status.code() == Some(USAGE) && !state.problems.iter().any(|known| known.starts_with(&problem)) {
            let said = self.last_words();
            state.problems.push(format!("{problem}, after which the unit does not restart it: {said}"));
        }
        state.start_at = match asked {
            _ if state.finished => None,
            true => Some(now),
            false => Some(now + RESTART_AFTER),
        };
    }

    fn spawn(&self, launch: Launch) -> Result<Child, SystemError> {
        let mut command = self.place().command(&self.arguments)?;
        command.args(launch.dormant.then_some("--dormant"));
        if let Some(seconds) = launch.clock_back {
            // Refused to everybody but the program itself.
            command.arg("--test-clock-back").arg(seconds.to_string());
        }
        command.spawn().map_err(|error| SystemError(format!("start {}: {error}", self.program.display())))
    }

    pub(crate) fn place(&self) -> DaemonPlace<'_> {
        let Self { program, directory, log, namespace, .. } = self;
        DaemonPlace { program, run_directory: directory.path(), log, namespace }
    }

    fn last_words(&self) -> String {
        self.place().last_words()
    }

    /// Asks the daemon how it is until `over`; call it on a thread of its own.
    pub(crate) fn poll(&self, over: &StopFlag) -> Result<(), SystemError> {
        let netlink = self.namespace.with(Netlink::open)??;
        while !over.is_stopped() {
            let asked = self.clock.elapsed();
            let status = self.ask(LinkRequest::Status);
            self.read_interfaces(&netlink);
            if let Some(status) = status {
                self.heard(asked, status);
            }
            std::thread::sleep(POLL_EVERY);
        }
        Ok(())
    }

    fn heard(&self, asked: Duration, status: LinkStatus) {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        state.lives.insert(status.pid, status.counters.clone());
        let current = state.child.as_ref().is_some_and(|child| child.id() == status.pid);
        if current && state.leaving.is_none() && state.unserved.is_some_and(|since| since <= asked) {
            let from = state.unserved.take().unwrap_or(now);
            state.outages.push(TimeInterval { from, to: now });
        }
        state.last = current.then_some((asked, status));
    }

    fn read_interfaces(&self, netlink: &Netlink) {
        // Either may be gone at any moment.
        let statistics = |link: net::Result<Option<InterfaceInfo>>| {
            let link = link.ok()??;
            netlink.statistics(link.index).ok().map(|statistics| (link.index, statistics))
        };
        let (host, wire) = (statistics(netlink.link(STAND_IN)), statistics(netlink.wire_of(stage::plug(self.end))));
        let mut state = self.state();
        if let Some((index, seen)) = host {
            state.interfaces.insert(index, (seen.tx_dropped, seen.rx_dropped));
        }
        if let Some((index, seen)) = wire {
            state.wires.insert(index, seen.tx_dropped);
        }
    }

    fn ask(&self, ask: LinkRequest) -> Option<LinkStatus> {
        match self.directory.ask(STAND_IN, ask) {
            Ok(LinkReply::Status(status)) => Some(*status),
            _ => None,
        }
    }

    /// Asks for or ends protection; false if nobody answers.
    pub(crate) fn command(&self, ask: LinkRequest) -> bool {
        matches!(self.directory.ask(STAND_IN, ask), Ok(LinkReply::Done))
    }

    /// Every counter, summed over all incarnations, as last heard.
    pub(crate) fn counters(&self) -> EndCounters {
        let state = self.state();
        let mut sums = EndCounters::new();
        for (name, value) in state.lives.values().flatten() {
            *sums.entry(name.clone()).or_default() += value;
        }
        let tx_dropped = state.interfaces.values().map(|(tx, _)| tx).sum();
        let rx_dropped = state.interfaces.values().map(|(_, rx)| rx).sum();
        sums.insert(HOST_TX_DROPPED.to_owned(), tx_dropped);
        sums.insert(HOST_RX_DROPPED.to_owned(), rx_dropped);
        sums.insert(WIRE_TX_DROPPED.to_owned(), state.wires.values().sum());
        sums
    }

    /// Answer to a question that was asked after `since`.
    pub(crate) fn status_since(&self, since: Duration) -> Option<LinkStatus> {
        self.state().last.as_ref().filter(|(asked, _)| *asked >= since).map(|(_, status)| status.clone())
    }

    pub(crate) fn is_served(&self) -> bool {
        self.state().unserved.is_none()
    }

    /// Has ended, and is not to be started again.
    pub(crate) fn is_gone(&self) -> bool {
        let state = self.state();
        state.finished && state.child.is_none()
    }

    /// Number of times that a daemon was started.
    pub(crate) fn starts(&self) -> u64 {
        self.state().starts
    }

    /// Niceness of the daemon; the unit makes it less nice than others.
    pub(crate) fn nice(&self) -> i32 {
        self.state().child.as_ref().map_or(0, process::nice)
    }

    /// SIGKILL. It is started again a while later.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        state.unserved.get_or_insert(self.clock.elapsed());
        state.signal(libc::SIGKILL);
    }

    /// Starts no daemon until told otherwise.
    pub(crate) fn hold(&self, held: bool) {
        self.state().held = held;
    }

    /// True if no daemon runs.
    pub(crate) fn is_down(&self) -> bool {
        self.state().child.is_none()
    }

    /// Takes note of what should not be, each with the end where it was seen.
    pub(crate) fn report(&self, problems: Vec<String>) {
        let side = self.side();
        self.state().problems.extend(problems.into_iter().map(|problem| format!("{problem} (on the {side})")));
    }

    /// SIGSTOP or SIGCONT.
    pub(crate) fn freeze(&self, frozen: bool) {
        self.state().signal(if frozen { libc::SIGSTOP } else { libc::SIGCONT });
    }

    /// SIGTERM. It is started again once it has ended, in this way.
    pub(crate) fn restart(&self, launch: Launch) {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        state.unserved.get_or_insert(now);
        (state.leaving, state.launch) = (Some(now), launch);
        state.signal(libc::SIGTERM);
    }

    /// Sends SIGTERM and ends the daemon permanently.
    pub(crate) fn finish(&self) {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        (state.finished, state.start_at, state.leaving) = (true, None, Some(now));
        state.signal(libc::SIGTERM);
    }

    /// Returns the times in which nobody served this end, since the last call; the last one may still go on.
    pub(crate) fn take_outages(&self) -> Vec<TimeInterval> {
        let (now, mut state) = (self.clock.elapsed(), self.state());
        let open = state.unserved.map(|from| TimeInterval { from, to: now });
        std::mem::take(&mut state.outages).into_iter().chain(open).collect()
    }

    pub(crate) fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut self.state().problems)
    }
}

impl SupervisorState {
    fn signal(&self, signal: libc::c_int) {
        if let Some(child) = &self.child {
            // It may have ended just now, which its supervisor notices.
            let _ = process::signal(child, signal);
        }
    }
}

impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.state().child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The bench's hosts know each other's addresses: a lost question about one would cost TCP a second. Interfaces come and
/// go, so this is looked after as a network manager would.
#[derive(Debug, Default)]
struct Neighbours {
    known: [Option<u32>; 2],
}

impl Neighbours {
    fn look(&mut self, netlink: &Netlink, end: usize) {
        let both = [netlink.link(STAND_IN), netlink.wire_of(stage::plug(end))];
        for (known, link) in self.known.iter_mut().zip(both) {
            let link = link.ok().flatten().filter(|link| link.up).map(|link| link.index);
            if let Some(index) = link.filter(|index| Some(*index) != *known)
                && netlink.add_neighbour(index, stage::address(1 - end), stage::mac(1 - end)).is_err()
            {
                // The interface went away in between; the next look finds out.
                continue;
            }
            *known = link;
        }
    }
}

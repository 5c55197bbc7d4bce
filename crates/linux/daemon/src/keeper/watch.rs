//! The keeper of a daemon that runs: looked at once a second, and replaced if it has ended.
//!
//! It has a thread of its own, since to start a process takes longer than a frame may wait; the loop only fetches what there is to
//! report.

use std::fmt;
use std::io::PipeReader;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linux::poll::{self, Readiness};
use serde::{Deserialize, Serialize};

use super::Keeper;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks between two reports: where a keeper cannot live, one is started every second.
const QUIET: u32 = 60;

/// Makes the command of a process that calls [`super::keep`].
pub type KeeperProgram<'a> = &'a (dyn Fn() -> Command + Sync);

/// State of the process that lets a link fail open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperStatus {
    /// ready; absent: if the daemon is killed, nothing passes; off: the link is to fail closed.
    pub state: String,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Keepers that ended by themselves and were replaced, since the daemon began.
    pub replaced: u64,
    /// Reason why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Default for KeeperStatus {
    /// The state without a keeper where none is wanted.
    fn default() -> Self {
        Self { state: "off".to_owned(), pid: None, replaced: 0, why: None }
    }
}

impl KeeperStatus {
    pub fn is_ready(&self) -> bool {
        self.state == "ready"
    }
}

/// The keeper of a daemon, and how to start another.
pub struct KeeperWatch<'a> {
    /// `None` if there is to be none.
    program: Option<KeeperProgram<'a>>,
    /// Descriptor that keepers hold.
    carrier: Option<OwnedFd>,
    state: Mutex<WatchState>,
    /// True if there is something to report, so that a loop need not take the lock to find out.
    news: AtomicBool,
}

#[derive(Debug, Default)]
struct WatchState {
    keeper: Option<Keeper>,
    dismissed: bool,
    ended: u64,
    trouble: Option<String>,
    reports: Vec<String>,
    /// Looks until the next report.
    quiet: u32,
}

impl fmt::Debug for KeeperWatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeeperWatch").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<'a> KeeperWatch<'a> {
    /// Starts a keeper, if there is a program for it.
    pub fn start(program: Option<KeeperProgram<'a>>, carrier: Option<OwnedFd>) -> Self {
        let watch = Self { program, carrier, state: Mutex::default(), news: AtomicBool::new(false) };
        watch.replace();
        watch
    }

    /// True if the link fails open if this process is killed now, or is not to.
    pub fn is_settled(&self) -> bool {
        self.program.is_none() || self.state().keeper.is_some()
    }

    /// Looks once a second until `stop` has something to read or is closed; call it on a thread of its own.
    pub fn watch(&self, stop: &PipeReader) {
        while self.program.is_some() && poll::wait(&[(stop.as_raw_fd(), false)], LOOK_EVERY).is_ok_and(is_quiet) {
            self.look();
        }
    }

    fn look(&self) {
        {
            let mut state = self.state();
            if state.dismissed {
                return;
            }
            state.quiet = state.quiet.saturating_sub(1);
            if let Some(keeper) = &mut state.keeper {
                if !keeper.has_ended() {
                    return;
                }
                state.keeper = None;
                state.ended += 1;
                let times = state.ended;
                let line =
                    format!("the keeper has ended ({times} so far); another is started, so that the link fails open");
                self.report(&mut state, line);
            }
        }
        self.replace();
    }

    /// Starts a keeper where there is none; not with the lock, for which the loop would have to wait.
    fn replace(&self) {
        let Some(program) = self.program else { return };
        let carrier = self.carrier.as_ref().map(OwnedFd::try_clone).transpose();
        let started = carrier.and_then(|carrier| Keeper::start(program(), carrier));
        let mut state = self.state();
        match started {
            Ok(keeper) if state.dismissed => {
                drop(state);
                keeper.dismiss();
            }
            Ok(keeper) => (state.keeper, state.trouble) = (Some(keeper), None),
            Err(error) => {
                let line = format!("no keeper: {error}; if this daemon is killed, the link does not fail open");
                self.report(&mut state, line);
                state.trouble = Some(error.to_string());
            }
        }
    }

    /// Returns the reports since the last call.
    pub fn take_reports(&self) -> Vec<String> {
        if !self.news.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.news.store(false, Ordering::Relaxed);
        std::mem::take(&mut self.state().reports)
    }

    fn report(&self, state: &mut WatchState, line: String) {
        if state.quiet == 0 {
            state.reports.push(line);
            state.quiet = QUIET;
            self.news.store(true, Ordering::Relaxed);
        }
    }

    pub fn status(&self) -> KeeperStatus {
        let state = self.state();
        let name = match (&state.keeper, self.program) {
            (Some(_), _) => "ready",
            (None, Some(_)) => "absent",
            (None, None) => "off",
        };
        let pid = state.keeper.as_ref().map(|keeper| keeper.process.id());
        KeeperStatus { state: name.to_owned(), pid, replaced: state.ended, why: state.trouble.clone() }
    }

    /// Everything is put back, or left to be adopted on purpose.
    pub fn dismiss(&self) {
        let mut state = self.state();
        state.dismissed = true;
        let keeper = state.keeper.take();
        drop(state);
        keeper.into_iter().for_each(Keeper::dismiss);
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_quiet([stop]: [Readiness; 1]) -> bool {
    stop == Readiness::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that ends when its input does, as a keeper does, or at once.
    fn shell(script: &'static str) -> impl Fn() -> Command + Sync {
        move || {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        }
    }

    #[test]
    fn a_keeper_that_ends_is_replaced_counted_and_reported() {
        let program = shell("read line");
        let watch = KeeperWatch::start(Some(&program), None);
        watch.look();
        let before = watch.status();
        assert!(before.is_ready() && before.replaced == 0 && watch.take_reports().is_empty(), "{before:?}");
        let pid = before.pid.unwrap().to_string();
        assert!(Command::new("sh").args(["-c", &format!("kill -KILL {pid}")]).status().unwrap().success());
        while watch.status().replaced == 0 {
            std::thread::sleep(Duration::from_millis(5));
            watch.look();
        }
        let after = watch.status();
        assert!(after.is_ready() && after.pid != before.pid, "{after:?}");
        let reports = watch.take_reports();
        assert!(reports.len() == 1 && reports[0].contains("another is started"), "{reports:?}");
        watch.dismiss();
        watch.look();
        assert_eq!(watch.status().state, "absent", "one that was dismissed is not replaced");
    }

    #[test]
    fn one_that_cannot_live_is_reported_once_a_minute_and_counted_each_time() {
        let program = shell("exit 1");
        let watch = KeeperWatch::start(Some(&program), None);
        while watch.status().replaced < 5 {
            std::thread::sleep(Duration::from_millis(5));
            watch.look();
        }
        assert_eq!(watch.take_reports().len(), 1);
        watch.dismiss();
    }

    #[test]
    fn a_program_that_is_not_there_is_a_reason_and_none_is_off() {
        let program = || Command::new("/nowhere/at/all");
        let watch = KeeperWatch::start(Some(&program), None);
        let status = watch.status();
        assert!(status.state == "absent" && status.why.is_some() && !watch.is_settled(), "{status:?}");
        assert!(watch.take_reports()[0].contains("does not fail open"));
        let watch = KeeperWatch::start(None, None);
        assert!(watch.status().state == "off" && watch.is_settled());
    }
}

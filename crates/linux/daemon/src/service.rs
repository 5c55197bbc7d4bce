//! Messages to the service manager of a daemon, if there is one: that it is ready, how it is doing, that it is alive.

use std::io::PipeReader;
use std::os::fd::AsRawFd;

use linux::poll::{self, Readiness};
use sd_notify::NotifyState;

/// The daemon is ready, and how it is doing.
pub fn report_ready(text: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(text)]);
}

/// Reports what happened. It may have to wait for the service manager.
pub fn report_status(text: &str) {
    notify(&[NotifyState::Status(text)]);
}

/// The daemon is about to end.
pub fn report_stopping() {
    notify(&[NotifyState::Stopping]);
}

/// The daemon is alive.
pub fn report_alive() {
    notify(&[NotifyState::Watchdog]);
}

/// Reports that the loop goes round as long as `is_alive` says so, until `stop` has something to read or is closed.
pub fn feed_watchdog(stop: &PipeReader, mut is_alive: impl FnMut() -> bool) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    loop {
        if is_alive() {
            report_alive();
        }
        match poll::wait(&[(stop.as_raw_fd(), false)], limit / 4) {
            Ok([Readiness::Nothing]) => {}
            _ => return,
        }
    }
}

fn notify(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}

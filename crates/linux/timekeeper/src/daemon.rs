//! `hitless clock up`: a clock, its page, its control socket and its metrics, until asked to stop.

use std::fmt;
use std::io;

use daemon::key::read_key;
use daemon::service;
use daemon::{ControlSocket, RunDirectory};
use daemon::{DaemonEnd, bind_metrics};
use linux::mailbox::{Mailbox, MailboxReader};
use linux::serve::PATIENCE;

use crate::config::ClockConfig;
use crate::control::{self, ClockRequest};
use crate::metrics;
use crate::run::Timekeeper;
use crate::status::ClockStatus;

/// A clock that is about to run.
pub struct ClockDaemon<'a> {
    /// Configuration of the clock.
    pub config: ClockConfig,
    /// Directory of its control socket and its page.
    pub directory: &'a RunDirectory,
    /// First line that it reports, once it keeps the time.
    pub begun: String,
    /// Hears what happens, a line each.
    pub tell: &'a mut dyn FnMut(&str),
}

impl fmt::Debug for ClockDaemon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockDaemon").field("config", &self.config).finish_non_exhaustive()
    }
}

impl ClockDaemon<'_> {
    /// Keeps the time until asked to stop; the last status.
    pub fn run(
        self,
        mailbox: &Mailbox<ClockRequest>,
        mut requests: MailboxReader<ClockRequest>,
    ) -> Result<ClockStatus, DaemonEnd> {
        let outside = |what: &str, error: io::Error| DaemonEnd::Trouble(format!("{what}: {error}"));
        let node = self.config.duties.node.clone();
        let key = self.config.key.as_deref().map(read_key).transpose().map_err(DaemonEnd::Arguments)?;
        let listener = bind_metrics(self.config.metrics)?;
        let path = self.directory.path().display().to_string();
        let made = self.directory.make().map_err(|error| outside(&path, error))?;
        made.iter().for_each(|line| (self.tell)(line));
        let socket = control::clock_socket(self.directory, &node);
        // The owner of the socket may write on the page.
        let control = ControlSocket::at(socket, PATIENCE).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                DaemonEnd::Trouble(format!("{node} runs already here; `hitless clock status {node}` shows it"))
            }
            _ => outside(&path, error),
        })?;
        let page = self.config.page.clone().unwrap_or_else(|| control::clock_page(self.directory, &node));
        let mut keeper = Timekeeper::open(self.config, key, &page).inspect_err(|_| self.directory.sweep())?;
        (self.tell)(&self.begun);
        let (stop, stopper) = io::pipe().map_err(|error| outside("a pipe", error))?;
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| control::listen(&control, mailbox, &stop));
            scope.spawn(|| service::feed_watchdog(&stop, || mailbox.ask(ClockRequest::Status).is_ok()));
            if let Some(listener) = &listener {
                // Metrics are the least important thing here: if they end, the clock goes on.
                scope.spawn(|| metrics::serve_status(listener, mailbox, &stop));
            }
            service::report_ready("keeps the time");
            let ended = keeper.run(&mut requests, self.tell);
            service::report_stopping();
            drop(stopper);
            ended
        });
        drop(control);
        if ended.is_ok() {
            keeper.end();
            self.directory.tidy(&node);
        }
        ended.map_err(|error| DaemonEnd::Trouble(error.to_string()))
    }
}

//! The root is stopped for a moment, as a busy or a moved machine stops a program, and a plan is given by hand afterwards.

use std::time::Duration;

use linux::SystemError;
use linux::clock::Clock;
use units::StopFlag;

use super::{ClockNetwork, NODES, planned};
use crate::clock_demo::rows::{PlannedFor, StopRow};
use crate::soak::process::signal;
use clock::plan::ClockPlan;
use timekeeper::{ClockControlReply, ClockState, ClockStatus, ask_clock};

/// Times for which the root is stopped, in turn.
const STOPPED: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(250), Duration::from_millis(1_000)];
/// Intervals from its waking until the plan is given, in turn.
const PAUSES: [u32; 4] = [0, 2, 20, 200];
/// Time after which a plan has not led to one root that all follow, and further time after which some do not listen to
/// their parents.
const PATIENCE: Duration = Duration::from_secs(10);
const SETTLES: Duration = Duration::from_secs(1);

impl ClockNetwork<'_> {
    /// Stops the root, wakes it, gives everybody a plan, and waits for one root that all follow. `look` sees the pages before each change.
    pub(in crate::clock_demo) fn stop_root(
        &mut self,
        number: u32,
        stop: &StopFlag,
        look: &dyn Fn(),
    ) -> Result<StopRow, SystemError> {
        let old = self.plan.root.index();
        let turn = number as usize;
        let stopped = STOPPED[turn % STOPPED.len()];
        let planned_for = PlannedFor::ALL[turn / STOPPED.len() % PlannedFor::ALL.len()];
        self.send_root(old, libc::SIGSTOP)?;
        std::thread::sleep(stopped);
        look();
        let elected = (0..NODES).find(|node| *node != old && self.is_elected(*node));
        self.send_root(old, libc::SIGCONT)?;
        std::thread::sleep(self.interval * PAUSES[turn / 2 % PAUSES.len()]);
        let new = elected.unwrap_or(self.plan.backup_root.index());
        let root = match planned_for {
            PlannedFor::OldRoot => old,
            PlannedFor::NewRoot => new,
            PlannedFor::ThirdNode => (0..NODES).find(|node| ![old, new].contains(node)).unwrap_or(old),
        };
        self.plan = ClockPlan { epoch: self.plan.epoch + 1, ..planned(&self.graph, root)? };
        self.write_plan()?;
        for node in 0..NODES {
            look();
            self.tell((node + turn) % NODES)?;
        }
        let healed = self.wait_until(PATIENCE, stop, look, || self.has_one_root());
        let settled = self.wait_until(SETTLES, stop, look, || (0..NODES).all(|node| self.is_as_planned(node)));
        Ok(StopRow {
            stopped_ms: stopped.as_millis() as u64,
            planned_for,
            root: self.name(root).to_owned(),
            elected: elected.is_some(),
            healed_ms: healed.as_ref().ok().copied(),
            is_as_planned: settled.is_ok(),
            late: healed.err().or(settled.err()),
        })
    }

    fn send_root(&self, root: usize, what: libc::c_int) -> Result<(), SystemError> {
        let sent = self.daemons[root].as_ref().map_or(Ok(()), |daemon| signal(daemon, what));
        sent.map_err(|error| SystemError(format!("{}: {error}", self.name(root))))
    }

    fn is_elected(&self, node: usize) -> bool {
        self.status(node).is_some_and(|status| status.state == ClockState::Elected)
    }

    fn tell(&self, node: usize) -> Result<(), SystemError> {
        match ask_clock(&self.directory, self.name(node), &self.plan_for(node)?) {
            Ok(ClockControlReply::Done) => Ok(()),
            Ok(reply) => Err(SystemError(format!("{}: {reply:?}", self.name(node)))),
            Err(error) => Err(SystemError(format!("{}: {error}", self.name(node)))),
        }
    }

    /// Milliseconds until it is so; otherwise what all nodes are doing.
    fn wait_until(
        &self,
        patience: Duration,
        stop: &StopFlag,
        look: &dyn Fn(),
        is_so: impl Fn() -> bool,
    ) -> Result<f64, String> {
        let clock = Clock::start();
        while !is_so() {
            if stop.is_stopped() || clock.elapsed() > patience {
                return Err((0..NODES).map(|node| self.why_silent(node)).collect::<Vec<_>>().join(", "));
            }
            look();
            std::thread::sleep(self.interval);
        }
        Ok(clock.elapsed().as_secs_f64() * 1e3)
    }

    /// True if there is one root and every other node hears it through its parent or backup parent.
    fn has_one_root(&self) -> bool {
        let statuses: Vec<ClockStatus> = (0..NODES).filter_map(|node| self.status(node)).collect();
        let is_root = |status: &&ClockStatus| matches!(status.state, ClockState::Root | ClockState::Elected);
        let roots: Vec<&ClockStatus> = statuses.iter().filter(is_root).collect();
        let [root] = roots[..] else { return false };
        let follows = |status: &&ClockStatus| {
            let is_heard = status.heard_us_ago.is_some_and(|us| us < 1e5);
            let is_following = matches!(status.state, ClockState::Following | ClockState::Turned);
            is_heard && is_following && (status.epoch, status.elected) == (root.epoch, root.elected)
        };
        root.epoch == self.plan.epoch && statuses.iter().filter(follows).count() == NODES - 1
    }
}

//! One act: two hosts, their daemons and traffic, and faults one after the other until its time is over.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::Ordering;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use super::actions::{FaultTargets, METRICS, MTU};
use super::episode::{ActRecord, OpenEpisode, unclean};
use super::ledger::{self, WitnessJournal};
use super::outcome::InflictedFault;
use super::plan::FaultShuffle;
use super::supervisor::Launch;
use super::traffic::{self, TrafficPulse};
use super::{FaultBench, FaultKind, FaultObserver, FaultPlan, FaultReport, PlannedFault, Supervisor, leftovers, side};
use crate::soak::programs::Workshop;
use crate::stage::{self, Stage};
use daemon::RunDirectory;
use linux::SystemError;
use linux::clock::Clock;
use units::StopFlag;

/// A fault with all that belongs to it; no other begins when less than this is left.
const ONE_FAULT: Duration = Duration::from_secs(3);
/// Time limit for the first handshake, on a machine that may be busy.
const FIRST: Duration = Duration::from_secs(30);
/// Time for the link to be protected again after a fault; and, on a machine that may be busy, for one that was not, and after both
/// daemons were restarted.
const RECOVERY: Duration = Duration::from_secs(5);
const REPAIR: Duration = Duration::from_secs(30);
/// Words of a problem that may be a busy machine's.
const LATE: &str = "protected again only after";
/// Longer than any frame is asked for again.
const SETTLE: Duration = Duration::from_millis(400);
const KEY: &str = "000102030405060708090a0b0c0d0e0f\n";

/// One act: two hosts, from their making to what is left of them.
pub(super) struct FaultAct<'a> {
    pub plan: &'a FaultPlan,
    pub number: u32,
    pub keyed: bool,
    pub waits: bool,
    /// End on the run's clock.
    pub until: Duration,
    pub clock: Clock,
    pub stop: &'a StopFlag,
    pub watch: &'a dyn FaultObserver,
    /// Faults of earlier acts.
    pub before: usize,
}

impl FaultAct<'_> {
    pub(super) fn play(&self) -> Result<FaultBench, SystemError> {
        let shop = Workshop::new()?;
        let stage = Stage::new(MTU)?;
        for end in 0..2 {
            stage.address(end, stage::plug(end))?;
        }
        let clock = Clock::start();
        let ends = [self.daemon(0, &stage, &shop, clock)?, self.daemon(1, &stage, &shop, clock)?];
        let pulse = TrafficPulse::default();
        let bench = FaultTargets {
            stage: &stage,
            ends: &ends,
            pulse: &pulse,
            clock,
            stop: self.stop,
            keyed: self.keyed,
            recorded: [Vec::new(), Vec::new()],
            problems: Vec::new(),
        };
        let (sending, receiving, daemons) = (StopFlag::new(), StopFlag::new(), StopFlag::new());
        let (story, journals) = std::thread::scope(|scope| {
            let _over = [&sending, &receiving, &daemons].map(StopFlag::stop_on_drop);
            for daemon in &ends {
                scope.spawn(|| self.report(daemon.supervise(&daemons)));
                scope.spawn(|| self.report(daemon.poll(&daemons)));
            }
            self.with_traffic(scope, bench, [&sending, &receiving])
        })?;
        Ok(self.conclude(story, &journals, &pulse, leftovers::find(&stage, &ends), clock))
    }

    /// Reports why a thread cannot go on. Its consequences are reported too, but this is their cause.
    fn report(&self, ended: Result<(), SystemError>) {
        if let Err(trouble) = ended {
            self.watch.remark(&trouble.0);
        }
    }

    fn daemon<'s>(
        &self,
        end: usize,
        stage: &'s Stage,
        shop: &Workshop,
        clock: Clock,
    ) -> Result<Supervisor<'s>, SystemError> {
        let failed = |error: std::io::Error| SystemError(format!("{}: {error}", shop.path().display()));
        let metrics = format!("127.0.0.1:{METRICS}");
        let mut arguments: Vec<OsString> =
            ["link", "up", stage::plug(end), "--mtu", "1500", "--take-over", "--metrics", &metrics]
                .map(OsString::from)
                .into();
        arguments.extend(["--backend".into(), self.plan.host.to_string().into()]);
        arguments.extend(self.waits.then(|| "--wait".into()));
        if self.keyed {
            let path = shop.path().join("key");
            let file = fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(&path);
            file.and_then(|mut file| std::io::Write::write_all(&mut file, KEY.as_bytes())).map_err(failed)?;
            arguments.extend(["--key".into(), path.into()]);
        }
        let log = format!("{}-{}.log", self.number, side(end));
        let log = self.plan.logs.as_deref().unwrap_or(shop.path()).join(log);
        let directory = RunDirectory::at(shop.path().join(side(end)));
        let program = self.plan.program.clone();
        Ok(Supervisor::new(end, &stage.ends[end], directory, program, arguments, log, clock))
    }

    /// Traffic from before the first fault until after the last; then the daemons end.
    fn with_traffic<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut bench: FaultTargets<'scope>,
        [sending, receiving]: [&'scope StopFlag; 2],
    ) -> Result<(ActRecord, [WitnessJournal; 2]), SystemError> {
        let (stage, pulse, clock) = (bench.stage, bench.pulse, bench.clock);
        let mut story = ActRecord::default();
        let protected = |bench: &FaultTargets<'_>| bench.ends.iter().all(|daemon| is_active(daemon, Duration::ZERO));
        if !bench.wait_until(FIRST, || protected(&bench)) && !bench.is_stopped() {
            let problems: Vec<String> = bench.ends.iter().flat_map(Supervisor::take_problems).collect();
            let why = problems.first().cloned().unwrap_or_else(|| states(bench.ends));
            return Err(SystemError(format!("the two ends did not find each other within half a minute: {why}")));
        }
        stage.serve(scope, receiving)?;
        let receivers = [0, 1].map(|from| {
            let socket = traffic::listen(&stage.ends[1 - from], from);
            scope.spawn(move || traffic::receive(&socket?, from, clock, pulse, receiving))
        });
        let senders = [0, 1].map(|from| scope.spawn(move || traffic::send(&stage.ends[from], from, clock, sending)));
        let clients = [
            scope.spawn(move || traffic::transfers(&stage.ends[0], stage.server(), pulse, sending)),
            scope.spawn(move || traffic::requests(&stage.ends[0], stage.server(), pulse, sending)),
        ];
        let open = self.faults(&mut bench, &mut story)?;
        sending.stop();
        let [left, right] = senders.map(join);
        let sent = [left?, right?];
        for client in clients {
            join(client)?;
        }
        while !pulse.is_over([0, 1].map(|end| sent[end].len() as u64), clock.elapsed()) {
            std::thread::sleep(Duration::from_millis(10));
        }
        receiving.stop();
        let ([sent_left, sent_right], [left, right]) = (sent, receivers.map(join));
        let journals = [WitnessJournal { sent: sent_left, ..left? }, WitnessJournal { sent: sent_right, ..right? }];
        open.close(&bench, &mut story, None, Vec::new());
        self.finish(&bench, &mut story);
        Ok((story, journals))
    }

    /// Ends both daemons in an orderly way.
    fn finish(&self, bench: &FaultTargets<'_>, story: &mut ActRecord) {
        bench.ends.iter().for_each(Supervisor::finish);
        let clock = Clock::start();
        while !bench.ends.iter().all(Supervisor::is_gone) && clock.elapsed() < FIRST {
            std::thread::sleep(Duration::from_millis(10));
        }
        story.problems.extend(bench.ends.iter().flat_map(Supervisor::take_problems));
    }

    /// The episode after the last fault is still open: datagrams are sent in it.
    fn faults(&self, bench: &mut FaultTargets<'_>, story: &mut ActRecord) -> Result<OpenEpisode, SystemError> {
        let deck = FaultShuffle::new(self.plan.seed, u64::from(self.number), &self.plan.kinds, self.keyed);
        let mut deck = deck.lasting(self.plan.lasting);
        let one_fault = ONE_FAULT + self.plan.lasting.unwrap_or_default();
        let mut open = OpenEpisode::first(bench);
        bench.wait(SETTLE);
        open = open.close(bench, story, None, Vec::new());
        while !bench.is_stopped() && self.clock.elapsed() + one_fault < self.until {
            let Some(fault) = deck.deal() else { break };
            self.watch.tick(self.clock.elapsed());
            self.watch.fault(self.before + story.episodes.len(), &fault);
            bench.wait(fault.pause);
            let at = bench.clock.elapsed();
            let mut allowed = bench.inflict(&fault)?;
            story.problems.append(&mut bench.problems);
            let ended = bench.clock.elapsed();
            if !self.recover(bench, ended, RECOVERY) {
                self.repair(bench, story, &fault)?;
            }
            let protected_after = bench.clock.elapsed() - ended;
            if fault.kind == FaultKind::Forged {
                // Until it is protected again, what the forger did lasts.
                allowed.iter_mut().for_each(|interval| interval.to = bench.clock.elapsed());
            }
            bench.wait(SETTLE);
            open = open.close(bench, story, Some(InflictedFault { fault, at, protected_after }), allowed);
        }
        Ok(open)
    }

    /// Waits until both ends are protected and datagrams flow; true also if the run is stopped.
    fn recover(&self, bench: &FaultTargets<'_>, since: Duration, within: Duration) -> bool {
        let well = || bench.ends.iter().all(|daemon| is_active(daemon, since)) && bench.pulse.beats_since(since);
        bench.wait_until(within, well) || bench.is_stopped()
    }

    /// The link did not come back by itself in time: that is a problem. If it does not at all, both daemons are restarted so that the
    /// run can go on.
    fn repair(&self, bench: &FaultTargets<'_>, story: &mut ActRecord, fault: &PlannedFault) -> Result<(), SystemError> {
        let (number, kind, end) = (self.before + story.episodes.len(), fault.kind, side(fault.end));
        let (began, before) = (bench.clock.elapsed(), states(bench.ends));
        let recovered = self.recover(bench, began, REPAIR);
        let seconds = (RECOVERY + bench.clock.elapsed() - began).as_secs_f64();
        let what = if recovered { LATE } else { "not protected again within" };
        let problem = format!("fault {number}, {kind} on the {end}: the link was {what} {seconds:.1} s: {before}");
        self.watch.remark(&problem);
        story.problems.push(problem);
        if recovered {
            return Ok(());
        }
        let since = bench.clock.elapsed();
        bench.ends.iter().for_each(|daemon| daemon.restart(Launch::default()));
        if self.recover(bench, since, REPAIR) {
            return Ok(());
        }
        Err(SystemError(format!("after {kind} the link is not protected even after both ends were restarted")))
    }

    fn conclude(
        &self,
        story: ActRecord,
        journals: &[WitnessJournal; 2],
        pulse: &TrafficPulse,
        left_behind: Vec<String>,
        clock: Clock,
    ) -> FaultBench {
        let (settled, mut totals) = ledger::settle(&story.episodes, journals);
        totals.corrupted += pulse.differing.load(Ordering::Relaxed);
        let begun = self.clock.elapsed().saturating_sub(clock.elapsed());
        let mut problems = story.problems;
        let mut reports = Vec::new();
        for ((fault, settled), rose) in story.faults.iter().zip(&settled).zip(&story.rose) {
            let report = fault.as_ref().map(|inflicted| FaultReport::new(inflicted, self.keyed, begun, settled));
            if settled.unaccounted + settled.duplicated + settled.reordered > 0 {
                let number = self.before + reports.len() + 1;
                problems.push(unclean(report.as_ref().map(|report| (number, report)), settled, rose));
            }
            reports.extend(report);
        }
        FaultBench {
            faults: reports,
            totals,
            transfers: pulse.transfers.load(Ordering::Relaxed),
            requests: pulse.requests.load(Ordering::Relaxed),
            left_behind,
            problems,
            ..FaultBench::default()
        }
    }
}

fn is_active(daemon: &Supervisor<'_>, since: Duration) -> bool {
    daemon.is_served() && daemon.status_since(since).is_some_and(|status| status.is_active())
}

/// States of the two ends, in one line.
fn states(ends: &[Supervisor<'_>; 2]) -> String {
    let state = |daemon: &Supervisor<'_>| {
        let said = daemon.status_since(Duration::ZERO).map_or("silent".to_owned(), |status| match status.problem {
            Some(problem) => format!("{} ({problem})", status.state),
            None => status.state,
        });
        let served = if daemon.is_served() { "" } else { ", not served" };
        format!("{} {said}{served}", side(daemon.end))
    };
    format!("{}; {}", state(&ends[0]), state(&ends[1]))
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T, SystemError>>) -> Result<T, SystemError> {
    thread.join().map_err(|_| SystemError("a witness panicked".to_owned()))?
}

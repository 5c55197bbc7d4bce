//! The monitor itself: it polls, publishes, receives, and acts. LinkGuardian (SIGCOMM'23) App. C, `corruptd`.
//!
//! ```text
//!   poll (every interval, independent of the others)
//!     │ states                     ┌── former states ──┐
//!     ├──────────▶ publish ──────▶ bus ──────▶ receive │
//!     │               ▲                           │ messages
//!     │               └── recall ─────────────────┼────┘
//!     └──────────▶ act ◀──────────────────────────┘
//! ```
//!
//! Each of the four has a thread of its own, so that a bus that does not answer, or a link's daemon that does not, keeps
//! nobody from looking at counters. The monitor publishes nothing before it knows what its former incarnation
//! published: it takes over those alarms first. When the monitor is asked to stop, protection stays in force unless
//! asked otherwise: protection depends on the corruption, not on whether a monitor runs.

mod actor_side;
mod bounds;
mod bus_side;
mod control;
mod once;
mod problem_log;
mod watch;

use std::collections::BTreeSet;
use std::io::{self, PipeReader, Read};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ::daemon::RunDirectory;
use linux::poll::{self, Readiness};
use units::{Moment, StopFlag};

use crate::act::{Executor, PortAction, PortActor, StoredMemory};
use crate::config::{MonitorConfig, SourceKind};
use crate::journal::{ActionKind, ActionOutcome, Journal, JournalEntry};
use crate::metrics::{ErrorOrigin, MonitorMetrics};
use crate::source::{self, NAMED, SampleTiming, Source, SourceSite};
use bus::Bus;
use bus::message::{Condition, Message, PortState};

pub use control::{MonitorControl, MonitorStatus, ask_for_status, ask_to_clear};
pub use once::{PortAssessment, look_once};
pub(crate) use watch::named_port;
pub use watch::{PollOutput, PortPoller};

use actor_side::{ToActor, act};
pub use bounds::TimeBounds;
use bus_side::{Publisher, receive};
use control::ControlRequest;
use problem_log::ProblemLog;

/// Interval at which the watchdog hears that ports are polled, however long the interval of polls is.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// The edge of the program.
pub trait MonitorClock: Sync {
    /// Time by a clock that is not set back.
    fn now(&self) -> Moment;
    /// The time of day, for people.
    fn time_of_day(&self) -> Moment;
    /// Interval that contains the true time; `None` if nobody vouches for the clock.
    fn time_bounds(&self) -> Option<TimeBounds> {
        None
    }
}

/// The machine's own.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock(linux::clock::Clock);

impl SystemClock {
    pub fn start() -> Self {
        Self(linux::clock::Clock::start())
    }
}

fn moment(since: Duration) -> Moment {
    Moment::ZERO.after(since)
}

impl MonitorClock for SystemClock {
    fn now(&self) -> Moment {
        moment(self.0.elapsed())
    }

    fn time_of_day(&self) -> Moment {
        moment(linux::clock::time_of_day())
    }

    fn time_bounds(&self) -> Option<TimeBounds> {
        let of_day = || linux::clock::true_time().map(|between| TimeBounds { between, of: None });
        TimeBounds::of_clock(&RunDirectory::of_this_system()).or_else(of_day)
    }
}

/// The sources that a configuration asks for; files of samples are replayed, or followed as they grow.
pub fn open_sources(
    config: &MonitorConfig,
    directory: &RunDirectory,
    mode: SampleTiming,
) -> Result<Vec<Box<dyn Source>>, String> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for kind in &config.sources {
        match kind {
            SourceKind::Named(name) => {
                let (selections, sysfs) = (config.selections(), config.sysfs.as_path());
                let site = SourceSite { selections, sysfs, run_directory: directory, timing: mode };
                let named = NAMED.iter().filter(|source| source.name == *name);
                for source in named {
                    sources.extend((source.open)(&site).map_err(|error| format!("{name}: {error}"))?);
                }
            }
            SourceKind::Samples(path) => {
                let samples = source::samples(path, mode).map_err(|error| format!("{}: {error}", path.display()))?;
                sources.push(Box::new(samples));
            }
        }
    }
    Ok(sources)
}

/// Parts that a monitor is made of.
#[derive(Debug)]
pub struct MonitorParts {
    pub config: MonitorConfig,
    pub sources: Vec<Box<dyn Source>>,
    pub bus: Box<dyn Bus>,
    pub executor: Box<dyn Executor>,
    pub journal: Journal,
    pub metrics: Option<TcpListener>,
    pub control: Option<MonitorControl>,
}

/// State that all threads share.
struct MonitorShared<'a> {
    clock: &'a dyn MonitorClock,
    tell: &'a (dyn Fn(&str) + Sync),
    journal: Mutex<Journal>,
    board: Mutex<MonitorMetrics>,
    log: Mutex<ProblemLog>,
    ended: StopFlag,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MonitorShared<'_> {
    /// Writes entries to the journal, prints those that are not quiet, and counts actions.
    fn enter(&self, entries: &[JournalEntry]) {
        let mut failed = None;
        for entry in entries {
            failed = lock(&self.journal).write(entry).err().or(failed);
            if !entry.is_quiet {
                (self.tell)(&entry.to_string());
            }
            if !matches!(entry.deed, ActionKind::State | ActionKind::Health) {
                *lock(&self.board).actions.entry((entry.deed, entry.outcome)).or_default() += 1;
            }
        }
        // Not journaled, for obvious reasons.
        if let Some(error) = failed {
            let trouble = format!("the journal cannot be written: {error}");
            let (news, _) = lock(&self.board).set_troubles(ErrorOrigin::Journal, [trouble].into());
            news.iter().for_each(|line| (self.tell)(line));
        } else if !entries.is_empty() {
            lock(&self.board).set_troubles(ErrorOrigin::Journal, BTreeSet::new());
        }
    }

    /// Sets what is wrong at one place now; enters what is new about that into the journal.
    fn troubles(&self, place: ErrorOrigin, now: impl IntoIterator<Item = String>) {
        let (news, over) = lock(&self.board).set_troubles(place, now.into_iter().collect());
        let (news, over) = lock(&self.log).worth_telling(self.clock.now(), news, over);
        let at = self.clock.time_of_day();
        let degraded = news
            .iter()
            .map(|line| JournalEntry::new(at, ActionKind::Health, ActionOutcome::Failed, format!("degraded: {line}")));
        let well = over
            .iter()
            .map(|line| JournalEntry::new(at, ActionKind::Health, ActionOutcome::Seen, format!("over: {line}")));
        self.enter(&degraded.chain(well).collect::<Vec<_>>());
    }

    /// Now and then, all that lasts: a line of long ago is not found by who looks today.
    fn remind(&self) {
        let lasting: Vec<String> = lock(&self.board).degraded().map(str::to_owned).collect();
        if lock(&self.log).is_reminder_due(self.clock.now(), !lasting.is_empty()) {
            let why = format!("still degraded: {}", lasting.join("; "));
            let at = self.clock.time_of_day();
            self.enter(&[JournalEntry::new(at, ActionKind::Health, ActionOutcome::Failed, why)]);
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.is_stopped()
    }

    /// A thread that fails takes the others with it: a monitor that does half its work looks like one that does all.
    fn ends_with(&self, thread: impl FnOnce()) {
        let end = self.ended.stop_on_drop();
        thread();
        std::mem::forget(end);
    }
}

/// Runs until `stop` has something to read or is closed at its other end. `tell` receives one line for each event.
///
/// An error is returned before anything was begun, or of kind `InvalidData` where nothing that sources have makes sense and
/// nothing else will come. Other failures are reported and the monitor goes on.
pub fn run(
    parts: MonitorParts,
    clock: &dyn MonitorClock,
    stop: &PipeReader,
    tell: &(dyn Fn(&str) + Sync),
) -> io::Result<MonitorMetrics> {
    let MonitorParts { config, sources, bus, executor, journal, metrics, control } = parts;
    let watch = PortPoller::new(&config, sources, clock.time_of_day().as_ms())?;
    let kept =
        if config.action == PortAction::Protect { StoredMemory::open(&config.state) } else { StoredMemory::nowhere() };
    kept.remark().iter().for_each(|line| tell(line));
    let alarms = kept.memory.alarms.values().cloned().collect();
    let actor = PortActor::new(config.rules(), executor, kept);
    let shared = MonitorShared {
        clock,
        tell,
        journal: Mutex::new(journal),
        board: Mutex::new(MonitorMetrics { host: config.host.clone(), ..MonitorMetrics::default() }),
        log: Mutex::default(),
        ended: StopFlag::new(),
    };
    // Closed when the polls end, whether they were asked to or not.
    let (for_metrics, polling) = io::pipe()?;
    let for_control = for_metrics.try_clone()?;
    let (requests, requested) = control::requests()?;
    let nonsense = thread::scope(|scope| {
        let polling = polling;
        let shared = &shared;
        let _end = shared.ended.stop_on_drop();
        let (to_actor, from_all) = mpsc::channel();
        let (to_publisher, from_poll) = mpsc::channel();
        let (to_poll, recalled) = mpsc::channel();
        let publisher = Publisher::new(bus.another(), &config);
        scope.spawn(move || shared.ends_with(|| publisher.run(&from_poll, &to_poll, shared)));
        let heard = to_actor.clone();
        scope.spawn(move || shared.ends_with(|| receive(bus, &heard, shared)));
        let leave_nothing = config.unprotect_on_exit;
        scope.spawn(move || shared.ends_with(|| act(actor, &from_all, leave_nothing, shared)));
        if let Some(listener) = &metrics {
            // If metrics end, the monitor goes on.
            scope.spawn(move || {
                linux::metrics::serve(listener, &for_metrics, |path| Some(lock(&shared.board).page(path)))
            });
        }
        if let Some(control) = &control {
            scope.spawn(move || control.serve(&requests, &for_control));
        }
        let told = ChangeListeners { publisher: to_publisher, actor: to_actor };
        let mut poll = PollLoop { watch, told, recalled, requested, shared, time_bounds: config.time_bounds };
        poll.take_over(alarms);
        let nonsense = poll.run(config.interval, stop);
        drop(polling);
        nonsense
    });
    if let Some(why) = nonsense {
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(shared.board.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Listeners that hear of every change.
struct ChangeListeners {
    publisher: Sender<ToPublisher>,
    actor: Sender<ToActor>,
}

#[expect(clippy::large_enum_variant, reason = "nearly all are messages")]
enum ToPublisher {
    Message(Message),
    /// The recalled messages are taken over: messages that follow may be published.
    Resume,
}

impl ChangeListeners {
    /// They end after us, so they listen.
    fn tell(&self, message: Message) {
        let _ = self.actor.send(ToActor::Message(message.clone()));
        let _ = self.publisher.send(ToPublisher::Message(message));
    }
}

struct PollLoop<'a> {
    watch: PortPoller,
    time_bounds: bool,
    told: ChangeListeners,
    recalled: Receiver<Vec<PortState>>,
    requested: control::ControlRequests,
    shared: &'a MonitorShared<'a>,
}

impl PollLoop<'_> {
    /// Returns why it ended by itself, if it did.
    fn run(&mut self, interval: Duration, stop: &PipeReader) -> Option<String> {
        let mut nonsense = None;
        let mut next = self.shared.clock.now();
        tell_systemd(sd_notify::NotifyState::Ready);
        loop {
            tell_systemd(sd_notify::NotifyState::Watchdog);
            let now = self.shared.clock.now();
            if next <= now {
                while let Ok(states) = self.recalled.try_recv() {
                    let _ = self.told.publisher.send(ToPublisher::Resume);
                    self.take_over(states);
                }
                nonsense = self.look(now);
                next = after_now(next, interval, now);
            }
            if nonsense.is_some() {
                break;
            }
            let ended = self.wait(next.since(self.shared.clock.now()).min(ALIVE_EVERY), stop);
            if ended || self.shared.has_ended() {
                break;
            }
            self.serve();
        }
        // Others end when nobody talks to them any more.
        let _ = self.told.actor.send(ToActor::End);
        nonsense
    }

    /// True if it is time to end.
    fn wait(&self, most: Duration, stop: &PipeReader) -> bool {
        let fds = [(stop.as_raw_fd(), false), (self.requested.wake.as_raw_fd(), false)];
        match poll::wait(&fds, most) {
            Ok([stopped, _]) => stopped != Readiness::Nothing,
            // Nothing to wait with: rather slow than busy.
            Err(_) => {
                thread::sleep(most.min(Duration::from_millis(100)));
                false
            }
        }
    }

    /// Takes over what a former incarnation published.
    fn take_over(&mut self, states: Vec<PortState>) {
        let at = self.shared.clock.time_of_day();
        let messages = self.watch.recall(states, at);
        let corrupting = messages.iter().filter_map(|message| match message {
            Message::Port(state) if state.condition == Condition::Corrupting => Some(state),
            Message::Port(_) | Message::Order(_) => None,
        });
        let entry = |state: &PortState| {
            let why = format!("corrupting since a former life of this monitor: {}", state.why);
            let entry = JournalEntry::new(at, ActionKind::State, ActionOutcome::Seen, why).on(state.id.clone());
            JournalEntry { about: Some(state.id.clone()), evidence: Some(state.evidence), ..entry }
        };
        self.shared.enter(&corrupting.map(entry).collect::<Vec<_>>());
        messages.into_iter().for_each(|message| self.told.tell(message));
    }

    /// Returns why there is nothing to look at and never will be.
    fn look(&mut self, now: Moment) -> Option<String> {
        self.watch.found_between(self.time_bounds.then(|| self.shared.clock.time_bounds()).flatten());
        let polled = self.watch.poll(now, self.shared.clock.time_of_day());
        if let Some(why) = self.watch.nonsense() {
            return Some(why);
        }
        self.publish(polled);
        let at = self.shared.clock.time_of_day();
        let remark = |remark| JournalEntry::new(at, ActionKind::Health, ActionOutcome::Seen, remark);
        self.shared.enter(&self.watch.remarks().into_iter().map(remark).collect::<Vec<_>>());
        self.shared.troubles(ErrorOrigin::Sources, self.watch.troubles().iter().cloned());
        self.shared.remind();
        None
    }

    fn publish(&mut self, polled: PollOutput) {
        self.shared.enter(&polled.entries);
        polled.messages.into_iter().for_each(|message| self.told.tell(message));
        let mut board = lock(&self.shared.board);
        board.rows = self.watch.rows();
        board.totals.clone_from(self.watch.totals());
        board.polls = self.watch.polls();
        board.source_errors.clone_from(self.watch.errors());
    }

    fn serve(&mut self) {
        while let Ok(request) = self.requested.queue.try_recv() {
            // One byte was written for each request.
            let _ = self.requested.wake.read(&mut [0]);
            // The client that asked may have gone away since.
            match request {
                ControlRequest::Clear { port, answer } => {
                    let cleared = self.watch.clear(&port, self.shared.clock.time_of_day());
                    let _ = answer.send(cleared.map(|polled| self.publish(polled)));
                }
                ControlRequest::Status { answer } => {
                    let degraded = lock(&self.shared.board).degraded().map(str::to_owned).collect();
                    let ports = self.watch.rows().into_iter().map(PortAssessment::from).collect();
                    let _ = answer.send(MonitorStatus { degraded, ports });
                }
            }
        }
    }
}

/// Notifies systemd, which may not be listening.
fn tell_systemd(state: sd_notify::NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

/// Time of the next poll: in steps of the interval; missed ones are not made up for.
fn after_now(last: Moment, interval: Duration, now: Moment) -> Moment {
    let step = interval.as_millis().max(1);
    let steps = now.since(last).as_millis() / step + 1;
    Moment::from_ms(last.as_ms().saturating_add(u64::try_from(steps * step).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_keep_their_pace_and_missed_ones_stay_missed() {
        let next = |last, now| after_now(Moment::from_ms(last), Duration::from_secs(1), Moment::from_ms(now)).as_ms();
        assert_eq!(next(5_000, 5_000), 6_000);
        assert_eq!(next(5_000, 5_300), 6_000);
        assert_eq!(next(5_000, 8_700), 9_000);
    }
}

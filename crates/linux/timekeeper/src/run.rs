//! The clock on real interfaces: sockets around [`ClockCore`], its loop, and the page.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::node::NodeState;
use daemon::DaemonEnd;
use linux::clock::{Clock, KernelClock, instance, random, set_system_clock, steer_system_clock, system_clock_is_free};
use linux::mailbox::MailboxReader;
use linux::net::Netlink;
use linux::poll::{self, Readiness};
use seal::{SealKey, SealReadiness};
use units::{Span, Time};
use wire::sync::{SyncEpoch, SyncTerm};

use crate::config::{ClockConfig, ClockLink};
use crate::control::ClockRequest;
use crate::core::ClockCore;
use crate::discipline::{ClockAdjustment, ClockDiscipline};
use crate::duties::ClockDuties;
use crate::oscillator::Oscillator;
use crate::page::{ClockPageEntry, ClockPageWriter, ClockState};
use crate::port::{ClockPort, PortArrival, PortDeparture};
use crate::reports::{ClockReports, ClockTopic, LinkTopic};
use crate::seal::WaveSeal;
use crate::stamping::{ClockPair, StampConverter};
use crate::status::ClockStatus;

/// CLOCK_BOOTTIME may be slewed; what it gains beyond this in one turn of the loop is time that the machine was suspended.
const SUSPENDED_NS: u64 = 10_000_000;
/// The longest sleep.
const LONGEST_SLEEP_NS: u64 = 100_000_000;

/// A clock that runs.
#[derive(Debug)]
pub(crate) struct Timekeeper {
    pub(crate) core: ClockCore,
    pub(crate) ports: Vec<ClockPort>,
    pub(crate) config: ClockConfig,
    oscillator: Oscillator,
    converter: StampConverter,
    page: ClockPageWriter,
    pub(crate) page_path: PathBuf,
    netlink: Netlink,
    arrivals: Vec<(usize, PortArrival)>,
    departures: Vec<(usize, PortDeparture)>,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC_RAW at the last turn.
    boot_ahead: i64,
    /// Term and epoch that the page shows.
    published: (SyncTerm, SyncEpoch),
    reports: ClockReports,
    /// Discipline of the system's clock; `None` if that clock is left alone.
    pub(crate) discipline: Option<ClockDiscipline>,
    pub(crate) clock: Clock,
}

fn boot_ahead() -> i64 {
    let raw = KernelClock::Raw.nanoseconds();
    KernelClock::Boot.nanoseconds().wrapping_sub(raw) as i64
}

/// The links of a clock, with a seal of its own for each if there is a key.
fn ports_of(config: &ClockConfig, key: Option<SealKey>) -> Result<Vec<ClockPort>, DaemonEnd> {
    let port = |link: &ClockLink| {
        let life = || random().map_err(|error| DaemonEnd::Trouble(format!("random numbers for --key: {error}")));
        let key = key.map(|key| life().map(|life| (key, life))).transpose()?;
        let interval = Span::from_ns(config.params.interval.as_ps());
        Ok(ClockPort::new(link.clone(), WaveSeal::new(key, &config.duties.node, &link.neighbour, interval)))
    };
    config.links.iter().map(port).collect()
}

/// The first of the neighbours that no link leads to.
fn unreached<'a>(duties: &ClockDuties, names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    duties.neighbours().into_iter().find(|neighbour| names.clone().all(|name| name != neighbour))
}

impl Timekeeper {
    /// Opens the clock in the network namespace of the calling thread. Every interface must exist.
    pub(crate) fn open(config: ClockConfig, key: Option<SealKey>, page: &Path) -> Result<Self, DaemonEnd> {
        let trouble = |error: &dyn std::fmt::Display| DaemonEnd::Trouble(error.to_string());
        let in_words = |what: &str, error: &dyn std::fmt::Display| DaemonEnd::Trouble(format!("{what}: {error}"));
        let ports = ports_of(&config, key)?;
        let netlink = Netlink::open().map_err(|error| trouble(&error))?;
        for link in &config.links {
            netlink.existing_link(&link.interface).map_err(|error| trouble(&error))?;
        }
        let names: Vec<String> = config.links.iter().map(|link| link.neighbour.clone()).collect();
        if let Some(missing) = unreached(&config.duties, names.iter().map(String::as_str)) {
            return Err(DaemonEnd::Trouble(format!("no interface leads to '{missing}'; say --link {missing}=IFACE")));
        }
        if config.sets_system_clock {
            system_clock_is_free().map_err(|error| in_words("--set-system-clock", &error))?;
        }
        let discipline = config.sets_system_clock.then(ClockDiscipline::default);
        let oscillator = Oscillator::start(config.oscillator_ppb);
        let core = ClockCore::new(config.params, config.duties.clone(), &names, instance(), oscillator.now());
        let core = core.map_err(|error| trouble(&error))?;
        let page_path = page.to_owned();
        let page = ClockPageWriter::create(page).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => DaemonEnd::Arguments(format!("--page {}: {error}", page.display())),
            _ => in_words(&page.display().to_string(), &error),
        })?;
        Ok(Self {
            core,
            ports,
            config,
            oscillator,
            converter: StampConverter::default(),
            page,
            page_path,
            netlink,
            arrivals: Vec::new(),
            departures: Vec::new(),
            boot_ahead: boot_ahead(),
            published: Default::default(),
            reports: ClockReports::default(),
            discipline,
            clock: Clock::start(),
        })
    }

    /// Keeps the time until asked to stop, and returns the last status. `tell` hears what happens, a line each.
    pub(crate) fn run(
        &mut self,
        requests: &mut MailboxReader<ClockRequest>,
        tell: &mut dyn FnMut(&str),
    ) -> io::Result<ClockStatus> {
        loop {
            self.open_ports(tell)?;
            self.turn();
            self.adjust_system_clock(tell);
            self.reports.tell_news(self.clock.now(), &mut self.core, tell);
            if self.answer(requests) {
                return Ok(self.status());
            }
            self.sleep(requests)?;
        }
    }

    /// Lets the system's clock follow, if it is to. A root has nobody to follow, unless it was not one from the start.
    fn adjust_system_clock(&mut self, tell: &mut dyn FnMut(&str)) {
        let is_root = self.state() == ClockState::Root;
        let Some(discipline) = self.discipline.as_mut().filter(|_| !is_root) else { return };
        let now_ns = self.oscillator.now();
        let Some(interval) = self.core.interval(now_ns) else { return };
        let adjusted = match discipline.adjust(now_ns, interval, KernelClock::Real.nanoseconds()) {
            None => return,
            Some(ClockAdjustment::Step(by_ns)) => {
                let line = format!("the system's clock is set by {:.3} ms", by_ns as f64 / 1e6);
                self.reports.tell(self.clock.now(), ClockTopic::SystemClock, 1, &line, tell);
                set_system_clock(by_ns)
            }
            Some(ClockAdjustment::Steer { ppb, max_error_ns }) => steer_system_clock(ppb, max_error_ns),
        };
        if let Err(error) = adjusted {
            tell(&format!("the system's clock cannot be adjusted, and is left alone from now on: {error}"));
            self.discipline = None;
        }
    }

    fn open_ports(&mut self, tell: &mut dyn FnMut(&str)) -> io::Result<()> {
        let raw_ns = KernelClock::Raw.nanoseconds();
        for (number, port) in self.ports.iter_mut().enumerate() {
            if let Some(line) = port.open(&self.netlink, raw_ns)? {
                let topic = ClockTopic::Link(number, LinkTopic::Passing);
                self.reports.tell(self.clock.now(), topic, 1, &line, tell);
            }
        }
        Ok(())
    }

    /// All that can be done now.
    fn turn(&mut self) {
        self.look_at_suspension();
        let now = self.clock.now();
        let Self { ports, arrivals, .. } = self;
        for (number, port) in ports.iter_mut().enumerate() {
            port.seal.set_time(now);
            port.receive(|arrival| arrivals.push((number, arrival)));
        }
        self.hand_over_departures();
        let now_ns = self.oscillator.now();
        for (port, PortArrival { frame, stamp, raw_ns }) in self.arrivals.drain(..) {
            match frame {
                Err(refusal) => {
                    *self.core.counters.of_refusal(refusal) += 1;
                    self.reports.note_refusal(port, refusal);
                }
                Ok(frame) => {
                    let arrived_ns = self.oscillator.at(self.converter.received(stamp, raw_ns)) + 1;
                    self.core.on_frame(port, &frame, arrived_ns, now_ns);
                }
            }
        }
        self.greet(now, now_ns);
        self.core.settle(now_ns);
        if self.core.deadline_ns(now_ns) <= now_ns {
            self.core.on_time(now_ns);
        }
        // Nobody names a root, or a plan, that its own page does not show yet.
        if self.published != self.shown() {
            self.publish();
        }
        let mut has_sent = false;
        while let Some((port, frame)) = self.core.next_frame(self.oscillator.now()) {
            self.ports[port].send(&frame);
            has_sent = true;
        }
        if has_sent {
            self.hand_over_departures();
        }
        self.publish();
    }

    /// Lets the ends of each link agree on a session, if there is a key. Meanwhile a root that begins hears nobody.
    fn greet(&mut self, now: Time, now_ns: u64) {
        self.ports.iter_mut().filter(|port| port.is_open()).for_each(|port| port.greet(now));
        let is_soon = |port: &ClockPort| port.is_open() && port.seal.readiness() == SealReadiness::Soon;
        if self.ports.iter().any(is_soon) {
            self.core.listen_longer(now_ns);
        }
    }

    /// Hands over the kernel's time stamps of frames that were sent, with a reading of both clocks after it.
    fn hand_over_departures(&mut self) {
        let Self { ports, departures, .. } = self;
        for (number, port) in ports.iter_mut().enumerate() {
            port.departures(|departure| departures.push((number, departure)));
        }
        self.converter.add(ClockPair::read());
        let now_ns = self.oscillator.now();
        for (port, PortDeparture { number, stamp, raw_ns }) in self.departures.drain(..) {
            let left_ns = self.oscillator.at(self.converter.sent(stamp, raw_ns));
            self.core.on_departure(port, number, left_ns, now_ns);
        }
    }

    /// Accounts for a suspension of the machine, during which its oscillator stands still.
    fn look_at_suspension(&mut self) {
        let ahead = boot_ahead();
        if ahead.saturating_sub(self.boot_ahead) > SUSPENDED_NS as i64 {
            self.core.on_clock_step(self.oscillator.now());
        }
        self.boot_ahead = ahead;
    }

    pub(crate) fn state(&self) -> ClockState {
        match self.core.node().state() {
            NodeState::Evicted => ClockState::Evicted,
            _ if self.interval().is_none() => ClockState::Unsynchronized,
            NodeState::Root if self.core.epoch().elected => ClockState::Elected,
            NodeState::Root => ClockState::Root,
            NodeState::Following => ClockState::Following,
            NodeState::Turned => ClockState::Turned,
        }
    }

    /// The time is between these.
    pub(crate) fn interval(&self) -> Option<(u64, u64)> {
        self.core.interval(self.oscillator.now())
    }

    /// Nanoseconds on the oscillator since a message was believed.
    pub(crate) fn heard_ns_ago(&self) -> Option<u64> {
        self.core.heard_ns().map(|heard| self.oscillator.now().saturating_sub(heard))
    }

    /// Current term and epoch, which no frame may name before the page shows them.
    fn shown(&self) -> (SyncTerm, SyncEpoch) {
        (self.core.node().term(), self.core.epoch())
    }

    fn publish(&mut self) {
        self.published = self.shown();
        let boot_ns = KernelClock::Boot.nanoseconds();
        let raw_ns = KernelClock::Raw.nanoseconds();
        let local_ns = self.oscillator.at(raw_ns);
        let (earliest_ns, latest_ns) = self.core.interval(local_ns).unwrap_or_default();
        let heard_ago = self.core.heard_ns().map_or(0, |heard| local_ns.saturating_sub(heard));
        let node = self.core.node();
        self.page.publish(&ClockPageEntry {
            raw_ns,
            boot_ns,
            earliest_ns,
            latest_ns,
            drift_q32: self.config.params.drift.over(Span::from_ps(1 << 32)).as_ps(),
            oscillator_q32: self.oscillator.faster_q32,
            state: self.state(),
            depth: node.depth().into(),
            epoch: self.core.epoch().plan.into(),
            elected: self.core.epoch().elected,
            handover_ns: node.handover().as_ps(),
            heard_ns: raw_ns.saturating_sub(heard_ago),
            term: u64::from(node.term().number) << 32 | u64::from(node.term().root),
            line: node.line().into(),
        });
    }

    /// Answers what is asked. True if the loop is to end.
    fn answer(&mut self, requests: &MailboxReader<ClockRequest>) -> bool {
        let mut stop = false;
        while let Some(request) = requests.next() {
            match request {
                // The process that asked may have gone away since.
                ClockRequest::Status(answer) => drop(answer.send(self.status())),
                ClockRequest::Plan(duties, answer) => drop(answer.send(self.change_plan(*duties))),
                ClockRequest::Stop => stop = true,
            }
        }
        stop
    }

    fn change_plan(&mut self, duties: ClockDuties) -> Result<(), String> {
        // Before anything is changed.
        duties.check(&self.core.duties.node).map_err(|error| error.to_string())?;
        if let Some(missing) = unreached(&duties, self.ports.iter().map(|port| port.link.neighbour.as_str())) {
            return Err(format!("no interface leads to '{missing}'"));
        }
        self.core.on_plan(duties, self.oscillator.now()).map_err(|error| error.to_string())
    }

    fn status(&self) -> ClockStatus {
        ClockStatus::of(self)
    }

    /// Time until an end of a link has something to say before there is a session.
    fn greets_in_ns(&self) -> u64 {
        let now = self.clock.now();
        let greets = self.ports.iter().filter(|port| port.is_open()).map(|port| port.seal.greets_at()).min();
        greets.map_or(u64::MAX, |at| at.as_ps().saturating_sub(now.as_ps()) / 1_000)
    }

    /// Removes the page.
    pub(crate) fn end(self) {
        self.page.remove(&self.page_path);
    }

    fn sleep(&mut self, requests: &mut MailboxReader<ClockRequest>) -> io::Result<()> {
        let now_ns = self.oscillator.now();
        let wait = self.core.deadline_ns(now_ns).saturating_sub(now_ns).min(LONGEST_SLEEP_NS);
        let wait = wait.min(self.greets_in_ns());
        let open: Vec<usize> = (0..self.ports.len()).filter(|port| self.ports[*port].is_open()).collect();
        let wait = if open.len() < self.ports.len() { wait.min(1_000_000) } else { wait };
        let own = [(requests.fd(), false)].into_iter();
        let fds: Vec<_> = own.chain(open.iter().filter_map(|port| Some((self.ports[*port].fd()?, false)))).collect();
        let ready = poll::wait_for_any(&fds, Duration::from_nanos(wait))?;
        if ready[0] != Readiness::Nothing {
            requests.awake();
        }
        for (port, ready) in open.into_iter().zip(&ready[1..]) {
            // Stamps of frames that were sent are reported so as well.
            if *ready == Readiness::Failed {
                self.ports[port].check();
            }
        }
        Ok(())
    }
}

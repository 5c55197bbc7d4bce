//! A monitor in a room: ports whose counters the test moves, links that write down what they are asked, a bus that can
//! be away. Threads and time are real; what is waited for is waited for generously.

#![allow(dead_code, reason = "not every test that includes this needs all of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::daemon::RunDirectory;
use bus::{Bus, BusError, LocalBus, PublishResult};
use bus::{Condition, Message, PortState};
use monitor::act::{DaemonInfo, Executor};
use monitor::config::{MonitorConfig, MonitorOptions};
use monitor::daemon::{self, MonitorControl, MonitorParts, SystemClock};
use monitor::journal::Journal;
use monitor::metrics::MonitorMetrics;
use monitor::source::Source;
use monitor::{CarrierState, Phy, Reading, ReceivedFrames};
use units::{Moment, Prob};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Generous, since the machine may be busy.
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited half a minute for {what}");
}

/// Long enough for a dozen polls and for everybody to have heard of them.
pub(crate) fn a_while() {
    std::thread::sleep(Duration::from_millis(300));
}

/// A port's counters, which move by so much with every poll.
#[derive(Clone, Copy, Debug)]
struct Counting {
    all: u64,
    bad: u64,
    bad_each: u64,
    carrier: CarrierState,
}

/// Ports as the test wants them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports {
    counting: Arc<Mutex<BTreeMap<String, Counting>>>,
    polls: Arc<Mutex<u64>>,
    broken: Arc<AtomicBool>,
}

impl Ports {
    /// From now on a port gets 10,000 frames with every poll, `bad_each` of them bad.
    pub(crate) fn receive(&self, port: &str, bad_each: u64) {
        let mut counting = lock(&self.counting);
        let entry = counting.entry(port.to_owned());
        entry.or_insert(Counting { all: 0, bad: 0, bad_each, carrier: CarrierState::Up }).bad_each = bad_each;
    }

    pub(crate) fn switch(&self, port: &str, carrier: CarrierState) {
        lock(&self.counting).get_mut(port).unwrap().carrier = carrier;
    }

    pub(crate) fn break_down(&self, broken: bool) {
        self.broken.store(broken, Ordering::Relaxed);
    }

    pub(crate) fn polls(&self) -> u64 {
        *lock(&self.polls)
    }
}

impl Source for Ports {
    fn name(&self) -> &str {
        "ports"
    }

    fn read(&mut self, now: Moment, readings: &mut Vec<Reading>, _troubles: &mut Vec<String>) -> io::Result<()> {
        *lock(&self.polls) += 1;
        if self.broken.load(Ordering::Relaxed) {
            return Err(io::Error::other("the driver is being reloaded"));
        }
        for (port, counting) in lock(&self.counting).iter_mut() {
            counting.all += 10_000;
            counting.bad += counting.bad_each;
            let frames = Some(ReceivedFrames { all: counting.all, bad: counting.bad, bits: 64 });
            let (port, carrier) = (port.clone(), counting.carrier);
            readings.push(Reading { port, identity: 0, at: now, carrier, frames, phy: Phy::default() });
        }
        Ok(())
    }
}

/// Links of a host, and what was asked of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    /// By port.
    daemons: Arc<Mutex<BTreeMap<String, DaemonInfo>>>,
    asked: Arc<Mutex<Vec<String>>>,
    routes: Arc<Mutex<BTreeSet<String>>>,
}

impl Links {
    pub(crate) fn with(port: &str, link: &str) -> Self {
        let links = Self::default();
        let daemon = DaemonInfo { link: link.to_owned(), pid: 7, wanted: false, copies: 2 };
        lock(&links.daemons).insert(port.to_owned(), daemon);
        links
    }

    pub(crate) fn is_protected(&self, port: &str) -> bool {
        lock(&self.daemons)[port].wanted
    }

    /// Protects a port, or ends that, as a person would.
    pub(crate) fn set_protected(&self, port: &str, wanted: bool) {
        lock(&self.daemons).get_mut(port).unwrap().wanted = wanted;
    }

    pub(crate) fn has_default_route(&self, port: &str) {
        lock(&self.routes).insert(port.to_owned());
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }

    fn ask(&self, link: &str, wanted: bool) -> Result<(), String> {
        let mut daemons = lock(&self.daemons);
        daemons.values_mut().find(|daemon| daemon.link == link).ok_or("no such link")?.wanted = wanted;
        lock(&self.asked).push(format!("{} {link}", if wanted { "protect" } else { "unprotect" }));
        Ok(())
    }
}

impl Executor for Links {
    fn daemon(&mut self, port: &str, link: Option<&str>) -> Result<Option<DaemonInfo>, String> {
        let daemons = lock(&self.daemons);
        Ok(match link {
            Some(link) => daemons.values().find(|daemon| daemon.link == link).cloned(),
            None => daemons.get(port).cloned(),
        })
    }

    fn protect(&mut self, link: &str, _loss: Prob) -> Result<(), String> {
        self.ask(link, true)
    }

    fn unprotect(&mut self, link: &str) -> Result<(), String> {
        self.ask(link, false)
    }

    fn switch(&mut self, port: &str, on: bool) -> Result<(), String> {
        lock(&self.asked).push(format!("{port} {}", if on { "on" } else { "off" }));
        Ok(())
    }

    fn default_routes(&mut self) -> Result<BTreeSet<String>, String> {
        Ok(lock(&self.routes).clone())
    }
}

/// A bus that answers, fails, or does not return for long.
#[derive(Debug)]
pub(crate) struct Moody {
    inner: LocalBus,
    mood: Arc<Mutex<Mood>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    Down,
    /// A caller that listens waits, regardless of its timeout.
    Hangs,
}

impl Moody {
    pub(crate) fn new() -> Self {
        Self { inner: LocalBus::new(), mood: Arc::new(Mutex::new(Mood::Fine)) }
    }

    pub(crate) fn be(&self, mood: Mood) {
        *lock(&self.mood) = mood;
    }

    pub(crate) fn end(&self) -> Box<dyn Bus> {
        Box::new(Self { inner: self.inner.another(), mood: Arc::clone(&self.mood) })
    }

    /// State of a port on the bus, in any mood.
    pub(crate) fn state(&self, id: &str) -> Option<PortState> {
        let mut end = self.inner.another();
        match end.latest(&[format!("port:{id}")]).unwrap().pop().flatten() {
            Some(Message::Port(state)) => Some(state),
            _ => None,
        }
    }

    pub(crate) fn condition(&self, id: &str) -> Option<Condition> {
        self.state(id).map(|state| state.condition)
    }

    pub(crate) fn say(&self, message: &Message) {
        self.inner.another().publish(message).unwrap();
    }

    fn check(&self) -> Result<(), BusError> {
        match *lock(&self.mood) {
            Mood::Fine | Mood::Hangs => Ok(()),
            Mood::Down => Err(BusError::Down("the bus is away".to_owned())),
        }
    }
}

impl Bus for Moody {
    fn publish(&mut self, message: &Message) -> Result<PublishResult, BusError> {
        self.check()?;
        self.inner.publish(message)
    }

    fn catch_up(&mut self) -> Result<Vec<Message>, BusError> {
        self.check()?;
        self.inner.catch_up()
    }

    fn receive(&mut self, patience: Duration) -> Result<Vec<Message>, BusError> {
        while *lock(&self.mood) == Mood::Hangs {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.check()?;
        self.inner.receive(patience)
    }

    fn latest(&mut self, keys: &[String]) -> Result<Vec<Option<Message>>, BusError> {
        self.check()?;
        self.inner.latest(keys)
    }

    fn recall(&mut self, host: &str) -> Result<Vec<PortState>, BusError> {
        self.check()?;
        self.inner.recall(host)
    }

    fn heartbeat(&mut self, host: &str, interval: Duration) -> Result<(), BusError> {
        self.check()?;
        self.inner.heartbeat(host, interval)
    }

    fn hosts(&mut self) -> Result<Vec<String>, BusError> {
        self.check()?;
        self.inner.hosts()
    }

    fn foreign(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn gaps(&mut self) -> Vec<String> {
        self.inner.gaps()
    }

    fn another(&self) -> Box<dyn Bus> {
        self.end()
    }
}

/// Written text, where the test can read it.
#[derive(Clone, Debug, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A host with a monitor on it, again and again. Its folder goes with it.
#[derive(Debug)]
pub(crate) struct Host {
    pub ports: Ports,
    pub links: Links,
    pub folder: PathBuf,
    config: String,
    paper: Paper,
    said: Mutex<Vec<String>>,
}

/// A running monitor.
#[derive(Debug)]
pub(crate) struct Running {
    pub metrics: SocketAddr,
}

impl Running {
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

impl Host {
    /// A monitor that polls fifty times a second, and is sure after a second's worth of that.
    pub(crate) fn new(name: &str, config: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hitless-host-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = format!("host = \"{name}\"\ninterval = \"20ms\"\nquiet = \"200ms\"\n{config}");
        let (ports, links) = (Ports::default(), Links::with("eth1", "hit0"));
        Self { ports, links, folder, config, paper: Paper::default(), said: Mutex::default() }
    }

    pub(crate) fn directory(&self) -> RunDirectory {
        RunDirectory::at(&self.folder)
    }

    pub(crate) fn config(&self) -> MonitorConfig {
        let options = MonitorOptions::parse(&self.config).unwrap_or_else(|(line, why)| panic!("line {line}: {why}"));
        options.check(MonitorConfig::new("nobody", Path::new(&self.folder))).unwrap()
    }

    /// Runs one incarnation of the monitor, for as long as the story takes.
    pub(crate) fn run(&self, bus: Box<dyn Bus>, story: impl FnOnce(&Running)) -> MonitorMetrics {
        let metrics = linux::metrics::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = TcpListener::local_addr(&metrics).unwrap();
        let parts = MonitorParts {
            config: self.config(),
            sources: vec![Box::new(self.ports.clone())],
            bus,
            executor: Box::new(self.links.clone()),
            journal: Journal::to(self.paper.clone()),
            metrics: Some(metrics),
            control: Some(MonitorControl::bind(&self.directory()).unwrap()),
        };
        let (stop, stopper) = io::pipe().unwrap();
        let clock = SystemClock::start();
        let tell = |line: &str| lock(&self.said).push(line.to_owned());
        std::thread::scope(|scope| {
            let monitor = scope.spawn(|| daemon::run(parts, &clock, &stop, &tell));
            // Also if the story fails: the monitor would run for ever otherwise.
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story(&Running { metrics: address })));
            drop(stopper);
            let board = monitor.join().unwrap().unwrap();
            told.unwrap_or_else(|payload| std::panic::resume_unwind(payload));
            board
        })
    }

    /// Entries of the journal: `protect done`, in order, without those about states and health.
    pub(crate) fn deeds(&self) -> Vec<String> {
        self.journal()
            .iter()
            .filter(|entry| entry["deed"] != "state" && entry["deed"] != "health")
            .map(|entry| format!("{} {}", entry["deed"].as_str().unwrap(), entry["outcome"].as_str().unwrap()))
            .collect()
    }

    pub(crate) fn journal(&self) -> Vec<serde_json::Value> {
        let text = String::from_utf8(lock(&self.paper.0).clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn said(&self, what: &str) -> bool {
        lock(&self.said).iter().any(|line| line.contains(what))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

//! A thousand hosts on one Redis that is killed in the middle: no event is lost, and the state converges.

#![expect(clippy::print_stderr, reason = "a test says what it measured")]

#[path = "../../../base/bus/tests/bus_words/mod.rs"]
mod bus_words;
#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bus::Message;
use bus::outbox::OutboxSettings;
use bus::{Bus, Outbox, OutboxStatus, RedisBus};
use bus_words::{clock, corrupting, healthy, now};
use redis_server::{Keeps, RedisServer};
use units::{Moment, StopFlag};

const HOSTS: usize = 1_000;
/// Files that are open at the same time: connections, and what else a process has.
const NEEDED: usize = HOSTS + 200;
const THREADS: usize = 16;
const ROUNDS: usize = 3;
/// Far more than it takes, for machines that have other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
struct Stage {
    /// Last round in which hosts may publish.
    round: AtomicUsize,
    published: AtomicU64,
    over: StopFlag,
    /// The test has failed; there is nothing to wait for.
    failed: AtomicBool,
}

/// Tells the threads that it is over, also if that is because the test failed.
struct Curtain<'a>(&'a Stage);

impl Drop for Curtain<'_> {
    fn drop(&mut self) {
        self.0.failed.store(thread::panicking(), Ordering::Relaxed);
        self.0.over.stop();
    }
}

#[derive(Debug)]
struct Host {
    name: String,
    outbox: Outbox,
    round: usize,
    next: Moment,
}

/// Messages of a host in a round: one port goes bad and recovers, the other changes once.
fn says(host: &str, round: usize) -> [Message; 3] {
    let number = round as u64 * 3;
    [corrupting(host, "eth0", 1, number), corrupting(host, "eth1", 1, number + 1), healthy(host, "eth0", 1, number + 2)]
}

fn name(host: usize) -> String {
    format!("leaf{host}")
}

impl Host {
    fn new(url: &str, host: usize) -> Self {
        let settings = OutboxSettings { check: Duration::from_secs(1), ..OutboxSettings::default() };
        let mut outbox = Outbox::with_settings(Box::new(RedisBus::open(url).unwrap()), settings);
        outbox.alive(name(host), Duration::from_secs(5));
        Self { name: name(host), outbox, round: 0, next: Moment::ZERO }
    }

    fn act(&mut self, stage: &Stage) {
        if self.round < stage.round.load(Ordering::Relaxed) {
            self.round += 1;
            says(&self.name, self.round).into_iter().for_each(|message| self.outbox.put(message));
            self.next = Moment::ZERO;
        }
        if now() >= self.next {
            let before = self.outbox.status().published;
            self.next = self.outbox.step(now());
            stage.published.fetch_add(self.outbox.status().published - before, Ordering::Relaxed);
        }
    }

    fn is_done(&self) -> bool {
        self.outbox.status().waiting == 0 && self.outbox.degraded().is_none()
    }
}

/// Runs one thread's share of the hosts, until the test is over and all has been published.
fn work(url: &str, share: std::ops::Range<usize>, stage: &Stage) -> Vec<OutboxStatus> {
    let mut hosts: Vec<Host> = share.map(|host| Host::new(url, host)).collect();
    let is_over = || stage.over.is_stopped();
    while !(is_over() && (stage.failed.load(Ordering::Relaxed) || hosts.iter().all(Host::is_done))) {
        hosts.iter_mut().for_each(|host| host.act(stage));
        thread::sleep(Duration::from_millis(5));
    }
    hosts.iter().map(|host| host.outbox.status()).collect()
}

/// Listens until everything that was ever said was heard.
fn listen(mut bus: RedisBus, mut missing: BTreeSet<(String, (u64, u64))>) -> (Vec<String>, usize) {
    let (start, mut repeated) = (clock(), 0);
    while !missing.is_empty() {
        assert!(start.elapsed() < PATIENCE, "{} messages are missing: {:?}", missing.len(), missing.first());
        // Redis is away for a while, which `receive` waits out by itself.
        for message in bus.receive(Duration::from_millis(200)).unwrap_or_default() {
            repeated += usize::from(!missing.remove(&(message.key(), message.version())));
        }
    }
    (bus.gaps(), repeated)
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = clock();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "still waiting for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A connection is a file; many systems allow a process 1,024 of them unless it asks for more. False, and the test is
/// skipped, where it may not have as many as it needs.
fn has_descriptors() -> bool {
    // The current limit and the highest that may be requested.
    let limits = || {
        let limits = fs::read_to_string("/proc/self/limits").unwrap();
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        let mut numbers = files.split_whitespace().map(|number| number.parse().unwrap_or(usize::MAX));
        [numbers.next().unwrap(), numbers.next().unwrap()]
    };
    let [soft, hard] = limits();
    if soft >= NEEDED {
        return true;
    }
    if hard < NEEDED {
        testkit::skip(format!("only {hard} files may be open, {NEEDED} are needed"));
        return false;
    }
    if !testkit::installed("prlimit") {
        return false;
    }
    let arguments = [format!("--pid={}", std::process::id()), format!("--nofile={}:", hard.min(2 * HOSTS))];
    assert!(Command::new("prlimit").args(arguments).status().unwrap().success());
    assert!(limits()[0] >= NEEDED);
    true
}

fn a_thousand_hosts(keeps: Keeps) {
    // One thousand at a time is enough for a small machine, and for what files it may open.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !has_descriptors() {
        return;
    }
    let Some(mut server) = RedisServer::start(keeps) else { return };
    let (stage, url, start) = (Stage::default(), server.url(), clock());
    let everything = (0..HOSTS).flat_map(|host| (1..=ROUNDS).flat_map(move |round| says(&name(host), round)));
    let everything: BTreeSet<_> = everything.map(|message| (message.key(), message.version())).collect();
    let all = everything.len() as u64;
    let mut hears = RedisBus::open(&url).unwrap();
    hears.catch_up().unwrap();

    let (statuses, (gaps, repeated)) = thread::scope(|scope| {
        let share = |thread: usize| thread * HOSTS / THREADS..(thread + 1) * HOSTS / THREADS;
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let (url, stage) = (&url, &stage);
                    move || work(url, share(thread), stage)
                })
            })
            .collect();
        let listener = scope.spawn(|| listen(hears, everything));
        let curtain = Curtain(&stage);
        stage.round.store(1, Ordering::Relaxed);
        wait_for("the middle of the first round", || stage.published.load(Ordering::Relaxed) > all / 6);
        server.kill();
        stage.round.store(2, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(300));
        server.start_again();
        stage.round.store(3, Ordering::Relaxed);
        let heard = listener.join().unwrap();
        drop(curtain);
        let statuses: Vec<OutboxStatus> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
        (statuses, heard)
    });

    let sum = |of: fn(&OutboxStatus) -> u64| statuses.iter().map(of).sum::<u64>();
    let (published, republished) = (sum(|status| status.published), sum(|status| status.republished));
    eprintln!(
        "{keeps:?} kept: {published} published, {republished} again, {} failed attempts, {repeated} heard twice, {:?}",
        sum(|status| status.failed_attempts),
        start.elapsed()
    );
    assert_eq!((published, sum(|status| status.coalesced), sum(|status| status.outdated)), (all, 0, 0));
    assert!(sum(|status| status.failed_attempts) > 0, "nobody noticed that Redis was away");
    let mut late = RedisBus::open(&url).unwrap();
    let last: Vec<Message> = (0..HOSTS).flat_map(|host| says(&name(host), ROUNDS).into_iter().skip(1)).collect();
    let keys: Vec<String> = last.iter().map(Message::key).collect();
    assert_eq!(late.latest(&keys).unwrap(), last.into_iter().map(Some).collect::<Vec<_>>());
    assert_eq!(late.catch_up().unwrap().len(), 2 * HOSTS);
    match keeps {
        Keeps::Everything => {
            assert_eq!((gaps, republished), (Vec::new(), 0));
            assert_eq!(server.ask(&["XLEN", "hitless:events"]), format!(":{all}"), "each event once");
        }
        Keeps::Nothing => {
            assert!(!gaps.is_empty() && republished > 0, "what Redis forgot was put back, and the subscriber noticed");
        }
    }
}

#[test]
fn a_thousand_hosts_lose_nothing_to_a_redis_that_restarts() {
    a_thousand_hosts(Keeps::Everything);
}

#[test]
fn a_thousand_hosts_lose_nothing_to_a_redis_that_restarts_without_its_data() {
    a_thousand_hosts(Keeps::Nothing);
}

//! A collector on the bus: it announces itself, tells its meters of the others, publishes what it found, and leaves in order.
//!
//! ```text
//!   claim ──▶ announced, from 1.5 s later on ──▶ takes segments ──leave──▶ until 1.5 s later ──▶ gone
//!                     ▲                               │ this process stood still
//!                     └───────── another run ◀────────┘
//! ```
//!
//! A collector that stood still was given up by its meters, so it begins anew, as one that joins. While Redis is away,
//! nothing changes: meters hear from the collector itself.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bus::BusError;
use bus::collectors::{Announcement, LatestFinding, in_order};
use bus::key::{OrderKey, nonce};
use linux::clock::{Clock, time_of_day};
use units::StopFlag;

use super::RedisCollectorAddress;
use super::queue::CollectorWords;
use super::redis::CollectorBoard;

/// Intervals of announcements, of looks at those of others, and of findings.
const ANNOUNCE_EVERY: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
const SAY_EVERY: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);
/// Life of an announcement that is not repeated.
const EXPIRES_MS: u64 = 2_000;
/// A planned change is announced so long before.
const AHEAD_MS: u64 = 1_500;
/// A process that did nothing for so long was stopped.
const STOOD_STILL: Duration = Duration::from_millis(1_500);
/// Longest wait for the announcement of an earlier run to expire.
const CLAIM_WITHIN: Duration = Duration::from_secs(5);

/// A collector's name and address.
#[derive(Clone, Debug)]
pub struct CollectorIdentity {
    pub name: String,
    /// Address that meters can reach.
    pub address: String,
    /// Batches that a packet may be on its way.
    pub patience: u64,
}

/// Reason why a collector cannot announce itself.
#[derive(Debug)]
pub enum AnnounceError {
    /// Another one has the name; its address.
    Taken {
        name: String,
        address: String,
    },
    Bus(BusError),
}

impl fmt::Display for AnnounceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { name, address } => {
                write!(f, "a collector at {address} announces itself as {name} already: give each its own --name")
            }
            Self::Bus(error) => error.fmt(f),
        }
    }
}

/// A collector's part on the bus; `run` on a thread of its own.
#[derive(Debug)]
pub struct Announcer {
    place: RedisCollectorAddress,
    key: Option<OrderKey>,
    identity: CollectorIdentity,
    state: Mutex<AnnouncerState>,
    ended: StopFlag,
}

#[derive(Debug)]
struct AnnouncerState {
    incarnation: u64,
    from_ms: u64,
    until_ms: Option<u64>,
    /// The text that is on the bus as far as we know.
    announced: String,
    /// Others are there that can take segments.
    has_heirs: bool,
    /// Collectors of which meters were last told, and the time of that.
    said: (Vec<Announcement>, Duration),
    /// Another collector has taken the name.
    is_displaced: bool,
    findings: Vec<LatestFinding>,
}

impl Announcer {
    pub fn new(place: RedisCollectorAddress, key: Option<OrderKey>, identity: CollectorIdentity) -> Self {
        let state = AnnouncerState {
            incarnation: number(),
            from_ms: 0,
            until_ms: None,
            announced: String::new(),
            has_heirs: false,
            said: (Vec::new(), Duration::ZERO),
            is_displaced: false,
            findings: Vec::new(),
        };
        Self { place, key, identity, state: Mutex::new(state), ended: StopFlag::new() }
    }

    pub fn name(&self) -> &str {
        &self.identity.name
    }

    fn lock(&self) -> MutexGuard<'_, AnnouncerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces this collector for the first time. Waits for the announcement of an earlier run to expire; one that
    /// is said again belongs to another collector of that name.
    pub fn claim(&self) -> Result<(), AnnounceError> {
        let mut board = CollectorBoard::new(self.place.0.clone());
        let clock = Clock::start();
        loop {
            self.lock().from_ms = now_ms() + AHEAD_MS;
            match self.announce(&mut board).map_err(AnnounceError::Bus)? {
                None => return Ok(()),
                Some(other) if clock.elapsed() >= CLAIM_WITHIN => {
                    return Err(AnnounceError::Taken { name: other.name, address: other.address });
                }
                Some(_) => thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Says that this collector is there. The announcement of another one of its name, if that holds.
    fn announce(&self, board: &mut CollectorBoard) -> Result<Option<Announcement>, BusError> {
        let now = now_ms();
        let text = self.announcement(now).to_text(self.key.as_ref());
        let mut believed = self.lock().announced.clone();
        // Twice: what is there may have expired, or be nothing of ours.
        for _ in 0..2 {
            let Some(there) = board.announce(&self.identity.name, &believed, &text)? else {
                self.lock().announced = text;
                return Ok(None);
            };
            let other = Announcement::parse(&there, self.key.as_ref()).ok();
            let ours = self.lock().incarnation;
            if let Some(other) = other.filter(|other| now <= other.expires_ms && other.incarnation != ours) {
                return Ok(Some(other));
            }
            believed = there;
        }
        Ok(None)
    }

    fn announcement(&self, now_ms: u64) -> Announcement {
        let CollectorIdentity { name, address, patience } = self.identity.clone();
        let state = self.lock();
        let (incarnation, from_ms, until_ms) = (state.incarnation, state.from_ms, state.until_ms);
        Announcement { name, address, incarnation, expires_ms: now_ms + EXPIRES_MS, from_ms, until_ms, patience }
    }

    /// Begins to leave, so that others take over what they need not notice. The time at which this collector is free to go,
    /// if batches last so long.
    pub fn leave(&self, longest_batch: u64) -> Duration {
        let mut state = self.lock();
        if !state.has_heirs {
            return Duration::ZERO;
        }
        state.until_ms = Some(now_ms() + AHEAD_MS);
        let batches = Duration::from_nanos(longest_batch.saturating_mul(self.identity.patience + 2));
        Duration::from_millis(AHEAD_MS + 500) + batches.min(Duration::from_secs(60))
    }

    /// Sets what is published next.
    pub fn publish(&self, findings: Vec<LatestFinding>) {
        self.lock().findings = findings;
    }

    /// True once another collector has this one's name, which it took while this one stood still.
    pub fn is_displaced(&self) -> bool {
        self.lock().is_displaced
    }

    pub fn end(&self) {
        self.ended.stop();
    }

    /// Runs until `end` is called, and takes the announcement back.
    pub fn run(&self, words: &CollectorWords, tell: &(dyn Fn(&str) + Sync)) {
        let mut board = CollectorBoard::new(self.place.0.clone());
        let clock = Clock::start();
        let (mut last, mut problem) = (Duration::ZERO, None);
        let mut next = [Duration::ZERO; 3];
        while !self.ended.is_stopped() {
            let now = clock.elapsed();
            if now.saturating_sub(last) >= STOOD_STILL {
                self.begin_anew();
                tell("this process stood still, and its meters went elsewhere: it joins again");
            }
            last = now;
            let done = self.turn(&mut board, words, now, &mut next);
            // A bus that does not answer is not a process that stood still.
            last = last.max(clock.elapsed());
            match done {
                Err(error) if problem.is_none() => {
                    let why = error.to_string();
                    tell(&format!("{why}; meters that have a collector keep it"));
                    problem = Some(why);
                }
                Ok(()) if problem.is_some() => {
                    problem = None;
                    tell(&format!("{}: connected again", self.place));
                }
                _ => {}
            }
            thread::sleep(TICK);
        }
        let announced = self.lock().announced.clone();
        // An announcement that cannot be taken back expires.
        let _ = board.announce(&self.identity.name, &announced, "");
    }

    fn begin_anew(&self) {
        let mut state = self.lock();
        (state.incarnation, state.from_ms) = (number(), now_ms() + AHEAD_MS);
    }

    fn turn(
        &self,
        board: &mut CollectorBoard,
        words: &CollectorWords,
        now: Duration,
        next: &mut [Duration; 3],
    ) -> Result<(), BusError> {
        let mut is_due = |nth: usize, every: Duration| {
            let is_due = now >= next[nth];
            next[nth] = if is_due { now + every } else { next[nth] };
            is_due
        };
        if is_due(0, ANNOUNCE_EVERY) {
            let other = self.announce(board)?;
            self.lock().is_displaced |= other.is_some();
        }
        if is_due(1, LOOK_EVERY) {
            let now_ms = now_ms();
            let found = board.collectors(self.key.as_ref(), now_ms)?;
            let takes = |other: &&Announcement| other.name != self.identity.name && other.until_ms.is_none();
            self.lock().has_heirs = found.iter().any(|other| takes(&other));
            self.say(&found, words, now);
        }
        if is_due(2, PUBLISH_EVERY) {
            let findings = std::mem::take(&mut self.lock().findings);
            board.publish(&findings, self.key.as_ref())?;
        }
        Ok(())
    }
}

impl Announcer {
    /// Tells the meters who is there: at once if that has changed, and otherwise now and then.
    fn say(&self, found: &[Announcement], words: &CollectorWords, now: Duration) {
        let same_time = |known: &Announcement| Announcement { expires_ms: 0, ..known.clone() };
        let lasting: Vec<Announcement> = found.iter().map(same_time).collect();
        let mut state = self.lock();
        if state.said.0 == lasting && now.saturating_sub(state.said.1) < SAY_EVERY {
            return;
        }
        state.said = (lasting, now);
        let texts: Vec<String> = found.iter().map(|found| found.to_text(self.key.as_ref())).collect();
        words.say(texts.join("\n").into_bytes());
    }
}

/// All that the bus knows of collectors and segments.
#[derive(Debug)]
pub struct CollectorOverview {
    pub collectors: Vec<Announcement>,
    pub findings: Vec<LatestFinding>,
}

impl CollectorOverview {
    pub fn read(place: &RedisCollectorAddress, key: Option<&OrderKey>) -> Result<Self, BusError> {
        let mut board = CollectorBoard::new(place.0.clone());
        let collectors = board.collectors(key, now_ms())?;
        Ok(Self { collectors, findings: board.findings(key)? })
    }

    /// Names of the collectors of a segment: the one that takes it, and its heirs.
    pub fn order(&self, segment: &str) -> Vec<&str> {
        let now = now_ms();
        let takes = |known: &&Announcement| known.takes(now) && now <= known.expires_ms;
        in_order(segment, self.collectors.iter().filter(takes).map(|known| known.name.as_str()))
    }
}

/// Bytes that a server has allocated for all that it holds.
pub fn server_memory(place: &RedisCollectorAddress) -> Result<u64, BusError> {
    CollectorBoard::new(place.0.clone()).memory()
}

fn number() -> u64 {
    let number = |bytes: [u8; 16]| u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 8]));
    nonce().map_or(0, number)
}

fn now_ms() -> u64 {
    time_of_day().as_millis() as u64
}

//! The page that a clock's daemon shares with all programs on its host, and how they read the time from it.
//!
//! ```text
//!   word 0 magic   1 version   2 serial   3 boot   4 time namespace   8…23 slot 0   24…39 slot 1
//! ```
//!
//! The daemon fills the slot that nobody is sent to, then adds one to the serial, which sends readers there: a reader never
//! waits, also if the daemon was stopped or killed while it wrote. A reader that sees another serial after it has copied a slot
//! copies again. `contrib/clock/hitless_clock.h` is the same for C.
//!
//! A slot says which interval contained the time at one reading of CLOCK_MONOTONIC_RAW. Since then the interval has moved on
//! by what has passed, and has become wider by the drift bound, and that is the reader's own arithmetic: the page of a daemon
//! that ended stays true, only less and less precise. While a machine is suspended its oscillator stands still, and the time
//! does not: what CLOCK_BOOTTIME has gained on it is added to the late end.
//!
//! All of that holds for clocks of one boot, seen from one time namespace: see [`origin`]. A page of others is not opened, and where
//! the reader's clocks are behind the page's all the same, there is no time.

mod origin;

use std::io;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use linux::clock::KernelClock;
use linux::shared::SharedPage;
use serde::{Deserialize, Serialize};

use origin::PageOrigin;

/// `HITCLOCK`.
const MAGIC: u64 = u64::from_le_bytes(*b"HITCLOCK");
const VERSION: u64 = 2;
const MAGIC_AT: usize = 0;
const VERSION_AT: usize = 1;
const SERIAL_AT: usize = 2;
const BOOT_AT: usize = 3;
const TIME_NAMESPACE_AT: usize = 4;
const SLOTS_AT: usize = 8;
const SLOT_WORDS: usize = 16;
/// Words of a slot that are in use.
const FIELDS: usize = 14;
/// The daemon writes a thousand times a second; a reader that meets it so often in a row is not looking at a page of ours.
const ATTEMPTS: usize = 1_000;

/// State of a node's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockState {
    /// The clock has heard nothing yet, and does not know the time.
    #[default]
    Unsynchronized,
    /// The clock is the root: its time is the time.
    Root,
    /// The clock listens to its parent.
    Following,
    /// The clock heard nothing from its parent and listens to its backup parent.
    Turned,
    /// The backup root, after it has taken over.
    Elected,
    /// The clock listens to nobody any more: its own clock, or the plan, is not to be trusted.
    Evicted,
}

impl ClockState {
    pub(crate) const ALL: [Self; 6] =
        [Self::Unsynchronized, Self::Root, Self::Following, Self::Turned, Self::Elected, Self::Evicted];

    fn from_word(word: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u64 == word)
    }
}

impl std::fmt::Display for ClockState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unsynchronized => "unsynchronized",
            Self::Root => "root",
            Self::Following => "following",
            Self::Turned => "turned",
            Self::Elected => "elected",
            Self::Evicted => "evicted",
        })
    }
}

/// Contents of the page at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockPageEntry {
    /// CLOCK_MONOTONIC_RAW at which the interval held.
    pub raw_ns: u64,
    /// CLOCK_BOOTTIME, read before it.
    pub boot_ns: u64,
    /// The time was not before this.
    pub earliest_ns: u64,
    /// The time was not after this.
    pub latest_ns: u64,
    /// Growth of the interval on each side, in 2⁻³² of the time that passes on the oscillator.
    pub drift_q32: u64,
    /// Frequency by which the oscillator is faster than CLOCK_MONOTONIC_RAW, in 2⁻³²; other than zero only where drift is
    /// tried out.
    pub oscillator_q32: i64,
    /// State of the clock.
    pub state: ClockState,
    /// Hops to the root.
    pub depth: u64,
    /// Epoch of the plan.
    pub epoch: u64,
    /// True if the time is that of the plan's backup root, which has taken over.
    pub elected: bool,
    /// Upper bound on the distance by which all changes of root so far moved the time.
    pub handover_ns: u64,
    /// CLOCK_MONOTONIC_RAW at the last message that was believed.
    pub heard_ns: u64,
    /// Term of the root: a new number each time that a node becomes the root. Its upper half counts roots.
    pub term: u64,
    /// Roots of one line took the time over from each other.
    pub line: u64,
}

impl ClockPageEntry {
    fn to_words(self) -> [u64; FIELDS] {
        [
            self.raw_ns,
            self.boot_ns,
            self.earliest_ns,
            self.latest_ns,
            self.drift_q32,
            self.oscillator_q32 as u64,
            self.state as u64,
            self.depth,
            self.epoch,
            u64::from(self.elected),
            self.handover_ns,
            self.heard_ns,
            self.term,
            self.line,
        ]
    }

    fn from_words(words: [u64; FIELDS]) -> Option<Self> {
        let [raw_ns, boot_ns, earliest_ns, latest_ns, drift_q32, oscillator, rest @ ..] = words;
        let [state, depth, epoch, elected, handover_ns, heard_ns, term, line] = rest;
        let (state, oscillator_q32) = (ClockState::from_word(state)?, oscillator as i64);
        let interval = Self { raw_ns, boot_ns, earliest_ns, latest_ns, drift_q32, oscillator_q32, ..Self::default() };
        Some(Self { state, depth, epoch, elected: elected != 0, handover_ns, heard_ns, term, line, ..interval })
    }

    /// Checks that there is a time.
    pub fn check(&self) -> Result<(), ReadingError> {
        match self.state {
            ClockState::Unsynchronized => Err(ReadingError::Unsynchronized),
            ClockState::Evicted => Err(ReadingError::Evicted),
            ClockState::Root | ClockState::Following | ClockState::Turned | ClockState::Elected => Ok(()),
        }
    }

    /// The time at which the two clocks showed these values; an error if they are not the clocks of the page's writer.
    pub fn at(&self, raw_ns: u64, boot_ns: u64) -> Result<ClockReading, ReadingError> {
        let elapsed = raw_ns.checked_sub(self.raw_ns).ok_or(ReadingError::Ahead)?;
        let suspended = boot_ns.checked_sub(self.boot_ns).ok_or(ReadingError::Ahead)?.saturating_sub(elapsed);
        let faster = (i128::from(elapsed) * i128::from(self.oscillator_q32)) >> 32;
        let passed = elapsed.saturating_add_signed(faster as i64);
        // Rounded down before, hence one more on either side.
        let growth = ((u128::from(passed) * u128::from(self.drift_q32)) >> 32) as u64 + 2;
        Ok(ClockReading {
            earliest_ns: self.earliest_ns.saturating_add(passed).saturating_sub(growth),
            latest_ns: self.latest_ns.saturating_add(passed).saturating_add(growth).saturating_add(suspended),
            state: self.state,
            depth: self.depth,
            epoch: self.epoch,
            elected: self.elected,
            handover_ns: self.handover_ns,
            term: self.term,
            line: self.line,
        })
    }
}

/// The time, as an interval that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Earliest possible time, in nanoseconds since 1970 by the root.
    pub earliest_ns: u64,
    /// Latest possible time.
    pub latest_ns: u64,
    /// State of the clock.
    pub state: ClockState,
    /// Hops to the root.
    pub depth: u64,
    /// Epoch of the plan.
    pub epoch: u64,
    /// True if the time is that of the plan's backup root. The times of two roots are not the same time.
    pub elected: bool,
    /// Maximum by which all changes of root of this line together may have moved the time.
    pub handover_ns: u64,
    /// Term of the time. Two readings of one term can be compared.
    pub term: u64,
    /// Line of the time. Readings of two terms of one line differ by no more than their handovers do; those of two lines
    /// cannot be compared.
    pub line: u64,
}

impl ClockReading {
    /// Maximum error of the middle of the interval.
    pub fn eps_ns(&self) -> u64 {
        self.latest_ns.saturating_sub(self.earliest_ns).div_ceil(2)
    }
}

/// Reason why there is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingError {
    /// The clock has heard nothing yet.
    Unsynchronized,
    /// The clock is not to be trusted any more.
    Evicted,
    /// The page was written when this machine's clocks showed more than they do: before a reboot, or in another time namespace.
    Ahead,
    /// The contents of the page make no sense.
    Damaged,
}

impl std::fmt::Display for ReadingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unsynchronized => "the clock has not heard from its parent yet and does not know the time",
            Self::Evicted => "the clock is not to be trusted; `hitless clock status` says why",
            Self::Ahead => "the page is from before a reboot, or of another time namespace; start its daemon here",
            Self::Damaged => "the page of the clock is damaged; start its daemon again",
        })
    }
}

/// The daemon's side of the page.
#[derive(Debug)]
pub struct ClockPageWriter {
    page: SharedPage,
    serial: u64,
}

impl ClockPageWriter {
    /// The clock on it is unsynchronized at first. An error of kind `InvalidInput` means that the file is not to be written on:
    /// it is something else, or another process keeps a clock there; it stays as it is.
    pub fn create(path: &Path) -> io::Result<Self> {
        let origin = PageOrigin::here()?;
        match existing(path)? {
            Some(page) if origin_of(&page) == Ok(origin) => {
                let serial = page.load(SERIAL_AT, Ordering::Relaxed);
                let mut writer = Self { page, serial };
                writer.publish(&ClockPageEntry::default());
                Ok(writer)
            }
            // Programs that have another page open read it unchanged, and may be older.
            _ => Self::begin(path, origin),
        }
    }

    /// A new page, in place of what is there.
    fn begin(path: &Path, origin: PageOrigin) -> io::Result<Self> {
        let mut writer = Self { page: SharedPage::draft(path)?, serial: 0 };
        writer.publish(&ClockPageEntry::default());
        let header = [
            (VERSION_AT, VERSION),
            (BOOT_AT, origin.boot),
            (TIME_NAMESPACE_AT, origin.time_namespace),
            (MAGIC_AT, MAGIC),
        ];
        header.into_iter().for_each(|(at, word)| writer.page.store(at, word, Ordering::Release));
        writer.page.put(path)?;
        Ok(writer)
    }

    /// Removes the page, if it is still there. Who has it open still reads it, with a bound that grows.
    pub fn remove(self, path: &Path) {
        if self.page.is_at(path) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Publishes an entry; all programs read it from now on.
    pub fn publish(&mut self, entry: &ClockPageEntry) {
        let serial = self.serial.wrapping_add(1);
        // A reader that sees anything written below also sees that readers were sent to the other slot.
        fence(Ordering::Release);
        for (at, word) in entry.to_words().into_iter().enumerate() {
            self.page.store(slot_at(serial) + at, word, Ordering::Relaxed);
        }
        self.page.store(SERIAL_AT, serial, Ordering::Release);
        self.serial = serial;
    }
}

/// The page of a clock that is there already, of whatever version; none if there is no file.
fn existing(path: &Path) -> io::Result<Option<SharedPage>> {
    let refuse = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    match SharedPage::reopen(path) {
        Ok(page) if page.load(MAGIC_AT, Ordering::Acquire) == MAGIC => Ok(Some(page)),
        Ok(_) => refuse(FOREIGN),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            // Whoever may read a page can lock it for a while: that is no error in the arguments.
            io::ErrorKind::WouldBlock => Err(io::Error::new(error.kind(), "another clock has its page there")),
            io::ErrorKind::InvalidData | io::ErrorKind::IsADirectory => refuse(FOREIGN),
            _ => Err(error),
        },
    }
}

const FOREIGN: &str = "a file that is not the page of a clock: name another one, or remove it";

/// Origin of a page; for a page of another version, the error is that version.
fn origin_of(page: &SharedPage) -> Result<PageOrigin, u64> {
    let word = |at| page.load(at, Ordering::Relaxed);
    match word(VERSION_AT) {
        VERSION => Ok(PageOrigin { boot: word(BOOT_AT), time_namespace: word(TIME_NAMESPACE_AT) }),
        other => Err(other),
    }
}

fn slot_at(serial: u64) -> usize {
    SLOTS_AT + SLOT_WORDS * (serial & 1) as usize
}

/// A program's side of the page: the time, without a system call.
///
/// ```no_run
/// let clock = timekeeper::ClockReader::open("/run/hitless/clock/host7.page".as_ref())?;
/// match clock.read() {
///     Ok(now) => println!("between {} and {}", now.earliest_ns, now.latest_ns),
///     Err(why) => println!("{why}"),
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ClockReader {
    page: SharedPage,
}

impl ClockReader {
    /// Opens the page of a daemon. A process that goes to another time namespace, or is made in one, has to open it again.
    pub fn open(path: &Path) -> io::Result<Self> {
        let page = SharedPage::open(path)?;
        let invalid = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if page.load(MAGIC_AT, Ordering::Acquire) != MAGIC {
            return invalid("not the page of a clock".to_owned());
        }
        let here = PageOrigin::here()?;
        match origin_of(&page) {
            Err(other) => invalid(format!("a clock's page of version {other}; this program reads version {VERSION}")),
            Ok(there) if there.boot != here.boot => {
                invalid("the page is from before a reboot: its daemon has not started since".to_owned())
            }
            Ok(there) if there != here => invalid(
                "the page is of another time namespace, where the kernel's clocks show something else".to_owned(),
            ),
            Ok(_) => Ok(Self { page }),
        }
    }

    /// True if this is still the page of that name: a daemon that ends removes its page, and the next one makes another.
    pub fn is_at(&self, path: &Path) -> bool {
        self.page.is_at(path)
    }

    /// Latest entry that the daemon wrote.
    pub fn entry(&self) -> Result<ClockPageEntry, ReadingError> {
        for _ in 0..ATTEMPTS {
            let serial = self.page.load(SERIAL_AT, Ordering::Acquire);
            let slot = slot_at(serial);
            let words = std::array::from_fn(|at| self.page.load(slot + at, Ordering::Relaxed));
            // The copied words are older than the serial that is read next.
            fence(Ordering::Acquire);
            if self.page.load(SERIAL_AT, Ordering::Relaxed) == serial {
                return ClockPageEntry::from_words(words).ok_or(ReadingError::Damaged);
            }
        }
        Err(ReadingError::Damaged)
    }

    /// The time now.
    pub fn read(&self) -> Result<ClockReading, ReadingError> {
        let entry = self.entry()?;
        entry.check()?;
        let raw = KernelClock::Raw.nanoseconds();
        entry.at(raw, KernelClock::Boot.nanoseconds())
    }
}

#[cfg(test)]
mod tests;

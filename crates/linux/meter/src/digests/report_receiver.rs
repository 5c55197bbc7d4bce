//! The collector's side: reports of all meters, in one queue.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linux::clock::Clock;

use super::answer::ReportAnswers;
use super::question::QuestionBooks;
use super::queue::{BudgetShare, CollectorQueue, CollectorWords, ReceivedReport};
use super::run_length;
use super::{Envelope, listen};
use bus::key::OrderKey;
use units::StopFlag;

/// Incarnations of meters that are remembered; the one that was silent longest is forgotten first.
const MOST_LIVES: usize = 4_096;
/// Lines about strangers within `LINES_WITHIN`; more are counted.
const MOST_LINES: u32 = 10;
const LINES_WITHIN: Duration = Duration::from_secs(10);

/// Place at which a collector takes reports.
#[derive(Debug)]
pub struct ReportReceiver {
    listener: TcpListener,
    most_connections: usize,
}

/// Connections at a time, unless said otherwise.
const CONNECTIONS: usize = 1_024;

impl From<TcpListener> for ReportReceiver {
    fn from(listener: TcpListener) -> Self {
        Self { listener, most_connections: CONNECTIONS }
    }
}

impl ReportReceiver {
    pub fn listen(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self::from)
    }

    /// Sets how many meters may be connected at a time; a quarter of them from one address.
    #[must_use]
    pub fn with_connections(mut self, most: usize) -> Self {
        self.most_connections = most;
        self
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Runs until `stop` is set, or nobody takes from `out` any more. With a key, reports without it are refused.
    /// `tell` is called for strangers and for failures.
    pub fn run(
        &self,
        key: Option<&OrderKey>,
        out: &CollectorQueue,
        stop: &StopFlag,
        tell: &(dyn Fn(&str) + Sync),
    ) -> io::Result<()> {
        let gate = ReportGate {
            key,
            most_connections: self.most_connections,
            out,
            stop,
            tell,
            clock: Clock::start(),
            lives: Mutex::default(),
            lines: Mutex::default(),
        };
        listen::listen(&self.listener, &gate)
    }
}

/// Writes the address, for people.
impl fmt::Display for ReportReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address() {
            Ok(address) => address.fmt(f),
            Err(error) => error.fmt(f),
        }
    }
}

/// Checks that every report passes on its way in, on any connection.
pub(super) struct ReportGate<'a> {
    pub key: Option<&'a OrderKey>,
    pub most_connections: usize,
    out: &'a CollectorQueue,
    stop: &'a StopFlag,
    tell: &'a (dyn Fn(&str) + Sync),
    clock: Clock,
    lives: Mutex<MeterIncarnations>,
    lines: Mutex<LogBudget>,
}

impl ReportGate<'_> {
    pub(crate) fn is_closed(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Time since it was opened.
    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// A line for people, unless strangers have caused many of late.
    pub(crate) fn tell(&self, line: &str) {
        let told = self.lines.lock().unwrap_or_else(PoisonError::into_inner).next(self.now());
        match told {
            Some(0) => (self.tell)(line),
            Some(left_out) => (self.tell)(&format!("{line} (and {left_out} more lines before it)")),
            None => {}
        }
    }

    /// Answers that meters are to hear.
    pub(crate) fn answers(&self) -> &ReportAnswers {
        self.out.answers()
    }

    /// Questions that meters are to be asked.
    pub(crate) fn questions(&self) -> &QuestionBooks {
        self.out.questions()
    }

    /// Words that meters are to hear.
    pub(crate) fn words(&self) -> &CollectorWords {
        self.out.words()
    }

    /// Room for `bytes` bytes of a report that are about to be read; `None` once it is time to end.
    pub(crate) fn take(&self, bytes: usize) -> Option<BudgetShare> {
        self.out.take(bytes, self.stop)
    }

    /// False once nobody wants more. Waits for room, and so lets the meter wait.
    pub(crate) fn pass(&self, envelope: Envelope, taken: Option<BudgetShare>) -> bool {
        let Envelope { life, number, flags, report, .. } = envelope;
        if !run_length::is_encoded(&report) {
            self.tell("a report that nobody squeezed like that; ignored");
            self.answers().note(life, Some("a report that nobody squeezed like that"));
            return true;
        }
        let Some(taken) = taken.or_else(|| self.take(report.len())) else { return false };
        // Held while it is put into the queue: two connections of one meter must not overtake each other.
        let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        match lives.place(life, number) {
            ReportSequence::Repeated => true,
            ReportSequence::After(missing) => {
                self.out.put(ReceivedReport { life, missing, flags, question: None, report }, taken)
            }
        }
    }

    /// Passes a reply on; false once nobody wants more.
    pub(crate) fn pass_reply(&self, life: u64, question: u32, body: Vec<u8>, taken: Option<BudgetShare>) -> bool {
        let Some(taken) = taken.or_else(|| self.take(body.len())) else { return false };
        let reply = ReceivedReport { life, question: Some(question), report: body, ..ReceivedReport::default() };
        self.out.put(reply, taken)
    }
}

/// Lines that were recently logged, and lines that were left out.
#[derive(Debug, Default)]
struct LogBudget {
    since: Duration,
    said: u32,
    left_out: u64,
}

impl LogBudget {
    /// Number of lines that were left out before this one; `None` if this one is left out, too.
    fn next(&mut self, now: Duration) -> Option<u64> {
        if now.saturating_sub(self.since) >= LINES_WITHIN {
            (self.since, self.said) = (now, 0);
        }
        if self.said >= MOST_LINES {
            self.left_out += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Progress of each meter's reports.
#[derive(Debug, Default)]
struct MeterIncarnations {
    /// The next number of an incarnation, and when it was last heard of.
    next: BTreeMap<u64, (u64, u64)>,
    heard: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum ReportSequence {
    Repeated,
    /// Number of reports that are missing before it.
    After(u64),
}

impl MeterIncarnations {
    fn place(&mut self, life: u64, number: u64) -> ReportSequence {
        self.heard += 1;
        if self.next.len() >= MOST_LIVES
            && !self.next.contains_key(&life)
            && let Some(oldest) = self.next.iter().min_by_key(|(_, (_, heard))| *heard).map(|(life, _)| *life)
        {
            self.next.remove(&oldest);
        }
        // Reports from before the collector's start are not missing.
        let (next, heard) = self.next.entry(life).or_insert((number, 0));
        *heard = self.heard;
        if number < *next {
            return ReportSequence::Repeated;
        }
        let missing = number - *next;
        *next = number.saturating_add(1);
        ReportSequence::After(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_counts_once_and_what_does_not_come_is_missing() {
        let mut lives = MeterIncarnations::default();
        let places: Vec<ReportSequence> = [(1, 40), (1, 41), (1, 41), (2, 0), (1, 45), (1, 44), (2, 1)]
            .map(|(life, number)| lives.place(life, number))
            .into();
        use ReportSequence::{After, Repeated};
        assert_eq!(places, [After(0), After(0), Repeated, After(0), After(3), Repeated, After(0)]);
        assert_eq!(lives.place(3, u64::MAX), After(0));
        assert_eq!(lives.place(3, 0), Repeated);
    }

    #[test]
    fn lives_without_end_take_no_more_memory() {
        let mut lives = MeterIncarnations::default();
        for life in 0..2 * MOST_LIVES as u64 {
            lives.place(life, 0);
        }
        assert_eq!(lives.next.len(), MOST_LIVES);
        assert_eq!(lives.place(2 * MOST_LIVES as u64 - 1, 1), ReportSequence::After(0), "the latest are kept");
    }

    #[test]
    fn strangers_cannot_fill_the_log() {
        let mut lines = LogBudget::default();
        let said = |lines: &mut LogBudget, second| lines.next(Duration::from_secs(second));
        let first: Vec<_> = (0..1_000).filter_map(|_| said(&mut lines, 1)).collect();
        assert_eq!(first, [0; MOST_LINES as usize]);
        assert_eq!((said(&mut lines, 12), said(&mut lines, 12)), (Some(990), Some(0)));
    }
}

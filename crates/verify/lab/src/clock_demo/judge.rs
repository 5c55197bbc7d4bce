//! Reads all clocks the whole time, and knows the true time.
//!
//! A root's oscillator is the machine's CLOCK_MONOTONIC_RAW at a known rate, so one reading of its page tells its time at any
//! moment, also after its death. A reading of another clock names the term whose time it has, and is held against that root's.
//!
//! A backup root that took over shows that on its page only until it is given a new plan, and on a busy machine this thread may not run in
//! between, while the page of a clock that is late still names that root. So the controller looks at the pages too, before it changes
//! anything ([`Judge::look_at_roots`]): a root that took over stays one until it is given a new plan, so none is missed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use linux::SystemError;
use linux::clock::{Clock, KernelClock};
use timekeeper::{ClockPageEntry, ClockPageWriter, ClockReader, ClockState};
use units::samples::upper_median;

/// Readings of each clock before the judge lets others have the processor.
const BATCH: usize = 16;
const PAUSE: Duration = Duration::from_micros(500);
/// Time between two points of a chart.
const CHART_EVERY_NS: u64 = 4_000_000;
/// Readings of roots that are not known yet.
const MOST_PENDING: usize = 1_000_000;

/// Term of the root whose time it is.
type RootKey = u64;

/// One reading of a clock.
#[derive(Clone, Copy, Debug)]
struct JudgedReading {
    node: usize,
    raw_ns: u64,
    earliest_ns: u64,
    latest_ns: u64,
}

/// The time of a root: what it was at one reading of CLOCK_MONOTONIC_RAW, and its rate.
#[derive(Clone, Copy, Debug)]
struct RootTime {
    raw_ns: u64,
    time_ns: u64,
    faster_q32: i64,
}

impl RootTime {
    /// Reads the time from the page of a root.
    fn of(entry: &ClockPageEntry) -> Option<Self> {
        let is_root = matches!(entry.state, ClockState::Root | ClockState::Elected);
        let ClockPageEntry { raw_ns, earliest_ns: time_ns, oscillator_q32: faster_q32, .. } = *entry;
        (is_root && entry.earliest_ns == entry.latest_ns).then_some(Self { raw_ns, time_ns, faster_q32 })
    }

    fn at(&self, raw_ns: u64) -> i128 {
        let elapsed = i128::from(raw_ns) - i128::from(self.raw_ns);
        i128::from(self.time_ns) + elapsed + ((elapsed * i128::from(self.faster_q32)) >> 32)
    }
}

/// A point of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSample {
    pub(super) seconds: f64,
    pub(super) eps_us: f64,
    pub(super) error_us: f64,
}

/// Findings of the judge.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    pub(super) reads: u64,
    pub(super) wrong: u64,
    /// Readings of roots that never showed a page.
    pub(super) unjudged: u64,
    /// Attempts at which a clock knew no time.
    pub(super) without_time: u64,
    /// ε minus the true error, at the worst reading.
    pub(super) worst_margin_ns: Option<i64>,
    /// ε in nanoseconds while nothing was killed, by depth.
    pub(super) idle: BTreeMap<u64, Option<Histogram<u64>>>,
    /// Samples of each clock.
    pub(super) samples: Vec<Vec<ClockSample>>,
    /// Times of kills, in seconds.
    pub(super) marks: Vec<f64>,
    pub(super) seconds: f64,
}

/// The one that reads.
#[derive(Debug)]
pub(super) struct Judge {
    pages: Vec<ClockReader>,
    idle: AtomicBool,
    ended: AtomicBool,
    marks: Mutex<Vec<u64>>,
    /// Times of all roots that were ever seen.
    roots: Mutex<BTreeMap<RootKey, RootTime>>,
}

impl Judge {
    pub(super) fn new(pages: Vec<ClockReader>) -> Self {
        let (idle, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { pages, idle, ended, marks: Mutex::default(), roots: Mutex::default() }
    }

    /// Sets whether nothing is killed for now.
    pub(super) fn set_idle(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// Notes the time of a kill.
    pub(super) fn mark(&self, raw_ns: u64) {
        self.marks().push(raw_ns);
    }

    fn marks(&self) -> MutexGuard<'_, Vec<u64>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the times of all roots that pages show now. The controller calls it before it kills or gives plans.
    pub(super) fn look_at_roots(&self) {
        let entries = self.pages.iter().filter_map(|page| page.entry().ok());
        entries.filter(|entry| entry.check().is_ok()).for_each(|entry| self.learn_root(&entry));
    }

    fn learn_root(&self, entry: &ClockPageEntry) {
        if let Some(root) = RootTime::of(entry) {
            self.roots().entry(entry.term).or_insert(root);
        }
    }

    fn roots(&self) -> MutexGuard<'_, BTreeMap<RootKey, RootTime>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Reads until it is to end.
    pub(super) fn run(&self) -> Judgement {
        let started_ns = KernelClock::Raw.nanoseconds();
        let mut bench = JudgeBench::new(self.pages.len(), started_ns);
        while !self.ended.load(Ordering::Relaxed) {
            let is_idle = self.idle.load(Ordering::Relaxed);
            for _ in 0..BATCH {
                for node in 0..self.pages.len() {
                    bench.read(node, self, is_idle);
                }
            }
            bench.settle(self);
            std::thread::sleep(PAUSE);
        }
        let mut judgement = bench.close(self);
        let seconds = |raw_ns: &u64| raw_ns.saturating_sub(started_ns) as f64 / 1e9;
        judgement.marks = self.marks().iter().map(seconds).collect();
        judgement.seconds = seconds(&KernelClock::Raw.nanoseconds());
        judgement
    }
}

/// Roots and readings that the judge has before it.
struct JudgeBench {
    roots: BTreeMap<RootKey, RootTime>,
    pending: Vec<(RootKey, JudgedReading)>,
    judgement: Judgement,
    started_ns: u64,
    sampled_ns: Vec<u64>,
}

impl JudgeBench {
    fn new(nodes: usize, started_ns: u64) -> Self {
        let judgement = Judgement { samples: vec![Vec::new(); nodes], ..Judgement::default() };
        let (roots, pending) = (BTreeMap::new(), Vec::new());
        Self { roots, pending, judgement, started_ns, sampled_ns: vec![0; nodes] }
    }

    fn read(&mut self, node: usize, judge: &Judge, is_idle: bool) {
        let Ok(entry) = judge.pages[node].entry() else {
            self.judgement.wrong += 1;
            return;
        };
        if entry.check().is_err() {
            self.judgement.without_time += 1;
            return;
        }
        let (raw_ns, boot_ns) = (KernelClock::Raw.nanoseconds(), KernelClock::Boot.nanoseconds());
        let Ok(reading) = entry.at(raw_ns, boot_ns) else {
            self.judgement.wrong += 1;
            return;
        };
        if is_idle {
            let histogram = || Histogram::new_with_bounds(1, 1 << 40, 3).ok();
            let idle = self.judgement.idle.entry(reading.depth).or_insert_with(histogram);
            idle.iter_mut().for_each(|idle| idle.saturating_record(reading.eps_ns()));
        }
        let key = reading.term;
        self.learn_root(key, &entry, judge);
        let (earliest_ns, latest_ns) = (reading.earliest_ns, reading.latest_ns);
        let reading = JudgedReading { node, raw_ns, earliest_ns, latest_ns };
        match self.roots.get(&key).copied() {
            Some(root) => self.judge(&root, &reading),
            None if self.pending.len() < MOST_PENDING => self.pending.push((key, reading)),
            None => self.judgement.unjudged += 1,
        }
    }

    /// A root that is not known yet may be one that the controller saw.
    fn learn_root(&mut self, key: RootKey, entry: &ClockPageEntry, judge: &Judge) {
        if self.roots.contains_key(&key) {
            return;
        }
        judge.learn_root(entry);
        if let Some(root) = judge.roots().get(&key).copied() {
            self.roots.insert(key, root);
        }
    }

    fn judge(&mut self, root: &RootTime, reading: &JudgedReading) {
        let JudgedReading { node, raw_ns, earliest_ns, latest_ns } = *reading;
        let truth = root.at(raw_ns);
        let margin = (truth - i128::from(earliest_ns)).min(i128::from(latest_ns) - truth) as i64;
        let judgement = &mut self.judgement;
        judgement.reads += 1;
        judgement.wrong += u64::from(margin < 0);
        judgement.worst_margin_ns = Some(judgement.worst_margin_ns.map_or(margin, |worst| worst.min(margin)));
        if raw_ns >= self.sampled_ns[node] + CHART_EVERY_NS {
            self.sampled_ns[node] = raw_ns;
            let middle = (i128::from(earliest_ns) + i128::from(latest_ns)) / 2;
            judgement.samples[node].push(ClockSample {
                seconds: raw_ns.saturating_sub(self.started_ns) as f64 / 1e9,
                eps_us: latest_ns.saturating_sub(earliest_ns) as f64 / 2e3,
                error_us: (middle - truth).unsigned_abs() as f64 / 1e3,
            });
        }
    }

    /// Judges what waited for its root to be known.
    fn settle(&mut self, judge: &Judge) {
        if !self.pending.is_empty() {
            self.roots.clone_from(&judge.roots());
        }
        for (key, reading) in std::mem::take(&mut self.pending) {
            match self.roots.get(&key).copied() {
                Some(root) => self.judge(&root, &reading),
                None => self.pending.push((key, reading)),
            }
        }
    }

    fn close(mut self, judge: &Judge) -> Judgement {
        self.settle(judge);
        self.judgement.unjudged += self.pending.len() as u64;
        self.judgement
    }
}

/// Cost of a read, in nanoseconds: the median of many rounds.
pub(super) fn read_cost() -> Result<f64, SystemError> {
    const ROUNDS: usize = 101;
    const READS: u32 = 2_000;
    let path = std::env::temp_dir().join(format!("hitless-read-cost-{}", std::process::id()));
    let in_words = |error: std::io::Error| SystemError(format!("{}: {error}", path.display()));
    let mut writer = ClockPageWriter::create(&path).map_err(in_words)?;
    let raw_ns = KernelClock::Raw.nanoseconds();
    writer.publish(&ClockPageEntry {
        raw_ns,
        state: ClockState::Following,
        drift_q32: 859_166,
        ..ClockPageEntry::default()
    });
    let reader = ClockReader::open(&path).map_err(in_words);
    let _ = std::fs::remove_file(&path);
    let reader = reader?;
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let clock = Clock::start();
        for _ in 0..READS {
            let _ = std::hint::black_box(reader.read());
        }
        rounds.push(clock.elapsed().as_nanos() as f64 / f64::from(READS));
    }
    Ok(upper_median(&mut rounds).unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(state: ClockState, term: u64, around_ns: u64) -> ClockPageEntry {
        let [raw_ns, boot_ns] = [KernelClock::Raw, KernelClock::Boot].map(KernelClock::nanoseconds);
        let is_root = matches!(state, ClockState::Root | ClockState::Elected);
        let [earliest_ns, latest_ns] = if is_root { [around_ns; 2] } else { [around_ns - 50, around_ns + 50] };
        ClockPageEntry {
            raw_ns,
            boot_ns,
            earliest_ns,
            latest_ns,
            drift_q32: 859_166,
            state,
            term,
            ..ClockPageEntry::default()
        }
    }

    /// On a busy machine this thread does not run while a backup root is the root, and a late clock still has its time.
    #[test]
    fn a_root_that_only_the_controller_saw_is_known() {
        let folder = std::env::temp_dir().join(format!("hitless-judge-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let paths = ["root", "late"].map(|name| folder.join(name));
        let mut writers = paths.each_ref().map(|path| ClockPageWriter::create(path).unwrap());
        let judge = Judge::new(paths.iter().map(|path| ClockReader::open(path).unwrap()).collect());
        let now_ns = 1_000_000_000;
        writers[0].publish(&entry(ClockState::Elected, 7, now_ns));
        for (is_seen, unjudged) in [(false, 1), (true, 0)] {
            if is_seen {
                writers[0].publish(&entry(ClockState::Elected, 7, now_ns));
                judge.look_at_roots();
            }
            writers[0].publish(&entry(ClockState::Root, 8, now_ns));
            writers[1].publish(&entry(ClockState::Following, 7, now_ns));
            let mut bench = JudgeBench::new(2, KernelClock::Raw.nanoseconds());
            (0..2).for_each(|node| bench.read(node, &judge, false));
            let judgement = bench.close(&judge);
            assert_eq!((judgement.unjudged, judgement.reads), (unjudged, 2 - unjudged), "seen: {is_seen}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

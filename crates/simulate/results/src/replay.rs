//! Logs of connections: written into a folder, found there, and the results of their replay.

mod queues;
mod sampled;
mod trace;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use deter::LogLevel;
use deter::{ColumnBytes, ConnectionLog, ReplayDifference, ReplayObserver, ReplayedFrame, record_trial};
use files::{WholeFolder, whole_file};
use serde::Serialize;
use sim::net::PortCapture;
use sim::net::recording::{LogStore, capture_of};

use crate::flows::pcapng;
pub use queues::{
    DifferenceOfDrops, DifferenceOfQueues, QueueAnswer, QueueChoice, QueueFlowRow, QueuePortRow, QueueReplayError,
    QueueReport, QueueRunRow, queues_text, replay_queues,
};
pub use sampled::{SampleCost, draw_clocks, sampled};
use trace::Tracer;
pub use trace::{ReplayTraceLine, TraceKind};

/// File name extension of logs.
const EXTENSION: &str = "deter";
/// Trials that are summed up at a time.
const TRIALS_AT_ONCE: u64 = 1_000;

/// The logs of a run, each a file of its own in a folder.
#[derive(Debug)]
pub struct LogFolder {
    path: PathBuf,
    folder: WholeFolder,
    failure: Option<io::Error>,
}

impl LogFolder {
    /// Creates the parent folders. The folder itself appears when all logs are complete: see [`Self::finish`].
    pub fn new(path: &Path) -> io::Result<Self> {
        let above = path.parent().unwrap_or(path);
        fs::create_dir_all(above)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", above.display())))?;
        Ok(Self { path: path.to_owned(), folder: WholeFolder::create(path)?, failure: None })
    }

    /// Puts the folder in its place, unless some log could not be written: then there is none.
    pub fn finish(self) -> io::Result<()> {
        self.failure.map_or_else(|| self.folder.finish(), Err)
    }

    fn write(&self, flow: u32, blocks: &[u8]) -> io::Result<()> {
        let name = format!("flow-{flow}.{EXTENSION}");
        let opened = OpenOptions::new().append(true).create(true).open(self.folder.path().join(&name));
        let written = opened.and_then(|mut file| file.write_all(blocks));
        written.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.path.join(name).display())))
    }
}

impl LogStore for LogFolder {
    fn append(&mut self, flow: u32, blocks: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.write(flow, blocks).err();
        }
    }
}

/// All logs in a folder and those below, in the order of their names; or the file itself.
pub fn find_logs(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return File::open(path).map(|_| vec![path.to_owned()]);
    }
    let (mut folders, mut logs) = (vec![path.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|extension| extension == EXTENSION) {
                logs.push(entry.path());
            }
        }
    }
    logs.sort();
    Ok(logs)
}

/// Options for replaying logs.
#[derive(Clone, Debug, Default)]
pub struct ReplayChoice {
    /// Only the connections of this number.
    pub flow: Option<u32>,
    /// Kinds of facts to trace.
    pub trace: Vec<TraceKind>,
    /// True if the frames are kept, to be written.
    pub frames: bool,
    /// Logs at the same time.
    pub jobs: usize,
}

/// Result of replaying connections.
#[derive(Debug, Default, Serialize)]
pub struct ReplayReport {
    /// Rows in the order of points, seeds and flows; of trials, those that differ.
    pub connections: Vec<ReplayRow>,
    /// Frames that left all ends.
    pub packets: u64,
    /// Length of all logs.
    pub log_bytes: u64,
    /// Both, divided; 0 without packets.
    pub bytes_per_packet: f64,
    /// Number of connections drawn, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<u64>,
    /// Numbers of times that those were recorded and replayed, at each level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recordings: Option<TrialCounts>,
    /// Frames that left, in the order of time, if they are kept.
    #[serde(skip)]
    pub frames: Vec<PortCapture>,
}

/// Connections that were drawn, recorded and replayed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TrialCounts {
    /// Connections at level `times`: all of them.
    pub times: u64,
    /// Connections at level `decisions`: those without BBR.
    pub decisions: u64,
}

/// Replay result of one connection.
#[derive(Debug, Serialize)]
pub struct ReplayRow {
    /// The point of the sweep, from 1.
    pub point: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Number in its run.
    pub flow: u32,
    /// Level of its log: what that keeps of time.
    pub level: &'static str,
    /// Frames that left both ends.
    pub segments: u64,
    /// True if all are the same.
    pub exact: bool,
    /// First difference between run and replay.
    pub first_difference: Option<DifferenceRow>,
    /// Bytes of the log by column.
    pub log_bytes: ColumnRow,
    /// Traced facts, if any were to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<ReplayTraceLine>>,
}

/// Bytes by column; decisions and ticks are 0 where a log has the time of every call.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ColumnRow {
    order: u64,
    calls: u64,
    network: u64,
    decisions: u64,
    ticks: u64,
    times: u64,
}

/// Point at which a replay differs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DifferenceRow {
    end: &'static str,
    segment: u64,
    until: u64,
    why: &'static str,
}

impl From<ColumnBytes> for ColumnRow {
    fn from(bytes: ColumnBytes) -> Self {
        let ColumnBytes { order, calls, network, decisions, ticks, times } = bytes;
        Self { order, calls, network, decisions, ticks, times }
    }
}

impl From<ReplayDifference> for DifferenceRow {
    fn from(difference: ReplayDifference) -> Self {
        let ReplayDifference { side, segment, until, why } = difference;
        Self { end: side.name(), segment, until, why }
    }
}

/// Replays logs; the first that is none is an error that names its file and place.
pub fn replay_logs(paths: &[PathBuf], choice: &ReplayChoice) -> Result<ReplayReport, String> {
    let one = |path: &PathBuf| {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        replay_log(&bytes, choice).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut replayed = Vec::new();
    for result in parallel::map(paths, choice.jobs, one) {
        replayed.extend(result?);
    }
    replayed.sort_by_key(|(row, ..)| (row.point, row.seed, row.flow));
    let of = |row: &ReplayRow| (row.point, row.seed, row.flow);
    if let Some([(row, ..), _]) = replayed.array_windows().find(|[one, other]| of(&one.0) == of(&other.0)) {
        let ReplayRow { point, seed, flow, .. } = row;
        return Err(format!("two logs of flow {flow} of point {point}, seed {seed}: expected one"));
    }
    let mut report = ReplayReport::default();
    for (row, len, frames) in replayed {
        report.add(&row, len);
        report.connections.push(row);
        report.frames.extend(frames);
    }
    report.frames.sort_by_key(|frame| frame.at);
    Ok(report)
}

/// Records and replays connections that are drawn from these seeds, each at both levels unless it is BBR's.
pub fn replay_trials(seeds: std::ops::Range<u64>, jobs: usize) -> Result<ReplayReport, String> {
    let (trials, recordings) = (Some(seeds.end - seeds.start), Some(TrialCounts::default()));
    let mut report = ReplayReport { trials, recordings, ..ReplayReport::default() };
    let one = |seed: &u64| {
        let logs = LogLevel::ALL.into_iter().filter_map(|level| record_trial(*seed, level));
        let replayed: Result<Vec<_>, _> = logs.map(|log| replay_log(&log, &ReplayChoice::default())).collect();
        replayed.map_err(|error| format!("seed {seed}: {error}"))
    };
    let mut next = seeds.start;
    while next < seeds.end {
        let end = seeds.end.min(next.saturating_add(TRIALS_AT_ONCE));
        let some: Vec<u64> = (next..end).collect();
        for result in parallel::map(&some, jobs, one) {
            for (row, len, _) in result?.into_iter().flatten() {
                report.add(&row, len);
                report.count_trial(&row);
                report.connections.extend((!row.exact).then_some(row));
            }
        }
        next = end;
    }
    Ok(report)
}

/// A row, the length of the log, and what left; nothing if the connection was not asked for.
type Replayed = Option<(ReplayRow, u64, Vec<PortCapture>)>;

fn replay_log(bytes: &[u8], choice: &ReplayChoice) -> Result<Replayed, deter::LogError> {
    let log = ConnectionLog::read(bytes)?;
    let header = log.header();
    if choice.flow.is_some_and(|flow| flow != header.flow) {
        return Ok(None);
    }
    let mut watch = ReplayWatch { tracer: Tracer::new(&choice.trace), frames: choice.frames.then(Vec::new) };
    let result = deter::replay(&log, &mut watch)?;
    let row = ReplayRow {
        point: header.point,
        seed: header.seed,
        flow: header.flow,
        level: header.level.name(),
        segments: result.segments,
        exact: result.is_exact(),
        first_difference: result.difference.map(DifferenceRow::from),
        log_bytes: log.column_bytes().into(),
        trace: watch.tracer.finish(),
    };
    let frames = watch.frames.unwrap_or_default();
    // A replay that differs shows nothing: what it did is not what happened.
    let frames = if row.exact { frames.iter().map(|frame| capture_of(header, frame)).collect() } else { Vec::new() };
    Ok(Some((row, bytes.len() as u64, frames)))
}

struct ReplayWatch {
    tracer: Tracer,
    frames: Option<Vec<ReplayedFrame>>,
}

impl ReplayObserver for ReplayWatch {
    fn sent(&mut self, frame: ReplayedFrame) {
        if let Some(frames) = &mut self.frames {
            frames.push(frame);
        }
    }

    fn note(&mut self, side: deter::LogSide, now: units::Time, note: tcp::TcpNote) {
        self.tracer.note(side, now, note);
    }

    fn armed(&mut self, side: deter::LogSide, now: units::Time, timer: tcp::TcpTimer, at: Option<units::Time>) {
        self.tracer.armed(side, now, timer, at);
    }

    fn expired(&mut self, side: deter::LogSide, now: units::Time, timer: tcp::TcpTimer) {
        self.tracer.expired(side, now, timer);
    }

    fn decided(&mut self, side: deter::LogSide, now: units::Time, site: tcp::TcpSite) {
        self.tracer.decided(side, now, site);
    }

    fn ticked(&mut self, side: deter::LogSide, now: units::Time, tick: tcp::TcpTick, value: u64) {
        self.tracer.ticked(side, now, tick, value);
    }

    fn called(&mut self, side: deter::LogSide, now: units::Time, machine: &tcp::TcpConnection) {
        self.tracer.called(side, now, machine);
    }
}

impl ReplayReport {
    fn count_trial(&mut self, row: &ReplayRow) {
        if let Some(recordings) = &mut self.recordings {
            let is_times = row.level == LogLevel::Times.name();
            *if is_times { &mut recordings.times } else { &mut recordings.decisions } += 1;
        }
    }

    fn add(&mut self, row: &ReplayRow, len: u64) {
        self.packets += row.segments;
        self.log_bytes += len;
        self.bytes_per_packet = self.log_bytes as f64 / self.packets.max(1) as f64;
    }

    /// True if all connections were replayed exactly.
    pub fn is_exact(&self) -> bool {
        self.connections.iter().all(|row| row.exact)
    }

    /// Writes what left the hosts, as captures at their ports.
    pub fn write_frames(&self, path: &Path) -> io::Result<()> {
        let mut hosts: Vec<u32> = self.frames.iter().map(|frame| frame.port.0).collect();
        hosts.sort_unstable();
        hosts.dedup();
        whole_file(path, |out| pcapng::of_hosts(&hosts, &self.frames, out))
    }
}

/// A packet as a record of a capture that holds headers alone: what tcpdump writes of it if it keeps nothing else.
pub fn header_record(captured: &PortCapture) -> Vec<u8> {
    pcapng::header_record(captured)
}

/// Report for people: one line if all is well, and one for each connection that differs or was traced.
pub fn replay_text(report: &ReplayReport) -> String {
    let mut text = String::new();
    for row in &report.connections {
        let name = format!("point {}, seed {}, flow {}", row.point, row.seed, row.flow);
        if let Some(DifferenceRow { end, segment, until, why }) = row.first_difference {
            text += &format!("{name}: differs at the {end}, segments {segment} to {until}: {why}\n");
        }
        for line in row.trace.iter().flatten() {
            text += &format!("{name}: {line}\n");
        }
    }
    let ReplayReport { packets, log_bytes, bytes_per_packet, .. } = report;
    let all = report.recordings.map_or(report.connections.len() as u64, |counts| counts.times + counts.decisions);
    let what = if report.recordings.is_some() { "recordings" } else { "connections" };
    let differ = report.connections.iter().filter(|row| !row.exact).count() as u64;
    text += &format!("{} of {all} {what} exact, {packets} packets, {log_bytes} bytes of logs, ", all - differ);
    text + &format!("{bytes_per_packet:.3} bytes per packet\n")
}

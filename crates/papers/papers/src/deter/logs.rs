//! Logs of connections that stay in memory, and what replays of them show.

use std::collections::BTreeMap;

use ::deter::{ColumnBytes, ConnectionLog, LogHeader, LogLevel, ReplayObserver, ReplayedFrame, replay};
use report::claim::ClaimError;
use report::runner::Effort;
use sim::net::recording::{LogStore, Recording};
use sim::net::{self, NetworkOutcome, NetworkSetup};

/// The logs of a run, by the numbers of the connections.
#[derive(Debug, Default)]
pub(super) struct RunLogs(pub BTreeMap<u32, Vec<u8>>);

impl LogStore for RunLogs {
    fn append(&mut self, flow: u32, blocks: &[u8]) {
        self.0.entry(flow).or_default().extend(blocks);
    }
}

/// A run whose connections are recorded; `None` if it was stopped early.
pub(super) fn record(
    setup: &NetworkSetup,
    level: LogLevel,
    effort: &Effort<'_>,
) -> Result<Option<(NetworkOutcome, RunLogs)>, ClaimError> {
    let mut logs = RunLogs::default();
    let mut recording = Recording::new(setup, 1, level, &mut logs);
    let outcome = net::run_recorded(setup.clone(), &mut recording, effort.progress).map_err(ClaimError::new)?;
    Ok((!outcome.interrupted).then_some((outcome, logs)))
}

/// A log that was replayed.
#[derive(Debug)]
pub(super) struct ReplayedLog {
    pub header: LogHeader,
    pub exact: bool,
    pub columns: ColumnBytes,
    /// Frames that left both hosts.
    pub frames: Vec<ReplayedFrame>,
}

#[derive(Default)]
struct Frames(Vec<ReplayedFrame>);

impl ReplayObserver for Frames {
    fn sent(&mut self, frame: ReplayedFrame) {
        self.0.push(frame);
    }
}

pub(super) fn replay_log(bytes: &[u8]) -> Result<ReplayedLog, ClaimError> {
    let log = ConnectionLog::read(bytes).map_err(ClaimError::new)?;
    let mut frames = Frames::default();
    let result = replay(&log, &mut frames).map_err(ClaimError::new)?;
    Ok(ReplayedLog { header: *log.header(), exact: result.is_exact(), columns: log.column_bytes(), frames: frames.0 })
}

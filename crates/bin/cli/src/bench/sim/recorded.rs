//! Cost of recording a simulation: the same run without, and with logs of each level that go nowhere.
//!
//! Runs take turns. The figure of a run is the time for which the program had a core, not the time that passed.

use std::fs;

use results::replay::LogLevel;
use scenario::bench::SimBenchCase;
use serde::Serialize;
use sim::net::recording::{LogStore, Recording, has_tcp, refused_control};
use units::Progress;
use units::samples::upper_median;

use crate::output::Failure;

/// One level.
#[derive(Debug, Serialize)]
pub(super) struct RecordingRow {
    level: &'static str,
    /// Medians over the rounds, on a core.
    cpu_seconds: f64,
    cpu_seconds_without: f64,
    /// The median of the ratios of each round.
    pub ratio: f64,
    log_bytes: u64,
}

/// Counts what logs take, and forgets it.
#[derive(Debug, Default)]
struct LogLength(u64);

impl LogStore for LogLength {
    fn append(&mut self, _flow: u32, blocks: &[u8]) {
        self.0 += blocks.len() as u64;
    }
}

/// One row for each level that can hold the traffic; none without TCP, or if it was called off.
pub(super) fn measure(case: &SimBenchCase, rounds: u32, progress: &dyn Progress) -> Result<Vec<RecordingRow>, Failure> {
    let mut plain = Vec::new();
    let mut recorded: Vec<(LogLevel, Vec<f64>, u64)> = LogLevel::ALL.map(|level| (level, Vec::new(), 0)).into();
    for _ in 0..rounds {
        let Some(seconds) = simulate(case, None, progress)? else { return Ok(Vec::new()) };
        plain.push(seconds.0);
        for (level, seconds, bytes) in &mut recorded {
            let Some((taken, length)) = simulate(case, Some(*level), progress)? else { return Ok(Vec::new()) };
            seconds.push(taken);
            *bytes = length;
        }
    }
    let row = |(level, mut seconds, log_bytes): (LogLevel, Vec<f64>, u64)| {
        let mut ratios: Vec<f64> = seconds.iter().zip(&plain).map(|(with, without)| with / without).collect();
        Some(RecordingRow {
            level: level.name(),
            ratio: upper_median(&mut ratios)?,
            cpu_seconds: upper_median(&mut seconds)?,
            cpu_seconds_without: upper_median(&mut plain.clone())?,
            log_bytes,
        })
    };
    Ok(recorded.into_iter().filter_map(row).collect())
}

/// Seconds on a core, and bytes of logs; `None` if there is nothing to record, or it was called off.
fn simulate(
    case: &SimBenchCase,
    level: Option<LogLevel>,
    progress: &dyn Progress,
) -> Result<Option<(f64, u64)>, Failure> {
    let setup = case.setup(1).map_err(|error| Failure::Outside(format!("{error:?}")))?;
    if !has_tcp(&setup) || level.is_some_and(|level| refused_control(&setup, level).is_some()) {
        return Ok(None);
    }
    let mut length = LogLength::default();
    let begun = seconds_on_core();
    let outcome = match level {
        None => sim::net::run(setup, progress),
        Some(level) => {
            let mut recording = Recording::new(&setup, 1, level, &mut length);
            sim::net::run_recorded(setup, &mut recording, progress)
        }
    };
    let outcome = outcome.map_err(|error| Failure::Outside(error.to_string()))?;
    Ok((!outcome.interrupted).then(|| (seconds_on_core() - begun, length.0)))
}

/// Seconds for which this thread had a core so far; 0 if the kernel does not say.
fn seconds_on_core() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

//! Runs of a scenario, several at a time.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use results::flows::{RunDigest, RunResult, file_name, write_run};
use scenario::SweepPoint;
use sim::net::NetworkSetup;
use units::{Progress, Span, Time};

use super::page::TraceSet;
use super::record::RunRecord;
use crate::output::Failure;
use crate::terminal::TerminalProgress;

/// One point with one seed.
#[derive(Debug)]
pub(super) struct PointRun<'a> {
    pub point: &'a SweepPoint,
    pub seed: u64,
    /// Simulate all iterations of jobs.
    pub exact: bool,
}

/// Names of folders longer than this are refused by some file systems.
const LONGEST_NAME: usize = 200;

impl PointRun<'_> {
    pub(super) fn setup(&self) -> NetworkSetup {
        NetworkSetup { exact: self.exact, ..self.point.setup(self.seed) }
    }

    /// Folder for the files of this run.
    pub(super) fn folder(&self, out: &Path) -> PathBuf {
        let seed = format!("seed-{}", self.seed);
        match self.point.label.as_str() {
            "" => out.join(seed),
            label => out.join(shortened(file_name(label), self.point.number)).join(seed),
        }
    }
}

fn shortened(name: String, number: usize) -> String {
    if name.len() <= LONGEST_NAME { name } else { format!("point-{number}") }
}

/// State that all runs share. The first failure ends them all.
#[derive(Debug)]
pub(super) struct RunSet<'a> {
    terminal: &'a TerminalProgress,
    out: Option<&'a Path>,
    record: Option<RunRecord<'a>>,
    all: usize,
    traces: Option<&'a TraceSet>,
    failure: Mutex<Option<Failure>>,
    progress: Mutex<RunsProgress>,
}

/// Progress of all runs together.
#[derive(Clone, Copy, Debug, Default)]
struct RunsProgress {
    ended: usize,
    /// Runs that are done, with shares of those under way.
    share: f64,
    simulated: Span,
}

impl<'a> RunSet<'a> {
    pub(super) fn new(
        terminal: &'a TerminalProgress,
        out: Option<&'a Path>,
        record: Option<RunRecord<'a>>,
        all: usize,
    ) -> Self {
        let (failure, progress) = (Mutex::new(None), Mutex::new(RunsProgress::default()));
        Self { terminal, out, record, all, traces: None, failure, progress }
    }

    /// The same, which keeps what a page shows.
    pub(super) fn with_traces(self, traces: Option<&'a TraceSet>) -> Self {
        Self { traces, ..self }
    }

    pub(super) fn carry_out(&self, run: &PointRun<'_>) -> RunResult {
        let watched = RunObserver { runs: self, share: Cell::new(0.0), simulated: Cell::new(Time::ZERO) };
        if !watched.go_on(0) {
            return RunResult::Missing;
        }
        let result = self.simulate(run, &watched);
        watched.ends();
        result.unwrap_or_else(|failure| {
            if let Ok(mut first) = self.failure.lock() {
                first.get_or_insert(failure);
            }
            RunResult::Missing
        })
    }

    pub(super) fn failure(self) -> Result<(), Failure> {
        match self.failure.into_inner() {
            Ok(Some(failure)) => Err(failure),
            _ => Ok(()),
        }
    }

    fn simulate(&self, run: &PointRun<'_>, progress: &dyn Progress) -> Result<RunResult, Failure> {
        let outside = |error: &dyn std::fmt::Display| Failure::Outside(error.to_string());
        let outcome = match &self.record {
            Some(record) => record.simulate(run, progress)?,
            None => sim::net::run(run.setup(), progress).map_err(|error| outside(&error))?,
        };
        let digest = RunDigest::of(run.point, &outcome);
        if let Some(traces) = self.traces {
            traces.keep(run, &outcome);
        }
        if outcome.interrupted {
            return Ok(RunResult::Partial(digest));
        }
        if let Some(out) = self.out {
            write_run(&run.folder(out), run.point, &outcome).map_err(|error| outside(&error))?;
        }
        Ok(RunResult::Complete(digest))
    }

    /// Shows that some run has come farther.
    fn advance(&self, change: impl FnOnce(&mut RunsProgress)) {
        let Ok(mut progress) = self.progress.lock() else { return };
        change(&mut progress);
        let RunsProgress { ended, share, simulated } = *progress;
        let text = format!("{ended} of {} runs, {simulated} simulated", self.all);
        self.terminal.show(share / self.all.max(1) as f64, text);
    }
}

/// One run, on its thread.
struct RunObserver<'a> {
    runs: &'a RunSet<'a>,
    share: Cell<f64>,
    simulated: Cell<Time>,
}

impl RunObserver<'_> {
    fn ends(&self) {
        let more = 1.0 - self.share.replace(1.0);
        self.runs.advance(|progress| {
            progress.ended += 1;
            progress.share += more;
        });
    }
}

impl Progress for RunObserver<'_> {
    fn go_on(&self, done: u64) -> bool {
        self.runs.terminal.go_on(done) && self.runs.failure.lock().is_ok_and(|failure| failure.is_none())
    }

    fn simulated(&self, now: Time, share: f64) {
        // The expected total may grow; the bar does not go back.
        let more = (share - self.share.get()).max(0.0);
        self.share.set(self.share.get() + more);
        let longer = now.since(self.simulated.replace(now));
        self.runs.advance(|progress| {
            progress.share += more;
            progress.simulated += longer;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::Scenario;

    #[test]
    fn the_bar_moves_within_a_run() {
        let text = "topology = { kind = 'pair', rate = '100G' }\n\
                    [[traffic]]\ntransport = 'dctcp'\nwork = 'bulk'\nfrom = 'h0'\nto = 'h1'\nsize = '300MB'\n";
        let scenario = Scenario::parse("it.toml", text, &[]).unwrap();
        let terminal = TerminalProgress::of_shares();
        let runs = RunSet::new(&terminal, None, None, 2);
        let watched = RunObserver { runs: &runs, share: Cell::new(0.0), simulated: Cell::new(Time::ZERO) };
        let positions = std::cell::RefCell::new(Vec::new());
        struct Noting<'a>(&'a RunObserver<'a>, &'a std::cell::RefCell<Vec<f64>>);
        impl Progress for Noting<'_> {
            fn go_on(&self, _done: u64) -> bool {
                self.1.borrow_mut().push(self.0.runs.terminal.shown());
                true
            }

            fn simulated(&self, now: Time, share: f64) {
                self.0.simulated(now, share);
            }
        }
        let run = PointRun { point: &scenario.points[0], seed: 1, exact: false };
        assert!(matches!(runs.simulate(&run, &Noting(&watched, &positions)), Ok(RunResult::Complete(_))));
        let positions = positions.into_inner();
        assert!(positions.len() >= 5, "{positions:?}");
        assert!(
            positions.is_sorted() && positions[positions.len() / 2] > 0.1,
            "half of one of two runs: {positions:?}"
        );
        assert!(positions.last().is_some_and(|last| (0.3..=0.5).contains(last)), "{positions:?}");
        watched.ends();
        assert!((terminal.shown() - 0.5).abs() < 0.01);
    }
}

//! Runs whose TCP connections are recorded.

use std::fs;
use std::path::Path;

use results::replay::{LogFolder, LogLevel};
use sim::net::NetworkOutcome;
use sim::net::recording::{Recording, has_tcp, refused_control};
use units::Progress;

use super::runs::PointRun;
use crate::output::{CommandResult, Failure};
use crate::results::unwritten;

/// Folder for logs, and their level.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunRecord<'a> {
    pub folder: &'a Path,
    pub level: LogLevel,
}

impl RunRecord<'_> {
    /// Checks the options before anything runs.
    pub(super) fn check(&self, runs: &[PointRun<'_>]) -> CommandResult {
        let wrong =
            |what: &dyn std::fmt::Display| Failure::Usage(format!("--record {}: {what}", self.folder.display()));
        let is_empty = match fs::read_dir(self.folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(wrong(&error)),
        };
        if !is_empty {
            return Err(wrong(&"expected an empty or absent folder"));
        }
        let mut last = 0;
        for run in runs {
            if run.point.number == last {
                continue;
            }
            let setup = run.point.setup(run.seed);
            if !has_tcp(&setup) {
                return Err(wrong(&"nothing to record: no traffic is TCP"));
            }
            if let Some(control) = refused_control(&setup, self.level) {
                let problem = format!(
                    "--record-level {}: not for {control}, which follows measured times continuously: nearly every acknowledgement \
                     would be a decision; expected --record-level times",
                    self.level.name()
                );
                return Err(Failure::Usage(problem));
            }
            last = run.point.number;
        }
        fs::create_dir_all(self.folder).map_err(|error| wrong(&error))
    }

    pub(super) fn simulate(&self, run: &PointRun<'_>, progress: &dyn Progress) -> Result<NetworkOutcome, Failure> {
        let folder = run.folder(self.folder);
        let unwritten = |error: std::io::Error| {
            self.remove_empty(&folder);
            unwritten("--record", &error)
        };
        let mut logs = LogFolder::new(&folder).map_err(unwritten)?;
        let setup = run.point.setup(run.seed);
        let mut recording = Recording::new(&setup, run.point.number as u32, self.level, &mut logs);
        let outcome = sim::net::run_recorded(setup, &mut recording, progress);
        let outcome = outcome.map_err(|error| Failure::Outside(error.to_string()))?;
        if !outcome.interrupted {
            logs.finish().map_err(unwritten)?;
        }
        Ok(outcome)
    }

    /// Removes folders that were made for runs which did not end: the next recording wants them empty or absent.
    pub(super) fn remove_unused(&self, runs: &[PointRun<'_>]) {
        runs.iter().for_each(|run| self.remove_empty(&run.folder(self.folder)));
    }

    /// Removes the empty folders above one that was not written.
    fn remove_empty(&self, folder: &Path) {
        let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(self.folder));
        above.for_each(|above| _ = fs::remove_dir(above));
    }
}

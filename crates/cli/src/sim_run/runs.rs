//! Runs of a scenario, several at a time.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use report::flows::{Digest, file_name, write_run};
use sim::link::Watch;
use sim::scenario::Point;

use crate::output::Failure;
use crate::watch::Terminal;

/// One point with one seed.
#[derive(Debug)]
pub struct Run<'a> {
    pub point: &'a Point,
    pub seed: u64,
}

/// Names of folders longer than this are refused by some file systems.
const LONGEST_NAME: usize = 200;

impl Run<'_> {
    /// Where its files go.
    fn folder(&self, out: &Path) -> PathBuf {
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

/// What all runs share. The first failure ends them all.
#[derive(Debug)]
pub struct Runs<'a> {
    terminal: &'a Terminal,
    out: Option<&'a Path>,
    failure: Mutex<Option<Failure>>,
}

impl<'a> Runs<'a> {
    pub fn new(terminal: &'a Terminal, out: Option<&'a Path>) -> Self {
        Self { terminal, out, failure: Mutex::new(None) }
    }

    /// `None` if it did not come to its end.
    pub fn carry_out(&self, run: &Run<'_>) -> Option<Digest> {
        if !self.go_on(0) {
            return None;
        }
        let digest = self.simulate(run);
        self.terminal.run_done();
        digest.unwrap_or_else(|failure| {
            if let Ok(mut first) = self.failure.lock() {
                first.get_or_insert(failure);
            }
            None
        })
    }

    pub fn failure(self) -> Result<(), Failure> {
        match self.failure.into_inner() {
            Ok(Some(failure)) => Err(failure),
            _ => Ok(()),
        }
    }

    fn simulate(&self, run: &Run<'_>) -> Result<Option<Digest>, Failure> {
        let outside = |error: &dyn std::fmt::Display| Failure::Outside(error.to_string());
        let outcome = sim::net::run(run.point.setup(run.seed), self).map_err(|error| outside(&error))?;
        if outcome.interrupted {
            return Ok(None);
        }
        if let Some(out) = self.out {
            write_run(&run.folder(out), run.point, &outcome).map_err(|error| outside(&error))?;
        }
        Ok(Some(Digest::of(run.point, &outcome)))
    }
}

impl Watch for Runs<'_> {
    fn go_on(&self, done: u64) -> bool {
        self.terminal.go_on(done) && self.failure.lock().is_ok_and(|failure| failure.is_none())
    }
}

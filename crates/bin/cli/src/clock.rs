//! `hitless clock`: plans for clocks, and what is done with them. One file for each command.

mod check;
mod diff;
mod graph;
mod live;
mod plan;
mod ptp4l;
#[cfg(feature = "research")]
mod simulate;

use std::path::Path;
use std::process::ExitCode;

use clock::plan::{PlanFile, PlanFileError};

#[cfg(not(feature = "research"))]
use crate::absent::simulate;
use crate::args::ClockCommand;
use crate::output::Failure;

pub(crate) fn run(command: &ClockCommand, json: bool) -> Result<ExitCode, Failure> {
    match command {
        ClockCommand::Plan(args) => plan::run(args, json).map(|()| ExitCode::SUCCESS),
        ClockCommand::Check(args) => check::run(args, json),
        ClockCommand::Diff(args) => diff::run(args, json).map(|()| ExitCode::SUCCESS),
        ClockCommand::Simulate(args) => simulate::run(args, json).map(|()| ExitCode::SUCCESS),
        ClockCommand::Live(command) => live::run(command, json).map(|()| ExitCode::SUCCESS),
    }
}

/// A plan's file and its text.
fn load_plan(path: &Path) -> Result<(PlanFile, String), Failure> {
    let text = plan_text(path)?;
    let file = PlanFile::parse(&text).map_err(|error| wrong_plan(path, &error))?;
    Ok((file, text))
}

fn plan_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

fn wrong_plan(path: &Path, error: &PlanFileError) -> Failure {
    let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
    Failure::Usage(format!("{}{line}: {error}", path.display()))
}

//! `hitless replay`: connections that were recorded, run again.

mod queues;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use results::replay::{ReplayChoice, ReplayReport, find_logs, replay_logs, replay_text, replay_trials};

use crate::args::{ReplayArgs, ReplayCommand, ReplayLogArgs};
use crate::output::{Failure, print};
use crate::results::unwritten;
use crate::terminal::{end_on_ctrl_c, jobs};

pub(crate) fn run(args: &ReplayArgs, json: bool) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(ReplayCommand::Queues(args)) => queues::run(args, json).map(|()| ExitCode::SUCCESS),
        None => run_logs(&args.connections, json),
    }
}

/// 0 if all are exact, 1 if one differs.
fn run_logs(args: &ReplayLogArgs, json: bool) -> Result<ExitCode, Failure> {
    let report = match (&args.logs, args.trials) {
        (Some(path), _) => of_logs(path, args)?,
        (None, trials) => {
            let seeds = args.seed..args.seed + trials.unwrap_or_default();
            replay_trials(seeds, jobs(args.jobs)).map_err(Failure::Outside)?
        }
    };
    if let Some(path) = args.write.as_ref().filter(|_| report.is_exact()) {
        end_on_ctrl_c();
        report.write_frames(path).map_err(|error| unwritten("--write", &error))?;
    }
    print(json, &report, || replay_text(&report))?;
    Ok(ExitCode::from(u8::from(!report.is_exact())))
}

fn of_logs(path: &Path, args: &ReplayLogArgs) -> Result<ReplayReport, Failure> {
    let wrong = |what: String| Failure::Usage(format!("{}: {what}", path.display()));
    let logs = find(path)?;
    let (trace, frames) = (args.trace.clone(), args.write.is_some());
    let choice = ReplayChoice { flow: args.flow, trace, frames, jobs: jobs(args.jobs) };
    let report = replay_logs(&logs, &choice).map_err(Failure::Usage)?;
    match args.flow {
        Some(flow) if report.connections.is_empty() => Err(wrong(format!("no connection of number {flow}"))),
        _ => Ok(report),
    }
}

/// All logs of a folder; there is at least one.
fn find(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |what: &dyn std::fmt::Display| Failure::Usage(format!("{}: {what}", path.display()));
    let logs = find_logs(path).map_err(|error| wrong(&error))?;
    if logs.is_empty() {
        return Err(wrong(&"no log in it: expected a folder that sim run --record wrote"));
    }
    Ok(logs)
}

//! `hitless replay`: connections that were recorded, run again.

use std::path::Path;
use std::process::ExitCode;

use report::replay::{ReplayChoice, ReplayReport, find_logs, replay_logs, replay_text, replay_trials};

use crate::args::ReplayArgs;
use crate::output::{Failure, print};
use crate::terminal::jobs;

/// 0 if all are exact, 1 if one differs.
pub(crate) fn run(args: &ReplayArgs, json: bool) -> Result<ExitCode, Failure> {
    let report = match (&args.logs, args.trials) {
        (Some(path), _) => of_logs(path, args)?,
        (None, trials) => {
            let seeds = args.seed..args.seed + trials.unwrap_or_default();
            replay_trials(seeds, jobs(args.jobs)).map_err(Failure::Outside)?
        }
    };
    if let Some(path) = args.write.as_ref().filter(|_| report.is_exact()) {
        report.write_frames(path).map_err(|error| Failure::Outside(error.to_string()))?;
    }
    print(json, &report, || replay_text(&report))?;
    Ok(ExitCode::from(u8::from(!report.is_exact())))
}

fn of_logs(path: &Path, args: &ReplayArgs) -> Result<ReplayReport, Failure> {
    let wrong = |what: String| Failure::Usage(format!("{}: {what}", path.display()));
    let logs = find_logs(path).map_err(|error| wrong(error.to_string()))?;
    if logs.is_empty() {
        return Err(wrong("no log in it: expected a folder that sim run --record wrote".to_owned()));
    }
    let (trace, frames) = (args.trace.clone(), args.write.is_some());
    let choice = ReplayChoice { flow: args.flow, trace, frames, jobs: jobs(args.jobs) };
    let report = replay_logs(&logs, &choice).map_err(Failure::Usage)?;
    match args.flow {
        Some(flow) if report.connections.is_empty() => Err(wrong(format!("no connection of number {flow}"))),
        _ => Ok(report),
    }
}

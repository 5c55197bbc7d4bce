//! `hitless explain selftest`: what is said of captures, held against what happened.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use linux::net::become_root_of_own_namespaces;
use selftest::agreement::{self, AgreementPlan};
use selftest::batch::{self, SelftestPlan};
use selftest::case::TestCase;

use crate::args::SelftestArgs;
use crate::output::{Failure, print};
use crate::terminal::TerminalProgress;

/// 0 if all is right, 1 if not.
pub(super) fn run(args: &SelftestArgs, json: bool) -> Result<ExitCode, Failure> {
    let keep = args.keep.as_deref();
    keep.map_or(Ok(()), make_folder)?;
    // Before anything starts a thread: afterwards the kernel refuses it.
    become_root_of_own_namespaces(false)
        .map_err(|error| Failure::Outside(format!("this machine does not let us have network namespaces: {error}")))?;
    let terminal = TerminalProgress::of_runs();
    let (is_right, is_complete) = if args.agreement {
        let plan = AgreementPlan { connections: args.connections, seed: args.seed, keep };
        let report = agreement::run(&plan, &terminal);
        terminal.finish();
        let report = report.map_err(|error| Failure::Outside(error.0))?;
        print(json, &report, || report.text())?;
        (report.holds, report.complete)
    } else {
        let cases = if args.only.is_empty() { &TestCase::ALL[..] } else { &args.only };
        let plan = SelftestPlan { cases, runs: args.runs, seed: args.seed, keep };
        let report = batch::run(&plan, &terminal);
        terminal.finish();
        let report = report.map_err(|error| Failure::Outside(error.0))?;
        print(json, &report, || report.text())?;
        (report.wrong == 0, report.complete)
    };
    if !is_complete {
        return Err(Failure::Interrupted);
    }
    Ok(ExitCode::from(u8::from(!is_right)))
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::Usage(format!("--keep {}: {error}", path.display())))
}

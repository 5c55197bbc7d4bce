//! `hitless sim cc`.

use results::congestion::{self, CongestionSettings};

use crate::args::{CcArgs, PfcArg};
use crate::output::{CommandResult, Failure, print, put};
use crate::terminal::{TerminalProgress, jobs};

pub(super) fn run(args: &CcArgs, json: bool) -> CommandResult {
    let settings = settings(args);
    congestion::check(&settings).map_err(Failure::Usage)?;
    if args.scenario && json {
        return Err(Failure::Usage("--scenario: a file for sim run is TOML; expected without --json".into()));
    }
    if args.scenario {
        let first = settings.controllers.first().copied().unwrap_or_default();
        return put(congestion::scenario_text(&settings, first).trim_end());
    }
    let terminal = TerminalProgress::of_runs();
    let rows = congestion::compare(&settings, jobs(args.jobs), &terminal);
    terminal.finish();
    let rows = rows.map_err(Failure::Outside)?;
    print(json, &rows, || congestion::describe(&settings, &rows))?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn settings(args: &CcArgs) -> CongestionSettings {
    CongestionSettings {
        controllers: args.cc.clone(),
        traffic: args.traffic,
        recovery: args.recovery,
        pfc: args.pfc == PfcArg::On,
        loss: args.loss,
        protect: args.protect.clone(),
        plus_window: args.plus_window,
        seed: args.seed,
    }
}

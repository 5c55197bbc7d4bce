//! `hitless sim compare`.

use results::compare;

use crate::args::CompareArgs;
use crate::output::{CommandResult, Failure, print};
use crate::terminal::{TerminalProgress, jobs};

pub(super) fn run(args: &CompareArgs, json: bool) -> CommandResult {
    if let Some(loss) = args.losses.iter().find(|loss| loss.get() < 1e-9 || loss.get() > 0.5) {
        return Err(Failure::Usage(format!("--losses {loss}: expected 1e-9 to 0.5")));
    }
    let terminal = TerminalProgress::of_runs();
    let rows = compare::link_protocols(&args.rates, &args.losses, args.events.0, jobs(args.jobs), args.seed, &terminal);
    terminal.finish();
    let rows = rows.map_err(|error| Failure::Usage(error.to_string()))?;
    print(json, &rows, || {
        format!(
            "full-size frames at line rate, ideal profile, {} losses at each point, seed {}\n{}\n{}",
            args.events,
            args.seed,
            if terminal.stopped() { "interrupted: only what had ended by then\n" } else { "" },
            compare::table(&rows)
        )
    })?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

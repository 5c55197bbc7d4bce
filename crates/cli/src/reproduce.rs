//! `hitless reproduce`.

use report::experiment;
use report::linkguardian::{self, Scale};

use crate::args::{ReproduceArgs, ScaleArg};
use crate::output::{Done, Failure, print};
use crate::watch::{Terminal, jobs};

pub fn run(args: &ReproduceArgs, json: bool) -> Done {
    let prefix = prefix(&args.what)?;
    let scale = match args.scale {
        ScaleArg::Quick => Scale::Quick,
        ScaleArg::Full => Scale::Full,
    };
    let terminal = Terminal::of_runs();
    let rows = linkguardian::reproduce(prefix, scale, jobs(args.jobs), args.seed, &terminal);
    terminal.finish();
    let rows = rows.map_err(|error| Failure::Outside(error.to_string()))?;
    print(json, &rows, || {
        let matching = rows.iter().filter(|row| row.verdict == experiment::Verdict::Match).count();
        format!(
            "{}\n{}{matching} of {} match; {:.0} s, seed {}",
            experiment::table(&rows),
            if terminal.stopped() { "interrupted: only what had ended by then. " } else { "" },
            rows.len(),
            terminal.elapsed().as_secs_f64(),
            args.seed
        )
    })?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The claims meant by `linkguardian`, `linkguardian/link` or `linkguardian/lg.fig8.speed`.
fn prefix(what: &str) -> Result<&str, Failure> {
    let unknown = || {
        let known = linkguardian::experiments().map_or_else(
            |error| error.to_string(),
            |all| all.iter().map(|one| format!("linkguardian/{}", one.id)).collect::<Vec<_>>().join(", "),
        );
        Failure::Usage(format!("{what}: expected linkguardian, linkguardian/link or one of {known}"))
    };
    match what.split_once('/') {
        None if what == "linkguardian" => Ok(""),
        Some(("linkguardian", "link")) => Ok(""),
        Some(("linkguardian", claim)) => {
            let all = linkguardian::experiments().map_err(|error| Failure::Outside(error.to_string()))?;
            let known = !claim.is_empty() && all.iter().any(|one| one.id.starts_with(claim));
            if known { Ok(claim) } else { Err(unknown()) }
        }
        _ => Err(unknown()),
    }
}

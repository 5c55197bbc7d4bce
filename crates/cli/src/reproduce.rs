//! `hitless reproduce`.

use report::experiment::{self, Row, Scale, Verdict};
use report::linkguardian::Claims;

use crate::args::{ReproduceArgs, ScaleArg};
use crate::output::{Done, Failure, print};
use crate::watch::{Terminal, jobs};

pub fn run(args: &ReproduceArgs, json: bool) -> Done {
    let claims = claims(&args.what)?;
    let scale = match args.scale {
        ScaleArg::Quick => Scale::Quick,
        ScaleArg::Full => Scale::Full,
    };
    let terminal = Terminal::of_runs();
    let found = claims.reproduce(scale, jobs(args.jobs), args.seed, &terminal);
    terminal.finish();
    let found = found.map_err(|error| Failure::Outside(error.to_string()))?;
    let rows: Vec<Row> = found.rows().cloned().collect();
    print(json, &rows, || {
        let matching = rows.iter().filter(|row| row.verdict == Verdict::Match).count();
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
fn claims(what: &str) -> Result<Claims, Failure> {
    let all = || Claims::all().map_err(|error| Failure::Outside(error.to_string()));
    let chosen = match what.split_once('/') {
        None if what == "linkguardian" => Some(all()?),
        Some(("linkguardian", claim)) if !claim.is_empty() => all()?.select(claim),
        _ => None,
    };
    let Some(chosen) = chosen else {
        let known: Vec<String> = all()?.ids().map(|id| format!("linkguardian/{id}")).collect();
        let known = known.join(", ");
        let known = format!("linkguardian, linkguardian/link, linkguardian/net or one of {known}");
        return Err(Failure::Usage(format!("{what}: expected {known}")));
    };
    Ok(chosen)
}

//! `hitless sim collective`.

use results::remedies::{
    self, IterationOrigin, ModelAnswer, PageJob, RemedyComparison, RemedySettings, iterations_page, scenario_text,
};

use crate::args::CollectiveArgs;
use crate::model::collective_settings;
use crate::output::{CommandResult, Failure, print, put, say};
use crate::results::{check_file, write_file};
use crate::terminal::{TerminalProgress, jobs};

/// Longer runs say so before they begin.
const LONG_SECONDS: f64 = 600.0;

pub(super) fn run(args: &CollectiveArgs, json: bool) -> CommandResult {
    let settings = settings(args)?;
    settings.check().map_err(Failure::Usage)?;
    if args.scenario && json {
        return Err(Failure::Usage("--scenario: a file for sim run is TOML; expected without --json".into()));
    }
    let first = settings.remedies.first().copied().unwrap_or(collective::model::Remedy::Nothing);
    if args.scenario {
        return put(scenario_text(&settings, first).trim_end());
    }
    if let Some(path) = &args.html {
        check_file("--html", path)?;
    }
    let jobs = jobs(args.jobs);
    warn_of_long_run(&settings, jobs);
    let terminal = TerminalProgress::of_runs();
    let comparison = remedies::compare(&settings, jobs, &terminal);
    terminal.finish();
    let comparison = comparison.map_err(Failure::Outside)?;
    if let Some(path) = &args.html {
        let page = page(&settings, &comparison, &command());
        write_file("--html", path, |out| std::io::Write::write_all(out, page.as_bytes()))?;
    }
    print(json, &comparison, || remedies::describe(&comparison))?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn settings(args: &CollectiveArgs) -> Result<RemedySettings, Failure> {
    Ok(RemedySettings {
        iterations: args.iterations.into(),
        seed: args.seed,
        exact: args.exact,
        ..collective_settings(&args.words)?
    })
}

fn warn_of_long_run(settings: &RemedySettings, jobs: usize) {
    let seconds = settings.expected_seconds() / jobs.min(settings.remedies.len()).max(1) as f64;
    if seconds <= LONG_SECONDS {
        return;
    }
    let long = match seconds / 60.0 {
        minutes if minutes < 120.0 => format!("{minutes:.0} minutes"),
        minutes => format!("{:.0} hours", minutes / 60.0),
    };
    say(&format!(
        "this takes about {long}; fewer --iterations or a smaller --size take less. `hitless model collective` at once:"
    ));
    match ModelAnswer::new(settings) {
        Ok(answer) => say(&answer.sentence()),
        Err(problem) => say(&problem),
    }
}

fn page(settings: &RemedySettings, comparison: &RemedyComparison, command: &str) -> String {
    let runs = comparison.remedies.iter();
    let jobs: Vec<PageJob<'_>> = runs.map(|run| PageJob { trace: &run.trace, summary: &run.collective }).collect();
    let first = settings.remedies.first().copied().unwrap_or(collective::model::Remedy::Nothing);
    let scenario = scenario_text(settings, first);
    iterations_page(&jobs, IterationOrigin { answer: &comparison.answer, command, scenario: &scenario })
}

/// The command line as it was typed.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| super::quoted(&word));
    std::iter::once("hitless".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

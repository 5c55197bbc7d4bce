//! `hitless model collective`.

use collective::CollectiveShape;
use results::remedies::{self, ModelAnswer, RemedySettings, model_text};
use units::Span;

use crate::args::{CollectiveModelArgs, CollectiveWords};
use crate::output::{CommandResult, Failure, print};
use crate::terminal::{TerminalProgress, jobs};

/// Longest time of a setting; no network takes so long.
const LONGEST: Span = Span::from_ms(3_600_000);

pub(super) fn run(args: &CollectiveModelArgs, json: bool) -> CommandResult {
    let settings = settings(&args.words)?;
    let answer = ModelAnswer::new(&settings).map_err(Failure::Usage)?;
    let Some(iterations) = args.simulate else { return print(json, &answer, || model_text(&answer)) };
    let settings = RemedySettings { iterations: iterations.into(), seed: args.seed, ..settings };
    settings.check().map_err(Failure::Usage)?;
    let terminal = TerminalProgress::of_runs();
    let simulated = remedies::compare(&settings, jobs(args.jobs), &terminal);
    terminal.finish();
    let answer = answer.beside(simulated.map_err(Failure::Outside)?);
    print(json, &answer, || model_text(&answer))?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Settings from the command line, for one iteration.
pub(crate) fn settings(words: &CollectiveWords) -> Result<RemedySettings, Failure> {
    for (option, span) in [("--timeout", words.timeout), ("--compute", words.compute)] {
        if span > LONGEST {
            return Err(Failure::Usage(format!("{option} {span}: expected at most an hour")));
        }
    }
    if words.timeout == Span::ZERO {
        return Err(Failure::Usage("--timeout 0: expected more than 0".into()));
    }
    let mut remedies = words.remedy.clone();
    remedies.dedup();
    Ok(RemedySettings {
        shape: CollectiveShape {
            pattern: words.pattern,
            algorithm: words.algorithm.unwrap_or_else(|| words.pattern.usual_algorithm()),
            ranks: words.ranks,
            size: words.size.get(),
            channels: words.channels,
            pieces: words.pieces,
        },
        network: words.topology,
        placement: words.placement,
        rate: words.rate,
        mtu: words.mtu,
        loss: words.loss,
        link: words.link.clone(),
        remedies,
        timeout: words.timeout,
        per_transfer: words.per_transfer,
        barrier: !words.no_barrier,
        compute: words.compute,
        iterations: 1,
        exact: false,
        seed: 1,
    })
}

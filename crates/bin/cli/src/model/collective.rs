//! `hitless model collective`.

use collective::CollectiveShape;
use results::remedies::{ModelAnswer, RemedySettings, model_text};
use units::Span;

use crate::args::CollectiveWords;
use crate::output::{CommandResult, Failure, print};

/// Longest time of a setting; no network takes so long.
const LONGEST: Span = Span::from_ms(3_600_000);

pub(super) fn run(words: &CollectiveWords, json: bool) -> CommandResult {
    let answer = ModelAnswer::new(&settings(words)?).map_err(Failure::Usage)?;
    print(json, &answer, || model_text(&answer))
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
        seed: 1,
    })
}

//! Results that are kept while claims run, and claims that are taken from results of before.

use std::path::Path;

use papers::{Claims, Reproduction, SavedResults, SavedRun};
use report::claim::{ClaimError, ClaimResult};
use report::runner::Effort;

use super::{outside, scale};
use crate::args::ReproduceArgs;
use crate::output::{Failure, say};
use crate::terminal::{TerminalProgress, days_since_1970};

/// Commit of the source that this program was built from.
const COMMIT: &str = env!("HITLESS_COMMIT");

/// Runs the claims of a paper. With `--save` the paper's file is written after each.
pub(super) fn reproduce(
    claims: &Claims,
    args: &ReproduceArgs,
    effort: &Effort<'_>,
    terminal: &TerminalProgress,
) -> Result<Reproduction, Failure> {
    let Some(folder) = &args.save else { return claims.reproduce(effort).map_err(outside) };
    let run = run(claims.paper().name, args);
    let mut saved = known(&run, claims, folder)?;
    // Claims that another program saved are run again.
    let own = saved.claims.iter().filter(|claim| args.resume && claim.commit.is_none());
    let reused: Vec<ClaimResult> = own.filter_map(|claim| claims.saved(claim)).collect();
    if args.resume {
        say(&format!("{}: {} claims from {}", run.paper, reused.len(), run.path(folder).display()));
    }
    let rest = claims.clone().filter(|id| !reused.iter().any(|result| result.id == id));
    let mut results = reused;
    let ran = rest.reproduce_each(effort, &mut |result| {
        // A run that was ended early is incomplete.
        if terminal.stopped() {
            return Ok(());
        }
        saved.add(&result, &today());
        results.push(result);
        saved.write(folder).map_err(ClaimError::new)
    });
    ran.map_err(outside)?;
    let place = |result: &ClaimResult| claims.ids().position(|id| id == result.id);
    results.sort_by_key(place);
    Ok(Reproduction { paper: claims.paper(), results })
}

/// Results as they would be saved.
pub(super) fn results(found: &Reproduction, args: &ReproduceArgs) -> SavedResults {
    let mut saved = SavedResults::new(run(found.paper.name, args));
    found.results.iter().for_each(|result| saved.add(result, &today()));
    saved
}

fn run(paper: &str, args: &ReproduceArgs) -> SavedRun {
    SavedRun { paper: paper.into(), scale: scale(args).to_string(), seed: args.seed, commit: COMMIT.into() }
}

/// Results that were saved with the same scale and seed and are still asked for in the same way.
fn known(run: &SavedRun, claims: &Claims, folder: &Path) -> Result<SavedResults, Failure> {
    let Some(saved) = SavedResults::read(&run.path(folder)).map_err(Failure::Usage)? else {
        return Ok(SavedResults::new(run.clone()));
    };
    let all = claims.paper().claims().map_err(outside)?;
    let mut saved = saved.continued(run);
    saved.claims.retain_mut(|claim| {
        let known = all.saved(claim);
        known.map(|result| claim.points = result.points).is_some()
    });
    Ok(saved)
}

/// Date of today in UTC, such as 2026-11-17.
fn today() -> String {
    let (year, month, day) = date(days_since_1970());
    format!("{year:04}-{month:02}-{day:02}")
}

/// The Gregorian date this many days after 1970-01-01: years begin in March, so that a leap day is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, expected) in
            [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (19_782, (2024, 2, 29)), (20_774, (2026, 11, 17))]
        {
            assert_eq!(date(days), expected);
        }
    }
}

//! Runners, which obtain the values of claims: `link`, `network` and `fleet` make runs and measure them, `computed` asks a
//! function of the paper's module.
//!
//! A runner checks what only it knows of a claim when files are read, and runs claims together, so that they share runs.

pub mod computed;
mod fleet;
mod link;
pub mod network;

use std::fmt;

use units::Progress;

pub use computed::{Computations, Compute, ComputedValues};

use crate::claim::{Claim, ClaimError, ClaimResult, RunScale, Runner};

/// Options for running claims.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    pub scale: RunScale,
    /// Runs at the same time; no result depends on it.
    pub jobs: usize,
    pub seed: u64,
    pub progress: &'a (dyn Progress + Sync),
}

/// Reports errors in a claim before anything runs.
pub fn check(claim: &Claim, computations: Computations) -> Result<(), ClaimError> {
    match claim.runner {
        Runner::Link => link::check(claim),
        Runner::Network => network::check(claim),
        Runner::Fleet => fleet::check(claim),
        Runner::Computed => computed::check(claim, computations),
    }
}

/// Runs claims one after the other, so that each result is there as soon as it can be; links and years that several
/// claims look at are simulated once. Ends early if `done` fails or the progress says so.
pub fn run_each(
    claims: &[Claim],
    computations: Computations,
    effort: &Effort<'_>,
    done: &mut dyn FnMut(ClaimResult) -> Result<(), ClaimError>,
) -> Result<(), ClaimError> {
    for together in claims.chunk_by(|one, next| one.runner == next.runner) {
        match together[0].runner {
            Runner::Link => link::run_each(together, effort, done)?,
            Runner::Network => {
                for claim in together.chunks(1) {
                    network::run(claim, effort)?.into_iter().try_for_each(&mut *done)?;
                }
            }
            Runner::Fleet => fleet::run(together, effort)?.into_iter().try_for_each(&mut *done)?,
            Runner::Computed => computed::run_each(together, computations, effort, done)?,
        }
    }
    Ok(())
}

/// Runs claims; consecutive claims of the same runner run together. What was stopped early is missing.
pub fn run(claims: &[Claim], computations: Computations, effort: &Effort<'_>) -> Result<Vec<ClaimResult>, ClaimError> {
    let mut results = Vec::new();
    for together in claims.chunk_by(|one, next| one.runner == next.runner) {
        results.extend(match together[0].runner {
            Runner::Link => link::run(together, effort)?,
            Runner::Network => network::run(together, effort)?,
            Runner::Fleet => fleet::run(together, effort)?,
            Runner::Computed => computed::run(together, computations, effort)?,
        });
    }
    Ok(results)
}

impl fmt::Debug for Effort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scale, jobs, seed, progress: _ } = self;
        f.debug_struct("Effort").field("scale", scale).field("jobs", jobs).field("seed", seed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::measure::markdown;

    #[test]
    fn the_documentation_lists_every_measure() {
        let docs = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/claims.md"));
        let docs = format!("{docs}\n");
        let tables = [markdown(link::MEASURES), markdown(network::MEASURES), markdown(fleet::MEASURES)];
        for table in tables {
            assert!(docs.contains(&format!("| --- | --- | --- |\n{table}\n")), "docs/claims.md should have\n{table}");
        }
    }
}

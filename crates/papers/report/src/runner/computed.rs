//! Claims whose values a function of ours computes: closed forms, accounts of memory, counts held against a model.
//!
//! The file still says, before anything runs, what is claimed and within which band each value must lie; the function
//! only gives values by name.

use super::Effort;
use crate::claim::{Claim, ClaimError, ClaimPoint, ClaimResult, MeasuredValue};
use chart::Chart;
use parallel::Stopwatch;

/// Values that a function computed for a claim.
#[derive(Clone, Debug, Default)]
pub struct ComputedValues {
    /// Values by name; `None` if this scale has too few events.
    pub values: Vec<(String, Option<MeasuredValue>)>,
    pub charts: Vec<Chart>,
    /// Notes beside those of the file.
    pub notes: Vec<String>,
}

/// `None` if the watch ended it early.
pub(crate) type ComputeResult<T> = Result<Option<T>, ClaimError>;

/// The function of a claim, or of several that share their runs.
#[derive(Clone, Copy, Debug)]
pub enum Compute {
    One(fn(&Effort<'_>) -> ComputeResult<ComputedValues>),
    /// Takes the ids that are wanted, and computes as many results in their order.
    Several(fn(&Effort<'_>, &[&str]) -> ComputeResult<Vec<ComputedValues>>),
}

/// A paper's functions, by the ids of the claims that they compute.
pub type Computations = &'static [(&'static [&'static str], Compute)];

impl ComputedValues {
    /// `None` if this scale has too little of it.
    pub fn value(&mut self, name: impl Into<String>, measured: impl Into<Option<MeasuredValue>>) {
        self.values.push((name.into(), measured.into()));
    }

    fn find(&self, name: &str) -> Result<Option<MeasuredValue>, ClaimError> {
        let known = || self.values.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let unknown = || ClaimError::new(format_args!("no measure {name}: expected one of {}", known()));
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).ok_or_else(unknown)
    }
}

fn position(computations: Computations, claim: &Claim) -> Option<usize> {
    computations.iter().position(|(ids, _)| ids.contains(&claim.id.as_str()))
}

pub fn check(claim: &Claim, computations: Computations) -> Result<(), ClaimError> {
    position(computations, claim)
        .map(|_| ())
        .ok_or_else(|| claim.error(format_args!("{}: no function computes it", claim.id)))
}

pub fn run(claims: &[Claim], computations: Computations, effort: &Effort<'_>) -> Result<Vec<ClaimResult>, ClaimError> {
    let mut results = Vec::new();
    run_each(claims, computations, effort, &mut |result| {
        results.push(result);
        Ok(())
    })?;
    Ok(results)
}

/// Gives each result as soon as its function has ended.
pub(super) fn run_each(
    claims: &[Claim],
    computations: Computations,
    effort: &Effort<'_>,
    done: &mut dyn FnMut(ClaimResult) -> Result<(), ClaimError>,
) -> Result<(), ClaimError> {
    for together in claims.chunk_by(|one, next| position(computations, one) == position(computations, next)) {
        let begun = Stopwatch::start();
        let computed = match position(computations, &together[0]).map(|at| computations[at].1) {
            Some(Compute::One(compute)) => compute(effort)?.map(|computed| vec![computed]),
            Some(Compute::Several(compute)) => {
                let ids: Vec<&str> = together.iter().map(|claim| claim.id.as_str()).collect();
                compute(effort, &ids)?
            }
            None => None,
        };
        for (claim, computed) in together.iter().zip(computed.into_iter().flatten()) {
            done(judge(claim, computed, begun.seconds())?)?;
        }
    }
    Ok(())
}

fn judge(claim: &Claim, computed: ComputedValues, seconds: f64) -> Result<ClaimResult, ClaimError> {
    let value = |point| {
        let value = computed.find(claim.measure(point));
        value.map(|value| (point, value)).map_err(|error| claim.error_at(point, "measure", error))
    };
    let values = claim.point.iter().map(value).collect::<Result<Vec<(&ClaimPoint, _)>, _>>()?;
    let mut result = ClaimResult::judge(claim, &values, seconds);
    result.charts = computed.charts;
    result.notes.extend(computed.notes);
    Ok(result)
}

//! hpcc.parking-lot: Eq. 2.7 in the simulator, on two links in a row (§2.4.2).

use report::claim::ClaimError;
use report::runner::{ComputedValues, Effort};

use super::runs::{HpccRun, HpccTask, SeedValues, run_all};

/// Registers by name, and α.
const REGISTERS: [(&str, Option<u32>); 5] =
    [("alpha", Some(1)), ("alpha", Some(2)), ("alpha", Some(4)), ("per-hop", None), ("one", None)];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let task = |(registers, alpha): (&str, Option<u32>)| {
        let task = HpccTask::new("parking-lot.toml", &[]).with(format!("traffic.hpcc.registers={registers}"));
        alpha.map_or(task.clone(), |alpha| task.with(format!("traffic.hpcc.alpha={alpha}")))
    };
    let tasks: Vec<HpccTask> = REGISTERS.into_iter().map(task).collect();
    let slow = task(REGISTERS[0]).with("traffic.hpcc.w_ai=80");
    let Some(runs) = run_all(effort, &[tasks, vec![slow]].concat())? else { return Ok(None) };
    let name = |(registers, alpha): (&str, Option<u32>)| alpha.map_or(registers.to_owned(), |alpha| alpha.to_string());
    let names = REGISTERS.into_iter().map(name).chain(["1.80B".to_owned()]);
    let mut computed = ComputedValues::default();
    computed.values.extend(names.zip(&runs).map(|(name, runs)| (name, SeedValues::from(runs, share).mean())));
    Ok(Some(computed))
}

/// Share of the first link's payload that belongs to the flow over both links, once they have settled.
fn share(run: &HpccRun) -> Option<f64> {
    let means = run.means(5_000.0, 10_000.0);
    Some(means.first()? / (means.first()? + means.get(1)?))
}

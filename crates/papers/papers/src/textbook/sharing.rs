//! tb.sharing: one flow of BBR beside one of CUBIC at a port whose buffer is some products of bandwidth and delay.

use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

use crate::files;

/// Buffers in products of bandwidth and delay: 50 Mb/s for 40 ms.
const BUFFERS: [u32; 4] = [2, 4, 8, 16];
const PRODUCT: u32 = 250_000;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let seeds = if effort.scale == RunScale::Quick { 2 } else { 10 };
    let with = |buffer| (0..seeds).map(move |n| (buffer, effort.seed.wrapping_mul(1_000) + n));
    let tasks: Vec<(u32, u64)> = BUFFERS.into_iter().flat_map(with).collect();
    effort.progress.expect_parts(tasks.len());
    let shares = parallel::map(&tasks, effort.jobs, |(buffer, seed)| run(*buffer, *seed, effort));
    let Some(shares) = shares.into_iter().collect::<Result<Option<Vec<f64>>, _>>()? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for (buffer, shares) in BUFFERS.iter().zip(shares.chunks(seeds as usize)) {
        let share = shares.iter().sum::<f64>() / shares.len() as f64;
        computed.value(format!("{buffer}"), MeasuredValue::exact(share, seeds));
    }
    Ok(Some(computed))
}

/// Share of all payload that BBR gets; `None` if it was stopped.
fn run(buffer: u32, seed: u64, effort: &Effort<'_>) -> Result<Option<f64>, ClaimError> {
    let sets = [format!("switch.port_limit={}", buffer * PRODUCT)];
    let setup = files::setup("textbook/sharing-network.toml", &sets, seed)?;
    let outcome = sim::net::run(setup, effort.progress).map_err(ClaimError::new)?;
    effort.progress.part_done();
    let of = |traffic| {
        let flows = outcome.flows.iter().filter(|flow| flow.traffic == traffic);
        flows.map(|flow| flow.received).sum::<u64>() as f64
    };
    let (bbr, cubic) = (of(0), of(1));
    Ok((!outcome.interrupted).then_some(bbr / (bbr + cubic)))
}

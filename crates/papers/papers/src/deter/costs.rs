//! Cost of 5 µs instead of 2 µs in det.queue at 30 % load, with one parameter changed at a time.

use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::Effort;
use sim::net::queue_replay::{QueueDifference, ReplayTags, compare};
use sim::net::{NetworkSetup, TransportSetup};
use units::{Span, Time};

use super::network::{LOAD_FILE, ONE_IN, load_sets};
use super::runs::{self, CLOCKS_APART};

/// One thing that is not as in the claim.
#[derive(Clone, Copy)]
struct CostVariant {
    name: &'static str,
    change: fn(&mut NetworkSetup),
    /// Clocks are up to this far apart.
    clocks: Span,
    /// Share of the run after which measuring begins, in percent.
    from: u64,
}

const HALF: u64 = 50;

const VARIANTS: [CostVariant; 4] = [
    CostVariant { name: "small-packets", change: small_packets, clocks: CLOCKS_APART, from: HALF },
    CostVariant { name: "no-incasts", change: |setup| setup.traffic.truncate(1), clocks: CLOCKS_APART, from: HALF },
    CostVariant { name: "same-clocks", change: |_| (), clocks: Span::ZERO, from: HALF },
    CostVariant { name: "from-start", change: |_| (), clocks: CLOCKS_APART, from: 0 },
];

/// Payload that fits three times into that of 1,500 bytes.
const SMALL: u32 = 482;

fn small_packets(setup: &mut NetworkSetup) {
    for traffic in &mut setup.traffic {
        if let TransportSetup::Tcp(config) = &mut traffic.transport {
            config.mss = SMALL;
        }
    }
}

/// Values of the claim by name.
type CostValues = Vec<(String, Option<MeasuredValue>)>;

/// `None` if it was stopped early.
pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<CostValues>, ClaimError> {
    effort.progress.expect_parts(VARIANTS.len());
    let mut values = CostValues::new();
    for result in parallel::map(&VARIANTS, effort.jobs, |variant| cost(variant, effort)) {
        let Some((name, [less, usual])) = result? else { return Ok(None) };
        let mut value = |of: &str, value: f64| {
            values.push((format!("why.{name}.{of}"), Some(MeasuredValue::exact(value, usual.views))));
        };
        value("mean", usual.mean - less.mean);
        value("p99", usual.p99 - less.p99);
        value("5us.p99", usual.p99);
    }
    Ok(Some(values))
}

/// A variant at 2 µs and at 5 µs.
type CostPair = (&'static str, [QueueDifference; 2]);

fn cost(variant: &CostVariant, effort: &Effort<'_>) -> Result<Option<CostPair>, ClaimError> {
    let mut setup = runs::setup(LOAD_FILE, &load_sets(30, effort.scale == RunScale::Full), effort.seed)?;
    (variant.change)(&mut setup);
    let Some(recording) = runs::record(&setup, ONE_IN, effort)? else { return Ok(None) };
    let from = Time::ZERO + Span::from_ps(setup.until.as_ps() / 100 * variant.from);
    let mut differences = [QueueDifference::default(); 2];
    for (us, difference) in [2, 5].into_iter().zip(&mut differences) {
        let (connections, _) = runs::sampled(&setup, &recording, Span::from_us(us), variant.clocks)?;
        let replay = runs::replay(&setup, &connections, ReplayTags::Used, ONE_IN, effort)?;
        let Some(replay) = replay else { return Ok(None) };
        *difference = compare(&recording, &replay, from).queues;
    }
    effort.progress.part_done();
    Ok(Some((variant.name, differences)))
}

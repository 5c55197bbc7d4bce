//! Corruptions of links, with their times, losses and repair times: LinkGuardian (SIGCOMM'23) App. D.
//!
//! Each link has a stream of randomness of its own, so what happens to it depends on nothing but the seed and its
//! number. From one corruption of a link to the next passes a time that is Weibull distributed; the loss is drawn from
//! the buckets of Table 1; how long a repair would take is drawn as well, so that every policy sees the same luck.
//!
//! Corruptions are drawn one after another without regard to repairs, as the authors do. With shape 1, theirs, the
//! process has no memory: to skip those that hit a link that is disabled is the same as to start its clock when it is
//! repaired. With other shapes it is an approximation.
//!
//! Invariant: a trace is sorted by time, and then by link.

mod file;

use std::fmt;
use std::time::Duration;

use faults::Random;
use units::Moment;

pub use file::{load, parse, write_csv};

use crate::fabric::{Fabric, LinkId};

/// A link that begins to corrupt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorruptionEvent {
    pub at: Moment,
    pub link: LinkId,
    /// Share of frames, more than 0 and at most 1.
    pub loss: f64,
    /// Time from the disabling of a link until it is repaired.
    pub repair: Duration,
}

/// Links that corrupt this much, and how many of all do, relative to the other buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossBucket {
    pub from: f64,
    pub to: f64,
    pub weight: f64,
}

/// Distribution of losses within a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketSpread {
    /// Uniform as in the authors' code: most are near the upper end.
    #[default]
    Uniform,
    /// Every order of magnitude alike.
    LogUniform,
}

/// Repairs that take this long, and how many of all do, relative to the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepairTime {
    pub takes: Duration,
    pub weight: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TraceModel {
    /// Mean time to failure of a link, in hours.
    pub mttf: f64,
    /// β: 1 for failures without memory, less for infant mortality, more for wear.
    pub shape: f64,
    pub buckets: Vec<LossBucket>,
    pub within: BucketSpread,
    pub repairs: Vec<RepairTime>,
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Table 1; it ends at 1e-2 in the authors' code.
pub const TABLE_1: [LossBucket; 4] = [
    LossBucket { from: 1e-8, to: 1e-5, weight: 47.23 },
    LossBucket { from: 1e-5, to: 1e-4, weight: 18.43 },
    LossBucket { from: 1e-4, to: 1e-3, weight: 21.66 },
    LossBucket { from: 1e-3, to: 1e-2, weight: 12.67 },
];

impl Default for TraceModel {
    /// The paper's.
    fn default() -> Self {
        Self {
            mttf: 10_000.0,
            shape: 1.0,
            buckets: TABLE_1.to_vec(),
            within: BucketSpread::Uniform,
            repairs: vec![
                RepairTime { takes: DAY.saturating_mul(2), weight: 80.0 },
                RepairTime { takes: DAY.saturating_mul(4), weight: 20.0 },
            ],
        }
    }
}

/// Error in a model, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError(String);

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ModelError {}

/// Smallest shape; below it failures come in bursts that no mean describes.
const LEAST_SHAPE: f64 = 0.3;
const MOST_SHAPE: f64 = 100.0;

/// Most corruptions that fit the memory of a small machine.
const MOST_CORRUPTIONS: f64 = 5e7;

impl TraceModel {
    pub fn check(&self) -> Result<(), ModelError> {
        let wrong = |what: String| Err(ModelError(what));
        if !(self.mttf > 0.0 && self.mttf.is_finite()) {
            return wrong(format!("mean time to failure {}: expected a number of hours above 0", self.mttf));
        }
        if !(LEAST_SHAPE..=MOST_SHAPE).contains(&self.shape) {
            return wrong(format!("shape {}: expected {LEAST_SHAPE} to {MOST_SHAPE}", self.shape));
        }
        for LossBucket { from, to, .. } in &self.buckets {
            if !(*from > 0.0 && from <= to && *to <= 1.0) {
                return wrong(format!("losses from {from} to {to}: expected more than 0, not falling, and at most 1"));
            }
        }
        check_weights("losses", self.buckets.iter().map(|bucket| bucket.weight))?;
        check_weights("repairs", self.repairs.iter().map(|repair| repair.weight))
    }

    /// Draws the corruptions of a fabric's links until a time.
    pub fn generate(&self, fabric: &Fabric, until: Moment, seed: u64) -> Result<Vec<CorruptionEvent>, ModelError> {
        self.check()?;
        let links = fabric.links().len();
        let expected = links as f64 * until.as_hours() / self.mttf;
        if expected > MOST_CORRUPTIONS {
            let [about, most] = [expected, MOST_CORRUPTIONS].map(|count| count / 1e6);
            let problem = format!("about {about:.0} million corruptions: expected at most {most} million");
            return Err(ModelError(problem));
        }
        let mut trace = Vec::with_capacity((expected * 1.1) as usize);
        for link in (0..links as u32).map(LinkId) {
            self.of_link(link, until, Random::new(seed, u64::from(link.0)), &mut trace);
        }
        sort(&mut trace);
        Ok(trace)
    }

    fn of_link(&self, link: LinkId, until: Moment, mut random: Random, trace: &mut Vec<CorruptionEvent>) {
        let scale = self.mttf / gamma(1.0 + 1.0 / self.shape);
        let end = until.as_hours();
        let mut hours = 0.0;
        loop {
            let lifetimes = random.exponential();
            hours += scale * if self.shape == 1.0 { lifetimes } else { lifetimes.powf(1.0 / self.shape) };
            if hours >= end {
                return;
            }
            let loss = self.loss(&mut random);
            let repair = pick(&self.repairs, |repair| repair.weight, &mut random).takes;
            trace.push(CorruptionEvent { at: Moment::from_hours(hours), link, loss, repair });
        }
    }

    fn loss(&self, random: &mut Random) -> f64 {
        let LossBucket { from, to, .. } = *pick(&self.buckets, |bucket| bucket.weight, random);
        let place = random.unit();
        match self.within {
            BucketSpread::Uniform => from + place * (to - from),
            BucketSpread::LogUniform => from * (to / from).powf(place),
        }
    }
}

fn check_weights(what: &str, weights: impl Iterator<Item = f64>) -> Result<(), ModelError> {
    let mut sum = 0.0;
    for weight in weights {
        if !(weight >= 0.0 && weight.is_finite()) {
            return Err(ModelError(format!("weight {weight} of {what}: expected 0 or more")));
        }
        sum += weight;
    }
    if sum > 0.0 && sum.is_finite() {
        return Ok(());
    }
    Err(ModelError(format!("weights of {what}: expected at least one above 0")))
}

/// One of several, each as likely as its weight says.
fn pick<'a, T>(items: &'a [T], weight: impl Fn(&T) -> f64, random: &mut Random) -> &'a T {
    let mut left = random.unit() * items.iter().map(&weight).sum::<f64>();
    let chosen = items.iter().find(|item| {
        left -= weight(item);
        left < 0.0
    });
    // Rounding may leave a hair; then it is the last that can be.
    chosen.or_else(|| items.iter().rfind(|item| weight(item) > 0.0)).unwrap_or(&items[items.len() - 1])
}

fn sort(trace: &mut [CorruptionEvent]) {
    trace.sort_by_key(|corruption| (corruption.at, corruption.link));
}

/// Γ(x) for x of at least 1, to about 1e-9: Stirling's series, from where it is good downwards.
fn gamma(x: f64) -> f64 {
    let mut product = 1.0;
    let mut high = x;
    while high < 10.0 {
        product *= high;
        high += 1.0;
    }
    let series = 1.0 / (12.0 * high) - 1.0 / (360.0 * high.powi(3)) + 1.0 / (1_260.0 * high.powi(5));
    let stirling = (high - 0.5) * high.ln() - high + 0.5 * (2.0 * std::f64::consts::PI).ln() + series;
    stirling.exp() / product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gamma_function_continues_the_factorials() {
        let half = std::f64::consts::PI.sqrt() / 2.0;
        for (x, value) in [(1.0, 1.0), (2.0, 1.0), (3.0, 2.0), (4.0, 6.0), (11.0, 3_628_800.0), (1.5, half)] {
            assert!((gamma(x) / value - 1.0).abs() < 1e-9, "{x}: {}", gamma(x));
        }
    }

    #[test]
    fn what_has_no_weight_is_never_picked() {
        let mut random = Random::new(1, 0);
        let weights = [0.0, 1.0, 0.0];
        for _ in 0..1_000 {
            assert_eq!(pick(&weights, |weight| *weight, &mut random), &1.0);
        }
    }
}

//! The recovered losses of an iteration together.
//!
//! Between two steps of a ring the cable is idle for a while, so that it catches up: a delayed step makes the chunk late, and
//! the next step only if the delay was longer. A late chunk stays late, and meets the cable again when it has gone round. So
//! an iteration is late by about the worst of its losses, and by their sum if the cable is never idle. With L the lag of the
//! cable and X the delays of a step's losses, the chunk of step s is late by A = max(L, A of a lap ago) + X, the next lag is
//! that less the idle time, and the iteration is late by the largest A.

use super::recovery::RecoveryTimes;
use super::{CableLoad, StepPeriod};

/// Levels of lateness that are distinguished: in one step, in several, and in very many.
const LEVELS: [usize; 3] = [400, 160, 80];
/// A curve with this much of the chance is complete.
const COMPLETE: f64 = 1.0 - 1e-6;
/// Rarer combinations are left out.
const RAREST: f64 = 1e-10;
/// Losses in one step that are distinguished, at least.
const FEWEST_LOSSES: usize = 5;

/// Chance of each level of lateness, from 0 in steps of `unit`.
#[derive(Clone, Debug)]
pub(super) struct LatenessCurve {
    chances: Vec<f64>,
    unit: f64,
}

/// A distribution over levels.
type Levels = Vec<f64>;

impl LatenessCurve {
    pub(super) fn new(recovery: &RecoveryTimes, load: &CableLoad, period: StepPeriod) -> Self {
        let losses = load.packets as f64 * recovery.delayed;
        let largest = recovery.spread.at(0).max(recovery.tail_us).max(recovery.lag_us);
        if losses == 0.0 || largest <= 0.0 {
            return Self { chances: vec![1.0], unit: 1.0 };
        }
        // All of them one after the other are the most; in lock step fewer count, and the levels are finer.
        let most = losses + 8.0 * losses.sqrt() + 6.0;
        let steps = f64::from(period.steps.max(1));
        let behind = (losses / steps * recovery.lag_us - period.idle_us).max(0.0) * steps / largest;
        let mut together = if period.idle_us > 0.0 { most.min(8.0 + 1.5 * behind) } else { most };
        loop {
            let curve = Self::up_to(largest * together, recovery, load, period);
            if together >= most || curve.chances.iter().sum::<f64>() > COMPLETE {
                return curve;
            }
            together = most.min(2.0 * together);
        }
    }

    /// The curve below a lateness; what is beyond is missing.
    fn up_to(range: f64, recovery: &RecoveryTimes, load: &CableLoad, period: StepPeriod) -> Self {
        let steps = period.steps.max(1);
        let levels = LEVELS[usize::from(steps > 1) + usize::from(steps > 300)];
        // The cable catches up by whole levels, or the error would grow with each step; where levels are that coarse, by a part of
        // one on average.
        let idle = (period.idle_us * levels as f64 / range).floor();
        let unit = if idle >= 1.0 { period.idle_us / idle } else { range / levels as f64 };
        let levels = (range / unit).ceil() as usize;
        let step = StepDelays::new(recovery, load, steps, (unit, levels));
        let idle = period.idle_us / unit;
        // Chance that nothing was later than a level so far: the largest A is found by its distribution function.
        let (mut chances, mut before) = (Vec::new(), 0.0);
        for limit in 0..levels {
            let below = step.stays_below(limit, steps, period.lap, idle);
            chances.push((below - before).max(0.0));
            before = below;
            if below > COMPLETE {
                break;
            }
        }
        Self { chances, unit }
    }

    pub(super) fn mean(&self) -> f64 {
        self.chances.iter().enumerate().map(|(at, chance)| at as f64 * self.unit * chance).sum()
    }

    /// The quantile of all iterations, of which some wait for timeouts.
    pub(super) fn with_stalls(&self, share: f64, stalls: f64, timeouts: f64, timeout_us: f64) -> f64 {
        let rest = share / (1.0 - stalls);
        if rest <= 1.0 {
            let mut sum = 0.0;
            let found = self.chances.iter().position(|chance| {
                sum += chance;
                sum >= rest - 1e-9
            });
            return found.unwrap_or(self.chances.len()) as f64 * self.unit;
        }
        // Timeouts of an iteration are Poisson distributed, and one lasts longer than anything else.
        let (mut count, mut chance, mut sum) = (0_u32, (-timeouts).exp(), (-timeouts).exp());
        while sum < share && count < 1_000 {
            count += 1;
            chance *= timeouts / f64::from(count);
            sum += chance;
        }
        f64::from(count) * timeout_us
    }
}

/// Delays that the losses of one step add up to.
struct StepDelays {
    /// Chance of each level of A − L.
    chunk: Levels,
    /// The same for the lag that the cable has afterwards, with the delay of the chunk: pairs of levels with their chances.
    pairs: Vec<(usize, usize, f64)>,
}

impl StepDelays {
    fn new(recovery: &RecoveryTimes, load: &CableLoad, steps: u32, (unit, levels): (f64, usize)) -> Self {
        let packets = load.packets as f64 / f64::from(steps);
        let per_message = (load.packets / load.messages.max(1)).max(1);
        let mean = packets * recovery.delayed;
        // One loss: each place in a message is as likely.
        let mut one: Levels = vec![0.0; levels];
        for behind in 0..per_message {
            let delay = if behind == 0 { recovery.tail_us } else { recovery.spread.at(behind) };
            spread(&mut one, delay / unit, 1.0 / per_message as f64);
        }
        let mut pairs = Vec::new();
        let mut several: Levels = vec![0.0; levels];
        several[0] = 1.0;
        let mut chance = (-mean).exp();
        let most = (mean + 8.0 * mean.sqrt()) as usize + FEWEST_LOSSES;
        let mut chunk: Levels = vec![0.0; levels];
        for losses in 0..=most {
            let lag = ((recovery.lag_us / unit) * losses as f64).round() as usize;
            for (level, share) in several.iter().enumerate().filter(|(_, share)| chance * **share > RAREST) {
                chunk[level] += chance * share;
                pairs.push((level, lag.min(levels - 1), chance * share));
            }
            several = sum_of(&several, &one);
            chance *= mean / (losses + 1) as f64;
        }
        Self { chunk, pairs }
    }

    /// Chance that no chunk of all steps is later than `limit` levels.
    fn stays_below(&self, limit: usize, steps: u32, lap: u32, idle: f64) -> f64 {
        let (whole, part) = ((idle + 1e-9).floor() as usize, (idle - (idle + 1e-9).floor()).max(0.0));
        if steps == 1 {
            return self.chunk[..=limit].iter().sum();
        }
        let mut lag: Levels = vec![0.0; limit + 1];
        lag[0] = 1.0;
        let mut history: Vec<Levels> = Vec::new();
        for step in 0..steps as usize {
            let before = match (lap, step.checked_sub(lap as usize)) {
                (1.., Some(ago)) => larger_of(&lag, &history[ago]),
                _ => lag,
            };
            let mut chunk: Levels = vec![0.0; limit + 1];
            let mut next: Levels = vec![0.0; limit + 1];
            for (from, share) in before.iter().enumerate().filter(|(_, share)| **share > 1e-15) {
                for (delay, behind, chance) in &self.pairs {
                    if from + delay > limit {
                        continue;
                    }
                    chunk[from + delay] += share * chance;
                    let behind = (from + behind).saturating_sub(whole);
                    next[behind.min(limit)] += share * chance * (1.0 - part);
                    next[behind.saturating_sub(1).min(limit)] += share * chance * part;
                }
            }
            lag = next;
            if lap > 0 {
                let all: f64 = chunk.iter().sum();
                history.push(chunk.iter().map(|share| share / all.max(f64::MIN_POSITIVE)).collect());
            }
        }
        lag.iter().sum()
    }
}

/// Adds a share at a fractional level, so that the mean is kept.
fn spread(levels: &mut Levels, at: f64, share: f64) {
    let last = levels.len() - 1;
    let below = (at.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let part = (at - below as f64).clamp(0.0, 1.0);
    levels[below] += share * (1.0 - part);
    levels[above] += share * part;
}

/// The sum of two, cut at the last level.
fn sum_of(one: &Levels, other: &Levels) -> Levels {
    let last = one.len() - 1;
    let mut sum = vec![0.0; one.len()];
    for (a, share) in one.iter().enumerate().filter(|(_, share)| **share > 1e-12) {
        for (b, chance) in other.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
            sum[(a + b).min(last)] += share * chance;
        }
    }
    sum
}

/// The larger of two that have nothing to do with each other; the first may have lost some of its chance.
fn larger_of(one: &Levels, other: &Levels) -> Levels {
    let (mut below_one, mut below_other) = (0.0, 0.0);
    let mut largest = Vec::with_capacity(one.len());
    for (a, b) in one.iter().zip(other) {
        largest.push(a * (below_other + b) + below_one * b);
        below_one += a;
        below_other += b;
    }
    largest
}

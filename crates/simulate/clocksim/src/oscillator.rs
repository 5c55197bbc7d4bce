//! Oscillators: what each node's shows at a true time, and when it will show something.
//!
//! A frequency is constant between *ticks* and may change at each, for all nodes at the same time. An oscillator begins with a
//! reading of its own, so that nobody's time can be mistaken for another's.
//!
//! Invariants: readings never go back; with every model but `broken` each frequency is within ±100 ppm of nominal.

use std::fmt;
use std::str::FromStr;

use faults::Random;
use units::{Span, Time};

/// Greatest deviation of an oscillator, in parts per million (§3.6.1).
const TOLERANCE_PPM: i64 = 100;
/// Fractional bits of a frequency.
const DIGITS: u32 = 40;
/// Largest step of a random walk between two ticks.
const STEP_PPM: f64 = 20.0;

/// Model of the differences of frequencies, and of their changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DriftModel {
    /// Each node has a constant drift of its own.
    #[default]
    Constant,
    /// A random walk within the tolerance.
    Walk,
    /// Drifts from one end of the tolerance to the other during the run, up or down, as the temperature of a hall goes.
    Ramp,
    /// Always at an end of the tolerance, the root at the low one; and every way is measured as wrongly as may be.
    Adversary,
    /// Constant, except that this node is off by this many parts per million.
    Broken(String, i64),
}

impl FromStr for DriftModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected const, walk, ramp, adversary or broken:NODE@PPM";
        match text {
            "const" => Ok(Self::Constant),
            "walk" => Ok(Self::Walk),
            "ramp" => Ok(Self::Ramp),
            "adversary" => Ok(Self::Adversary),
            _ => {
                let broken = text.strip_prefix("broken:").and_then(|rest| rest.rsplit_once('@'));
                let (node, ppm) = broken.filter(|(node, _)| !node.is_empty()).ok_or(expected)?;
                let ppm: i64 = ppm.parse().map_err(|_| format!("{ppm:?} is no whole number of ppm; {expected}"))?;
                if ppm.abs() > 100_000 {
                    return Err(format!("{ppm} ppm: expected at most 100000, a tenth of the time itself"));
                }
                Ok(Self::Broken(node.to_owned(), ppm))
            }
        }
    }
}

impl fmt::Display for DriftModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("const"),
            Self::Walk => f.write_str("walk"),
            Self::Ramp => f.write_str("ramp"),
            Self::Adversary => f.write_str("adversary"),
            Self::Broken(node, ppm) => write!(f, "broken:{node}@{ppm}"),
        }
    }
}

/// State of all oscillators at the last tick.
#[derive(Debug)]
pub(crate) struct Oscillators {
    model: DriftModel,
    root: usize,
    random: Random,
    since: Time,
    readings: Vec<u64>,
    /// Rates in parts of 2^DIGITS.
    rates: Vec<i64>,
    /// Oscillators that a ramp makes faster, and the share of the run that a tick is.
    rising: Vec<bool>,
    progress: f64,
    pub(crate) tick: Span,
}

fn rate(ppm: f64) -> i64 {
    (ppm * 1e-6 * (1u64 << DIGITS) as f64) as i64
}

impl Oscillators {
    /// Makes oscillators for a run of this length. `broken` is the node of [`DriftModel::Broken`].
    pub(crate) fn new(
        model: DriftModel,
        nodes: usize,
        root: usize,
        broken: Option<usize>,
        duration: Span,
        seed: u64,
    ) -> Self {
        let mut random = Random::new(seed, 1);
        let limit = TOLERANCE_PPM as f64;
        let mut rates: Vec<i64> = (0..nodes).map(|_| rate((2.0 * random.unit() - 1.0) * limit)).collect();
        let readings = (0..nodes).map(|_| 1_000_000_000_000 + random.below(1_000_000_000_000)).collect();
        match (&model, broken) {
            (DriftModel::Broken(_, ppm), Some(node)) => rates[node] = rate(*ppm as f64),
            (DriftModel::Adversary, _) => rates = (0..nodes).map(|node| extreme(&mut random, node == root)).collect(),
            (DriftModel::Ramp, _) => rates.iter_mut().for_each(|own| *own = rate(limit.copysign(*own as f64))),
            _ => {}
        }
        let rising = rates.iter().map(|own| *own < 0).collect();
        // Seldom enough for long runs, often enough for short ones.
        let tick = Span::from_ps((duration.as_ps() / 256).max(50_000_000));
        let progress = tick.as_ps() as f64 / duration.as_ps().max(1) as f64;
        Self { model, root, random, since: Time::ZERO, readings, rates, rising, progress, tick }
    }

    /// Reading of an oscillator; `at` is not before the last tick.
    #[inline]
    pub(crate) fn local(&self, node: usize, at: Time) -> Time {
        let passed = at.since(self.since).as_ps();
        let drift = (i128::from(passed) * i128::from(self.rates[node])) >> DIGITS;
        Time::from_ps(self.readings[node].wrapping_add(passed).wrapping_add_signed(drift as i64))
    }

    /// Time at which an oscillator shows this, unless its frequency changes before; never before the last tick.
    pub(crate) fn when(&self, node: usize, shown: Time) -> Time {
        let ahead = shown.as_ps().saturating_sub(self.readings[node]);
        let whole = (1i128 << DIGITS) + i128::from(self.rates[node]);
        let mut passed = ((i128::from(ahead) << DIGITS) / whole) as u64;
        while self.local(node, self.since + Span::from_ps(passed)) < shown {
            passed += 1;
        }
        self.since + Span::from_ps(passed)
    }

    /// True if all frequencies are within the bounds that nodes assume. A clock that is off by more leaves its bound within
    /// a few waves without a message, so each wave that it hears matters.
    pub(crate) fn are_sound(&self) -> bool {
        !matches!(self.model, DriftModel::Broken(_, ppm) if ppm.abs() > TOLERANCE_PPM)
    }

    /// Frequencies change.
    pub(crate) fn advance(&mut self, now: Time) {
        for node in 0..self.rates.len() {
            self.readings[node] = self.local(node, now).as_ps();
        }
        self.since = now;
        let limit = rate(TOLERANCE_PPM as f64);
        match self.model {
            DriftModel::Constant | DriftModel::Broken(..) => {}
            DriftModel::Walk => {
                for own in &mut self.rates {
                    let step = rate((2.0 * self.random.unit() - 1.0) * STEP_PPM);
                    *own = (*own + step).clamp(-limit, limit);
                }
            }
            DriftModel::Ramp => {
                let step = (2.0 * limit as f64 * self.progress) as i64;
                for (own, rising) in self.rates.iter_mut().zip(&self.rising) {
                    *own = if *rising { (*own + step).min(limit) } else { (*own - step).max(-limit) };
                }
            }
            DriftModel::Adversary => {
                for node in 0..self.rates.len() {
                    self.rates[node] = extreme(&mut self.random, node == self.root);
                }
            }
        }
    }
}

fn extreme(random: &mut Random, root: bool) -> i64 {
    let low = root || random.below(4) == 0;
    let limit = TOLERANCE_PPM as f64;
    rate(if low { -limit } else { limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_read_as_printed_and_others_are_refused() {
        for text in ["const", "walk", "ramp", "adversary", "broken:pod0/agg1@-700"] {
            assert_eq!(text.parse::<DriftModel>().unwrap().to_string(), text);
        }
        for text in ["", "sine", "broken:", "broken:@5", "broken:a@b", "broken:a@1000001"] {
            assert!(text.parse::<DriftModel>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_model_stays_within_its_tolerance_and_never_goes_back() {
        for model in [DriftModel::Constant, DriftModel::Walk, DriftModel::Ramp, DriftModel::Adversary] {
            let mut oscillators = Oscillators::new(model.clone(), 20, 3, None, Span::from_ms(20), 5);
            let mut changed = false;
            for tick in 1..=256u64 {
                let now = Time::ZERO + oscillators.tick * tick;
                let before = oscillators.rates.clone();
                let last = oscillators.local(7, now);
                oscillators.advance(now);
                assert_eq!(oscillators.local(7, now), last, "{model}");
                changed |= before != oscillators.rates;
                assert!(oscillators.rates.iter().all(|own| own.abs() <= rate(100.0)), "{model}");
            }
            assert_eq!(changed, model != DriftModel::Constant, "{model}");
        }
    }

    #[test]
    fn a_reading_is_shown_first_when_it_says() {
        let mut oscillators = Oscillators::new(DriftModel::Walk, 5, 0, None, Span::from_ms(20), 9);
        oscillators.advance(Time::from_ps(77_777_777));
        for node in 0..5 {
            for ahead in [0, 1, 999, 185_000_000, 1_000_000_000_000] {
                let shown = oscillators.local(node, oscillators.since) + Span::from_ps(ahead);
                let at = oscillators.when(node, shown);
                assert!(oscillators.local(node, at) >= shown);
                assert!(ahead == 0 || oscillators.local(node, Time::from_ps(at.as_ps() - 1)) < shown);
            }
        }
    }
}

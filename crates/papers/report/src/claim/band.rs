//! The range in which a value counts as the paper's.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{MeasuredValue, Verdict, number};

/// Both ends belong to it; in a file `[low, high]`, where `-inf` and `inf` are open ends. In JSON an open end is null.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "[Option<f64>; 2]", into = "[Option<f64>; 2]")]
pub struct Band {
    pub low: f64,
    pub high: f64,
}

impl Band {
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// Upper end by lower end; infinite for a band with zero in it.
    pub(super) fn factor(&self) -> f64 {
        match (self.low, self.high) {
            (low, high) if low == high => 1.0,
            (low, high) if low > 0.0 => high / low,
            (low, high) if high < 0.0 => low / high,
            _ => f64::INFINITY,
        }
    }

    /// True if they share more than an end.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.low.max(other.low) < self.high.min(other.high)
    }

    /// A value with an interval matches if the interval lies within the band, and differs if it lies outside. Otherwise
    /// too little was seen to tell. A band of a single value is a statement about every trial, none or all of them: one
    /// trial refutes it, so that the value is judged and not its interval.
    pub(super) fn judge(&self, ours: &MeasuredValue) -> Verdict {
        let itself = (ours.value, ours.value);
        let (low, high) = ours.interval.filter(|_| self.low < self.high).unwrap_or(itself);
        if self.low <= low && high <= self.high {
            Verdict::Match
        } else if high < self.low || self.high < low || low.is_nan() || high.is_nan() {
            Verdict::Differs
        } else {
            Verdict::TooFew
        }
    }
}

impl TryFrom<[Option<f64>; 2]> for Band {
    type Error = String;

    fn try_from([low, high]: [Option<f64>; 2]) -> Result<Self, String> {
        let band = Self { low: low.unwrap_or(f64::NEG_INFINITY), high: high.unwrap_or(f64::INFINITY) };
        if band.low <= band.high { Ok(band) } else { Err(format!("band {band}: expected the lower end first")) }
    }
}

impl From<Band> for [Option<f64>; 2] {
    fn from(Band { low, high }: Band) -> Self {
        [low, high].map(|end| end.is_finite().then_some(end))
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) => write!(f, "{} to {}", number(self.low), number(self.high)),
            (true, false) => write!(f, "from {}", number(self.low)),
            (false, true) => write!(f, "up to {}", number(self.high)),
            (false, false) => f.write_str("anything"),
        }
    }
}

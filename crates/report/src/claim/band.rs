//! The range in which a value counts as the paper's.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{MeasuredValue, number};

/// Both ends belong to it; in a file `[low, high]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "[f64; 2]", into = "[f64; 2]")]
pub struct Band {
    low: f64,
    high: f64,
}

/// A high end from which on a band has none.
const OPEN: f64 = 1e9;

impl Band {
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Whether a value lies in the band, or the number of trials is too small to distinguish it from the band.
    pub fn admits(&self, ours: &MeasuredValue) -> bool {
        let (least, most) = ours.interval.unwrap_or((ours.value, ours.value));
        self.contains(ours.value) || (least <= self.high && most >= self.low)
    }
}

impl TryFrom<[f64; 2]> for Band {
    type Error = String;

    fn try_from([low, high]: [f64; 2]) -> Result<Self, String> {
        let band = Self { low, high };
        if low <= high { Ok(band) } else { Err(format!("band {band}: expected the lower end first")) }
    }
}

impl From<Band> for [f64; 2] {
    fn from(Band { low, high }: Band) -> Self {
        [low, high]
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.high {
            OPEN.. => write!(f, "from {}", number(self.low)),
            _ => write!(f, "{} to {}", number(self.low), number(self.high)),
        }
    }
}

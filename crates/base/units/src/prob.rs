//! Probabilities.

use std::fmt;
use std::str::FromStr;

use crate::ParseError;
use crate::parse::split_number;

/// A probability, 0 to 1 inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Prob(f64);

impl Prob {
    /// `None` unless `value` lies between 0 and 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// For constants written in the code.
    ///
    /// # Panics
    /// If `value` is no probability.
    pub const fn literal(value: f64) -> Self {
        assert!(value >= 0.0 && value <= 1.0);
        Self(value)
    }

    /// The probability, from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// True if it is exactly 0.
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }
}

impl FromStr for Prob {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a probability between 0 and 1 such as 1e-3, 0.02 or 1%");
        let (number, unit) = split_number(text).ok_or(EXPECTED)?;
        let value = match unit {
            "" => number,
            "%" => number / 100.0,
            _ => return Err(EXPECTED),
        };
        Self::new(value).ok_or(EXPECTED)
    }
}

impl fmt::Display for Prob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 || self.0 >= 0.01 { self.0.fmt(f) } else { f.pad(&format!("{:e}", self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_read_as_written_and_nonsense_is_refused() {
        for (text, value) in [("0", 0.0), ("1", 1.0), ("1e-3", 1e-3), ("0.02", 0.02), ("1%", 0.01)] {
            assert_eq!(text.parse::<Prob>(), Ok(Prob(value)), "{text}");
        }
        for text in ["1.2", "-0.1", "NaN", "", "half", "101%"] {
            assert!(text.parse::<Prob>().is_err(), "{text}");
        }
    }
}

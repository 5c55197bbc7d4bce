//! Numbers with a suffix, as people write them.

use std::fmt;
use std::str::FromStr;

/// A text that is no value of the type asked for. Prints what would have been one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    expected: &'static str,
}

impl ParseError {
    /// `expected` describes a valid text.
    pub const fn new(expected: &'static str) -> Self {
        Self { expected }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl std::error::Error for ParseError {}

/// Splits `7.5us` into 7.5 and `us`. An exponent belongs to the number: `1e-3`, `2e7`.
pub(crate) fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let mut end = 0;
    let bytes = text.as_bytes();
    while end < bytes.len() {
        let exponent = matches!(bytes[end], b'e' | b'E')
            && bytes.get(end + 1).is_some_and(|c| c.is_ascii_digit() || matches!(c, b'-' | b'+'));
        let sign_of_exponent = matches!(bytes[end], b'-' | b'+') && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
        if !(bytes[end].is_ascii_digit() || bytes[end] == b'.' || exponent || sign_of_exponent) {
            break;
        }
        end += 1;
    }
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then_some((number, text[end..].trim()))
}

/// `number × scale` as an integer, if it is one that 64 bits can hold. What a person wrote with a
/// fraction is rounded to the nearest unit.
pub(crate) fn scaled(number: f64, scale: f64) -> Option<u64> {
    let value = (number * scale).round();
    (0.0..1.8e19).contains(&value).then_some(value as u64)
}

/// Count: a whole number that may be written `2e7`, `300K` or `1_000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a whole number of at least 1 such as 1000, 300K or 2e7");
        let plain = text.replace('_', "");
        let (number, suffix) = split_number(&plain).ok_or(EXPECTED)?;
        let scale = match suffix {
            "" => 1.0,
            "K" | "k" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            _ => return Err(EXPECTED),
        };
        let exact = number * scale;
        if exact < 1.0 || exact.fract() != 0.0 {
            return Err(EXPECTED);
        }
        scaled(number, scale).map(Count).ok_or(EXPECTED)
    }
}

/// A whole number as people write it, zero included: `0`, `1000`, `300K`, `1e9`.
pub fn whole(text: &str) -> Option<u64> {
    if text.trim() == "0" { Some(0) } else { text.parse::<Count>().ok().map(|count| count.0) }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_as_written() {
        for (text, value) in
            [("1", 1), ("2e7", 20_000_000), ("300K", 300_000), ("1_000", 1_000), ("1e12", 1_000_000_000_000)]
        {
            assert_eq!(text.parse::<Count>(), Ok(Count(value)), "{text}");
        }
    }

    #[test]
    fn counts_that_make_no_sense_are_refused() {
        for text in ["", "0", "-3", "1.5", "many", "1e99", "3Q", "nan", "inf", "1e", "."] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }
}

//! Points in time and lengths of time, in integer picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

use crate::ParseError;
use crate::parse::{scaled, split_number};

/// A point in time: picoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// Makes a time from picoseconds since the start of the run.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the start of the run.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero if that is still to come.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Makes a span from picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Makes a span from nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }

    /// Makes a span from microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// Makes a span from milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    /// The span in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The span in microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span in seconds.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This span a fractional number of times, to the nearest picosecond.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, times: u64) -> Span {
        Span(self.0 * times)
    }
}

impl Div<u64> for Span {
    type Output = Span;
    fn div(self, parts: u64) -> Span {
        Span(self.0 / parts)
    }
}

impl FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a time with its unit such as 500ns, 7.5us, 50ms, 2s, 5m or 1h");
        let (number, unit) = split_number(text).ok_or(EXPECTED)?;
        let scale = match unit {
            "ps" => 1.0,
            "ns" => 1e3,
            "us" | "µs" | "μs" => 1e6,
            "ms" => 1e9,
            "s" => 1e12,
            "min" | "m" => 60e12,
            "h" => 3_600e12,
            _ => return Err(EXPECTED),
        };
        scaled(number, scale).map(Span).ok_or(EXPECTED)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0 => return f.pad("0 s"),
            1..1_000 => (1.0, "ps"),
            1_000..1_000_000 => (1e3, "ns"),
            1_000_000..1_000_000_000 => (1e6, "µs"),
            1_000_000_000..1_000_000_000_000 => (1e9, "ms"),
            _ => (1e12, "s"),
        };
        let value = self.0 as f64 / scale;
        let digits = if value >= 100.0 { 0 } else { 2 };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_written() {
        for (text, ps) in
            [("0ns", 0), ("25ps", 25), ("7.5us", 7_500_000), ("7.5 µs", 7_500_000), ("1e-3s", 1_000_000_000)]
        {
            assert_eq!(text.parse::<Span>(), Ok(Span(ps)), "{text}");
        }
    }

    #[test]
    fn long_spans_read_in_minutes_and_hours() {
        for (text, seconds) in [("1h", 3_600), ("1.5 h", 5_400), ("5min", 300), ("10m", 600), ("90min", 5_400)] {
            assert_eq!(text.parse::<Span>(), Ok(Span(seconds * 1_000_000_000_000)), "{text}");
        }
    }

    #[test]
    fn spans_without_a_unit_or_below_zero_are_refused() {
        for text in ["5", "-1us", "us", "1 fortnight", "", "1e30s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_print_with_a_unit_that_fits() {
        let printed = [0, 25, 123_040, 5_500_000, 2_000_000_000_000].map(|ps| Span(ps).to_string());
        assert_eq!(printed, ["0 s", "25.00 ps", "123 ns", "5.50 µs", "2.00 s"]);
    }
}

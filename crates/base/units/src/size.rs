//! Sizes in bytes.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::str::FromStr;

use crate::ParseError;
use crate::parse::{scaled, split_number};

/// A number of bytes. `KB`, `MB`, `GB` and `TB` are powers of ten, as for rates; `KiB`, `MiB`, `GiB` and `TiB` of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// Makes a size from a number of bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The difference, or zero if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0 * times)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a size such as 1518, 37KB, 16MiB or 3GB");
        let (number, unit) = split_number(text).ok_or(EXPECTED)?;
        let scale = match unit.trim_end_matches(['B', 'b']) {
            "" => 1.0,
            "K" | "k" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            "P" => 1e15,
            "Ki" | "ki" => 1_024.0,
            "Mi" => 1_048_576.0,
            "Gi" => 1_073_741_824.0,
            "Ti" => 1_099_511_627_776.0,
            "Pi" => 1_125_899_906_842_624.0,
            _ => return Err(EXPECTED),
        };
        scaled(number, scale).map(Bytes).ok_or(EXPECTED)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0..10_000 => format!("{} B", self.0),
            10_000..10_000_000 => format!("{:.1} KB", self.0 as f64 / 1e3),
            _ => format!("{:.1} MB", self.0 as f64 / 1e6),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_written() {
        for (text, bytes) in [("1518", 1_518), ("1518B", 1_518), ("37KB", 37_000), ("1.5M", 1_500_000)] {
            assert_eq!(text.parse::<Bytes>(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["-1", "3 Q", "1iB", "KiB", "5 bytes"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn binary_and_large_units_are_read() {
        for (text, bytes) in [
            ("4KiB", 4_096),
            ("37 KiB", 37_888),
            ("16MiB", 16 << 20),
            ("3GiB", 3 << 30),
            ("2TiB", 2 << 40),
            ("3GB", 3_000_000_000),
            ("1.5TB", 1_500_000_000_000),
            ("1e9", 1_000_000_000),
            ("64Ki", 65_536),
        ] {
            assert_eq!(text.parse::<Bytes>(), Ok(Bytes(bytes)), "{text}");
        }
    }
}

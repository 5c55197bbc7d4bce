//! Link rates.

use std::fmt;
use std::str::FromStr;

use crate::parse::{scaled, split_number};
use crate::{Bytes, ParseError, Span};

/// A rate in bits per second, from 1 Mb/s to 10 Tb/s: what a port can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// Makes a rate from gigabits per second, 1 to 10,000.
    pub const fn gbps(gigabits: u64) -> Self {
        assert!(gigabits > 0 && gigabits <= 10_000);
        Self(gigabits * 1_000_000_000)
    }

    /// Makes a rate from bits per second, limited to 1 Mb/s to 10 Tb/s.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        match bits {
            0..1_000_000 => Self(1_000_000),
            10_000_000_000_001.. => Self(10_000_000_000_000),
            bits => Self(bits),
        }
    }

    /// The rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Time that `bytes` take at this rate, rounded up to the next picosecond.
    ///
    /// The product fits 64 bits up to 2.3 MB, more than any frame; larger numbers take a slower path.
    pub fn span_of(self, bytes: Bytes) -> Span {
        const PS_BITS: u64 = 8 * 1_000_000_000_000;
        Span::from_ps(match bytes.get().checked_mul(PS_BITS) {
            Some(product) => product.div_ceil(self.0),
            None => (u128::from(bytes.get()) * u128::from(PS_BITS)).div_ceil(u128::from(self.0)) as u64,
        })
    }

    /// Number of whole bytes that pass in `span`.
    pub fn bytes_in(self, span: Span) -> Bytes {
        Bytes::new((u128::from(self.0) * u128::from(span.as_ps()) / 8_000_000_000_000) as u64)
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a rate between 1M and 10T, such as 25G, 100G or 1.6T");
        let (number, unit) = split_number(text).ok_or(EXPECTED)?;
        let unit = ["bps", "b/s", "bit/s"].iter().find_map(|tail| unit.strip_suffix(tail)).unwrap_or(unit);
        let scale = match unit {
            "M" => 1e6,
            "G" | "g" => 1e9,
            "T" => 1e12,
            _ => return Err(EXPECTED),
        };
        match scaled(number, scale) {
            Some(bits @ 1_000_000..=10_000_000_000_000) => Ok(Rate(bits)),
            _ => Err(EXPECTED),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000_000_000 => (1e6, "M"),
            1_000_000_000..1_000_000_000_000 => (1e9, "G"),
            _ => (1e12, "T"),
        };
        f.pad(&format!("{}{unit}", self.0 as f64 / scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_takes_what_the_standard_says() {
        let frame = Bytes::new(1_538);
        assert_eq!(Rate::gbps(100).span_of(frame), Span::from_ps(123_040));
        assert_eq!(Rate::gbps(25).span_of(frame), Span::from_ps(492_160));
        assert_eq!(Rate::gbps(1_600).span_of(frame), Span::from_ps(7_690));
    }

    #[test]
    fn sizes_beyond_a_frame_do_not_overflow() {
        let terabyte = Bytes::new(1_000_000_000_000);
        assert_eq!(Rate::gbps(8).span_of(terabyte), Span::from_ms(1_000_000));
        assert_eq!(Rate::gbps(100).bytes_in(Span::from_us(1)), Bytes::new(12_500));
    }

    #[test]
    fn rates_read_as_written_and_nonsense_is_refused() {
        for (text, bits) in
            [("100G", 100_000_000_000), ("1.6T", 1_600_000_000_000), ("25Gbps", 25_000_000_000), ("10M", 10_000_000)]
        {
            assert_eq!(text.parse::<Rate>(), Ok(Rate(bits)), "{text}");
        }
        for text in ["100Q", "100", "0G", "-5G", "99T", "G", ""] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}

//! Seeds, each a run of its own.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use units::ParseError;

/// More runs than this are not what anybody meant.
const MOST: u64 = 100_000;

/// Seeds, at least one, in ascending order: `7`, `1..32` with both ends, or `1..4,9`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Default for Seeds {
    fn default() -> Self {
        Self(vec![1])
    }
}

impl Seeds {
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().copied()
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        let parts: Vec<String> = runs
            .map(|run| match run {
                [one] => one.to_string(),
                run => format!("{}..{}", run[0], run[run.len() - 1]),
            })
            .collect();
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Seeds {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("seeds such as 1, 1..32 or 1,5,9, at most 100000 of them");
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| EXPECTED);
        let mut seeds = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once("..") {
                Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
                None => (number(part)?, number(part)?),
            };
            if last < first || last - first >= MOST {
                return Err(EXPECTED);
            }
            seeds.extend(first..=last);
        }
        if seeds.len() as u64 > MOST { Err(EXPECTED) } else { Ok(Self(seeds.into_iter().collect())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_ranges_with_both_ends_and_lists() {
        for (text, seeds) in [("7", vec![7]), ("1..4", vec![1, 2, 3, 4]), ("9, 1..=2, 2", vec![1, 2, 9])] {
            assert_eq!(text.parse::<Seeds>(), Ok(Seeds(seeds)), "{text}");
        }
        for text in ["7", "1..4", "1..2,9"] {
            assert_eq!(text.parse::<Seeds>().unwrap().to_string(), text);
        }
        for text in ["", "4..1", "1..", "a", "-1", "1..1000000", "1..90000,200000..290000", "0..18446744073709551615"] {
            assert!(text.parse::<Seeds>().is_err(), "{text}");
        }
    }
}

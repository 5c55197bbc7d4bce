//! Numbers that a reason quotes from rows, written as `(row ID: NUMBER)`.
//!
//! A file with a citation of a row that does not exist is refused. What the number is held against are kept results: it
//! has to be the row's value, rounded to the digits that are written.

use super::ClaimPoint;

const OPENING: &str = "(row ";

#[derive(Clone, Debug, PartialEq)]
pub struct Citation {
    /// The id of a point of the same claim, or the full id of one of another claim of the paper.
    pub row: String,
    pub value: f64,
    /// Half a unit of the last digit written.
    pub tolerance: f64,
}

impl Citation {
    pub fn is_of(&self, value: f64) -> bool {
        (value - self.value).abs() <= self.tolerance * (1.0 + 1e-9)
    }

    /// `ID: NUMBER`; `None` for anything else.
    fn parse(text: &str) -> Option<Self> {
        let (row, number) = text.rsplit_once(": ")?;
        let digits = number.replace(',', "");
        let value = digits.parse::<f64>().ok().filter(|value| value.is_finite())?;
        let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
        let behind_point = mantissa.split_once('.').map_or(0, |(_, rest)| rest.len());
        let unit = exponent.parse::<i32>().ok()? - i32::try_from(behind_point).ok()?;
        (!row.contains(' ')).then(|| Self { row: row.to_owned(), value, tolerance: 0.5 * 10f64.powi(unit) })
    }
}

/// Citations of a text, or what cannot be read as one.
pub(super) fn of(text: &str) -> Result<Vec<Citation>, String> {
    let cited = text.split(OPENING).skip(1).map(|rest| rest.split(')').next().unwrap_or(rest));
    cited.map(|text| Citation::parse(text).ok_or_else(|| text.to_owned())).collect()
}

impl ClaimPoint {
    /// Citations of its note and its reason with the key that they are in, of a file that was read.
    pub fn citations(&self) -> Vec<(&'static str, Citation)> {
        let texts = [("note", &self.note), ("why", &self.why)];
        let of = |(key, text): (&'static str, &String)| {
            of(text).unwrap_or_default().into_iter().map(move |cited| (key, cited)).collect::<Vec<_>>()
        };
        texts.into_iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_holds_to_the_digits_that_are_written() {
        let cited = Citation::parse("73.dcqcn.p99: 1,234.5").unwrap();
        assert_eq!((cited.row.as_str(), cited.value, cited.tolerance), ("73.dcqcn.p99", 1234.5, 0.05));
        assert!(cited.is_of(1234.46) && cited.is_of(1234.55) && !cited.is_of(1234.6));
        let small = Citation::parse("a: 1.2e-3").unwrap();
        assert!(small.is_of(0.00124) && !small.is_of(0.00126), "{small:?}");
        for wrong in ["73.dcqcn.p99", "73.dcqcn.p99: many", "two words: 3", "a: inf"] {
            assert_eq!(Citation::parse(wrong), None, "{wrong}");
        }
    }
}

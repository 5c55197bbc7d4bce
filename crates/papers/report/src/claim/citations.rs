//! Numbers that a reason quotes from other rows, written as `(row ID: NUMBER)`.
//!
//! A file with a citation of a row that its claim does not have is refused. What the number is held against are kept
//! results: it has to be the row's value, rounded to the digits that are written.

use super::ClaimPoint;

const OPENING: &str = "(row ";

#[derive(Clone, Debug, PartialEq)]
pub struct Citation {
    /// The id of a point of the same claim.
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
        let value = digits.parse::<f64>().ok()?;
        let behind_point = digits.split_once('.').map_or(0, |(_, rest)| rest.len());
        let tolerance = 0.5 * 10f64.powi(-i32::try_from(behind_point).ok()?);
        (!row.contains(' ')).then(|| Self { row: row.to_owned(), value, tolerance })
    }
}

impl ClaimPoint {
    /// Citations of its reason, or what cannot be read as one.
    pub fn citations(&self) -> Result<Vec<Citation>, String> {
        let cited = self.why.split(OPENING).skip(1).map(|rest| rest.split(')').next().unwrap_or(rest));
        cited.map(|text| Citation::parse(text).ok_or_else(|| text.to_owned())).collect()
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
        for wrong in ["73.dcqcn.p99", "73.dcqcn.p99: many", "two words: 3"] {
            assert_eq!(Citation::parse(wrong), None, "{wrong}");
        }
    }
}

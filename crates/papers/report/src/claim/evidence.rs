//! Claims counted by the form of what the paper says: a number met within a tenth is more than a word met by a wide band.

use std::fmt;

use serde::Serialize;

use super::reasons::OPEN;
use super::{PointKind, PointResult, StatementForm, Verdict};

/// Counts of points of kind `claim`; the forms of those that match add up to all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EvidenceCounts {
    /// Matches within 10 % of a printed number, those of one-sided statements included.
    pub within_10: usize,
    /// Matches within 25 % of one, the former included.
    pub within_25: usize,
    /// Those among them that are a printed 0 met by 0.
    pub zeros: usize,
    /// Printed numbers that match, within two ends.
    pub numbers: usize,
    /// Printed ranges that match.
    pub ranges: usize,
    /// Statements "at least" or "at most" that match.
    pub one_sided: usize,
    /// Statements "higher" or "lower" that match.
    pub order: usize,
    /// Other words that match.
    pub words: usize,
    /// Numbers, ranges and words that match in a band whose upper end is more than three times its lower.
    pub wide: usize,
    /// Claims that differ.
    pub differ: usize,
    /// Rows that differ without a known reason: the row says "Open".
    pub open: usize,
    pub too_few: usize,
}

/// Factor between the ends of a band from which a match is counted as one in a wide band.
const WIDE: f64 = 3.0;

impl EvidenceCounts {
    pub fn of<'a>(points: impl IntoIterator<Item = &'a PointResult>) -> Self {
        let mut counts = Self::default();
        points.into_iter().filter(|point| point.kind == PointKind::Claim).for_each(|point| counts.add(point));
        counts
    }

    pub fn matching(&self) -> usize {
        self.numbers + self.ranges + self.one_sided + self.order + self.words
    }

    fn add(&mut self, point: &PointResult) {
        match point.verdict {
            Verdict::Match => self.add_match(point),
            Verdict::Differs => {
                self.differ += 1;
                self.open += usize::from(point.is_open());
            }
            Verdict::TooFew => self.too_few += 1,
            Verdict::Noted => {}
        }
    }

    fn add_match(&mut self, point: &PointResult) {
        self.within_10 += usize::from(point.is_within(0.10));
        self.within_25 += usize::from(point.is_within(0.25));
        self.zeros += usize::from(point.paper.number() == Some(0.0) && point.ours == Some(0.0));
        match point.form {
            StatementForm::Number => self.numbers += 1,
            StatementForm::Range => self.ranges += 1,
            StatementForm::OneSided => self.one_sided += 1,
            StatementForm::Order => self.order += 1,
            StatementForm::Words => self.words += 1,
        }
        let has_two_ends = !matches!(point.form, StatementForm::OneSided | StatementForm::Order);
        let is_wide = point.band.is_some_and(|band| has_two_ends && band.factor() > WIDE);
        self.wide += usize::from(is_wide);
    }
}

impl PointResult {
    /// True if ours is that share of the paper's number away from it, or less.
    fn is_within(&self, share: f64) -> bool {
        // A tenth has no exact representation.
        let spare = 1e-9;
        let off = |paper: f64, ours: f64| (ours - paper).abs() <= (share + spare) * paper.abs();
        self.paper.number().zip(self.ours).is_some_and(|(paper, ours)| off(paper, ours))
    }

    /// True if no reason is known for which it differs: only such a row has that word, and one without reason gets it.
    fn is_open(&self) -> bool {
        self.why.contains(OPEN)
    }
}

impl std::ops::AddAssign for EvidenceCounts {
    fn add_assign(&mut self, other: Self) {
        let counts = [
            (&mut self.numbers, other.numbers),
            (&mut self.within_10, other.within_10),
            (&mut self.within_25, other.within_25),
            (&mut self.zeros, other.zeros),
            (&mut self.ranges, other.ranges),
            (&mut self.one_sided, other.one_sided),
            (&mut self.order, other.order),
            (&mut self.words, other.words),
            (&mut self.wide, other.wide),
            (&mut self.differ, other.differ),
            (&mut self.open, other.open),
            (&mut self.too_few, other.too_few),
        ];
        counts.into_iter().for_each(|(count, other)| *count += other);
    }
}

/// `12 values within 10 % of a printed number (2 of them a 0 met by 0), 15 within 25 %; 14 numbers, 2 ranges, …`.
impl fmt::Display for EvidenceCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            numbers, within_10, within_25, zeros, ranges, one_sided, order, words, differ, open, too_few, ..
        } = self;
        let reason = differ - open;
        write!(
            f,
            "{within_10} values within 10 % of a printed number ({zeros} of them a 0 met by 0), {within_25} within 25 %; {numbers} numbers, {ranges} ranges, \
             {one_sided} one-sided statements, {order} orders and {words} words match; {differ} differ ({reason} with a reason, \
             {open} open), {too_few} too few"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Band, PaperValue};

    fn row(form: StatementForm, paper: f64, ours: f64, band: (f64, f64), verdict: Verdict) -> PointResult {
        PointResult {
            id: "x.y.a".into(),
            kind: PointKind::Claim,
            form,
            paper: PaperValue::Number(paper),
            ours: Some(ours),
            n: 1,
            interval: None,
            band: Some(Band { low: band.0, high: band.1 }),
            verdict,
            why: String::new(),
        }
    }

    #[test]
    fn matches_are_counted_by_form_and_closeness() {
        use StatementForm::{Number, OneSided, Order, Words};
        use Verdict::{Differs, Match};
        let reason = PointResult { why: "a reason".into(), ..row(Number, 1.0, 9.0, (0.5, 2.0), Differs) };
        let check = PointResult { kind: PointKind::ModelCheck, ..row(Number, 1.0, 1.0, (1.0, 1.0), Match) };
        let rows = [
            row(Number, 1.0, 1.1, (0.5, 2.0), Match),
            row(Number, 1.0, 0.75, (0.75, 1.1), Match),
            row(OneSided, 1.0, 0.1, (0.0, 1.0), Match),
            row(Order, 1.0, 7.0, (1.0, f64::INFINITY), Match),
            row(Words, 1.0, 7.0, (1.0, 10.0), Match),
            PointResult {
                why: "95 %: 8 to 9; Open: it was tried".into(),
                ..row(Number, 1.0, 9.0, (0.5, 2.0), Differs)
            },
            reason,
            check,
        ];
        let counts = EvidenceCounts::of(&rows);
        let forms = [counts.numbers, counts.within_10, counts.within_25, counts.one_sided, counts.order, counts.words];
        assert_eq!((forms, counts.wide, counts.matching()), ([2, 1, 2, 1, 1, 1], 2, 5));
        assert_eq!((counts.differ, counts.open), (2, 1));
        let mut twice = counts;
        twice += counts;
        assert_eq!((twice.matching(), twice.wide), (10, 4));
        assert!(
            counts
                .to_string()
                .starts_with("1 values within 10 % of a printed number (0 of them a 0 met by 0), 2 within 25 %;")
        );
    }
}

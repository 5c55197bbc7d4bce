//! Form of what a paper says of a value: how strong a match is depends on it.

use serde::{Deserialize, Serialize};

use super::{Band, ClaimPoint, MeasuredValue, Says, Verdict};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatementForm {
    /// A printed number with a band around it.
    Number,
    /// A printed range of numbers.
    Range,
    /// "At least" or "at most": one end of the band refutes nothing.
    OneSided,
    /// "Higher than" or "lower than": a ratio beside 1.
    Order,
    /// Words that a band of ours stands for.
    #[default]
    Words,
}

impl ClaimPoint {
    pub fn form(&self) -> StatementForm {
        match self.says {
            Some(Says::Higher | Says::Lower) => StatementForm::Order,
            Some(Says::AtLeast | Says::AtMost) => StatementForm::OneSided,
            None if self.paper.number().is_some() => StatementForm::Number,
            None if self.range.is_some() => StatementForm::Range,
            None => StatementForm::Words,
        }
    }

    /// `Noted` without a band.
    pub(super) fn judge(&self, ours: &MeasuredValue) -> Verdict {
        match (self.form(), self.band) {
            (_, None) => Verdict::Noted,
            (StatementForm::Order, Some(band)) => band.judge_order(ours),
            (_, Some(band)) => band.judge(ours),
        }
    }
}

impl Says {
    /// Band of an order statement, which no file chooses.
    pub(super) fn order_band(self) -> Option<Band> {
        match self {
            Self::Higher => Some(Band { low: 1.0, high: f64::INFINITY }),
            Self::Lower => Some(Band { low: f64::NEG_INFINITY, high: 1.0 }),
            Self::AtLeast | Self::AtMost => None,
        }
    }
}

impl Band {
    /// A ratio of 1 is neither higher nor lower, so that the end does not belong to the band of an order statement.
    fn judge_order(&self, ours: &MeasuredValue) -> Verdict {
        let (low, high) = ours.interval.unwrap_or((ours.value, ours.value));
        let is_inside = |end: f64| self.low < end && end < self.high || (end.is_infinite() && self.contains(end));
        match (is_inside(low), is_inside(high)) {
            (true, true) => Verdict::Match,
            (false, false) => Verdict::Differs,
            _ => Verdict::TooFew,
        }
    }
}

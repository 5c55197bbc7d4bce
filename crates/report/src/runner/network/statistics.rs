//! Statistics of sorted values: all of them, or those of flows of some size.

use units::Bytes;

use super::measures::{MEASURES, NetworkTake};
use super::totals::SizedFlow;
use crate::claim::MeasuredValue;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Statistic {
    Mean,
    Max,
    /// The value below which this share lies.
    Quantile(f64),
}

/// Fewer flows than this beyond a percentile say nothing about it.
const FEWEST_BEYOND: f64 = 5.0;

impl Statistic {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "mean" => Some(Self::Mean),
            "max" => Some(Self::Max),
            _ => {
                let percent: f64 = text.strip_prefix('p')?.parse().ok()?;
                (0.0..100.0).contains(&percent).then_some(Self::Quantile(percent / 100.0))
            }
        }
    }

    pub(super) fn of(self, sorted: &[f64]) -> Option<MeasuredValue> {
        let last = *sorted.last()?;
        let value = match self {
            Self::Mean => sorted.iter().sum::<f64>() / sorted.len() as f64,
            Self::Max => last,
            Self::Quantile(share) => quantile(sorted, share)?,
        };
        Some(MeasuredValue::exact(value, sorted.len() as u64))
    }
}

/// A statistic of the flows of some size: `slowdown<3KB.p99`, `fct>1MB.p50`.
#[derive(Clone, Copy)]
pub(super) struct SizedStatistic {
    one: fn(&SizedFlow) -> f64,
    is_below: bool,
    bound: u64,
    statistic: Statistic,
}

impl SizedStatistic {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let at = text.find(['<', '>'])?;
        let (name, rest) = (&text[..at], &text[at + 1..]);
        let NetworkTake::Statistic(_, one) = MEASURES.iter().find(|measure| measure.name == name)?.take else {
            return None;
        };
        // The size may have a point of its own: 1.5MB.p99.9.
        let split = |(at, _)| Some((rest[..at].parse::<Bytes>().ok()?, Statistic::parse(&rest[at + 1..])?));
        let (bound, statistic) = rest.match_indices('.').find_map(split)?;
        Some(Self { one, is_below: text[at..].starts_with('<'), bound: bound.get(), statistic })
    }

    pub(super) fn of(&self, flows: &[SizedFlow]) -> Option<MeasuredValue> {
        let is_meant =
            |flow: &&SizedFlow| if self.is_below { flow.bytes < self.bound } else { flow.bytes > self.bound };
        let mut values: Vec<f64> = flows.iter().filter(is_meant).map(self.one).collect();
        values.sort_by(f64::total_cmp);
        self.statistic.of(&values)
    }
}

/// The value below which `share` of the sorted values lie, if enough lie beyond.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let beyond = sorted.len() as f64 * (1.0 - share);
    if beyond < FEWEST_BEYOND {
        return None;
    }
    sorted.get((sorted.len() as f64 * share) as usize).copied()
}

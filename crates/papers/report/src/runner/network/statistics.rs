//! Statistics of sorted values: all of them, or those of flows of some size.

use units::Bytes;

use super::measures::{MEASURES, NetworkTake};
use super::totals::{SampledMoment, SizedFlow};
use crate::claim::MeasuredValue;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Statistic {
    Mean,
    /// The standard deviation.
    Deviation,
    Max,
    /// The value below which this share lies.
    Quantile(f64),
}

impl Statistic {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "mean" => Some(Self::Mean),
            "deviation" => Some(Self::Deviation),
            "max" => Some(Self::Max),
            _ => {
                let percent: f64 = text.strip_prefix('p')?.parse().ok()?;
                (0.0..100.0).contains(&percent).then_some(Self::Quantile(percent / 100.0))
            }
        }
    }

    pub(super) fn of(self, sorted: &[f64]) -> Option<MeasuredValue> {
        match self {
            Self::Mean => MeasuredValue::mean(sorted),
            Self::Deviation => deviation(sorted),
            Self::Max => Some(MeasuredValue::exact(*sorted.last()?, sorted.len() as u64)),
            Self::Quantile(share) => MeasuredValue::quantile(sorted, share),
        }
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

/// Standard deviation, with the interval that the fourth moment gives; `None` if a flow failed.
fn deviation(values: &[f64]) -> Option<MeasuredValue> {
    const SIGMAS: f64 = 1.96;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let moment = |power| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / n;
    let (variance, fourth) = (moment(2), moment(4));
    let deviation = variance.sqrt();
    let off = SIGMAS * ((fourth - variance * variance).max(0.0) / n).sqrt() / (2.0 * deviation);
    let interval = ((deviation - off).max(0.0), deviation + off);
    off.is_finite().then(|| MeasuredValue::counted(deviation, values.len() as u64, interval))
}

/// Mean of a rate over time. Samples that follow each other are alike, so that the interval is that of the means of ten
/// stretches (batch means, Student's t); a window of fewer samples has none.
pub(super) fn mean(seen: &[SampledMoment], rate: fn(&SampledMoment) -> f64) -> Option<MeasuredValue> {
    const STRETCHES: usize = 10;
    const T: f64 = 2.262;
    let over = |seen: &[SampledMoment]| {
        let seconds: f64 = seen.iter().map(|moment| moment.span).sum();
        let gigabits: f64 = seen.iter().map(|moment| rate(moment) * moment.span).sum();
        (seconds > 0.0).then(|| gigabits / seconds)
    };
    let value = over(seen)?;
    let each = seen.len() / STRETCHES;
    let means: Vec<f64> = seen.chunks_exact(each.max(1)).take(STRETCHES).filter_map(over).collect();
    let interval = (each > 0).then(|| {
        let middle = means.iter().sum::<f64>() / STRETCHES as f64;
        let squares: f64 = means.iter().map(|mean| (mean - middle).powi(2)).sum();
        let off = T * (squares / (STRETCHES * (STRETCHES - 1)) as f64).sqrt();
        (value - off, value + off)
    });
    Some(MeasuredValue { value, n: seen.len() as u64, interval, note: None })
}

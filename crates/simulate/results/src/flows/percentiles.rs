//! Percentiles that the number of values can bear.

use serde::Serialize;

/// Percentiles of `n` values. A percentile beyond which fewer than one value is expected is `None`: the 99.9th of 200 values
/// would be their maximum under another name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub n: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    #[serde(rename = "p99.9")]
    pub p999: Option<f64>,
    #[serde(rename = "p99.99")]
    pub p9999: Option<f64>,
    pub max: Option<f64>,
}

impl Percentiles {
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |of: u64| ranked(&values, of);
        Self {
            n: values.len() as u64,
            mean: (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64),
            p50: at(2),
            p95: at(20),
            p99: at(100),
            p999: at(1_000),
            p9999: at(10_000),
            max: values.last().copied(),
        }
    }
}

/// The value that one in `of` lies beyond: the nearest rank.
fn ranked(sorted: &[f64], of: u64) -> Option<f64> {
    let n = sorted.len() as u64;
    let beyond = n / of;
    if beyond == 0 { None } else { sorted.get((n - beyond - 1) as usize).copied() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_a_value_beyond_it() {
        let of = |n: u32| Percentiles::of((1..=n).rev().map(f64::from).collect());
        assert_eq!(of(0), Percentiles::default());
        assert_eq!((of(1).p50, of(1).max), (None, Some(1.0)));
        assert_eq!((of(19).p95, of(20).p95, of(20).mean), (None, Some(19.0), Some(10.5)));
        assert_eq!((of(99).p50, of(99).p99), (Some(50.0), None));
        assert_eq!((of(100).p50, of(100).p99, of(100).max), (Some(50.0), Some(99.0), Some(100.0)));
        assert_eq!((of(10_000).p999, of(10_000).p9999), (Some(9_990.0), Some(9_999.0)));
    }
}

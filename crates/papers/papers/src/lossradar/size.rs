//! lr.size: how many cells a digest needs to name every loss (§5.3.2).

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

use super::digests::{self, DigestTrials};

/// Share of trials in which all losses must be named.
pub(super) const SUCCESS: f64 = 0.99;

/// Losses, and the cells for each that are tried. Few losses need more of them, and over a wider range.
const CASES: [(usize, [f64; 12]); 3] = [
    (100, [1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0]),
    (1_000, [1.18, 1.2, 1.22, 1.24, 1.26, 1.28, 1.29, 1.3, 1.31, 1.32, 1.34, 1.36]),
    (10_000, [1.18, 1.2, 1.21, 1.22, 1.23, 1.24, 1.25, 1.26, 1.27, 1.28, 1.3, 1.32]),
];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let more = if effort.scale == RunScale::Full { 10 } else { 1 };
    let mut computed = ComputedValues::default();
    let mut lines = Vec::new();
    for (losses, each) in CASES {
        let trials = 400_000_u32.div_ceil(losses as u32).clamp(200, 2_000) * more;
        let cells = |each: f64| (each * losses as f64).round() as usize;
        let tried: Vec<DigestTrials> =
            each.iter().map(|each| DigestTrials { losses, cells: cells(*each), trials }).collect();
        let Some(outcomes) = digests::try_all(&tried, effort) else { return Ok(None) };
        let curve: Vec<(f64, f64)> =
            tried.iter().zip(&outcomes).map(|(tried, outcome)| (tried.each(), outcome.decoded())).collect();
        let found = digests::crossing(&curve, SUCCESS).map(|each| MeasuredValue::exact(each, u64::from(trials)));
        computed.values.push((format!("losses.{losses}"), found));
        if let Some(outcome) = each.iter().position(|each| *each == 1.3).map(|at| outcomes[at]) {
            computed.value(format!("at-1.3.{losses}"), outcome.share_decoded());
        }
        lines.push(Line::new(format!("{losses} losses"), curve));
    }
    computed.charts.push(Chart::Lines(LinesChart {
        title: "Digests that name every loss, by their size".into(),
        caption:
            "Three cells for each packet. The more losses, the steeper; what keeps small digests from certainty are \
                  pairs of packets that share all three cells."
                .into(),
        x: Axis::linear("cells for each loss"),
        y: Axis::linear("share of digests").within(0.0, 1.0),
        lines,
    }));
    Ok(Some(computed))
}

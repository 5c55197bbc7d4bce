//! Patterns in the order of packets.

use std::collections::BTreeMap;

use super::statistics::at_least;
use super::{CauseFigures, CauseReason, EvidenceRule, IntervalEvidence};
use crate::packet::Flow;
use crate::trail::NEAR;

/// A hole within less time than this may be a burst, unless it is deep.
const BURST: u64 = 5_000_000;
/// Share of other flows' packets nearby that may die, too.
const OTHERS: f64 = 0.1;
/// Quantiles of the geometric law below which gaps are counted.
const NEAR_QUANTILES: [f64; 3] = [0.01, 0.05, 0.2];
/// Deviation from the median gap that is still regular.
const REGULAR: f64 = 0.2;

/// Losses of each flow that lost all it sent, from its first loss to its last, while packets of others got through.
pub(super) fn holes(rule: &EvidenceRule, interval: &IntervalEvidence, known: &[usize]) -> Vec<Vec<usize>> {
    let losses = &interval.losses;
    let place = |at: usize| losses[at].place.map_or(0, |place| place.place);
    let mut sorted = known.to_vec();
    sorted.sort_by_key(|at| place(*at));
    let places: Vec<u64> = sorted.iter().map(|at| place(*at)).collect();
    let mut flows: BTreeMap<Flow, Vec<usize>> = BTreeMap::new();
    for (nth, at) in sorted.iter().enumerate() {
        flows.entry(losses[*at].flow).or_default().push(nth);
    }
    let count = flows.len();
    let is_hole = |of: &[usize]| {
        let its: Vec<&super::LossEvidence> = of.iter().map(|nth| &losses[sorted[*nth]]).collect();
        let numbers: Vec<u16> = its.iter().filter_map(|loss| Some(loss.place?.number)).collect();
        let is_consecutive = numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
        let times = || its.iter().filter_map(|loss| loss.at).map(|at| at.0);
        let lasted = times().max().unwrap_or(0) - times().min().unwrap_or(0);
        let is_long = lasted > BURST || its.len() > rule.bursty_blackhole;
        is_consecutive
            && is_long
            && is_no_chance(rule, &places, of, count)
            && others_live(of, &sorted, &places, interval)
    };
    let holes = flows.values().filter(|of| of.len() >= rule.blackhole && is_hole(of));
    holes.map(|of| of.iter().map(|nth| sorted[*nth]).collect()).collect()
}

/// Chance does not kill so many in a row, at the rate at which packets of others die.
fn is_no_chance(rule: &EvidenceRule, places: &[u64], of: &[usize], flows: usize) -> bool {
    let span = (places.last().unwrap_or(&0) - places.first().unwrap_or(&0)).saturating_add(1);
    let others = (places.len() - of.len()) as f64 / (span - of.len().min(span as usize - 1) as u64) as f64;
    flows as f64 * others.min(1.0).powi(of.len() as i32) < rule.error
}

/// Near the losses of a flow fewer than a tenth of the packets of others died. Else it is a burst that takes all.
fn others_live(of: &[usize], sorted: &[usize], places: &[u64], interval: &IntervalEvidence) -> bool {
    let flow = |nth: usize| interval.losses[sorted[nth]].flow;
    let (mut others, mut died) = (0, 0);
    for nth in of {
        let place = places[*nth];
        let near = places.partition_point(|near| near.saturating_add(NEAR as u64) < place)
            ..places.partition_point(|near| *near <= place.saturating_add(NEAR as u64));
        died += near.filter(|near| flow(*near) != flow(*nth)).count();
        others += interval.losses[sorted[*nth]].place.map_or(0, |place| usize::from(place.others));
    }
    died as f64 <= OTHERS * others as f64
}

/// A pattern that packets which die alike have by chance only; the losses are sorted by place.
pub(super) fn pattern(
    error: f64,
    places: &[u64],
    interval: &IntervalEvidence,
    sorted: &[usize],
) -> Option<(CauseReason, CauseFigures)> {
    let gaps: Vec<u64> = places.windows(2).map(|pair| (pair[1] - pair[0]).max(1)).collect();
    let mut by_size = gaps.clone();
    by_size.sort_unstable();
    let median = by_size[by_size.len() / 2];
    let span = gaps.iter().fold(0, |span: u64, gap| span.saturating_add(*gap));
    // Losses of a short part of the interval, and of no other, are near to each other.
    let among = span.max(interval.packets / 2).max(1);
    let rate = (gaps.len() as f64 / among as f64).min(1.0);
    let figures = |chance| CauseFigures { chance: Some(chance), gap: Some(median), ..CauseFigures::default() };
    let found = |chance: f64, limit: f64| (chance < limit).then(|| figures(chance));
    let bursts = NEAR_QUANTILES.into_iter().find_map(|quantile| found(bursts(&gaps, rate, quantile), error / 3.0));
    if let Some(figures) = bursts {
        return Some((CauseReason::Bursts, figures));
    }
    if let Some(figures) = found(periodic(&gaps, rate, median), error) {
        return Some((CauseReason::Periodic, figures));
    }
    found(one_flow(interval, sorted), error).map(|figures| (CauseReason::OneFlow, figures))
}

/// Chance of a gap of at most `gap` packets.
fn within(gap: u64, rate: f64) -> f64 {
    -(gap as f64 * (-rate).ln_1p()).exp_m1()
}

/// Chance of as many gaps below a quantile.
fn bursts(gaps: &[u64], rate: f64, quantile: f64) -> f64 {
    if rate >= 1.0 {
        return 1.0;
    }
    let near = ((-quantile).ln_1p() / (-rate).ln_1p()).floor() as u64;
    let count = gaps.iter().filter(|gap| **gap <= near).count() as u64;
    if near == 0 { 1.0 } else { at_least(count, gaps.len() as u64, within(near, rate)) }
}

/// Chance of as many gaps around the median.
fn periodic(gaps: &[u64], rate: f64, median: u64) -> f64 {
    let low = (median as f64 * (1.0 - REGULAR)).ceil().max(1.0) as u64;
    let high = (median as f64 * (1.0 + REGULAR)).floor() as u64;
    let count = gaps.iter().filter(|gap| (low..=high).contains(*gap)).count() as u64;
    at_least(count, gaps.len() as u64, within(high, rate) - within(low - 1, rate))
}

/// Chance that as many losses are of one flow, by the flows of packets that were drawn.
fn one_flow(interval: &IntervalEvidence, sorted: &[usize]) -> f64 {
    let mut lost: BTreeMap<u8, u64> = BTreeMap::new();
    for place in sorted.iter().filter_map(|at| interval.losses[*at].place) {
        *lost.entry(place.tag).or_default() += 1;
    }
    let share = sorted.len() as f64 / (sorted.len() + interval.samples.len()).max(1) as f64;
    let chance = |(tag, count): (&u8, &u64)| {
        let drawn = interval.samples.iter().filter(|sample| sample.tag == *tag).count() as u64;
        at_least(*count, count + drawn, share)
    };
    let least = lost.iter().map(chance).fold(1.0, f64::min);
    (least * lost.len() as f64).min(1.0)
}

//! LinkGuardian's year of corrupting links (SIGCOMM'23 §4.8, §5), run again.
//!
//! Every claim takes its values from the same years: at each constraint CorrOpt alone and CorrOpt with protection, on the
//! same trace. Both decide alike at the same times, so their samples pair up.

mod year;

use std::collections::BTreeMap;
use std::time::Duration;

use fleet::Fabric;
use fleet::fabric::Facebook;
use fleet::trace::{CorruptionEvent, RepairTime, TraceModel};
use units::Moment;

use super::Effort;
use crate::claim::measure::{Measure, find};
use crate::claim::{Claim, ClaimError, ClaimPoint, ClaimResult, MeasuredValue};
use chart::{Axis, Chart, Line, LinesChart, Panel, SeriesChart};
use parallel::Stopwatch;
use year::{Moments, Years};

/// Takes a value from the years of one constraint, of which the first was looked at closely.
type FleetTake = fn(&Years, &[&Years]) -> Option<MeasuredValue>;

pub(super) const MEASURES: &[Measure<FleetTake>] = &[
    Measure::new("orders", "orders of magnitude", "by which protection lowers the mean penalty", |first, _| {
        Some(MeasuredValue::exact(first.orders(), first.events()).with_note(first.penalties()))
    }),
    Measure::new(
        "orders_authors",
        "orders of magnitude",
        "the same with the points that the authors measured",
        |first, _| Some(MeasuredValue::exact(first.orders_authors()?, first.events())),
    ),
    Measure::new("orders_week", "orders of magnitude", "the same over the week that the paper shows", |first, _| {
        Some(MeasuredValue::exact(first.orders_within(WEEK)?, first.events()))
    }),
    Measure::new("orders_p1", "orders of magnitude", "the same after an event, 1st percentile", |first, _| {
        Some(MeasuredValue::exact(first.orders_after_events(0.01)?, first.events()))
    }),
    Measure::new("orders_p50", "orders of magnitude", "the same after an event, median", |first, _| {
        Some(MeasuredValue::exact(first.orders_after_events(0.5)?, first.events()))
    }),
    Measure::new("orders_p99", "orders of magnitude", "the same after an event, 99th percentile", |first, _| {
        Some(MeasuredValue::exact(first.orders_after_events(0.99)?, first.events()))
    }),
    Measure::new("least_share", "1", "least share of its paths that a ToR keeps", |first, _| {
        Some(MeasuredValue::exact(first.plain.least_share, first.events()))
    }),
    Measure::new("no_gain", "1", "share of events with nothing to gain", |first, _| {
        Some(MeasuredValue::exact(1.0 - first.gain_share(), first.events()).with_note(first.gain_by_time()))
    }),
    Measure::new("gain", "1", "share of events with something to gain", |first, _| {
        Some(MeasuredValue::exact(first.gain_share(), first.events()))
    }),
    Measure::new("cost_p99", "1", "decrease of the least capacity of a pod, 99th percentile", |first, _| {
        let most = format!("at most {:.2e}", first.cost(1.0));
        Some(MeasuredValue::exact(first.cost(0.99), first.events()).with_note(most))
    }),
    Measure::new("cost_most", "1", "the same, the most of the year", |first, _| {
        Some(MeasuredValue::exact(first.cost(1.0), first.events()))
    }),
    Measure::new("per_pipe", "links", "most protected links in a pipe in any of the years", |_, years| {
        let most: Vec<u32> = years.iter().map(|years| years.guarded.protected_per_pipe_max).collect();
        let note = most.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let highest = f64::from(*most.iter().max()?);
        Some(MeasuredValue::exact(highest, most.len() as u64).with_note(format!("years had {note}")))
    }),
    Measure::new("losses", "events", "links that begin to corrupt, median of the years", |_, years| {
        median(years, |years| years.losses)
    }),
    Measure::new("events", "events", "links that begin to corrupt or come back, median of the years", |_, years| {
        median(years, |years| years.plain.events)
    }),
    Measure::new("kept", "events", "corrupting links that the constraint keeps, median of the years", |_, years| {
        median(years, |years| years.plain.kept_corrupting)
    }),
];

fn median(years: &[&Years], count: fn(&Years) -> u64) -> Option<MeasuredValue> {
    let mut counts: Vec<u64> = years.iter().map(|years| count(years)).collect();
    let (least, most) = (*counts.iter().min()?, *counts.iter().max()?);
    let value = units::samples::upper_median(&mut counts)? as f64;
    Some(MeasuredValue::exact(value, counts.len() as u64).with_note(format!("years had {least} to {most}")))
}

pub(super) fn check(claim: &Claim) -> Result<(), ClaimError> {
    for point in &claim.point {
        let _setting = setting(point).map_err(|error| claim.error_at(point, "constraint", error))?;
        let _measure = find(MEASURES, claim.measure(point)).map_err(|error| claim.error_at(point, "measure", error))?;
    }
    Ok(())
}

/// Pods of a fabric, and the share of its paths that every ToR keeps.
type FleetSetting = (u32, f64);

fn setting(point: &ClaimPoint) -> Result<FleetSetting, ClaimError> {
    let share = point.constraint.ok_or_else(|| ClaimError::new("expected constraint"))?;
    Ok((point.pods.unwrap_or(PODS), share))
}

/// Nothing, if a run was stopped early.
pub(super) fn run(claims: &[Claim], effort: &Effort<'_>) -> Result<Vec<ClaimResult>, ClaimError> {
    let begun = Stopwatch::start();
    let Some(years) = years(claims, effort)? else { return Ok(Vec::new()) };
    let seconds = begun.seconds() / claims.len() as f64;
    claims.iter().map(|claim| judge(claim, &years, seconds)).collect()
}

/// The paper's size, and how long its trace is: 9,000 hours.
const PODS: u32 = 261;
const DAYS: f64 = 375.0;

/// Days of the week that the paper's figure shows.
const WEEK: (f64, f64) = (245.5, 252.5);

/// All repairs of fabrics that are not of the paper's size.
const REPAIR_DAYS: u64 = 2;

/// Years of which the rare is taken, at any scale: of more years the most is more. Charts and shares are those of the first.
const YEARS: u64 = 8;

fn seeds(first: u64) -> Vec<u64> {
    (0..YEARS).map(|i| first.wrapping_add(i)).collect()
}

/// Every year that the claims ask for; `None` if one was stopped early.
fn years(claims: &[Claim], effort: &Effort<'_>) -> Result<Option<Vec<(u32, Years)>>, ClaimError> {
    let Effort { jobs, seed, progress, .. } = *effort;
    let until = Moment::from_hours(24.0 * DAYS);
    let points = claims.iter().flat_map(|claim| &claim.point);
    let mut settings = points.map(setting).collect::<Result<Vec<FleetSetting>, _>>()?;
    settings.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    settings.dedup();
    let mut fabrics = BTreeMap::new();
    for (pods, _) in &settings {
        fabrics.insert(*pods, Fabric::facebook(&Facebook::pods(*pods)).map_err(ClaimError::new)?);
    }
    let runs: Vec<(FleetSetting, u64)> =
        settings.iter().flat_map(|setting| seeds(seed).into_iter().map(|seed| (*setting, seed))).collect();
    progress.expect_parts(runs.len());
    let years = parallel::map(&runs, jobs, |&((pods, share), of)| {
        let fabric = &fabrics[&pods];
        let trace: Vec<CorruptionEvent> = model(pods).generate(fabric, until, of).map_err(ClaimError::new)?;
        let years = Years::run(fabric, &trace, until, share, of == seed, progress).map(|years| (pods, years));
        progress.part_done();
        Ok(years)
    });
    Ok(years.into_iter().collect::<Result<Vec<_>, ClaimError>>()?.into_iter().collect())
}

/// Repairs are the paper's on its fabric, and all the same on others, as in the authors' simulator.
fn model(pods: u32) -> TraceModel {
    let repairs = vec![RepairTime { takes: Duration::from_hours(24 * REPAIR_DAYS), weight: 1.0 }];
    if pods == PODS { TraceModel::default() } else { TraceModel { repairs, ..TraceModel::default() } }
}

fn judge(claim: &Claim, all: &[(u32, Years)], seconds: f64) -> Result<ClaimResult, ClaimError> {
    let value = |point| {
        let (of_pods, share) = setting(point)?;
        let is_its = |(pods, years): &&(u32, Years)| *pods == of_pods && years.share == share;
        let of: Vec<&Years> = all.iter().filter(is_its).map(|(_, years)| years).collect();
        let take = find(MEASURES, claim.measure(point))?.take;
        Ok((point, of.first().and_then(|first| take(first, &of))))
    };
    let values = claim.point.iter().map(value).collect::<Result<Vec<(&ClaimPoint, _)>, ClaimError>>()?;
    let measures = |name: &str| claim.point.iter().any(|point| claim.measure(point) == name);
    let mut result = ClaimResult::judge(claim, &values, seconds);
    let years: Vec<&Years> =
        all.iter().filter(|(pods, years)| *pods == PODS && !years.samples.is_empty()).map(|(_, years)| years).collect();
    if measures("orders") {
        result.charts.extend(over_time(&years));
    }
    if measures("no_gain") {
        result.charts.extend([gains(&years), costs(&years)]);
    }
    Ok(result)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Results for each constraint: of the week in the paper's figure, and of the year.
fn over_time(years: &[&Years]) -> Vec<Chart> {
    const A_DAY: usize = 4;
    let week = years.iter().map(|years| series(years, "a week of the year", WEEK, usize::MAX));
    let year = years.iter().map(|years| series(years, "the whole year", (0.0, DAYS), A_DAY * DAYS as usize));
    week.chain(year).collect()
}

fn series(years: &Years, what: &str, days: (f64, f64), points: usize) -> Chart {
    let moments = years.between(days, points);
    let line = |name: &str, value: fn(&Moments) -> f64| {
        Line::new(name, moments.iter().map(|moment| (moment.day - days.0, value(moment))).collect())
    };
    let both = |[plain, guarded]: [fn(&Moments) -> f64; 2]| {
        vec![line("CorrOpt", plain), line("CorrOpt with protection", guarded)]
    };
    let share = 100.0 * years.share;
    Chart::Series(SeriesChart {
        title: format!("{}: {what}", percent(years.share)),
        caption: format!("Every ToR keeps {} of its paths; both policies decide alike.", percent(years.share)),
        time: Axis::linear("days").within(0.0, days.1 - days.0),
        panels: vec![
            Panel { y: Axis::log("total penalty"), lines: both([|m| m.penalty.0, |m| m.penalty.1]) },
            Panel {
                y: Axis::linear("least paths per ToR, %").within(share, 100.0),
                lines: vec![line("CorrOpt", |m| 100.0 * m.least_share)],
            },
            Panel {
                y: Axis::linear("least capacity per pod, %").within(lowest_capacity(&moments), 100.0),
                lines: both([|m| 100.0 * m.capacity.0, |m| 100.0 * m.capacity.1]),
            },
        ],
        events: Vec::new(),
    })
}

/// The whole percent below all of them.
fn lowest_capacity(moments: &[Moments]) -> f64 {
    moments.iter().map(|moment| (100.0 * moment.capacity.1).floor()).fold(99.0, f64::min)
}

fn gains(years: &[&Years]) -> Chart {
    let lines = years.iter().map(|years| Line::new(percent(years.share), years.gains()));
    Chart::Lines(LinesChart {
        title: "Gain in total penalty".into(),
        caption: "Share of events with at most this gain.".into(),
        x: Axis::log("CorrOpt's penalty by that with protection"),
        y: Axis::linear("share of events"),
        lines: lines.collect(),
    })
}

fn costs(years: &[&Years]) -> Chart {
    let lines = years.iter().map(|years| Line::new(percent(years.share), years.costs()));
    Chart::Lines(LinesChart {
        title: "Decrease of the least capacity of a pod".into(),
        caption: "Share of events with at most this decrease.".into(),
        x: Axis::linear("decrease, % of a pod's capacity"),
        y: Axis::linear("share of events"),
        lines: lines.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measure_can_be_taken_from_a_year() {
        let fabric = Fabric::facebook(&Facebook::pods(2)).unwrap();
        let until = Moment::from_hours(24.0 * 260.0);
        let trace = TraceModel::default().generate(&fabric, until, 1).unwrap();
        let years = Years::run(&fabric, &trace, until, 0.5, true, &units::Unwatched).unwrap();
        for measure in MEASURES {
            assert!((measure.take)(&years, &[&years]).is_some(), "{}", measure.name);
        }
    }
}

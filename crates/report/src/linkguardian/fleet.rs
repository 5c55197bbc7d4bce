//! LinkGuardian's year of corrupting links (SIGCOMM'23 §4.8, §5), run again.
//!
//! Every claim takes its values from the same years: at each constraint CorrOpt alone and CorrOpt with protection, on the
//! same trace. Both decide alike at the same times, so their samples pair up.

mod year;

use fleet::fabric::Facebook;
use fleet::trace::Corruption;
use fleet::{Fabric, trace};
use serde::Deserialize;
use units::Moment;

use crate::experiment::{ExperimentError, Measured, Row, Said, Scale};
use crate::files::{File, files};
use crate::paper::{Effort, Found, Part};
use crate::parallel;
use crate::stopwatch::Stopwatch;
use chart::{Axis, Chart, Line, LinesChart, Panel, SeriesChart};
use year::{Moments, Years};

/// The claims, in the order of the report.
const FILES: &[File] = files!("linkguardian/fleet": "fig15.toml", "fig16.toml", "concurrent.toml");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetClaim {
    pub id: String,
    pub title: String,
    pub paper: String,
    pub claim: String,
    #[serde(default)]
    pub notes: Vec<String>,
    pub point: Vec<Point>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    pub id: String,
    pub constraint: f64,
    pub measure: String,
    pub paper: Said,
    pub band: [f64; 2],
    #[serde(default)]
    pub why: String,
}

/// Claims about a fleet of links.
#[derive(Clone, Debug)]
pub struct Fleet(Vec<FleetClaim>);

impl Fleet {
    pub fn read() -> Result<Self, ExperimentError> {
        let parse = |(name, text): &File| {
            toml::from_str(text).map_err(|error| ExperimentError::new(format_args!("{name}: {error}")))
        };
        FILES.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }
}

impl Part for Fleet {
    fn name(&self) -> &'static str {
        "fleet"
    }

    fn ids(&self) -> Vec<&str> {
        self.0.iter().map(|claim| claim.id.as_str()).collect()
    }

    fn retain(&mut self, wanted: &dyn Fn(&str) -> bool) {
        self.0.retain(|claim| wanted(&claim.id));
    }

    /// Nothing, if the watch ended a run early.
    fn run(&self, effort: &Effort<'_>) -> Result<Vec<Found>, ExperimentError> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let begun = Stopwatch::start();
        let Some(years) = years(&self.0, effort)? else { return Ok(Vec::new()) };
        let seconds = begun.seconds() / self.0.len() as f64;
        self.0.iter().map(|claim| found(claim, &years, seconds)).collect()
    }
}

/// The paper's size, and for how long.
const PODS: u32 = 261;
const DAYS: f64 = 365.0;

/// Seeds of which the rare is taken; charts and shares are those of the first.
fn seeds(scale: Scale, first: u64) -> Vec<u64> {
    let more = match scale {
        Scale::Quick => 2,
        Scale::Full => 20,
    };
    (0..=more).map(|i| first.wrapping_add(i)).collect()
}

/// Every year that the claims ask for; `None` if the watch ended one early.
fn years(chosen: &[FleetClaim], effort: &Effort<'_>) -> Result<Option<Vec<Years>>, ExperimentError> {
    let Effort { scale, jobs, seed, watch } = *effort;
    let until = Moment::from_hours(24.0 * DAYS);
    let fabric = Fabric::facebook(&Facebook::pods(PODS)).map_err(ExperimentError::new)?;
    let mut constraints: Vec<f64> =
        chosen.iter().flat_map(|claim| &claim.point).map(|point| point.constraint).collect();
    constraints.sort_by(f64::total_cmp);
    constraints.dedup();
    let runs: Vec<(f64, u64)> =
        constraints.iter().flat_map(|share| seeds(scale, seed).into_iter().map(|seed| (*share, seed))).collect();
    watch.expect_runs(runs.len());
    let years = parallel::map(&runs, jobs, |&(share, of)| {
        let trace: Vec<Corruption> =
            trace::Model::default().generate(&fabric, until, of).map_err(ExperimentError::new)?;
        let years = Years::run(&fabric, &trace, until, share, of == seed, watch);
        watch.run_done();
        Ok(years)
    });
    Ok(years.into_iter().collect::<Result<Vec<_>, ExperimentError>>()?.into_iter().collect())
}

fn found(claim: &FleetClaim, years: &[Years], seconds: f64) -> Result<Found, ExperimentError> {
    let mut rows = Vec::new();
    for point in &claim.point {
        let of: Vec<&Years> = years.iter().filter(|years| years.share == point.constraint).collect();
        let measured = measure(&point.measure, &of)
            .ok_or_else(|| ExperimentError::new(format_args!("{}: no measure {}", claim.id, point.measure)))?;
        rows.push(Row::judge(format!("{}.{}", claim.id, point.id), &point.paper, point.band, &point.why, &measured));
    }
    let charts = match claim.id.as_str() {
        "lg.fig15" => over_time(years),
        "lg.fig16" => vec![gains(years), costs(years)],
        _ => Vec::new(),
    };
    let FleetClaim { id, title, paper, claim, notes, .. } = claim.clone();
    Ok(Found { id, title, claim, paper, charts, rows, notes, seconds })
}

/// Of one constraint, the year to be looked at closely first.
fn measure(name: &str, years: &[&Years]) -> Option<Measured> {
    let first = years.first()?;
    let n = first.events();
    Some(match name {
        "orders" => Measured::exact(first.orders(), n).with_note(first.penalties()),
        "orders_authors" => Measured::exact(first.orders_authors()?, n),
        "least_share" => Measured::exact(first.plain.least_share, n),
        "no_gain" => Measured::exact(1.0 - first.gain_share(), n).with_note(first.gain_by_time()),
        "gain" => Measured::exact(first.gain_share(), n),
        "cost_p99" => Measured::exact(first.cost(0.99), n).with_note(format!("at most {:.2e}", first.cost(1.0))),
        "per_pipe" => {
            let mut most: Vec<u32> = years.iter().map(|years| years.guarded.protected_per_pipe_max).collect();
            most.sort_unstable();
            let note = most.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            Measured::exact(f64::from(most[most.len() / 2]), most.len() as u64).with_note(format!("years had {note}"))
        }
        _ => return None,
    })
}

fn looked_at(years: &[Years]) -> impl Iterator<Item = &Years> {
    years.iter().filter(|years| !years.samples.is_empty())
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The week that the paper's figure shows, and the year, for each constraint.
fn over_time(years: &[Years]) -> Vec<Chart> {
    const WEEK: (f64, f64) = (245.5, 252.5);
    const A_DAY: usize = 4;
    let week = looked_at(years).map(|years| series(years, "a week of the year", WEEK, usize::MAX));
    let year = looked_at(years).map(|years| series(years, "the whole year", (0.0, DAYS), A_DAY * DAYS as usize));
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

fn gains(years: &[Years]) -> Chart {
    let lines = looked_at(years).map(|years| Line::new(percent(years.share), years.gains()));
    Chart::Lines(LinesChart {
        title: "Gain in total penalty".into(),
        caption: "Share of events with at most this gain.".into(),
        x: Axis::log("CorrOpt's penalty by that with protection"),
        y: Axis::linear("share of events"),
        lines: lines.collect(),
    })
}

fn costs(years: &[Years]) -> Chart {
    let lines = looked_at(years).map(|years| Line::new(percent(years.share), years.costs()));
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
    fn every_file_parses_and_every_measure_is_known() {
        let fabric = Fabric::facebook(&Facebook::pods(2)).unwrap();
        let until = Moment::from_hours(24.0 * 60.0);
        let trace = trace::Model::default().generate(&fabric, until, 1).unwrap();
        for claim in Fleet::read().unwrap().0 {
            for point in &claim.point {
                assert!(point.band[0] <= point.band[1], "{} {}", claim.id, point.id);
                let years = Years::run(&fabric, &trace, until, point.constraint, true, &sim::link::Unwatched).unwrap();
                assert!(measure(&point.measure, &[&years]).is_some(), "{} {}", claim.id, point.id);
            }
        }
    }
}

//! LinkGuardian's experiments on one link (SIGCOMM'23 §4.1, §4.6, App. B.1), run again.
//!
//! The figures of §4.1 and §4.6 come from the same stress test: full-size frames at line rate over a link
//! with a given loss. So do ours: each pair of rate, loss and mode is simulated once, on the `tofino`
//! profile, and every claim takes its value from those runs.

mod chart;

use faults::{Model, Schedule};
use guard::copies_for;
use sim::link::{Config, LevelBytes, Mode, Outcome, Profile, run};
use units::{Prob, Rate};

use crate::experiment::{Experiment, ExperimentError, Measured, Point, Row, Scale};
use crate::files::{File, files};
use crate::paper::{Effort, Found, Part};
use crate::parallel;
use crate::stopwatch::Stopwatch;
use ::chart::Chart;

/// The claims, in the order of the report.
const FILES: &[File] = files!("linkguardian/link":
    "copies.toml",
    "fig8-loss.toml",
    "fig8-speed.toml",
    "timeouts.toml",
    "fig14.toml",
    "fig14-rx.toml",
    "fig19.toml",
    "overhead.toml",
);

/// Claims about one link.
#[derive(Clone, Debug)]
pub struct Links(Vec<Experiment>);

impl Links {
    pub fn read() -> Result<Self, ExperimentError> {
        FILES.iter().map(|(name, text)| Experiment::parse(name, text)).collect::<Result<_, _>>().map(Self)
    }
}

impl Part for Links {
    fn name(&self) -> &'static str {
        "link"
    }

    fn ids(&self) -> Vec<&str> {
        self.0.iter().map(|experiment| experiment.id.as_str()).collect()
    }

    fn retain(&mut self, wanted: &dyn Fn(&str) -> bool) {
        self.0.retain(|experiment| wanted(&experiment.id));
    }

    /// Claims share their runs, and with them the time that those took. Fewer rows, if the watch ended a run early.
    fn run(&self, effort: &Effort<'_>) -> Result<Vec<Found>, ExperimentError> {
        let begun = Stopwatch::start();
        let mut judged = judged(&self.0, effort)?;
        judged.retain(|(_, rows)| !rows.is_empty());
        let each = begun.seconds() / judged.len().max(1) as f64;
        Ok(judged.into_iter().map(|(experiment, rows)| found(experiment, rows, each)).collect())
    }
}

fn found(experiment: &Experiment, rows: Vec<Row>, seconds: f64) -> Found {
    Found {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        claim: format!("{}.", capitalised(&experiment.claim)),
        paper: experiment.paper.clone(),
        charts: vec![Chart::Bars(chart::bars(experiment, &rows))],
        rows,
        notes: Vec::new(),
        seconds,
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What a point asks to be simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setup {
    rate: Rate,
    loss: Prob,
    mode: Mode,
}

impl Setup {
    /// `None` if the point needs no run.
    fn of(point: &Point) -> Option<Self> {
        let mode = match point.mode.as_deref()? {
            "ordered" => Mode::Ordered,
            "nonblocking" => Mode::NonBlocking,
            _ => return None,
        };
        Some(Self { rate: point.rate.as_ref()?.parse().ok()?, loss: point.loss.as_ref()?.parse().ok()?, mode })
    }

    fn config(&self, scale: Scale, seed: u64) -> Config {
        Config {
            rate: self.rate,
            profile: Profile::Tofino,
            mode: self.mode,
            forward: Schedule::always(Model::PerFrame(self.loss)),
            frames: self.frames(scale),
            seed,
            ..Config::default()
        }
    }

    /// Quick: 200,000 losses each. Full: 30 expected to be lost for good.
    fn frames(&self, scale: Scale) -> u64 {
        let loss = self.loss.get();
        if loss == 0.0 {
            return 1_000_000;
        }
        let target = Prob::literal(1e-8);
        let effective = copies_for(self.loss, target).map_or(loss, |(_, effective)| effective.get());
        match scale {
            Scale::Quick => (2e5 / loss) as u64,
            Scale::Full => (30.0 / effective) as u64,
        }
    }
}

/// Each experiment with its rows.
fn judged<'a>(
    chosen: &'a [Experiment],
    effort: &Effort<'_>,
) -> Result<Vec<(&'a Experiment, Vec<Row>)>, ExperimentError> {
    let Effort { scale, jobs, seed, watch } = *effort;
    let mut setups: Vec<Setup> = Vec::new();
    for setup in chosen.iter().flat_map(|one| &one.point).filter_map(Setup::of) {
        if !setups.contains(&setup) {
            setups.push(setup);
        }
    }
    watch.expect_runs(setups.len());
    let outcomes = parallel::map(&setups, jobs, |setup| {
        let outcome = run(&setup.config(scale, seed), watch);
        watch.run_done();
        outcome
    });
    let outcomes: Vec<Outcome> = outcomes.into_iter().collect::<Result<_, _>>().map_err(ExperimentError::new)?;
    let outcome = |wanted: &Setup| {
        let at = setups.iter().position(|setup| setup == wanted)?;
        outcomes.get(at).filter(|outcome| !outcome.interrupted)
    };
    let mut judged = Vec::new();
    for experiment in chosen {
        let mut rows = Vec::new();
        for point in &experiment.point {
            let unknown = || ExperimentError::new(format_args!("{}: no measure {}", experiment.id, experiment.measure));
            let measured = match Setup::of(point) {
                Some(setup) => {
                    let Some(outcome) = outcome(&setup) else { continue };
                    take(&experiment.measure, outcome).ok_or_else(unknown)?
                }
                None => compute(&experiment.measure, point).ok_or_else(unknown)?,
            };
            rows.push(Row::of_point(experiment, point, &measured));
        }
        judged.push((experiment, rows));
    }
    Ok(judged)
}

/// A measure that needs no run.
fn compute(measure: &str, point: &Point) -> Option<Measured> {
    let loss = point.loss.as_ref()?.parse().ok()?;
    let (copies, effective) = copies_for(loss, Prob::literal(1e-8))?;
    match measure {
        "copies" if point.id.ends_with("loss") => Some(Measured::exact(effective.get(), 1)),
        "copies" => Some(Measured::exact(f64::from(copies), 1)),
        _ => None,
    }
}

/// A measure of a finished run.
fn take(measure: &str, outcome: &Outcome) -> Option<Measured> {
    let events = outcome.receiver.rx_missing_seq;
    let share = |count: u64, of: u64| {
        let (low, high) = units::poisson(count);
        let of = of.max(1) as f64;
        Measured::counted(count as f64 / of, of as u64, (low / of, high / of))
    };
    Some(match measure {
        "effective_loss" => share(outcome.frames_lost, outcome.frames_offered),
        "effective_speed" => Measured::exact(outcome.effective_speed?, outcome.frames_offered),
        "timeouts" => share(outcome.given_up, events),
        "tx_buffer_bytes" => level(outcome.tx_buffer_bytes, outcome),
        "rx_buffer_bytes" => level(outcome.rx_buffer_bytes, outcome),
        "recovery_us" => Measured::exact(outcome.recovery_delay_us?.max, outcome.recovered),
        "overhead" => Measured::exact(1.0 - outcome.effective_speed?, outcome.frames_offered),
        _ => return None,
    })
}

fn level(level: LevelBytes, outcome: &Outcome) -> Measured {
    Measured::exact(level.max as f64, outcome.frames_offered).with_note(format!("p50 {}, p99 {}", level.p50, level.p99))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict;
    use sim::link::Unwatched;

    #[test]
    fn every_file_parses_and_every_point_can_be_run() {
        let all = Links::read().unwrap();
        assert_eq!(all.ids().len(), FILES.len());
        for experiment in &all.0 {
            for point in &experiment.point {
                assert!(point.band[0] <= point.band[1], "{} {}", experiment.id, point.id);
                assert!(
                    Setup::of(point).is_some() || compute(&experiment.measure, point).is_some(),
                    "{}.{}",
                    experiment.id,
                    point.id
                );
            }
        }
    }

    #[test]
    fn the_claims_that_take_no_time_match() {
        for prefix in ["lg.copies", "lg.overhead"] {
            let mut chosen = Links::read().unwrap();
            chosen.retain(&|id| id.starts_with(prefix));
            let effort = Effort { scale: Scale::Quick, jobs: 1, seed: 1, watch: &Unwatched };
            let rows: Vec<Row> = chosen.run(&effort).unwrap().into_iter().flat_map(|found| found.rows).collect();
            assert!(rows.len() >= 2);
            assert!(rows.iter().all(|row| row.verdict == Verdict::Match), "{rows:?}");
        }
    }
}

//! Experiments on networks: a scenario, the runs to make of it, and what the paper says of them.
//!
//! A file under `experiments/` names a scenario file beside it (which `hitless sim run` takes as well), a list of runs,
//! each with what it sets differently, and points: a measure of one run, or of one run over another, with the band that
//! decides the verdict. How much stands behind a value depends on the scale.

mod charts;
mod gather;
mod measure;

use serde::Deserialize;
use sim::scenario::{Point as ScenarioPoint, Scenario};

pub use gather::{Basis, Gathered, Moment, Traffic};
pub use measure::{Measure, Statistic, Window};

use crate::experiment::{ExperimentError, Measured, Row, Said, Scale};
use crate::paper::Effort;
use crate::parallel;
use crate::stopwatch::Stopwatch;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// The claim's id, such as `lg.fig11`.
    pub id: String,
    /// A few words for a headline.
    pub title: String,
    /// Section, figure or table of the paper.
    pub paper: String,
    /// What is claimed, in a sentence or two.
    pub claim: String,
    /// File name of the scenario.
    pub scenario: String,
    pub quick: Amount,
    pub full: Amount,
    pub run: Vec<RunSpec>,
    #[serde(default)]
    pub point: Vec<PointSpec>,
    #[serde(default)]
    pub chart: Vec<ChartSpec>,
    /// What a reader should know of how it was done.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// How much is simulated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// Each run is made with so many seeds, and their flows are pooled; what was sampled is the first one's.
    pub seeds: u64,
    #[serde(default)]
    pub set: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    pub name: String,
    #[serde(default)]
    pub set: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointSpec {
    /// Extends the claim's id.
    pub id: String,
    pub measure: String,
    /// The run that it is taken from.
    pub of: String,
    /// The run whose value is subtracted.
    pub minus: Option<String>,
    /// The run that it is divided by, and what of it; the same run or the same measure if only one is given.
    pub over: Option<String>,
    pub over_measure: Option<String>,
    pub paper: Said,
    /// Without one the value is told, not judged.
    pub band: Option<[f64; 2]>,
    #[serde(default)]
    pub why: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartSpec {
    pub title: String,
    pub kind: ChartKind,
    /// Which runs it shows, in this order; all if not given.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Of a tail: the lowest share shown.
    #[serde(default)]
    pub from: f64,
    /// Of bars and points: what is measured, and its unit. Points show the 99.9th percentile of flow completion times
    /// if it is not given.
    #[serde(default)]
    pub measure: String,
    #[serde(default)]
    pub unit: String,
    /// Of bars: values on a logarithmic axis.
    #[serde(default)]
    pub log: bool,
    /// Of points: the run that all others are compared with in what they take on the wire.
    pub base: Option<String>,
    /// Of a series: events, as fractions of the run, with their names.
    #[serde(default)]
    pub marks: Vec<(f64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// Flow completion times, the highest of them.
    Tail,
    /// Flow completion times, all of them, with shares evenly spaced.
    Cdf,
    /// Throughput, queue and buffers over time.
    Series,
    /// One measure of each run.
    Bars,
    /// One measure of each run by what the run costs: bytes on the wire beyond those of another run.
    Points,
}

/// A study with what came of it.
#[derive(Debug)]
pub struct Finding {
    pub study: Study,
    /// By run, in the order of the study; runs that were not finished are missing.
    pub gathered: Vec<(String, Gathered)>,
    pub rows: Vec<Row>,
    /// What its runs took, one after the other.
    pub seconds: f64,
}

/// One simulation.
struct Task {
    study: usize,
    run: usize,
    point: ScenarioPoint,
    seed: u64,
}

impl Study {
    /// `name` is the file's, for the message.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let study: Self =
            toml::from_str(text).map_err(|error| ExperimentError::new(format_args!("{name}: {error}")))?;
        let known = |run: &String| study.run.iter().any(|spec| spec.name == *run);
        let asked =
            study.point.iter().flat_map(|point| std::iter::once(&point.of).chain(&point.minus).chain(&point.over));
        let charted = study.chart.iter().flat_map(|chart| chart.runs.iter().chain(&chart.base));
        if let Some(run) = asked.chain(charted).find(|run| !known(run)) {
            return Err(ExperimentError::new(format_args!("{name}: no run is called {run}")));
        }
        if let Some(chart) = study.chart.iter().find(|chart| chart.kind == ChartKind::Points && chart.base.is_none()) {
            let title = &chart.title;
            return Err(ExperimentError::new(format_args!("{name}: chart {title}: expected base, the name of a run")));
        }
        let measures = study.point.iter().flat_map(|point| std::iter::once(&point.measure).chain(&point.over_measure));
        let drawn = study.chart.iter().map(|chart| &chart.measure).filter(|measure| !measure.is_empty());
        for measure in measures.chain(drawn) {
            Measure::parse(measure)
                .map_err(|error| ExperimentError::new(format_args!("{name}: {measure}: {error}")))?;
        }
        Ok(study)
    }

    pub fn amount(&self, scale: Scale) -> &Amount {
        match scale {
            Scale::Quick => &self.quick,
            Scale::Full => &self.full,
        }
    }

    /// Whether every run of it can be made.
    pub fn check(&self, scenario: &str, scale: Scale) -> Result<(), ExperimentError> {
        self.tasks(0, scenario, scale, 1).map(|_| ())
    }

    /// Everything to simulate, in order.
    fn tasks(&self, at: usize, text: &str, scale: Scale, seed: u64) -> Result<Vec<Task>, ExperimentError> {
        let mut tasks = Vec::new();
        for (run, spec) in self.run.iter().enumerate() {
            let amount = self.amount(scale);
            let sets = [amount.set.as_slice(), spec.set.as_slice()].concat();
            let scenario = Scenario::parse(&self.scenario, text, &sets).map_err(ExperimentError::new)?;
            let [point] = &scenario.points[..] else {
                return Err(ExperimentError::new(format_args!("{}: {} is a sweep", self.id, spec.name)));
            };
            let task = |n| Task { study: at, run, point: point.clone(), seed: seed.wrapping_mul(1_000) + n };
            tasks.extend((0..amount.seeds).map(task));
        }
        Ok(tasks)
    }
}

/// Makes all runs of some studies; each is given with its scenario's text. The result is the same for any number of
/// jobs. Runs that the watch ended early are left out, and so are the points that need them.
pub fn conduct(studies: &[(Study, &str)], effort: &Effort<'_>) -> Result<Vec<Finding>, ExperimentError> {
    let Effort { scale, jobs, seed, watch } = *effort;
    let mut tasks = Vec::new();
    for (at, (study, text)) in studies.iter().enumerate() {
        tasks.extend(study.tasks(at, text, scale, seed)?);
    }
    watch.expect_runs(tasks.len());
    let results = parallel::map(&tasks, jobs, |task| {
        let begun = Stopwatch::start();
        let setup = task.point.setup(task.seed);
        let basis = Basis::of(&setup);
        let outcome = sim::net::run(setup, watch);
        watch.run_done();
        outcome.map(|outcome| (Gathered::new(&outcome, &basis), begun.seconds()))
    });
    let mut findings: Vec<Finding> = studies.iter().map(|(study, _)| Finding::new(study.clone())).collect();
    for (task, result) in tasks.iter().zip(results) {
        let (gathered, seconds) = result.map_err(ExperimentError::new)?;
        findings[task.study].add(task.run, gathered, seconds);
    }
    for finding in &mut findings {
        finding.judge()?;
    }
    Ok(findings)
}

impl Finding {
    fn new(study: Study) -> Self {
        Self { study, gathered: Vec::new(), rows: Vec::new(), seconds: 0.0 }
    }

    fn add(&mut self, run: usize, gathered: Gathered, seconds: f64) {
        self.seconds += seconds;
        if gathered.interrupted {
            return;
        }
        let name = &self.study.run[run].name;
        match self.gathered.last_mut() {
            Some((last, pooled)) if last == name => pooled.pool(gathered),
            _ => self.gathered.push((name.clone(), gathered)),
        }
    }

    pub fn run(&self, name: &str) -> Option<&Gathered> {
        self.gathered.iter().find(|(run, _)| run == name).map(|(_, gathered)| gathered)
    }

    /// `None` if the run was not finished, or has too little of what the measure takes.
    pub fn take(&self, run: &str, measure: &str) -> Result<Option<Measured>, ExperimentError> {
        let measure = Measure::parse(measure).map_err(ExperimentError::new)?;
        Ok(self.run(run).and_then(|gathered| measure.take(gathered)))
    }

    fn judge(&mut self) -> Result<(), ExperimentError> {
        for (_, gathered) in &mut self.gathered {
            gathered.sort();
        }
        for point in &self.study.point {
            let id = format!("{}.{}", self.study.id, point.id);
            let row = match (self.value(point)?, point.band) {
                (Some(measured), Some(band)) => Row::judge(id, &point.paper, band, &point.why, &measured),
                (Some(measured), None) => Row::noted(id, &point.paper, &point.why, &measured),
                (None, _) => Row::unmeasured(id, &point.paper),
            };
            self.rows.push(row);
        }
        Ok(())
    }

    fn value(&self, point: &PointSpec) -> Result<Option<Measured>, ExperimentError> {
        let Some(mut measured) = self.take(&point.of, &point.measure)? else { return Ok(None) };
        if let Some(run) = &point.minus {
            let Some(minus) = self.take(run, &point.measure)? else { return Ok(None) };
            measured = difference(&measured, &minus);
        }
        if point.over.is_none() && point.over_measure.is_none() {
            return Ok(Some(measured));
        }
        let run = point.over.as_ref().unwrap_or(&point.of);
        let measure = point.over_measure.as_ref().unwrap_or(&point.measure);
        Ok(self.take(run, measure)?.and_then(|over| ratio(&measured, &over)))
    }
}

fn difference(of: &Measured, minus: &Measured) -> Measured {
    let note = format!("{} minus {}", crate::experiment::number(of.value), crate::experiment::number(minus.value));
    Measured::exact(of.value - minus.value, of.n.min(minus.n)).with_note(note)
}

/// `None` over nothing.
fn ratio(of: &Measured, over: &Measured) -> Option<Measured> {
    let note = format!("{} over {}", crate::experiment::number(of.value), crate::experiment::number(over.value));
    (over.value != 0.0).then(|| Measured::exact(of.value / over.value, of.n.min(over.n)).with_note(note))
}

#[cfg(test)]
mod tests;

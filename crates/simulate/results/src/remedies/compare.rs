//! Simulations of all remedies, and what each gives.

use collective::model::Remedy;
use scenario::{Scenario, SweepPoint};
use serde::Serialize;
use units::Progress;

use super::model::RemedyAnswer;
use super::page::IterationTrace;
use super::{RemedySettings, networks, scenario_text};
use crate::flows::{CollectiveSummary, RunDigest, RunResult, SummaryOrigin, summarize};

/// Output of `--json`: a simulation of each remedy, and the model of the same.
#[derive(Debug, Serialize)]
pub struct RemedyComparison {
    /// The answer in one sentence.
    pub answer: String,
    pub loss: f64,
    pub link: String,
    pub timeout_us: f64,
    pub remedies: Vec<RemedyRun>,
    /// True if it ended before all remedies were simulated.
    pub interrupted: bool,
}

/// A remedy that was simulated.
#[derive(Debug, Serialize)]
pub struct RemedyRun {
    #[serde(serialize_with = "by_name")]
    pub remedy: Remedy,
    pub collective: CollectiveSummary,
    /// Closed forms, if the link is a host's cable.
    pub model: Option<RemedyAnswer>,
    #[serde(skip)]
    pub trace: IterationTrace,
}

fn by_name<S: serde::Serializer>(remedy: &Remedy, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(remedy)
}

/// Packet-hops that a core simulates in a second, at least.
const HOPS_PER_SECOND: f64 = 3e6;

impl RemedySettings {
    /// Finds everything that is wrong before anything runs.
    pub fn check(&self) -> Result<(), String> {
        self.shape.check(self.mtu).map_err(|error| format!("--{}: {error}", error.key))?;
        self.scenarios().map(|_| ())
    }

    fn scenarios(&self) -> Result<Vec<(Remedy, Scenario)>, String> {
        let read = |remedy: &Remedy| {
            let text = scenario_text(self, *remedy);
            let by_option = |text: String| match text.split_once("between: ").or(text.split_once("between[0]: ")) {
                Some((_, problem)) => format!("--link: {problem}"),
                None => text,
            };
            let scenario = Scenario::parse("sim collective --scenario", &text, &[]);
            Ok((*remedy, scenario.map_err(|error| by_option(error.to_string()))?))
        };
        self.remedies.iter().map(read).collect()
    }

    /// Seconds that one core takes for all remedies, roughly: iterations that lose nothing are counted, not simulated.
    pub fn expected_seconds(&self) -> f64 {
        let packets = self.packets_of_all();
        let links = if self.network == super::NetworkShape::OneSwitch { 2.0 } else { 4.0 };
        let lost = self.loss.get() * packets / f64::from(self.shape.ranks);
        let simulated = if self.barrier && !self.exact { -(-lost).exp_m1() } else { 1.0 };
        let iterations = (self.iterations as f64 * simulated).max(4.0) + 4.0;
        iterations * packets * links * self.remedies.len() as f64 / HOPS_PER_SECOND
    }

    /// Packets of all ranks in an iteration.
    fn packets_of_all(&self) -> f64 {
        self.shape.pattern.bus_factor(self.shape.ranks) * self.shape.size as f64 * f64::from(self.shape.ranks)
            / f64::from(self.mtu)
    }
}

/// Simulates all remedies, in their order; fewer if `progress` ended it early.
pub fn compare(
    settings: &RemedySettings,
    jobs: usize,
    progress: &(dyn Progress + Sync),
) -> Result<RemedyComparison, String> {
    let scenarios = settings.scenarios()?;
    progress.expect_parts(scenarios.len());
    let runs = parallel::map(&scenarios, jobs, |(remedy, scenario)| {
        let run = scenario.points.first().map(|point| simulate(settings, *remedy, point, progress));
        progress.part_done();
        run.unwrap_or(Ok(None))
    });
    let remedies: Vec<RemedyRun> = runs.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
    let is_whole = |run: &RemedyRun| run.collective.failed.is_some() || run.collective.complete == settings.iterations;
    let interrupted = remedies.len() < settings.remedies.len() || !remedies.iter().all(is_whole);
    let mut comparison = RemedyComparison {
        answer: String::new(),
        loss: settings.loss.get(),
        link: networks::link(settings),
        timeout_us: settings.timeout.as_us(),
        remedies,
        interrupted,
    };
    comparison.answer = super::text::sentence(&comparison);
    Ok(comparison)
}

/// Runs one remedy; none if `progress` ended it before its first iteration did.
fn simulate(
    settings: &RemedySettings,
    remedy: Remedy,
    point: &SweepPoint,
    progress: &dyn Progress,
) -> Result<Option<RemedyRun>, String> {
    let mut setup = point.setup(settings.seed);
    setup.exact = settings.exact;
    let outcome = sim::net::run(setup, progress).map_err(|error| error.to_string())?;
    let Some(job) = outcome.jobs.first() else { return Ok(None) };
    let trace = IterationTrace::of(remedy.to_string(), &job.outcome);
    let digest = RunDigest::of(point, &outcome);
    let origin = SummaryOrigin { version: "", command: "" };
    let summary = summarize(point, vec![(settings.seed, RunResult::Complete(digest))], origin);
    let Some(collective) = summary.collective.into_iter().next() else { return Ok(None) };
    let model = settings.model().ok().map(|model| RemedyAnswer::new(settings, &model, remedy));
    Ok((collective.complete > 0 || collective.failed.is_some()).then_some(RemedyRun {
        remedy,
        collective,
        model,
        trace,
    }))
}

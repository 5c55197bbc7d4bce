//! `hitless fleet simulate`.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use chart::table::{Align, Table, thousands};
use fleet::Fabric;
use fleet::fabric::Names;
use fleet::ledger::Terms;
use fleet::protection::Table as Protections;
use fleet::simulate::{Outcome, Policy, Sample, Setup, simulate};
use fleet::trace::{self, Corruption, Model};
use fleet::upgrade::{Exposure, Order, capable};
use report::flows::whole_file;
use report::parallel;
use serde::Serialize;
use serde_json::{Map, Value};
use sim::link::Watch;
use units::Moment;

use super::series::{self, Format};
use crate::args::{PolicyArg, SimulateArgs};
use crate::output::{Done, Failure, print};
use crate::terminal::{Terminal, jobs, now};

/// One year.
#[derive(Debug, Serialize)]
struct Run {
    /// None if what happens came from a file.
    seed: Option<u64>,
    policy: String,
    constraint: f64,
    links: usize,
    /// How far it came.
    days: f64,
    interrupted: bool,
    events: u64,
    kept_corrupting: u64,
    disabled_max: u32,
    corrupting_max: u32,
    protected_max: u32,
    mean_penalty: f64,
    max_penalty: f64,
    least_paths_per_tor: u64,
    least_share: f64,
    least_pod_capacity: f64,
    mean_least_pod_capacity: f64,
    protected_per_pipe_max: u32,
    optimizer_runs: u64,
    optimizer_stopped: u64,
    optimizer_missed: f64,
    wall_seconds: f64,
    peak_rss_bytes: u64,
}

/// Several.
#[derive(Debug, Serialize)]
struct Runs {
    runs: Vec<Run>,
    /// Of every number, over the runs that came to their end.
    median: Map<String, Value>,
}

/// What all runs share.
struct Common<'a> {
    args: &'a SimulateArgs,
    fabric: &'a Fabric,
    model: Model,
    until: Moment,
    protections: Protections,
    /// From a file, for all runs.
    trace: Option<Vec<Corruption>>,
    terminal: &'a Terminal,
    /// Whether progress is told in days of the only run, or in runs.
    alone: bool,
}

pub fn run(args: &SimulateArgs, json: bool) -> Done {
    let fabric = super::fabric(&args.fabric)?;
    let (model, until) = super::year(&args.year)?;
    let seeds: Vec<Option<u64>> = match (&args.seeds, &args.trace) {
        (_, Some(_)) => vec![None],
        (Some(seeds), None) => seeds.iter().map(Some).collect(),
        (None, None) => vec![Some(args.seed)],
    };
    check_out(args.out.as_deref(), seeds.len())?;
    if let Order::Levels(_) = args.upgrade_order {
        upgrade_order(&args.upgrade_order, &fabric, &Exposure::even(&fabric), 0)?;
    }
    let trace = match &args.trace {
        Some(path) => Some(trace::load(path, &Names::of(&fabric)).map_err(|error| Failure::Usage(error.to_string()))?),
        None => None,
    };
    let alone = seeds.len() == 1;
    let terminal = if alone { Terminal::counting(args.year.days as u64, "days") } else { Terminal::of_runs() };
    if !alone {
        terminal.expect_runs(seeds.len());
    }
    let protections = Protections::measured();
    let common = Common { args, fabric: &fabric, model, until, protections, trace, terminal: &terminal, alone };
    let runs = parallel::map(&seeds, jobs(args.year.jobs), |seed| common.carry_out(*seed));
    terminal.finish();
    let runs: Vec<Run> = runs.into_iter().filter_map(Result::transpose).collect::<Result<_, Failure>>()?;
    if alone && let [run] = &runs[..] {
        print(json, run, || describe(run))?;
    } else {
        let median = medians(&runs);
        let runs = Runs { runs, median };
        print(json, &runs, || table(&runs))?;
    }
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// One file is for one run.
fn check_out(out: Option<&Path>, runs: usize) -> Result<(), Failure> {
    let Some(out) = out else { return Ok(()) };
    match Format::of(out) {
        Some(_) if runs == 1 => Ok(()),
        Some(_) => Err(Failure::Usage(format!("--out {}: expected a folder, for {runs} runs", out.display()))),
        None if out.extension().is_some() && !out.is_dir() => Err(Failure::Usage(format!(
            "--out {}: expected a file that ends in .csv or .parquet, or a folder",
            out.display()
        ))),
        None => {
            std::fs::create_dir_all(out).map_err(|error| Failure::Usage(format!("--out {}: {error}", out.display())))
        }
    }
}

fn upgrade_order(
    order: &Order,
    fabric: &Fabric,
    exposure: &Exposure,
    seed: u64,
) -> Result<Vec<fleet::SwitchId>, Failure> {
    let wrong = |error| Failure::Usage(format!("--upgrade-order {order}: {error}"));
    order.switches(fabric, exposure, seed).map_err(wrong)
}

impl Common<'_> {
    /// `None` if it was called off before it began.
    fn carry_out(&self, seed: Option<u64>) -> Result<Option<Run>, Failure> {
        if self.terminal.stopped() {
            return Ok(None);
        }
        let begun = now();
        let trace = self.trace(seed)?;
        if let Some(path) = &self.args.write_trace {
            let written = whole_file(path, |out| trace::write_csv(&trace, self.fabric, out));
            written.map_err(|error| Failure::Outside(error.to_string()))?;
        }
        let capable = self.capable(&trace, seed)?;
        let mut samples = Vec::new();
        let outcome = self.simulate(&self.setup(&trace, capable.as_deref()), &mut samples);
        let seconds = begun.elapsed().as_secs_f64();
        for (path, format) in self.files(seed) {
            let written = series::write(&path, format, self.fabric, &samples);
            written.map_err(|error| Failure::Outside(format!("--out {}: {error}", path.display())))?;
        }
        if !self.alone {
            self.terminal.run_done();
        }
        Ok(Some(self.report(seed, &outcome, seconds)))
    }

    fn trace(&self, seed: Option<u64>) -> Result<Cow<'_, [Corruption]>, Failure> {
        match (&self.trace, seed) {
            (Some(trace), _) => Ok(Cow::Borrowed(trace)),
            (None, seed) => {
                let made = self.model.generate(self.fabric, self.until, seed.unwrap_or_default());
                made.map(Cow::Owned).map_err(|error| Failure::Usage(error.to_string()))
            }
        }
    }

    /// By switch, whether it can protect; all can if there is no list.
    fn capable(&self, trace: &[Corruption], seed: Option<u64>) -> Result<Option<Vec<bool>>, Failure> {
        let (share, order) = (self.args.upgraded.get(), &self.args.upgrade_order);
        if share >= 1.0 {
            return Ok(None);
        }
        let exposure = match order {
            Order::Greedy => Exposure::record(&self.setup(trace, None), |_| !self.terminal.stopped()),
            _ => None,
        };
        let exposure = exposure.unwrap_or_else(|| Exposure::even(self.fabric));
        let switches = upgrade_order(order, self.fabric, &exposure, seed.unwrap_or_default())?;
        Ok(Some(capable(self.fabric, &switches, share)))
    }

    fn setup<'a>(&'a self, trace: &'a [Corruption], capable: Option<&'a [bool]>) -> Setup<'a> {
        Setup {
            fabric: self.fabric,
            trace,
            until: self.until,
            policy: match self.args.policy {
                PolicyArg::Corropt => Policy::CorrOpt,
                PolicyArg::CorroptGuard => Policy::CorrOptGuard,
                PolicyArg::GuardOnly => Policy::GuardOnly,
                PolicyArg::None => Policy::None,
            },
            terms: Terms {
                constraint: self.args.year.constraint,
                healthy_loss: self.args.healthy_loss.get(),
                ports_per_pipe: self.args.ports_per_pipe,
            },
            protection: &self.protections,
            capable,
        }
    }

    fn simulate(&self, setup: &Setup<'_>, samples: &mut Vec<Sample>) -> Outcome {
        /// Events between two looks at the clock.
        const LOOK: u64 = 256;
        let mut events: u64 = 0;
        simulate(setup, |sample: &Sample| {
            if self.args.out.is_some() {
                samples.push(*sample);
            }
            events += 1;
            if events.is_multiple_of(LOOK) {
                self.terminal.go_on(sample.at.as_days() as u64);
            }
            if self.terminal.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    fn files(&self, seed: Option<u64>) -> Vec<(PathBuf, Format)> {
        let Some(out) = &self.args.out else { return Vec::new() };
        if let Some(format) = Format::of(out) {
            return vec![(out.clone(), format)];
        }
        let name = seed.map_or("trace".to_owned(), |seed| format!("seed-{seed}"));
        [(Format::Csv, "csv"), (Format::Parquet, "parquet")]
            .map(|(format, end)| (out.join(format!("{name}.{end}")), format))
            .to_vec()
    }

    fn report(&self, seed: Option<u64>, outcome: &Outcome, wall_seconds: f64) -> Run {
        let setup = self.setup(&[], None);
        Run {
            seed,
            policy: setup.policy.to_string(),
            constraint: setup.terms.constraint.share(),
            links: self.fabric.links().len(),
            days: outcome.until.as_days(),
            interrupted: outcome.until < self.until,
            events: outcome.events,
            kept_corrupting: outcome.kept_corrupting,
            disabled_max: outcome.disabled_max,
            corrupting_max: outcome.corrupting_max,
            protected_max: outcome.protected_max,
            mean_penalty: outcome.mean_penalty,
            max_penalty: outcome.max_penalty,
            least_paths_per_tor: outcome.least_paths,
            least_share: outcome.least_share,
            least_pod_capacity: outcome.least_capacity,
            mean_least_pod_capacity: outcome.mean_least_capacity,
            protected_per_pipe_max: outcome.protected_per_pipe_max,
            optimizer_runs: outcome.optimizer_runs,
            optimizer_stopped: outcome.optimizer_stopped,
            optimizer_missed: outcome.optimizer_missed,
            wall_seconds,
            peak_rss_bytes: crate::bench::memory::peak(),
        }
    }
}

/// The median of every number that runs have.
fn medians(runs: &[Run]) -> Map<String, Value> {
    let complete = runs.iter().filter(|run| !run.interrupted);
    let rows: Vec<Value> = complete.filter_map(|run| serde_json::to_value(run).ok()).collect();
    let Some(Value::Object(first)) = rows.first() else { return Map::new() };
    let median = |key: &String| {
        let mut values: Vec<f64> = rows.iter().filter_map(|row| row[key].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (values.get((values.len().max(1) - 1) / 2)?, values.get(values.len() / 2)?);
        Some((key.clone(), Value::from((low + high) / 2.0)))
    };
    first.keys().filter(|key| *key != "seed").filter_map(median).collect()
}

fn describe(run: &Run) -> String {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Right)]);
    let mut row = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
    row("events", thousands(run.events));
    row("kept corrupting (the fast check said no)", thousands(run.kept_corrupting));
    row("mean penalty", super::loss(run.mean_penalty));
    row("greatest penalty", super::loss(run.max_penalty));
    row("least paths of a ToR", format!("{} ({:.1} %)", run.least_paths_per_tor, run.least_share * 100.0));
    row("least capacity of a pod", format!("{:.2} %", run.least_pod_capacity * 100.0));
    row("  on average over time", format!("{:.2} %", run.mean_least_pod_capacity * 100.0));
    row("most links disabled", thousands(run.disabled_max.into()));
    row("most links corrupting", thousands(run.corrupting_max.into()));
    row("most links protected", thousands(run.protected_max.into()));
    row("  in a pipe of a switch", run.protected_per_pipe_max.to_string());
    row("optimizer runs", thousands(run.optimizer_runs));
    if run.optimizer_stopped > 0 {
        row("  ended before it was sure", thousands(run.optimizer_stopped));
        row("  and may have missed, at most", super::loss(run.optimizer_missed));
    }
    row("seconds", format!("{:.2}", run.wall_seconds));
    let interrupted = if run.interrupted { ", interrupted" } else { "" };
    let (links, share, days) = (thousands(run.links as u64), run.constraint * 100.0, run.days);
    format!("{links} links, {share} % of paths to be kept, {}, {days:.1} days{interrupted}\n{table}", run.policy)
}

fn table(runs: &Runs) -> String {
    let mut table = Table::new(&[
        ("seed", Align::Left),
        ("events", Align::Right),
        ("kept", Align::Right),
        ("disabled", Align::Right),
        ("corrupting", Align::Right),
        ("mean penalty", Align::Right),
        ("least paths", Align::Right),
        ("least capacity", Align::Right),
        ("per pipe", Align::Right),
        ("optimizer", Align::Right),
        ("seconds", Align::Right),
    ]);
    let median = |key: &str| runs.median.get(key).and_then(Value::as_f64).unwrap_or_default();
    for run in &runs.runs {
        let name = match (run.seed, run.interrupted) {
            (seed, false) => seed.map_or("trace".to_owned(), |seed| seed.to_string()),
            (seed, true) => format!("{} (to day {:.0})", seed.unwrap_or_default(), run.days),
        };
        table.row(vec![
            name,
            thousands(run.events),
            thousands(run.kept_corrupting),
            thousands(run.disabled_max.into()),
            thousands(run.corrupting_max.into()),
            super::loss(run.mean_penalty),
            run.least_paths_per_tor.to_string(),
            format!("{:.2} %", run.least_pod_capacity * 100.0),
            run.protected_per_pipe_max.to_string(),
            thousands(run.optimizer_runs),
            format!("{:.2}", run.wall_seconds),
        ]);
    }
    if !runs.median.is_empty() {
        table.row(vec![
            "median".to_owned(),
            median("events").to_string(),
            median("kept_corrupting").to_string(),
            median("disabled_max").to_string(),
            median("corrupting_max").to_string(),
            super::loss(median("mean_penalty")),
            median("least_paths_per_tor").to_string(),
            format!("{:.2} %", median("least_pod_capacity") * 100.0),
            median("protected_per_pipe_max").to_string(),
            median("optimizer_runs").to_string(),
            format!("{:.2}", median("wall_seconds")),
        ]);
    }
    table.to_string()
}

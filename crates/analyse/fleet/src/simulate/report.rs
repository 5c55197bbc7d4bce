//! Simulated years.

use chart::table::{Align, Table, thousands};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::plan::report::loss;
use crate::simulate::{FleetOutcome, FleetSetup};

/// One simulated year.
#[derive(Debug, Serialize)]
pub struct YearRun {
    /// Seed of the trace; `None` if the trace came from a file.
    seed: Option<u64>,
    policy: String,
    constraint: f64,
    links: usize,
    /// Simulated days until it ended.
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

/// Several of them.
#[derive(Debug, Serialize)]
pub struct YearRuns {
    runs: Vec<YearRun>,
    /// Median of every number, over the runs that came to their end.
    median: Map<String, Value>,
}

impl YearRun {
    /// The result of a run of `setup`, which took `wall_seconds` seconds and `peak_rss_bytes` bytes of memory.
    pub fn new(
        seed: Option<u64>,
        setup: &FleetSetup<'_>,
        outcome: &FleetOutcome,
        wall_seconds: f64,
        peak_rss_bytes: u64,
    ) -> Self {
        Self {
            seed,
            policy: setup.policy.to_string(),
            constraint: setup.terms.constraint.share(),
            links: setup.fabric.links().len(),
            days: outcome.until.as_days(),
            interrupted: outcome.until < setup.until,
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
            peak_rss_bytes,
        }
    }

    /// Text about one run.
    pub fn text(&self) -> String {
        describe(self)
    }
}

impl YearRuns {
    pub fn new(runs: Vec<YearRun>) -> Self {
        let median = medians(&runs);
        Self { runs, median }
    }

    pub fn text(&self) -> String {
        table(self)
    }
}

/// The median of every number that runs have.
fn medians(runs: &[YearRun]) -> Map<String, Value> {
    let complete = runs.iter().filter(|run| !run.interrupted);
    let rows: Vec<Value> = complete.filter_map(|run| serde_json::to_value(run).ok()).collect();
    let Some(Value::Object(first)) = rows.first() else { return Map::new() };
    let median = |key: &String| {
        let mut values: Vec<f64> = rows.iter().filter_map(|row| row[key].as_f64()).collect();
        Some((key.clone(), Value::from(units::samples::median(&mut values)?)))
    };
    first.keys().filter(|key| *key != "seed").filter_map(median).collect()
}

fn describe(run: &YearRun) -> String {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Right)]);
    let mut row = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
    row("events", thousands(run.events));
    row("kept corrupting (the fast check said no)", thousands(run.kept_corrupting));
    row("mean penalty", loss(run.mean_penalty));
    row("greatest penalty", loss(run.max_penalty));
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
        row("  and may have missed, at most", loss(run.optimizer_missed));
    }
    row("seconds", format!("{:.2}", run.wall_seconds));
    let interrupted = if run.interrupted { ", interrupted" } else { "" };
    let (links, share, days) = (thousands(run.links as u64), run.constraint * 100.0, run.days);
    format!("{links} links, {share} % of paths to be kept, {}, {days:.1} days{interrupted}\n{table}", run.policy)
}

fn table(runs: &YearRuns) -> String {
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
            loss(run.mean_penalty),
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
            loss(median("mean_penalty")),
            median("least_paths_per_tor").to_string(),
            format!("{:.2} %", median("least_pod_capacity") * 100.0),
            median("protected_per_pipe_max").to_string(),
            median("optimizer_runs").to_string(),
            format!("{:.2}", median("wall_seconds")),
        ]);
    }
    table.to_string()
}

//! `hitless sim run`.
//!
//! A run writes its files when it ends, whichever ends first; what is printed and the summary come from all of them, in
//! the order of points and seeds, so that nothing depends on how many ran at once.

mod page;
mod record;
mod runs;

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use results::flows::{self, FlowSummary, RunResult, SummaryOrigin, summarize};
use scenario::{Scenario, SettingsDocument, SweepPoint};
use serde::{Deserialize, Serialize};

use crate::args::RunArgs;
use crate::output::{CommandResult, Failure, print, say};
use crate::results::write_file;
use crate::terminal::{TerminalProgress, jobs};
use page::TraceSet;
use record::RunRecord;
use runs::{PointRun, RunSet};

/// A scenario is written by hand; anything longer is not one.
const LONGEST_FILE: u64 = 1 << 20;
/// Limit of runs: more take longer than anybody waits, and should not fill the memory first.
const MOST_RUNS: usize = 1_000_000;

pub(super) fn run(args: &RunArgs, json: bool) -> CommandResult {
    let scenario = read(&args.file, &args.set)?;
    let all: Vec<PointRun<'_>> =
        scenario.points.iter().flat_map(|point| of_point(point, args)).take(MOST_RUNS + 1).collect();
    if all.len() > MOST_RUNS {
        return Err(Failure::Usage(format!("expected at most {MOST_RUNS} runs, points times seeds")));
    }
    if let Some(folder) = &args.out {
        let wrong = |error| Failure::Usage(format!("--out {}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(wrong)?;
    }
    if let Some(path) = &args.html {
        TraceSet::check(path, &scenario)?;
    }
    let level = args.record_level.into();
    let record = args.record.as_deref().map(|folder| RunRecord { folder, level });
    if let Some(record) = &record {
        record.check(&all)?;
    }
    for warning in scenario.warnings() {
        say(&format!("warning: {warning}"));
    }
    let terminal = TerminalProgress::of_shares();
    let traces = args.html.as_ref().map(|_| TraceSet::default());
    let runs = RunSet::new(&terminal, args.out.as_deref(), record, all.len()).with_traces(traces.as_ref());
    let results = parallel::map(&all, jobs(args.jobs), |run| runs.carry_out(run));
    terminal.finish();
    // A run that was stopped, or ended because another one failed, may have made its folder after that one was removed.
    if let Some(record) = record {
        record.remove_unused(&all);
    }
    runs.failure()?;
    let command = command(args);
    let origin = SummaryOrigin { version: env!("CARGO_PKG_VERSION"), command: &command };
    let mut results = results.into_iter();
    let mut summary = |point| {
        let of_run = |run: PointRun<'_>| (run.seed, results.next().unwrap_or(RunResult::Missing));
        summarize(point, of_point(point, args).into_iter().map(of_run).collect(), origin)
    };
    let summaries: Vec<_> = scenario.points.iter().map(&mut summary).collect();
    if let Some(folder) = &args.out {
        write_summary(folder, &summaries)?;
    }
    if let Some((path, traces)) = args.html.as_deref().zip(traces) {
        traces.write(path, &command, &scenario, &summaries)?;
    }
    print(json, &summaries, || describe(&scenario, &summaries, &terminal))?;
    if summaries.iter().all(|point| point.missing_seeds.is_empty()) { Ok(()) } else { Err(Failure::Interrupted) }
}

/// Reads a scenario from its file.
pub(crate) fn read(path: &Path, sets: &[String]) -> Result<Scenario, Failure> {
    let name = path.display().to_string();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text));
    read.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    if text.len() as u64 == LONGEST_FILE {
        return Err(Failure::Usage(format!("{name}: expected less than {LONGEST_FILE} bytes")));
    }
    let scenario = match configs(&text) {
        Some(configs) => {
            let configs = configs.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
            Scenario::of_configs(&name, configs, sets)
        }
        None => Scenario::parse(&name, &text, sets),
    };
    scenario.map_err(|error| Failure::Usage(error.to_string()))
}

/// A scenario in JSON, or the results of an earlier run, each of which says what it came from. `None` for TOML.
fn configs(text: &str) -> Option<Result<Vec<SettingsDocument>, serde_json::Error>> {
    #[derive(Deserialize)]
    struct EarlierRun {
        config: SettingsDocument,
    }
    let inside = text.trim_start().strip_prefix('[').map(str::trim_start);
    if inside.is_some_and(|inside| inside.starts_with('{')) {
        let earlier = serde_json::from_str::<Vec<EarlierRun>>(text);
        return Some(earlier.map(|points| points.into_iter().map(|point| point.config).collect()));
    }
    text.trim_start().starts_with('{').then(|| {
        let alone = serde_json::from_str::<EarlierRun>(text).map(|earlier| earlier.config);
        alone.or_else(|_| serde_json::from_str::<SettingsDocument>(text)).map(|config| vec![config])
    })
}

/// Command line that gives the same result again, without options that have no effect on the result.
fn command(args: &RunArgs) -> String {
    let mut words = vec!["hitless".to_owned(), "sim".to_owned(), "run".to_owned(), args.file.display().to_string()];
    for set in &args.set {
        words.extend(["--set".to_owned(), set.clone()]);
    }
    if let Some(seeds) = &args.seeds {
        words.extend(["--seeds".to_owned(), seeds.to_string()]);
    }
    words.iter().map(|word| super::quoted(word)).collect::<Vec<_>>().join(" ")
}

fn of_point<'a>(point: &'a SweepPoint, args: &RunArgs) -> Vec<PointRun<'a>> {
    let seeds = args.seeds.as_ref().unwrap_or(&point.seeds);
    seeds.iter().map(|seed| PointRun { point, seed, exact: args.exact }).collect()
}

fn write_summary(folder: &Path, summaries: &[impl Serialize]) -> CommandResult {
    let write = |out: &mut BufWriter<File>| {
        serde_json::to_writer_pretty(&mut *out, summaries)?;
        out.write_all(b"\n")
    };
    write_file("--out", &folder.join("summary.json"), write)
}

fn describe<C: Serialize>(
    scenario: &Scenario,
    summaries: &[FlowSummary<'_, C>],
    terminal: &TerminalProgress,
) -> String {
    let mut text = match scenario.name.as_str() {
        "" => String::new(),
        name => format!("{name}\n\n"),
    };
    let is_known = |point: &&FlowSummary<'_, C>| !(point.seeds.is_empty() && point.partial_seeds.is_empty());
    let known: Vec<&FlowSummary<'_, C>> = summaries.iter().filter(is_known).collect();
    if !known.is_empty() {
        text += &flows::tables(&known);
    }
    let runs: usize = summaries.iter().map(|point| point.seeds.len()).sum();
    text += &format!("\n{runs} runs, {:.1} s\n", terminal.elapsed().as_secs_f64());
    for point in summaries.iter().filter(|point| !point.missing_seeds.is_empty()) {
        let seeds: Vec<String> = point.missing_seeds.iter().map(u64::to_string).collect();
        let label = if point.label.is_empty() { String::new() } else { format!("{}: ", point.label) };
        text += &format!("interrupted, missing: {label}seed {}\n", seeds.join(", "));
        if !point.partial_seeds.is_empty() {
            let seconds = point.simulated_seconds;
            text += &format!("{label}partial results: what was simulated until then, {seconds:.6} s\n");
        }
    }
    text
}

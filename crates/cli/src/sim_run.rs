//! `hitless sim run`.
//!
//! A run writes its files when it ends, whichever ends first; what is printed and the summary come from all of them, in
//! the order of points and seeds, so that nothing depends on how many ran at once.

mod runs;

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use report::flows::{self, Summary, summarize};
use report::parallel;
use serde::Serialize;
use sim::link::Watch;
use sim::scenario::{Point, Scenario};

use crate::args::RunArgs;
use crate::output::{Done, Failure, print};
use crate::watch::{Terminal, jobs};
use runs::{Run, Runs};

/// A scenario is written by hand; anything longer is not one.
const LONGEST_FILE: u64 = 1 << 20;
/// What takes longer than anybody waits should not fill the memory first.
const MOST_RUNS: usize = 1_000_000;

pub fn run(args: &RunArgs, json: bool) -> Done {
    let scenario = read(&args.file, &args.set)?;
    let all: Vec<Run<'_>> =
        scenario.points.iter().flat_map(|point| of_point(point, args)).take(MOST_RUNS + 1).collect();
    if all.len() > MOST_RUNS {
        return Err(Failure::Usage(format!("expected at most {MOST_RUNS} runs, points times seeds")));
    }
    if let Some(folder) = &args.out {
        let wrong = |error| Failure::Usage(format!("--out {}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(wrong)?;
    }
    let terminal = Terminal::of_runs();
    terminal.expect_runs(all.len());
    let runs = Runs::new(&terminal, args.out.as_deref());
    let digests = parallel::map(&all, jobs(args.jobs), |run| runs.carry_out(run));
    terminal.finish();
    runs.failure()?;
    let mut digests = digests.into_iter();
    let mut summary = |point| {
        let runs = of_point(point, args).into_iter().map(|run| (run.seed, digests.next().flatten()));
        summarize(point, runs.collect())
    };
    let summaries: Vec<_> = scenario.points.iter().map(&mut summary).collect();
    if let Some(folder) = &args.out {
        write_summary(folder, &summaries)?;
    }
    print(json, &summaries, || describe(&scenario, &summaries, &terminal))?;
    if summaries.iter().all(|point| point.missing_seeds.is_empty()) { Ok(()) } else { Err(Failure::Interrupted) }
}

fn read(path: &Path, sets: &[String]) -> Result<Scenario, Failure> {
    let name = path.display().to_string();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text));
    read.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    if text.len() as u64 == LONGEST_FILE {
        return Err(Failure::Usage(format!("{name}: expected less than {LONGEST_FILE} bytes")));
    }
    Scenario::parse(&name, &text, sets).map_err(|error| Failure::Usage(error.to_string()))
}

fn of_point<'a>(point: &'a Point, args: &RunArgs) -> Vec<Run<'a>> {
    let seeds = args.seeds.as_ref().unwrap_or(&point.seeds);
    seeds.iter().map(|seed| Run { point, seed }).collect()
}

fn write_summary(folder: &Path, summaries: &[impl Serialize]) -> Done {
    let write = |out: &mut BufWriter<File>| {
        serde_json::to_writer_pretty(&mut *out, summaries)?;
        out.write_all(b"\n")
    };
    flows::whole_file(&folder.join("summary.json"), write).map_err(|error| Failure::Outside(error.to_string()))
}

fn describe<C: Serialize>(scenario: &Scenario, summaries: &[Summary<'_, C>], terminal: &Terminal) -> String {
    let mut text = match scenario.name.as_str() {
        "" => String::new(),
        name => format!("{name}\n\n"),
    };
    let known: Vec<&Summary<'_, C>> = summaries.iter().filter(|point| !point.seeds.is_empty()).collect();
    if !known.is_empty() {
        text += &flows::tables(&known);
    }
    let runs: usize = summaries.iter().map(|point| point.seeds.len()).sum();
    text += &format!("\n{runs} runs, {:.1} s\n", terminal.elapsed().as_secs_f64());
    for point in summaries.iter().filter(|point| !point.missing_seeds.is_empty()) {
        let seeds: Vec<String> = point.missing_seeds.iter().map(u64::to_string).collect();
        let label = if point.label.is_empty() { String::new() } else { format!("{}: ", point.label) };
        text += &format!("interrupted, missing: {label}seed {}\n", seeds.join(", "));
    }
    text
}

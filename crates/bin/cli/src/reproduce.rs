//! `hitless reproduce`.

mod keep;
mod list;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use papers::{Claims, EvidenceGroup, IndexInfo, Overview, PAPERS, PageInfo, Paper, Reproduction, SavedResults};
use report::claim::{self, ClaimError, PointResult, RunScale, Verdict, VerdictTally};
use report::runner::Effort;

use crate::args::{ReproduceArgs, ScaleArg, VerdictArg};
use crate::output::{CommandResult, Failure, print};
use crate::results::{check_file, write_file};
use crate::terminal::{TerminalProgress, jobs};

pub(crate) fn run(args: &ReproduceArgs, json: bool) -> CommandResult {
    if args.what == "list" {
        return list::run(args, json);
    }
    if args.results.is_some() || args.markdown {
        return Err(Failure::Usage(format!("{}: --results and --markdown are options of list", args.what)));
    }
    let wanted = wanted(&args.what)?;
    if let Some(path) = &args.out {
        check_file("--out", path)?;
    }
    if let Some(folder) = &args.save {
        fs::create_dir_all(folder).map_err(|error| Failure::Outside(format!("{}: {error}", folder.display())))?;
    }
    let terminal = TerminalProgress::of_runs();
    let effort = Effort { scale: scale(args), jobs: jobs(args.jobs), seed: args.seed, progress: &terminal };
    let mut done = Vec::new();
    for claims in wanted {
        done.push(keep::reproduce(&claims, args, &effort, &terminal)?);
        if terminal.stopped() {
            break;
        }
    }
    terminal.finish();
    let written = args.out.as_ref().map_or(Ok(()), |path| write_pages(path, args, &done, &terminal));
    // Results that took an hour are shown even if their page cannot be written.
    show(args, json, &done, &terminal)?;
    written?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn scale(args: &ReproduceArgs) -> RunScale {
    match args.scale {
        ScaleArg::Quick => RunScale::Quick,
        ScaleArg::Full => RunScale::Full,
    }
}

fn show(args: &ReproduceArgs, json: bool, done: &[Reproduction], terminal: &TerminalProgress) -> CommandResult {
    let all = || done.iter().flat_map(Reproduction::points);
    let is_wanted = |point: &&PointResult| args.only.is_none_or(|only| point.verdict == Verdict::from(only));
    let points: Vec<PointResult> = all().filter(is_wanted).cloned().collect();
    print(json, &points, || {
        let stopped = if terminal.stopped() { "interrupted: only what had ended by then. " } else { "" };
        let evidence = EvidenceGroup::of_points(done.iter().map(|found| (found.paper, found.points())));
        let evidence: String = evidence.iter().map(|group| format!("{group}\n")).collect();
        format!(
            "{}\n{evidence}{stopped}{}; {:.0} s, seed {}",
            claim::table(&points),
            VerdictTally::of(all()),
            terminal.elapsed().as_secs_f64(),
            args.seed
        )
    })
}

/// One page, or of all papers an index with a page for each beside it.
fn write_pages(path: &Path, args: &ReproduceArgs, done: &[Reproduction], terminal: &TerminalProgress) -> CommandResult {
    // A part is better than nothing, but not than a whole one from before.
    if terminal.stopped() && path.exists() {
        return Ok(());
    }
    let scale = scale(args).to_string();
    let command = |what: &str| format!("hitless reproduce {what} --scale {scale} --seed {}", args.seed);
    let page = |found: &Reproduction, command: String| {
        let about = PageInfo {
            command,
            scale: scale.clone(),
            seed: args.seed,
            version: env!("CARGO_PKG_VERSION").into(),
            seconds: terminal.elapsed().as_secs_f64(),
            interrupted: terminal.stopped(),
        };
        found.page(&about).html()
    };
    if args.what != "all" {
        return done.iter().try_for_each(|found| write(path, &page(found, command(&args.what))));
    }
    let mut pages = Vec::new();
    for found in done {
        let (name, beside) = beside(path, found.paper);
        write(&beside, &page(found, command(found.paper.name)))?;
        pages.push((found.paper.name.to_owned(), name));
    }
    let results: Vec<SavedResults> = done.iter().map(|found| keep::results(found, args)).collect();
    let overview = Overview::new(&results).map_err(outside)?;
    write(path, &overview.html(&IndexInfo { command: command("all"), pages, interrupted: terminal.stopped() }))
}

/// The page of a paper beside the index: its name, and its path.
fn beside(path: &Path, paper: Paper) -> (String, PathBuf) {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = format!("{stem}-{}.html", paper.name);
    let path = path.with_file_name(&name);
    (name, path)
}

fn write(path: &Path, text: &str) -> CommandResult {
    write_file("--out", path, |out| out.write_all(text.as_bytes()))
}

/// A claim's file that is refused.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: ClaimError) -> Failure {
    Failure::Usage(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn outside(error: ClaimError) -> Failure {
    Failure::Outside(error.to_string())
}

/// The claims meant by `all`, `linkguardian`, `linkguardian/link` or `linkguardian/lg.fig8.speed`.
fn wanted(what: &str) -> Result<Vec<Claims>, Failure> {
    if what == "all" {
        return PAPERS.iter().map(|paper| paper.claims().map_err(refused)).collect();
    }
    let unknown = || {
        let known = known(what).map_err(refused)?;
        Err(Failure::Usage(format!("{what}: expected {known}")))
    };
    Ok(vec![Claims::meant(what).map_err(refused)?.map_or_else(unknown, Ok)?])
}

/// Error that lists the names to choose from: the paper's claims if `what` begins with a paper's name, else all papers.
fn known(what: &str) -> Result<String, ClaimError> {
    let name = what.split('/').next().unwrap_or_default();
    let paper = Paper::named(name);
    let mut all = if paper.is_none() { vec!["list".to_owned(), "all".to_owned()] } else { Vec::new() };
    for paper in paper.map_or(PAPERS.to_vec(), |paper| vec![paper]) {
        all.extend(paper.known()?);
    }
    Ok(match all.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => all.concat(),
    })
}

impl From<VerdictArg> for Verdict {
    fn from(arg: VerdictArg) -> Self {
        match arg {
            VerdictArg::Match => Self::Match,
            VerdictArg::Differs => Self::Differs,
            VerdictArg::TooFew => Self::TooFew,
            VerdictArg::Noted => Self::Noted,
        }
    }
}

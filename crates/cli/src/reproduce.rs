//! `hitless reproduce`.

use std::fs;
use std::path::Path;

use papers::{Claims, PAPERS, PageInfo, Paper};
use report::claim::{self, ClaimError, PointResult, RunScale, Verdict};
use report::runner::Effort;

use crate::args::{ReproduceArgs, ScaleArg};
use crate::output::{CommandResult, Failure, print};
use crate::terminal::{TerminalProgress, jobs};

pub(crate) fn run(args: &ReproduceArgs, json: bool) -> CommandResult {
    let claims = claims(&args.what)?;
    let scale = match args.scale {
        ScaleArg::Quick => RunScale::Quick,
        ScaleArg::Full => RunScale::Full,
    };
    if let Some(path) = &args.out {
        writable(path)?;
    }
    let terminal = TerminalProgress::of_runs();
    let found = claims.reproduce(&Effort { scale, jobs: jobs(args.jobs), seed: args.seed, progress: &terminal });
    terminal.finish();
    let found = found.map_err(|error| Failure::Outside(error.to_string()))?;
    if let Some(path) = &args.out {
        let about = PageInfo {
            command: format!("hitless reproduce {} --scale {scale} --seed {}", args.what, args.seed),
            scale: scale.to_string(),
            seed: args.seed,
            version: env!("CARGO_PKG_VERSION").into(),
            seconds: terminal.elapsed().as_secs_f64(),
            interrupted: terminal.stopped(),
        };
        // A part is better than nothing, but not than a whole one from before.
        if !terminal.stopped() || !path.exists() {
            write(path, &found.page(&about).html())?;
        }
    }
    let points: Vec<PointResult> = found.points().cloned().collect();
    print(json, &points, || {
        let count = |verdict| points.iter().filter(|point| point.verdict == verdict).count();
        format!(
            "{}\n{}{} match, {} differ; {:.0} s, seed {}",
            claim::table(&points),
            if terminal.stopped() { "interrupted: only what had ended by then. " } else { "" },
            count(Verdict::Match),
            count(Verdict::Differs),
            terminal.elapsed().as_secs_f64(),
            args.seed
        )
    })?;
    if terminal.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Better now than after an hour.
fn writable(path: &Path) -> CommandResult {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || !folder.is_dir() {
        let expected = "expected a file in a folder that exists";
        return Err(Failure::Usage(format!("--out {}: {expected}", path.display())));
    }
    Ok(())
}

/// Under another name first, so that a report that is there is whole.
fn write(path: &Path, text: &str) -> CommandResult {
    let partial = path.with_extension("partial");
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| Failure::Outside(format!("{}: {error}", path.display())))
}

/// The claims meant by `linkguardian`, `linkguardian/link` or `linkguardian/lg.fig8.speed`.
fn claims(what: &str) -> Result<Claims, Failure> {
    let outside = |error: ClaimError| Failure::Outside(error.to_string());
    let unknown = || {
        let known = known(what).map_err(outside)?;
        Err(Failure::Usage(format!("{what}: expected {known}")))
    };
    Claims::meant(what).map_err(outside)?.map_or_else(unknown, Ok)
}

/// What could have been meant: of the paper, if there is such a one.
fn known(what: &str) -> Result<String, ClaimError> {
    let name = what.split('/').next().unwrap_or_default();
    let papers = Paper::named(name).map_or(PAPERS.to_vec(), |paper| vec![paper]);
    let mut all = Vec::new();
    for paper in papers {
        all.extend(paper.known()?);
    }
    Ok(match all.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => all.concat(),
    })
}

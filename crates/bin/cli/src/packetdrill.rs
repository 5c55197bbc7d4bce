//! `hitless packetdrill`: scripts of segments and system calls against our TCP and this host's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use drill::batch::{self, DrillReport, DrillTarget, DrillVerdict, ScriptRow, ScriptText};
use drill::random::{self, RandomPlan};
use linux::net::become_root_of_own_namespaces;

use crate::args::{AgainstArg, PacketdrillArgs};
use crate::output::{Failure, print};
use crate::terminal::end_on_ctrl_c;

/// 0 if none failed, 1 if one did.
pub(crate) fn run(args: &PacketdrillArgs, json: bool) -> Result<ExitCode, Failure> {
    let rows = match args.random {
        Some(scripts) => compare(args, scripts)?,
        None => run_scripts(args)?,
    };
    let report = DrillReport::new(rows);
    print(json, &report, || text(&report))?;
    Ok(ExitCode::from(u8::from(report.failed > 0)))
}

fn run_scripts(args: &PacketdrillArgs) -> Result<Vec<ScriptRow>, Failure> {
    if args.seed.is_some() || args.out.is_some() {
        return Err(Failure::Usage("--seed and --out are for random scripts: expected --random N".to_owned()));
    }
    let scripts = read(&args.scripts)?;
    let mut rows = Vec::new();
    // The kernel first: without root, the namespaces must be made before there is a second thread.
    if args.against != AgainstArg::Machine {
        rows = match become_root_of_own_namespaces(false) {
            Ok(_) => batch::against_kernel(&scripts),
            Err(error) => batch::without_kernel(&scripts, &error.to_string()),
        };
    }
    if args.against != AgainstArg::Kernel {
        rows.extend(batch::against_machine(&scripts, args.profile));
    }
    rows.sort_by(|left, right| left.file.cmp(&right.file));
    Ok(rows)
}

fn compare(args: &PacketdrillArgs, scripts: u64) -> Result<Vec<ScriptRow>, Failure> {
    if args.against != AgainstArg::Both {
        return Err(Failure::Usage("--random: expected --against both, since both are compared".to_owned()));
    }
    let folder = args.out.as_deref().unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Failure::Usage(format!("--out {}: expected a folder", folder.display())));
    }
    become_root_of_own_namespaces(false).map_err(|error| Failure::Outside(error.to_string()))?;
    end_on_ctrl_c();
    let plan = RandomPlan { scripts, seed: args.seed.unwrap_or(1), version: args.profile, folder };
    random::compare(&plan).map_err(Failure::Outside)
}

/// All scripts, in the order of their names; one that cannot be read is an error before anything runs.
fn read(paths: &[PathBuf]) -> Result<Vec<ScriptText>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        find(path, &mut files)?;
        if files.len() == before {
            return Err(Failure::Usage(format!("{}: no .pkt file in it", path.display())));
        }
    }
    let text = |path: &PathBuf| {
        let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
        Ok(ScriptText { file: path.display().to_string(), text: String::from_utf8_lossy(&bytes).into_owned() })
    };
    files.iter().map(text).collect()
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries: Vec<PathBuf> =
        entries.map_err(|error| unreadable(path, &error))?.iter().map(fs::DirEntry::path).collect();
    entries.sort();
    for entry in entries {
        // A link to a folder could lead back here.
        if entry.is_dir() && !entry.is_symlink() {
            find(&entry, files)?;
        } else if entry.extension().is_some_and(|extension| extension == "pkt") {
            files.push(entry);
        }
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

fn text(report: &DrillReport) -> String {
    let mut lines: Vec<String> = report.scripts.iter().map(line).collect();
    let DrillReport { passed, failed, not_applicable, .. } = report;
    lines.push(format!("{passed} passed, {failed} failed, {not_applicable} not applicable"));
    lines.join("\n")
}

fn line(row: &ScriptRow) -> String {
    let verdict = match row.result {
        DrillVerdict::Passed => "passed",
        DrillVerdict::Failed => "FAILED",
        DrillVerdict::NotApplicable => "not applicable",
    };
    let against = match row.against {
        DrillTarget::Machine => "machine",
        DrillTarget::Kernel => "kernel",
        DrillTarget::Both => "both",
    };
    let place = row.line.map_or(row.file.clone(), |line| format!("{}:{line}", row.file));
    let why = row.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    format!("{verdict:14} {against:7} {place}{why}")
}

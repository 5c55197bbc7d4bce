//! Many scripts at a time, and one row for each.
//!
//! A script against the kernel mostly waits; hence many run at once, each in a network namespace of its own. What
//! a kernel does depends on when its ticks come, and this program may be late on a busy machine: a script that failed is
//! run again, alone, up to four times in all, and passes if one of these runs does.

use std::thread;

use linux::net::Namespace;
use serde::Serialize;
use tcp::LinuxVersion;
use units::Span;

use crate::kernel::KernelSubject;
use crate::language::DrillScript;
use crate::machine_subject::MachineSubject;
use crate::runner::{self, DrillEnd};
use crate::subject::{DrillStop, Subject};

/// Subject against which a script is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DrillTarget {
    Machine,
    Kernel,
    /// Both subjects, one against the other.
    Both,
}

/// Verdict on a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrillVerdict {
    Passed,
    Failed,
    NotApplicable,
}

/// One script against one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScriptRow {
    pub file: String,
    pub against: DrillTarget,
    pub result: DrillVerdict,
    /// Line at which it failed, or that was not understood.
    pub line: Option<usize>,
    pub why: Option<String>,
}

/// All rows, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DrillReport {
    pub scripts: Vec<ScriptRow>,
    pub passed: usize,
    pub failed: usize,
    pub not_applicable: usize,
}

impl DrillReport {
    pub fn new(scripts: Vec<ScriptRow>) -> Self {
        let count = |verdict| scripts.iter().filter(|row| row.result == verdict).count();
        let [passed, failed, not_applicable] =
            [DrillVerdict::Passed, DrillVerdict::Failed, DrillVerdict::NotApplicable].map(count);
        Self { scripts, passed, failed, not_applicable }
    }
}

/// A script's file and its text.
#[derive(Clone, Debug)]
pub struct ScriptText {
    pub file: String,
    pub text: String,
}

/// Scripts against the kernel that wait beside each other.
const AT_A_TIME: usize = 24;
/// A run that was further behind its times than this says so.
const BUSY: Span = Span::from_us(1_000);
const TRIES: usize = 4;

/// Runs every script against the kernel. The process must have the right to make network namespaces.
pub fn against_kernel(scripts: &[ScriptText]) -> Vec<ScriptRow> {
    let first = parallel::map(scripts, AT_A_TIME, on_kernel);
    let again = scripts.iter().zip(first).map(|(script, mut row)| {
        for _ in 1..TRIES {
            if row.result != DrillVerdict::Failed {
                break;
            }
            row = on_kernel(script);
        }
        row
    });
    again.collect()
}

/// Runs every script on our TCP.
pub fn against_machine(scripts: &[ScriptText], version: LinuxVersion) -> Vec<ScriptRow> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    parallel::map(scripts, threads, |script| {
        row(script, DrillTarget::Machine, |script| runner::run(script, &mut MachineSubject::new(version)))
    })
}

/// One row for each script where the kernel cannot be asked.
pub fn without_kernel(scripts: &[ScriptText], why: &str) -> Vec<ScriptRow> {
    let stop = || DrillEnd { line: 0, stop: DrillStop::NotApplicable(why.to_owned()) };
    scripts.iter().map(|script| row(script, DrillTarget::Kernel, |_| Err(stop()))).collect()
}

fn on_kernel(script: &ScriptText) -> ScriptRow {
    let mut lag = Span::ZERO;
    let mut row = row(script, DrillTarget::Kernel, |script| {
        let run = || {
            let subject = KernelSubject::open().map_err(|error| error.to_string());
            subject.map(|mut subject| (runner::run(script, &mut subject), subject.lag()))
        };
        let ran = Namespace::new().and_then(|namespace| namespace.with(run)).map_err(|error| error.to_string());
        match ran.and_then(|ran| ran) {
            Ok((result, behind)) => {
                lag = behind;
                result
            }
            Err(why) => Err(DrillEnd { line: 0, stop: DrillStop::NotApplicable(why) }),
        }
    });
    if let Some(why) = row.why.as_mut().filter(|_| row.result == DrillVerdict::Failed && lag > BUSY) {
        *why += &format!(" (this machine was busy: events ran up to {lag} late)");
    }
    row
}

/// Reads a script and runs it; what is not understood is a row of its own.
pub(crate) fn row(
    script: &ScriptText,
    against: DrillTarget,
    run: impl FnOnce(&DrillScript) -> Result<(), DrillEnd>,
) -> ScriptRow {
    let ran = DrillScript::parse(&script.text)
        .map_err(|(line, why)| DrillEnd { line, stop: DrillStop::NotApplicable(why) })
        .and_then(|script| run(&script));
    let (result, line, why) = match ran {
        Ok(()) => (DrillVerdict::Passed, None, None),
        Err(DrillEnd { line, stop: DrillStop::Failed(why) }) => (DrillVerdict::Failed, Some(line), Some(why)),
        Err(DrillEnd { line, stop: DrillStop::NotApplicable(why) }) => {
            (DrillVerdict::NotApplicable, (line > 0).then_some(line), Some(why))
        }
    };
    ScriptRow { file: script.file.clone(), against, result, line, why }
}

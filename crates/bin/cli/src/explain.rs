//! `hitless explain`: why connections took as long as they did.

mod record;
#[cfg(feature = "research")]
mod selftest;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use explain::evidence::KernelEvidence;
use explain::{ExplainError, ExplainOptions, Explanation, OpenCapture, OtherEndError};
use radar::compare::CompareError;
use radar::compare::report::{Captures, refusal};

#[cfg(not(feature = "research"))]
use crate::absent::selftest;
use crate::args::{ExplainArgs, ExplainCaptureArgs, ExplainCommand};
use crate::captures::{CaptureSource, ReadProgress, is_same_file};
use crate::output::{CommandResult, Failure, print, say};
use crate::results::write_file;

/// Number of connections with charts on a page, without `--slowest`.
const CHARTED: usize = 10;

pub(crate) fn run(args: &ExplainArgs, json: bool) -> Result<ExitCode, Failure> {
    match (&args.command, &args.capture) {
        (Some(ExplainCommand::Record(args)), _) => record::run(args, json).map(|()| ExitCode::SUCCESS),
        (Some(ExplainCommand::Selftest(args)), _) => selftest::run(args, json),
        (None, Some(args)) => run_capture(args, json).map(|()| ExitCode::SUCCESS),
        (None, None) => Err(Failure::Usage("CAPTURE is missing: a pcap or pcapng file".into())),
    }
}

fn run_capture(args: &ExplainCaptureArgs, json: bool) -> CommandResult {
    check_paths(args)?;
    let progress = ReadProgress::new();
    let source = CaptureSource::new(&args.capture, &progress)?;
    let other = args.other_end.as_deref().map(|path| CaptureSource::new(path, &progress)).transpose()?;
    let passes = 1 + u64::from(args.html.is_some());
    progress.expect(passes * source.len() + other.as_ref().map_or(0, |other| 3 * (source.len() + other.len())));
    let open = || source.open();
    let evidence = evidence(args, &open, &progress)?;
    let options = ExplainOptions {
        flow: args.flow.clone().unwrap_or_default(),
        hz: args.hz,
        evidence,
        memory: args.memory.get(),
    };
    let failed = |error| failure(error, &args.capture);
    let mut explanation = explain::explain(&open, &options, &progress).map_err(failed)?;
    if explanation.is_empty() {
        progress.finish();
        return Err(Failure::Usage(nothing(args, &explanation)));
    }
    if let (Some(path), Some(other)) = (&args.other_end, &other) {
        let compared = explanation.read_other_end(&open, &|| other.open(), &progress);
        compared.map_err(|refused| other_end_failure(&refused, [&args.capture, path]))?;
    }
    if let Some(count) = args.slowest {
        explanation.keep_slowest(count);
    }
    let charted = args.slowest.unwrap_or(CHARTED).min(CHARTED);
    if args.html.is_some() {
        explanation.trace_slowest(charted, &open, &options, &progress).map_err(failed)?;
    }
    progress.finish();
    write_page(args, &explanation)?;
    if json {
        explanation.notes().iter().for_each(|note| say(&format!("note: {note}")));
    }
    print(json, &explanation.answer(), || explanation.text())
}

/// Evidence from a kernel: that of --evidence, or in the capture itself.
fn evidence(
    args: &ExplainCaptureArgs,
    open: OpenCapture<'_>,
    progress: &ReadProgress,
) -> Result<Option<Arc<KernelEvidence>>, Failure> {
    let Some(path) = &args.evidence else {
        let has_events = explain::has_events(open).map_err(|error| failure(error, &args.capture))?;
        let read = has_events.then(|| read_evidence(open, &args.capture)).transpose()?;
        return Ok(read.map(Arc::new));
    };
    let source = CaptureSource::new(path, progress)?;
    let read = read_evidence(&|| source.open(), path)?;
    if read.events() == 0 {
        let expected = "expected a recording of hitless explain record";
        return Err(Failure::Usage(format!("--evidence {}: has no events of a kernel; {expected}", path.display())));
    }
    Ok(Some(Arc::new(read)))
}

fn read_evidence(open: OpenCapture<'_>, path: &Path) -> Result<KernelEvidence, Failure> {
    let source = open().map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let read = KernelEvidence::read(source).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    if read.missed() > 0 {
        say(&format!("note: the recorder missed {} events: calls of applications prove less", read.missed()));
    }
    Ok(read)
}

fn write_page(args: &ExplainCaptureArgs, explanation: &Explanation) -> CommandResult {
    let Some(path) = &args.html else { return Ok(()) };
    let page = explanation.page(&args.capture.display().to_string());
    write_file("--html", path, |out| out.write_all(page.as_bytes()))
}

fn check_paths(args: &ExplainCaptureArgs) -> CommandResult {
    let captures = [Some(&args.capture), args.other_end.as_ref()];
    if let Some(path) = &args.html
        && captures.iter().flatten().any(|capture| is_same_file(path, capture))
    {
        return Err(Failure::Usage(format!("--html {}: that is a capture to be read", path.display())));
    }
    match &args.other_end {
        Some(other) if is_same_file(&args.capture, other) => {
            Err(Failure::Usage("--other-end: that is the same capture; expected one of the other end".into()))
        }
        Some(other) if [&args.capture, other].iter().all(|path| path.as_os_str() == "-") => {
            Err(Failure::Usage("CAPTURE and --other-end cannot both be standard input".into()))
        }
        _ => Ok(()),
    }
}

/// Two captures that cannot be compared, in words.
fn other_end_failure(refused: &OtherEndError, paths: [&Path; 2]) -> Failure {
    if matches!(refused.error, CompareError::Interrupted) {
        return Failure::Interrupted;
    }
    let [mut up, mut down] = paths.map(|path| path.display().to_string());
    if refused.on_way_back {
        std::mem::swap(&mut up, &mut down);
    }
    let captures = Captures { up, down, source_rewritten: false, destination_rewritten: false, exact: true };
    Failure::Usage(refusal(&refused.error, &captures))
}

fn nothing(args: &ExplainCaptureArgs, explanation: &Explanation) -> String {
    let answer = explanation.answer();
    let counts = format!("{} packets, {} of them not TCP, {} unusable", answer.packets, answer.not_tcp, answer.skipped);
    let hint = if args.flow.is_some() { "; --flow matches none of its connections" } else { "" };
    format!("{}: no TCP connection to explain: {counts}{hint}", args.capture.display())
}

fn failure(error: ExplainError, path: &Path) -> Failure {
    match error {
        ExplainError::Interrupted => Failure::Interrupted,
        ExplainError::Capture(error) => Failure::Usage(format!("{}: {error}", path.display())),
    }
}

//! `hitless radar losses`: which packets of one capture are missing in another.

use std::path::Path;

use capture::CaptureWriter;
use radar::causes::classify;
use radar::compare::report::{Captures, LossReport, OtherClock, refusal};
use radar::compare::{self, CaptureInput, CompareError, CompareOptions, Comparison};
use radar::delay::report::DelayQuestion;
use radar::delay::{self, DelayError};
use radar::loss::{Loss, LossCause};
use radar::rule::{CauseLine, CauseRule};
use radar::signature::Fields;
use units::Progress;

use super::delay::StatedClocks;
use crate::args::{FieldArg, LossesArgs, NatArg};
use crate::captures::{ReadProgress, is_same_file, sources};
use crate::output::{CommandResult, Failure, print};
use crate::results::write_file;

pub(super) fn run(args: &LossesArgs, json: bool) -> CommandResult {
    let rule = args.causes.rule(args.ttl).map_err(|error| Failure::Usage(error.to_string()))?;
    let options = options(args)?;
    check_outputs(args)?;
    let progress = ReadProgress::new();
    let [up, down] = sources([&args.up, &args.down], &progress)?;
    progress.expect(3 * up.len() + 2 * down.len());
    let (open_up, open_down) = (|| up.open(), || down.open());
    let inputs = [CaptureInput { open: &open_up }, CaptureInput { open: &open_down }];
    let compared = compare::compare(inputs[0], inputs[1], &options, &progress);
    let seconds = progress.seconds();
    progress.finish();
    let comparison = compared.map_err(|error| failure(error, args))?;
    let clock = clock_band(args, &options, inputs, &comparison, &progress)?;
    let (causes, intervals) = causes(&comparison, &rule);
    let report = LossReport::new(captures(args), comparison, causes, seconds);
    let report = report.with_intervals(intervals).with_clock(clock);
    if let Some(path) = &args.write {
        write(path, inputs[0], report.comparison(), &progress)?;
    }
    if let Some(path) = &args.html {
        let page = report.page();
        write_file("--html", path, |out| std::io::Write::write_all(out, page.as_bytes()))?;
    }
    print(json, &report.answer(), || report.text(args.top))
}

/// Cause of each loss, and of each interval by our rule. That of the thesis looks at all losses at once.
fn causes(comparison: &Comparison, rule: &CauseRule) -> (Vec<LossCause>, Vec<CauseLine>) {
    match rule {
        CauseRule::Evidence(_) => comparison.evidence.judge(rule),
        CauseRule::Thesis(thresholds, _) => {
            let losses: Vec<Loss> = comparison.lost.iter().map(|lost| lost.loss).collect();
            (classify(&losses, thresholds), Vec::new())
        }
    }
}

/// Offset of DOWN's clock from UP's, if a timeline is drawn or options ask for it.
fn clock_band(
    args: &LossesArgs,
    options: &CompareOptions,
    [up, down]: [CaptureInput<'_>; 2],
    comparison: &Comparison,
    progress: &ReadProgress,
) -> Result<Option<OtherClock>, Failure> {
    let is_asked_for = args.html.is_some() || args.clocks.clock_up.is_some();
    if !is_asked_for || comparison.lost.is_empty() {
        return Ok(None);
    }
    let clocks = StatedClocks::read(&args.clocks)?;
    let found = delay::offset(up, down, &clocks.options(options.fields, options.memory), progress);
    match found {
        Ok(band) => Ok(Some(OtherClock::Known(band))),
        Err(DelayError::Interrupted) => Err(Failure::Interrupted),
        Err(error) => {
            let [up, down] = [&args.up, &args.down].map(|path| path.display().to_string());
            let has_clocks = args.clocks.clock_up.is_some();
            let question = DelayQuestion { up, down, drift_ppm: clocks.drift.ppm(), has_clocks };
            Ok(Some(OtherClock::Unknown(delay::report::refusal(&error, &question))))
        }
    }
}

fn options(args: &LossesArgs) -> Result<CompareOptions, Failure> {
    let fields = fields(&args.compare.fields, args.compare.nat)?;
    Ok(CompareOptions { fields, exact: args.exact, memory: args.memory.get(), whole: args.whole, ttl: args.ttl })
}

/// Fields by which packets of both captures are compared.
pub(super) fn fields(parts: &[FieldArg], nat: Option<NatArg>) -> Result<Fields, Failure> {
    let none = Fields { source: false, destination: false, ip_id: false, tcp: false, content: false };
    let mut fields = if parts.is_empty() { Fields::ALL } else { none };
    for field in parts {
        match field {
            FieldArg::Source => fields.source = true,
            FieldArg::Destination => fields.destination = true,
            FieldArg::IpId => fields.ip_id = true,
            FieldArg::Tcp => fields.tcp = true,
            FieldArg::Content => fields.content = true,
        }
    }
    fields.source &= !matches!(nat, Some(NatArg::Source | NatArg::Both));
    fields.destination &= !matches!(nat, Some(NatArg::Destination | NatArg::Both));
    if !(fields.ip_id || fields.tcp || fields.content) {
        let what =
            "--fields: addresses and ports alone do not tell the packets of a flow apart; add ip-id, tcp or content";
        return Err(Failure::Usage(what.into()));
    }
    Ok(fields)
}

fn captures(args: &LossesArgs) -> Captures {
    let [up, down] = [&args.up, &args.down].map(|path| path.display().to_string());
    Captures {
        up,
        down,
        source_rewritten: matches!(args.compare.nat, Some(NatArg::Source | NatArg::Both)),
        destination_rewritten: matches!(args.compare.nat, Some(NatArg::Destination | NatArg::Both)),
        exact: args.exact,
    }
}

/// Results must not replace what they come from.
fn check_outputs(args: &LossesArgs) -> CommandResult {
    for (option, path) in [("--write", &args.write), ("--html", &args.html)] {
        if let Some(path) = path
            && [&args.up, &args.down].iter().any(|input| is_same_file(path, input))
        {
            return Err(Failure::Usage(format!("{option} {}: that is a capture to be read", path.display())));
        }
    }
    if args.write.is_some() && args.write == args.html {
        return Err(Failure::Usage("--write and --html name the same file".into()));
    }
    Ok(())
}

fn write(path: &Path, up: CaptureInput<'_>, comparison: &Comparison, progress: &ReadProgress) -> CommandResult {
    let mut numbers: Vec<u64> = comparison.lost.iter().map(|lost| lost.frame).collect();
    // Several packets of one super-frame.
    numbers.dedup();
    let mut interrupted = false;
    let written = write_file("--write", path, |out| {
        let mut writer = CaptureWriter::new(out)?;
        let frames = compare::frames(up, numbers, |record| {
            interrupted = !progress.go_on(0);
            if interrupted { Err(std::io::Error::other("interrupted")) } else { writer.write(record) }
        });
        frames.map_err(std::io::Error::other)?
    });
    match written {
        Err(_) if interrupted => Err(Failure::Interrupted),
        written => written,
    }
}

/// Error message for captures that cannot be compared, with advice.
fn failure(error: CompareError, args: &LossesArgs) -> Failure {
    match error {
        CompareError::Interrupted => Failure::Interrupted,
        error => Failure::Usage(refusal(&error, &captures(args))),
    }
}

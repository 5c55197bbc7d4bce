//! `hitless radar delay`: how long packets take between two captures, as intervals.

use std::fs;
use std::io::Write;
use std::path::Path;

use clock::offset::OffsetDrift;
use files::WholeFile;
use radar::compare::CaptureInput;
use radar::delay::report::{DelayQuestion, DelayReport, refusal};
use radar::delay::{ClockStatement, DelayError, DelayOptions, PacketDelay, delays, readings};

use super::losses::fields;
use crate::args::{ClockArgs, DelayArgs};
use crate::captures::{CaptureSource, ReadProgress, is_same_file, sources};
use crate::output::{CommandResult, Failure, print};
use crate::results::{unwritten, write_file};

pub(super) fn run(args: &DelayArgs, json: bool) -> CommandResult {
    check_outputs(args)?;
    let clocks = StatedClocks::read(&args.clocks)?;
    let options = clocks.options(fields(&args.compare.fields, args.compare.nat)?, args.memory.get());
    let progress = ReadProgress::new();
    let [up, down]: [CaptureSource; 2] = sources([&args.up, &args.down], &progress)?;
    progress.expect(3 * (up.len() + down.len()));
    let (open_up, open_down) = (|| up.open(), || down.open());
    let [up, down] = [CaptureInput { open: &open_up }, CaptureInput { open: &open_down }];
    let mut rows = args.csv.as_deref().map(DelayRows::create).transpose()?;
    let found = delays(up, down, &options, &progress, &mut |packet| {
        if let Some(rows) = &mut rows {
            rows.write(packet);
        }
    });
    let seconds = progress.seconds();
    progress.finish();
    let question = DelayQuestion {
        up: args.up.display().to_string(),
        down: args.down.display().to_string(),
        drift_ppm: clocks.drift.ppm(),
        has_clocks: !clocks.up.is_empty(),
    };
    let analysis = found.map_err(|error| match error {
        DelayError::Interrupted => Failure::Interrupted,
        error => Failure::Usage(refusal(&error, &question)),
    })?;
    if let Some(rows) = rows {
        rows.finish()?;
    }
    let report = DelayReport::new(question, analysis, seconds);
    if let Some(path) = &args.html {
        let page = report.page();
        write_file("--html", path, |out| out.write_all(page.as_bytes()))?;
    }
    print(json, &report.answer(), || report.text(args.top))
}

/// Statements of a user about the clocks.
pub(super) struct StatedClocks {
    pub drift: OffsetDrift,
    up: Vec<ClockStatement>,
    down: Vec<ClockStatement>,
}

impl StatedClocks {
    pub(super) fn read(args: &ClockArgs) -> Result<Self, Failure> {
        let drift = OffsetDrift::from_ppm(args.drift).ok_or_else(|| {
            let most = OffsetDrift::MOST_PPM;
            Failure::Usage(format!("--drift {}: expected parts per million between 0 and {most}", args.drift))
        })?;
        Ok(Self {
            drift,
            up: stated("--clock-up", args.clock_up.as_deref())?,
            down: stated("--clock-down", args.clock_down.as_deref())?,
        })
    }

    pub(super) fn options(&self, fields: radar::signature::Fields, memory: u64) -> DelayOptions<'_> {
        DelayOptions { fields, memory, drift: self.drift, up_clock: &self.up, down_clock: &self.down }
    }
}

fn stated(option: &str, path: Option<&Path>) -> Result<Vec<ClockStatement>, Failure> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let usage = |what: String| Failure::Usage(format!("{option} {}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    readings(&text).map_err(|error| usage(error.to_string()))
}

/// Results must not replace what they come from.
fn check_outputs(args: &DelayArgs) -> CommandResult {
    let clocks = [&args.clocks.clock_up, &args.clocks.clock_down];
    let inputs = || [&args.up, &args.down].into_iter().chain(clocks.into_iter().flatten());
    for (option, path) in [("--html", &args.html), ("--csv", &args.csv)] {
        if let Some(path) = path
            && inputs().any(|input| is_same_file(path, input))
        {
            return Err(Failure::Usage(format!("{option} {}: that is a file to be read", path.display())));
        }
    }
    if args.html.is_some() && args.html == args.csv {
        return Err(Failure::Usage("--html and --csv name the same file".into()));
    }
    Ok(())
}

/// A row for each packet, as it is measured. There is no file unless all are in it.
struct DelayRows<'a> {
    path: &'a Path,
    out: WholeFile,
    failed: Option<std::io::Error>,
}

impl<'a> DelayRows<'a> {
    fn create(path: &'a Path) -> Result<Self, Failure> {
        let mut out = WholeFile::create(path).map_err(|error| unwritten("--csv", &error))?;
        let failed = writeln!(out, "up_ns,down_ns,direction,flow,low_ns,high_ns").err();
        Ok(Self { path, out, failed })
    }

    fn write(&mut self, packet: &PacketDelay) {
        if self.failed.is_none() {
            let PacketDelay { up, down, flow, direction, low, high } = packet;
            self.failed = writeln!(self.out, "{},{},{direction},{flow},{low},{high}", up.0, down.0).err();
        }
    }

    fn finish(self) -> CommandResult {
        let Self { path, out, failed } = self;
        match failed {
            Some(error) => Err(Failure::Outside(format!("--csv {}: {error}", path.display()))),
            None => out.finish().map_err(|error| unwritten("--csv", &error)),
        }
    }
}

//! Samples from a file, a FIFO or standard input: for tests, and for replaying an incident.
//!
//! One sample a line, as CSV with a header or as JSON objects of the same names:
//!
//! ```text
//!   time_ms,port,identity,carrier,all,bad,bits,symbol_errors,corrected,uncorrectable
//!   1000,eth0,2,up,5000000,3,64,,,
//!   {"time_ms": 2000, "port": "eth0", "all": 9000000, "bad": 7}
//! ```
//!
//! Only `time_ms`, `port`, `all` and `bad` must be there; `all` and `bad` may both be empty, where nobody counted. A port of
//! another host is `leaf3/eth7`, or has its host in a column `host`. Lines that make no sense are reported and skipped, and so
//! is a sample that is older than the one before it of the same port. Reading never waits: what is not there yet comes with a
//! later read. As long as no line at all has made sense, that is reported with every read.

mod format;
mod lines;
mod record;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use units::Moment;

use super::Source;
use crate::reading::Reading;

use format::{SampleFormat, SampleLine};
use lines::{LineRead, LineReader};

pub use record::ReadingRecorder;

/// Time at which samples are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleTiming {
    /// Samples are due at once: each read yields one time step, the consecutive samples of one `time_ms`. The source ends
    /// with the file, or when the process that writes into the FIFO closes it.
    Replay,
    /// Each read yields everything that was appended since the last one. Never over; a file that is cut short or
    /// replaced is read from its beginning.
    Follow,
}

/// Limit of a single read; the rest comes with the next.
const MOST_BYTES: usize = 16 << 20;
/// More than any machine has, so that a file cannot fill the memory with names.
const MOST_PORTS: usize = 1 << 16;
/// A file of nonsense is not worth more.
const MOST_TROUBLES: usize = 16;

#[derive(Debug)]
pub struct Samples {
    name: String,
    mode: SampleTiming,
    lines: LineReader,
    format: SampleFormat,
    last: BTreeMap<String, Moment>,
    /// True if it was reported that the file is not in order of time.
    told_unsorted: bool,
    /// The time step that is being collected.
    step: Vec<Reading>,
    over: bool,
    /// A sample has come.
    made_sense: bool,
    /// The first line that made none.
    first_wrong: Option<String>,
    /// All that there is has been read: of a stream, nobody writes into it any more.
    at_end: bool,
}

impl Samples {
    /// `-` is standard input.
    pub fn open(path: &Path, mode: SampleTiming) -> io::Result<Self> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let lines = if is_stdin { LineReader::stdin() } else { LineReader::open(path) };
        let lines = lines.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        Ok(Self {
            name,
            mode,
            lines,
            format: SampleFormat::default(),
            last: BTreeMap::new(),
            told_unsorted: false,
            step: Vec::new(),
            over: false,
            made_sense: false,
            first_wrong: None,
            at_end: false,
        })
    }

    /// The next valid sample among the lines that have been read.
    fn next(&mut self, to_the_end: bool, wrong: &mut SkippedLines) -> Option<Reading> {
        while let Some((number, line)) = self.lines.next(to_the_end) {
            let meaning = match line {
                Ok(line) => self.format.read(&line),
                Err(why) => SampleLine::Nonsense(why.to_owned()),
            };
            match meaning {
                SampleLine::Nothing => {}
                SampleLine::Nonsense(why) => {
                    self.first_wrong.get_or_insert_with(|| format!("line {number}: {why}"));
                    wrong.tell(number, &why);
                }
                SampleLine::Sample(reading) => match self.refusal(&reading) {
                    Some(why) => wrong.tell(number, &why),
                    None => {
                        self.made_sense = true;
                        self.last.insert(reading.port.clone(), reading.at);
                        return Some(reading);
                    }
                },
            }
        }
        None
    }

    /// Reason why a sample that makes sense by itself makes none after those before it.
    fn refusal(&self, reading: &Reading) -> Option<String> {
        let (port, at) = (&reading.port, reading.at.as_ms());
        match self.last.get(port) {
            Some(last) if reading.at < *last => {
                Some(format!("time goes backwards for {port}: {at} ms after {} ms", last.as_ms()))
            }
            None if self.last.len() >= MOST_PORTS => Some(format!("{port} is one port more than {MOST_PORTS}")),
            _ => None,
        }
    }

    fn follow(&mut self, readings: &mut Vec<Reading>, wrong: &mut SkippedLines) -> io::Result<()> {
        for _ in 0..MOST_BYTES / lines::CHUNK {
            let got = self.lines.fill()?;
            self.at_end = got == LineRead::End;
            while let Some(reading) = self.next(false, wrong) {
                readings.push(reading);
            }
            match got {
                LineRead::Bytes => {}
                LineRead::NothingYet => break,
                LineRead::End => {
                    let Some(what) = self.lines.start_over()? else { break };
                    wrong.note(format!("{what}; read from its beginning"));
                    self.format = SampleFormat::default();
                }
            }
        }
        Ok(())
    }

    fn replay(&mut self, readings: &mut Vec<Reading>, wrong: &mut SkippedLines) -> io::Result<()> {
        let mut got = LineRead::Bytes;
        loop {
            while let Some(reading) = self.next(got == LineRead::End, wrong) {
                let is_next_step =
                    self.step.first().is_some_and(|first| first.at != reading.at) || self.step.len() >= MOST_PORTS;
                if is_next_step {
                    self.check_order(reading.at, wrong);
                    readings.append(&mut self.step);
                }
                self.step.push(reading);
                if is_next_step {
                    return Ok(());
                }
            }
            match got {
                LineRead::End => break,
                LineRead::NothingYet => return Ok(()),
                LineRead::Bytes => got = self.lines.fill()?,
            }
        }
        (self.over, self.at_end) = (true, true);
        readings.append(&mut self.step);
        Ok(())
    }
}

impl Samples {
    /// Ports one after another instead of side by side look as if each had vanished when the next began.
    fn check_order(&mut self, at: Moment, wrong: &mut SkippedLines) {
        let before = self.step.first().map_or(Moment::ZERO, |first| first.at);
        if at < before && !self.told_unsorted {
            self.told_unsorted = true;
            let (before, at) = (before.as_ms(), at.as_ms());
            wrong.note(format!("goes back from {before} ms to {at} ms: expected samples in order of time_ms; sort it"));
        }
    }
}

impl Source for Samples {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, _now: Moment, readings: &mut Vec<Reading>, troubles: &mut Vec<String>) -> io::Result<()> {
        let mut wrong = SkippedLines { troubles, told: 0 };
        let done = match self.mode {
            _ if self.over => Ok(()),
            SampleTiming::Follow => self.follow(readings, &mut wrong),
            SampleTiming::Replay => self.replay(readings, &mut wrong),
        };
        let is_new = wrong.told > 0;
        let untold = wrong.told.saturating_sub(MOST_TROUBLES);
        if untold > 0 {
            troubles.push(format!("{untold} more lines skipped"));
        }
        if let Some(line) = self.first_wrong.as_ref().filter(|_| !self.made_sense && !is_new) {
            troubles.push(format!("no line has made sense so far; {line}"));
        }
        // Into a FIFO another process may write after the first.
        if self.mode == SampleTiming::Follow && self.at_end && self.lines.is_unnamed_stream() {
            troubles.push("it has ended: nothing more will come".to_owned());
        }
        done
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn nonsense(&self) -> Option<String> {
        let is_final = self.at_end && (self.over || !self.lines.is_named_stream());
        let line = self.first_wrong.as_ref().filter(|_| is_final && !self.made_sense)?;
        Some(format!("{}: nothing in it makes sense; {line}", self.name))
    }
}

/// Lines that were skipped in one read.
struct SkippedLines<'a> {
    troubles: &'a mut Vec<String>,
    told: usize,
}

impl SkippedLines<'_> {
    fn tell(&mut self, line: usize, why: &str) {
        self.told += 1;
        if self.told <= MOST_TROUBLES {
            self.troubles.push(format!("line {line}: {why}; skipped"));
        }
    }

    fn note(&mut self, what: String) {
        self.troubles.push(what);
    }
}

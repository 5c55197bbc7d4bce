//! Writes down what was read, so that an incident can be replayed.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::format::COLUMNS;
use crate::reading::{CarrierState, Reading};

/// Writes readings as CSV, in the form that `Samples` reads.
#[derive(Debug)]
pub struct ReadingRecorder<W: Write> {
    out: W,
}

impl ReadingRecorder<File> {
    /// Replaces what is there.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path).and_then(Self::new);
        file.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }
}

impl<W: Write> ReadingRecorder<W> {
    /// Begins with the header.
    pub fn new(mut out: W) -> io::Result<Self> {
        writeln!(out, "{}", COLUMNS.join(","))?;
        Ok(Self { out })
    }

    /// Writes whole lines at once, and has handed them to the system when it returns: a reader that follows the file,
    /// or comes after a crash, sees every reading or none of it.
    pub fn record(&mut self, readings: &[Reading]) -> io::Result<()> {
        let mut lines = String::new();
        for reading in readings {
            // Writing into memory cannot fail.
            let _ = writeln!(lines, "{}", CsvLine(reading));
        }
        self.out.write_all(lines.as_bytes())?;
        self.out.flush()
    }
}

struct CsvLine<'a>(&'a Reading);

impl fmt::Display for CsvLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reading { port, identity, at, carrier, frames, phy } = self.0;
        let carrier = match carrier {
            CarrierState::Up => "up",
            CarrierState::Lost => "lost",
            CarrierState::Off => "off",
        };
        write!(f, "{},{},{identity},{carrier}", at.as_ms(), quoted(port))?;
        let frames = [frames.map(|frames| frames.all), frames.map(|frames| frames.bad), frames.map(|f| f.bits.into())];
        for number in frames.into_iter().chain([phy.symbol_errors, phy.corrected, phy.uncorrectable]) {
            f.write_str(",")?;
            number.map_or(Ok(()), |number| write!(f, "{number}"))?;
        }
        Ok(())
    }
}

/// Names of interfaces may have almost anything in them.
fn quoted(port: &str) -> Cow<'_, str> {
    if port.contains([',', '"']) || port.trim() != port || port == "time_ms" {
        Cow::Owned(format!("\"{}\"", port.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(port)
    }
}

#[cfg(test)]
mod tests {
    use units::Moment;

    use super::*;
    use crate::reading::{Phy, ReceivedFrames};
    use crate::source::{SampleTiming, Source, samples, testing::Folder};

    fn reading(port: &str, ms: u64, frames: Option<ReceivedFrames>, phy: Phy) -> Reading {
        Reading {
            port: port.into(),
            identity: 3 << 32 | 7,
            at: Moment::from_ms(ms),
            carrier: CarrierState::Lost,
            frames,
            phy,
        }
    }

    #[test]
    fn what_was_recorded_is_replayed_as_it_was() {
        let folder = Folder::new("record");
        let path = folder.path().join("incident.csv");
        let phy = Phy { symbol_errors: None, corrected: Some(u64::MAX), uncorrectable: Some(0) };
        let steps = [
            vec![
                reading("eth0", 1_000, Some(ReceivedFrames { all: u64::MAX, bad: 12, bits: 64 }), phy),
                reading("a,\"b\"", 1_000, None, Phy::default()),
            ],
            vec![reading("eth0", 2_000, Some(ReceivedFrames { all: 5, bad: 9, bits: 32 }), Phy::default())],
        ];
        let mut recorder = ReadingRecorder::create(&path).unwrap();
        steps.iter().for_each(|step| recorder.record(step).unwrap());
        let mut source = samples(&path, SampleTiming::Replay).unwrap();
        for step in steps {
            let (mut readings, mut troubles) = (Vec::new(), Vec::new());
            source.read(Moment::ZERO, &mut readings, &mut troubles).unwrap();
            assert_eq!((readings, troubles), (step, vec![]));
        }
        assert!(source.is_over());
    }

    #[test]
    fn a_place_where_nothing_can_be_written_is_named() {
        let error = ReadingRecorder::create(Path::new("/nonexistent/incident.csv")).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent/incident.csv: No such file"));
    }
}

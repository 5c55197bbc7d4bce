//! Slots of a fabric in a file, for `radar map` to read again.
//!
//! ```text
//!   "HLFM"  version:8  0:24   then again and again   length:32  a report's bytes
//! ```
//!
//! A report has its own checksum. Invariant: reading ends, for any bytes; a file that ends within a report is distinguished from
//! one that ends behind it.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

const HEAD: [u8; 8] = *b"HLFM\x01\0\0\0";
/// The longest report: as many pieces as a meter may send.
const LONGEST: u32 = 64 << 20;

/// Problem with a recording.
#[derive(Debug)]
pub enum RecordingError {
    /// It begins with other bytes.
    Foreign,
    Version(u8),
    /// It ends within a report, behind so many whole ones.
    CutShort(u64),
    /// A report longer than any.
    Length(u32),
    Io(io::Error),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("no recording; expected a file of `hitless radar flows collect --record`"),
            Self::Version(version) => write!(f, "a recording of version {version}, which this hitless does not know"),
            Self::CutShort(whole) => write!(f, "cut short: it ends within a report, behind {whole} whole ones"),
            Self::Length(bytes) => write!(f, "damaged: a report of {bytes} bytes, and none has more than {LONGEST}"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecordingError {}

impl From<io::Error> for RecordingError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Begins a recording.
pub fn begin(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&HEAD)
}

/// Writes a report at the end of a recording.
pub fn append(out: &mut impl Write, report: &[u8]) -> io::Result<()> {
    out.write_all(&(report.len() as u32).to_le_bytes())?;
    out.write_all(report)
}

/// Reports of a recording, one after the other.
#[derive(Debug)]
pub struct RecordingReader<R> {
    from: R,
    read: u64,
}

impl<R: Read> RecordingReader<R> {
    pub fn new(mut from: R) -> Result<Self, RecordingError> {
        let mut head = [0; HEAD.len()];
        if fill(&mut from, &mut head)? < head.len() || head[..4] != HEAD[..4] {
            return Err(RecordingError::Foreign);
        }
        if head != HEAD {
            return Err(RecordingError::Version(head[4]));
        }
        Ok(Self { from, read: 0 })
    }

    /// The next report; `None` at the end.
    pub fn next_report(&mut self) -> Result<Option<Vec<u8>>, RecordingError> {
        let mut length = [0; 4];
        match fill(&mut self.from, &mut length)? {
            0 => return Ok(None),
            4 => {}
            _ => return Err(RecordingError::CutShort(self.read)),
        }
        let length = u32::from_le_bytes(length);
        if length > LONGEST {
            return Err(RecordingError::Length(length));
        }
        // What a length promises is believed only as it comes.
        let mut report = Vec::new();
        let read = self.from.by_ref().take(length.into()).read_to_end(&mut report)?;
        if read < length as usize {
            return Err(RecordingError::CutShort(self.read));
        }
        self.read += 1;
        Ok(Some(report))
    }
}

/// Reads until the buffer is full or there is no more.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Option<RecordingError>) {
        let mut reader = match RecordingReader::new(bytes) {
            Ok(reader) => reader,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut reports = Vec::new();
        loop {
            match reader.next_report() {
                Ok(Some(report)) => reports.push(report),
                Ok(None) => return (reports, None),
                Err(error) => return (reports, Some(error)),
            }
        }
    }

    #[test]
    fn reports_come_back_in_order_and_a_cut_is_noticed_wherever_it_is() {
        let reports = [vec![1; 100], Vec::new(), vec![3; 5_000]];
        let mut bytes = Vec::new();
        begin(&mut bytes).unwrap();
        let mut ends = vec![bytes.len()];
        for report in &reports {
            append(&mut bytes, report).unwrap();
            ends.push(bytes.len());
        }
        for end in 8..=bytes.len() {
            let (whole, error) = read(&bytes[..end]);
            let number = ends.iter().filter(|whole| **whole <= end).count() - 1;
            assert_eq!(whole, reports[..number]);
            assert_eq!(error.is_none(), ends.contains(&end), "{end}");
        }
    }

    #[test]
    fn what_is_no_recording_is_refused_with_what_was_expected() {
        let refusal = |bytes: &[u8]| read(bytes).1.unwrap().to_string();
        assert!(refusal(b"").contains("radar flows collect --record"));
        assert!(refusal(b"GET / HTTP/1.1").contains("no recording"));
        assert!(refusal(b"HLFM\x09\0\0\0").contains("version 9"));
        assert!(refusal(b"HLFM\x01\0\0\0\xff\xff\xff\xff").contains("damaged"));
        assert!(refusal(b"HLFM\x01\0\0\0\x00\x00\x00\x02abc").contains("cut short: it ends within a report, behind 0"));
    }
}

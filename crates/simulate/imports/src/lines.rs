//! Numbered lines of bounded length.

use std::io::{BufRead, Read};

use crate::error::{ImportError, shortened};

/// Longer lines are not what is expected here.
const LONGEST_LINE: u64 = 1 << 20;

pub(crate) struct BoundedLines<'a> {
    from: &'a mut dyn BufRead,
    bytes: Vec<u8>,
    line: u64,
}

impl<'a> BoundedLines<'a> {
    pub(crate) fn new(from: &'a mut dyn BufRead) -> Self {
        Self { from, bytes: Vec::new(), line: 0 }
    }

    /// The number of the line that was read last.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// The next line, without its end.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, ImportError> {
        self.bytes.clear();
        let line = self.line + 1;
        let mut part = Read::take(&mut *self.from, LONGEST_LINE + 1);
        let read = part.read_until(b'\n', &mut self.bytes).map_err(|error| ImportError::line(line, error))?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 > LONGEST_LINE {
            return Err(ImportError::line(line, format_args!("expected lines of at most {LONGEST_LINE} bytes")));
        }
        self.line = line;
        let text = str::from_utf8(&self.bytes).map_err(|_| ImportError::line(line, "is not text: expected UTF-8"))?;
        Ok(Some(text.trim_end_matches(['\n', '\r'])))
    }
}

/// A whole number, or a text that names what was expected.
pub(crate) fn number<T: std::str::FromStr>(text: &str, expected: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{}': expected {expected}", shortened(text)))
}

//! Common format of the topology and flow files of HPCC's authors (their ns-3 simulator, `simulation/mix`).
//!
//! Numbers between spaces, a count before what it counts. Some of the authors' samples end with a legend that begins with
//! `First line:`; their simulator stops reading before it, and in front of the legend there may be more lines than the
//! count says. A file without a legend has exactly as many lines as it says.

/// First words of the legend.
const LEGEND: &str = "First line:";

/// The lines of a file that are not empty, with their numbers, up to the legend.
#[derive(Debug)]
pub(crate) struct NumberedLines<'a> {
    lines: std::vec::IntoIter<(usize, &'a str)>,
    has_legend: bool,
    /// The number of the last line read, or of the first.
    last: usize,
}

/// A line and what is wrong with it.
pub(crate) type LineProblem = (usize, String);

impl<'a> NumberedLines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let all = || (1..).zip(text.lines().map(str::trim));
        let lines = all().take_while(|(_, line)| !line.starts_with(LEGEND)).filter(|(_, line)| !line.is_empty());
        let lines: Vec<(usize, &str)> = lines.collect();
        Self { lines: lines.into_iter(), has_legend: all().any(|(_, line)| line.starts_with(LEGEND)), last: 1 }
    }

    /// The fields of the next line.
    pub(crate) fn next(&mut self) -> Option<(usize, Vec<&'a str>)> {
        let (number, line) = self.lines.next()?;
        self.last = number;
        Some((number, line.split_whitespace().collect()))
    }

    /// The next line without reading it.
    pub(crate) fn peek(&self) -> Option<(usize, Vec<&'a str>)> {
        let (number, line) = self.lines.as_slice().first()?;
        Some((*number, line.split_whitespace().collect()))
    }

    /// The next of `count` lines, of which `read` have been read.
    pub(crate) fn next_of(
        &mut self,
        what: &str,
        count: usize,
        read: usize,
    ) -> Result<(usize, Vec<&'a str>), LineProblem> {
        let missing =
            (self.last, format!("the file ends after {read} {what}: expected {count}, as its first line says"));
        self.next().ok_or(missing)
    }

    /// All of `count` lines have been read: nothing may follow but what a legend explains.
    pub(crate) fn end(&mut self, what: &str, count: usize) -> Result<(), LineProblem> {
        match self.lines.next() {
            Some((line, _)) if !self.has_legend => {
                Err((line, format!("there are more than {count} {what}: expected {count}, as the first line says")))
            }
            _ => Ok(()),
        }
    }
}

/// A whole number, written in digits.
pub(crate) fn number<T: std::str::FromStr>(field: &str, expected: &str) -> Result<T, String> {
    let digits = field.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| field.parse().ok()).flatten().ok_or_else(|| format!("'{field}': expected {expected}"))
}

//! CSV with a header, each row with its line; and what is said of files that are wrong.
//!
//! A cell is the text between two commas, without the blanks around it; no cell needs quotes. Empty lines and lines
//! that begin with `#` are skipped.

use std::fmt;
use std::path::Path;

use units::nearest;

/// Problem in a file, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub file: String,
    /// The first is 1. None if it cannot be read at all.
    pub line: Option<usize>,
    pub problem: String,
}

/// One line, also where the file has line breaks or other control characters in its names.
impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: ", self.file)?,
            None => write!(f, "{}: ", self.file)?,
        }
        self.problem.chars().try_for_each(|letter| match letter {
            control if control.is_control() => write!(f, "{}", control.escape_default()),
            plain => write!(f, "{plain}"),
        })
    }
}

impl std::error::Error for FileError {}

/// An error on a line of a file, for readers that do not know the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    pub line: usize,
    pub problem: String,
}

impl LineError {
    pub(crate) fn new(line: usize, problem: impl fmt::Display) -> Self {
        Self { line, problem: problem.to_string() }
    }

    pub(crate) fn in_file(self, file: &str) -> FileError {
        FileError { file: file.to_owned(), line: Some(self.line), problem: self.problem }
    }
}

/// The text of a file and what it is called in messages.
pub(crate) fn read(path: &Path) -> Result<(String, String), FileError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((file, text)),
        Err(error) => Err(FileError { file, line: None, problem: error.to_string() }),
    }
}

#[derive(Debug)]
pub(crate) struct TextTable<'a> {
    /// Place in a row of each column that may be there.
    places: Vec<Option<usize>>,
    header: Vec<&'a str>,
    rows: Vec<TableRow<'a>>,
}

#[derive(Debug)]
pub(crate) struct TableRow<'a> {
    pub line: usize,
    cells: Vec<&'a str>,
}

impl<'a> TextTable<'a> {
    /// The first `required` columns must be there, the others may; in any order.
    pub(crate) fn parse(text: &'a str, columns: &[&str], required: usize) -> Result<Self, LineError> {
        let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
        let mut rows = lines.map(|(index, line)| (index + 1, line.trim()));
        let mut rows = rows.by_ref().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let expected = || format!("expected a header such as {}", columns.join(","));
        let Some((line, header)) = rows.next() else { return Err(LineError::new(1, expected())) };
        let header = cells(header);
        let mut places = vec![None; columns.len()];
        for (place, name) in header.iter().enumerate() {
            let Some(column) = columns.iter().position(|column| column == name) else {
                return Err(LineError::new(line, unknown("column", name, columns)));
            };
            if places[column].replace(place).is_some() {
                return Err(LineError::new(line, format_args!("column '{name}' is there twice")));
            }
        }
        if let Some(missing) = places[..required].iter().position(Option::is_none) {
            return Err(LineError::new(line, format_args!("no column '{}': {}", columns[missing], expected())));
        }
        let mut table = Self { places, header, rows: Vec::new() };
        for (line, row) in rows {
            let cells = cells(row);
            if cells.len() != table.header.len() {
                let problem = format!("expected {}, found '{row}'", table.header.join(","));
                return Err(LineError::new(line, problem));
            }
            table.rows.push(TableRow { line, cells });
        }
        Ok(table)
    }

    pub(crate) fn rows(&self) -> &[TableRow<'a>] {
        &self.rows
    }

    /// Content of a row's cell in a column, if there is any.
    pub(crate) fn cell(&self, row: &TableRow<'a>, column: usize) -> Option<&'a str> {
        self.places[column].map(|place| row.cells[place]).filter(|cell| !cell.is_empty())
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

/// Error text for an unknown name, with the nearest known name.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("no such {what}: '{name}'; did you mean '{nearest}'?"),
        None => format!("no such {what}: '{name}'; expected one of {}", known.join(", ")),
    }
}

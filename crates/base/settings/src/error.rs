//! Locations of settings in their source, and errors in them.

/// Location at which something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceLocation {
    /// A line of the file, from 1.
    Line(usize),
    /// The command line: all that `--set` was given.
    Set(String),
}

impl SourceLocation {
    /// Line of the file; the first for what stands in no line.
    pub const fn line(&self) -> usize {
        match self {
            Self::Line(line) => *line,
            Self::Set(_) => 1,
        }
    }
}

/// Error in a key: the place where it was written, and the value that was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    pub place: SourceLocation,
    /// Empty where the whole file is meant.
    pub key: String,
    pub problem: String,
}

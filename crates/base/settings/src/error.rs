//! Where something was written, and what is wrong with it.

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceLocation {
    /// In the file; the first line is 1.
    Line(usize),
    /// On the command line; all of what `--set` was given.
    Set(String),
}

/// What is wrong with a key: where it was written, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    pub place: SourceLocation,
    /// Empty where the whole file is meant.
    pub key: String,
    pub problem: String,
}

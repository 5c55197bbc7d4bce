//! What no scenario may be, and where it says so.

use std::fmt;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceLocation {
    /// In the file; the first line is 1.
    Line(usize),
    /// On the command line; all of what `--set` was given.
    Set(String),
}

/// What is wrong with a scenario: where, at which key, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    pub(super) file: String,
    pub(super) wrong: KeyError,
}

/// The same, by those who need not know the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyError {
    pub place: SourceLocation,
    /// Empty where the whole file is meant.
    pub key: String,
    pub problem: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyError { place, key, problem } = &self.wrong;
        match place {
            SourceLocation::Line(line) => write!(f, "{}:{line}: ", self.file)?,
            SourceLocation::Set(argument) => write!(f, "--set {argument}: ")?,
        }
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        f.write_str(problem)
    }
}

impl std::error::Error for ScenarioError {}

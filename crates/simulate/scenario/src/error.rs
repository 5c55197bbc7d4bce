//! Errors of a scenario, with their place in its file.

use std::fmt;

use settings::{KeyError, SourceLocation};

/// Error of a scenario: its place, its key, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    pub(crate) file: String,
    pub(crate) wrong: KeyError,
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

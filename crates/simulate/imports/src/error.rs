//! Errors in a file, with their place.

use std::fmt::{self, Display};

/// One line for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// `None` if it is about the whole file.
    place: Option<String>,
    problem: String,
}

impl ImportError {
    pub(crate) fn line(line: u64, problem: impl Display) -> Self {
        Self { place: Some(format!("line {line}")), problem: one_line(problem) }
    }

    pub(crate) fn node(rank: u32, node: u64, problem: impl Display) -> Self {
        Self { place: Some(format!("rank {rank}, node {node}")), problem: one_line(problem) }
    }

    pub(crate) fn rank(rank: u32, problem: impl Display) -> Self {
        Self { place: Some(format!("rank {rank}")), problem: one_line(problem) }
    }

    pub(crate) fn whole(problem: impl Display) -> Self {
        Self { place: None, problem: one_line(problem) }
    }
}

/// Parts of a file may be quoted, and have anything in them.
fn one_line(problem: impl Display) -> String {
    problem.to_string().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The beginning of a quoted word.
pub(crate) fn shortened(word: &str) -> String {
    const LONGEST: usize = 40;
    match word.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

impl Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for ImportError {}

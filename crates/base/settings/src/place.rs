//! Lines of TOML files, and errors of their syntax with the line.

use serde::de::DeserializeOwned;

/// Finds the line of a byte of a text without reading the text again.
#[derive(Clone, Debug)]
pub struct LineIndex {
    /// Offsets at which lines end.
    ends: Vec<usize>,
    last: usize,
}

impl LineIndex {
    pub fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        Self { ends, last: text.lines().count().max(1) }
    }

    /// Line of a byte; the first is 1. The end of a text belongs to its last line, even after a line break.
    pub fn at(&self, byte: usize) -> usize {
        (self.ends.partition_point(|end| *end < byte) + 1).min(self.last)
    }
}

/// Error in the syntax of a TOML file or in the type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomlError {
    pub line: usize,
    /// One line of text.
    pub problem: String,
}

impl TomlError {
    pub(crate) fn new(text: &str, error: &toml::de::Error) -> Self {
        Self {
            line: error.span().map_or(1, |span| LineIndex::of(text).at(span.start)),
            problem: error.message().replace('\n', " "),
        }
    }
}

impl std::fmt::Display for TomlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for TomlError {}

/// Reads a whole TOML file into a type.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| TomlError::new(text, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_belongs_to_its_last_line() {
        for text in ["", "\n", "a", "a\n", "a\nb", "a\nb\n"] {
            let lines = text.lines().count().max(1);
            let index = LineIndex::of(text);
            assert_eq!(index.at(text.len()), lines, "{text:?}");
            assert_eq!(index.at(0), 1, "{text:?}");
        }
        assert_eq!(LineIndex::of("a\nb\n").at(2), 2);
    }

    #[test]
    fn an_error_at_the_end_names_the_last_line() {
        let error = from_toml::<toml::Table>("link=\"\"\"\n").unwrap_err();
        assert_eq!(error.line, 1, "{error}");
        assert_eq!(from_toml::<toml::Table>("a = 1\nb = \n").unwrap_err().line, 2);
    }
}

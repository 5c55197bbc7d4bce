//! The size and shape of a crate in numbers.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::AddAssign;

use crate::lexer::Token;
use crate::names::{Definition, definitions};
use crate::source::{SourceFile, Visibility, is_under_src};

/// Measures of one crate, or of all.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// Lines with code on them outside tests: no blank lines, no comments.
    pub code_lines: usize,
    pub test_lines: usize,
    pub doc_lines: usize,
    /// Lengths of the functions outside tests.
    pub functions: Vec<usize>,
    /// Assertions, `expect`s and panics outside tests.
    pub asserts: usize,
    pub public: usize,
    pub restricted: usize,
}

impl Measures {
    pub fn of_file(file: &SourceFile<'_>) -> Self {
        let code_lines = lines(file.production());
        let with = |visibility| file.definitions().iter().filter(|item| item.visibility == visibility).count();
        Self {
            code_lines,
            test_lines: lines(file.tokens.iter()) - code_lines,
            doc_lines: if file.is_test { 0 } else { file.doc_lines },
            functions: file.definitions().iter().filter(|item| item.is_function()).map(|item| item.lines).collect(),
            asserts: file.production().filter(|token| is_assert(token)).count(),
            public: with(Visibility::Public),
            restricted: with(Visibility::Restricted),
        }
    }

    /// The length that the fraction `quantile` of the functions does not exceed.
    pub fn function_length(&self, quantile: f64) -> usize {
        let mut sorted = self.functions.clone();
        sorted.sort_unstable();
        let rank = (sorted.len().saturating_sub(1) as f64 * quantile).round() as usize;
        sorted.get(rank).copied().unwrap_or(0)
    }
}

impl AddAssign<&Measures> for Measures {
    fn add_assign(&mut self, other: &Measures) {
        let Measures { code_lines, test_lines, doc_lines, functions, asserts, public, restricted } = other;
        self.code_lines += code_lines;
        self.test_lines += test_lines;
        self.doc_lines += doc_lines;
        self.functions.extend(functions);
        self.asserts += asserts;
        self.public += public;
        self.restricted += restricted;
    }
}

fn lines<'a>(tokens: impl Iterator<Item = &'a Token<'a>>) -> usize {
    tokens.flat_map(|token| token.line..=token.last_line).collect::<BTreeSet<_>>().len()
}

fn is_assert(token: &Token<'_>) -> bool {
    let name = token.text.strip_prefix("debug_").unwrap_or(token.text);
    matches!(name, "assert" | "assert_eq" | "assert_ne" | "panic" | "unreachable" | "expect")
}

/// Functions longer than `limit`, the longest first.
pub fn long_functions<'f, 'a>(files: &'f [SourceFile<'a>], limit: usize) -> Vec<Definition<'f, 'a>> {
    let is_long = |(_, item): &Definition<'_, '_>| item.is_function() && item.lines > limit;
    let mut long: Vec<_> = definitions(files).filter(is_long).collect();
    long.sort_by_key(|(_, item)| Reverse(item.lines));
    long
}

/// Production files longer than `limit` without their tests, the longest first.
pub fn long_files<'f, 'a>(files: &'f [SourceFile<'a>], limit: usize) -> Vec<&'f SourceFile<'a>> {
    let mut long: Vec<_> = files.iter().filter(|file| !file.is_test && file.length() > limit).collect();
    long.sort_by_key(|file| Reverse(file.length()));
    long
}

/// Files under `src/` that do not open with `//!`; a file `tests.rs` may rely on the names of its tests.
pub fn files_without_docs<'f, 'a>(files: &'f [SourceFile<'a>]) -> Vec<&'f SourceFile<'a>> {
    let is_silent = |file: &&SourceFile<'_>| !file.text.starts_with("//!") && !file.path.ends_with("tests.rs");
    files.iter().filter(|file| is_under_src(file.path)).filter(is_silent).collect()
}

//! Words of a schedule, without comments. `{`, `}`, `:` and `;` are words of their own.

use std::collections::VecDeque;
use std::io::BufRead;

use crate::error::ImportError;
use crate::lines::BoundedLines;

pub(super) struct WordReader<'a> {
    lines: BoundedLines<'a>,
    /// Words of the current line that are still to be read.
    ahead: VecDeque<String>,
    in_comment: bool,
    /// Line of the word that was read last.
    line: u64,
}

impl<'a> WordReader<'a> {
    pub(super) fn new(from: &'a mut dyn BufRead) -> Self {
        Self { lines: BoundedLines::new(from), ahead: VecDeque::new(), in_comment: false, line: 1 }
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn next_word(&mut self) -> Result<Option<String>, ImportError> {
        self.fill()?;
        self.line = self.lines.number().max(1);
        Ok(self.ahead.pop_front())
    }

    /// Reads the next word if it is this one.
    pub(super) fn skip(&mut self, word: &str) -> Result<bool, ImportError> {
        self.fill()?;
        let is_next = self.ahead.front().is_some_and(|next| next == word);
        if is_next {
            self.next_word()?;
        }
        Ok(is_next)
    }

    fn fill(&mut self) -> Result<(), ImportError> {
        while self.ahead.is_empty() {
            let Some(text) = self.lines.next_line()? else {
                return match self.in_comment {
                    true => Err(ImportError::line(self.lines.number(), "a comment has no end: expected */")),
                    false => Ok(()),
                };
            };
            split(text, &mut self.in_comment, &mut self.ahead);
        }
        Ok(())
    }
}

fn split(text: &str, in_comment: &mut bool, words: &mut VecDeque<String>) {
    let mut rest = text;
    while !rest.is_empty() {
        if *in_comment {
            let Some(end) = rest.find("*/") else { return };
            *in_comment = false;
            rest = &rest[end + 2..];
            continue;
        }
        let comment = rest.find("//").into_iter().chain(rest.find("/*")).min();
        let (code, after) = rest.split_at(comment.unwrap_or(rest.len()));
        split_code(code, words);
        if after.starts_with("//") {
            return;
        }
        *in_comment = !after.is_empty();
        rest = after.get(2..).unwrap_or_default();
    }
}

fn split_code(code: &str, words: &mut VecDeque<String>) {
    for word in code.split_whitespace() {
        for part in word.split_inclusive(['{', '}', ':', ';']) {
            let end = part.trim_end_matches(['{', '}', ':', ';']);
            let sign = &part[end.len()..];
            words.extend([end, sign].into_iter().filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
}

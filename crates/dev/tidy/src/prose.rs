//! Comments and pages as prose: openings that must be solved before they are understood, and sentences drawn at random to be
//! read aloud.

use crate::docs::DocPage;
use crate::source::SourceFile;

/// First words of a documentation line that leave a reader to look for the noun.
const ODD: [&str; 12] = ["What", "Whether", "How", "Which", "Who", "Whom", "Where", "When", "Of", "As", "That", "Such"];
/// Words whose full stop ends no sentence.
const ABBREVIATIONS: [&str; 6] = [" App. ", " Eq. ", " Fig. ", "(Fig. ", " Alg. ", " e.g. "];
/// Shorter pieces are names and cells of tables.
const FEWEST_WORDS: usize = 5;

/// A line of documentation in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocLine<'f> {
    pub line: usize,
    pub text: &'f str,
}

impl DocLine<'_> {
    /// Begins with a question word or a preposition, or with "The same" as something that stands elsewhere.
    pub fn is_odd(&self) -> bool {
        let first = self.text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        ODD.contains(&first) || self.text.starts_with("The same")
    }
}

/// The documentation lines of a file, those of code examples aside.
pub fn doc_lines<'f>(file: &'f SourceFile<'_>) -> impl Iterator<Item = DocLine<'f>> {
    let mut in_block = false;
    (1..).zip(file.text.lines()).filter_map(move |(line, text)| {
        let text = text.trim_start();
        let text = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"))?.trim();
        let is_fence = text.starts_with("```");
        in_block ^= is_fence;
        (!in_block && !is_fence && !text.is_empty()).then_some(DocLine { line, text })
    })
}

/// First lines of the plain comments of a file.
pub fn comment_openings<'f>(file: &'f SourceFile<'_>) -> impl Iterator<Item = DocLine<'f>> {
    let mut in_comment = false;
    (1..).zip(file.text.lines()).filter_map(move |(line, text)| {
        let text = text.trim_start().strip_prefix("//").filter(|text| !text.starts_with(['/', '!']));
        let is_first = text.is_some() && !in_comment;
        in_comment = text.is_some();
        text.filter(|_| is_first).map(|text| DocLine { line, text: text.trim() })
    })
}

/// The sentences of a file's documentation, each with its first line.
fn sentences_of_file(file: &SourceFile<'_>) -> Vec<(String, String)> {
    let mut paragraphs: Vec<(usize, usize, String)> = Vec::new();
    for DocLine { line, text } in doc_lines(file).filter(|doc| !doc.text.starts_with(['|', '#'])) {
        match paragraphs.last_mut() {
            Some((_, last, paragraph)) if *last + 1 == line => {
                *last = line;
                *paragraph = format!("{paragraph} {text}");
            }
            _ => paragraphs.push((line, line, text.to_owned())),
        }
    }
    let place = |line: usize| format!("{}:{line}", file.path.display());
    paragraphs.iter().flat_map(|(line, _, text)| sentences(text).map(|found| (place(*line), found))).collect()
}

/// The sentences of a page.
fn sentences_of_page(page: &DocPage) -> Vec<(String, String)> {
    let place = |line: usize| format!("{}:{line}", page.path.display());
    page.paragraphs().iter().flat_map(|(line, text)| sentences(text).map(|found| (place(*line), found))).collect()
}

/// The sentences of a text. A full stop behind an abbreviation ends none.
fn sentences(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut sentences: Vec<String> = Vec::new();
    for piece in text.split_inclusive(". ") {
        match sentences.last_mut().filter(|last| ABBREVIATIONS.iter().any(|short| last.ends_with(short))) {
            Some(last) => last.push_str(piece),
            None => sentences.push(piece.to_owned()),
        }
    }
    let long = sentences.into_iter().filter(|sentence| sentence.split_whitespace().count() >= FEWEST_WORDS);
    long.map(|sentence| sentence.trim().to_owned())
}

/// Sentences drawn at random, each at most once: half from comments, half from pages. Equal seeds draw equal sentences.
pub fn sample(files: &[SourceFile<'_>], pages: &[DocPage], count: usize, seed: u64) -> Vec<String> {
    let comments: Vec<_> = files.iter().filter(|file| !file.is_test()).flat_map(sentences_of_file).collect();
    let pages: Vec<_> = pages.iter().flat_map(sentences_of_page).collect();
    let mut state = seed;
    let mut draw = |mut from: Vec<(String, String)>, count: usize| -> Vec<String> {
        let mut next =
            || (!from.is_empty()).then(|| from.swap_remove((splitmix(&mut state) % from.len() as u64) as usize));
        std::iter::from_fn(&mut next).take(count).map(|(place, sentence)| format!("{place}: {sentence}")).collect()
    };
    [draw(comments, count / 2), draw(pages, count - count / 2)].concat()
}

/// The next number of SplitMix64.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::{SourceText, parse_workspace};

    const SOURCE: &str = "//! A file.\n//!\n//! ```text\n//! What is drawn.\n//! ```\n\n/// Of the run, it has\n\
        /// several words to say. How it ends is open to all.\nfn f() {}\n";

    #[test]
    fn odd_openings_are_counted_outside_of_examples() {
        let texts = [SourceText::new("crates/x/a/src/lib.rs", SOURCE)];
        let files = parse_workspace(&texts);
        let lines: Vec<_> = doc_lines(&files[0]).map(|doc| (doc.line, doc.is_odd())).collect();
        assert_eq!(lines, [(1, false), (7, true), (8, false)]);
    }

    #[test]
    fn a_plain_comment_counts_once() {
        let source =
            "//! A file.\n\n// Of what\n// When it ends.\nfn f() {} // What follows a line\n    // The same again.\n";
        let texts = [SourceText::new("crates/x/a/src/lib.rs", source)];
        let files = parse_workspace(&texts);
        let lines: Vec<_> = comment_openings(&files[0]).map(|line| (line.line, line.is_odd())).collect();
        assert_eq!(lines, [(3, true), (6, true)]);
    }

    #[test]
    fn abbreviations_end_no_sentence() {
        let text = "The sender computes copies by Eq. 2 of the paper. A switch sends them.";
        let found: Vec<_> = sentences(text).collect();
        assert_eq!(found, ["The sender computes copies by Eq. 2 of the paper."]);
    }

    #[test]
    fn a_sample_has_sentences_of_both_and_depends_on_its_seed_alone() {
        let texts = [SourceText::new("crates/x/a/src/lib.rs", SOURCE)];
        let files = parse_workspace(&texts);
        let page = "# Title\n\nA page of one long sentence\nover two lines. And\n\n| a table | is none |\n";
        let pages = [DocPage::parse(Path::new("docs/a.md"), page)];
        let drawn = sample(&files, &pages, 4, 11);
        assert_eq!(drawn, sample(&files, &pages, 4, 11));
        let comments = [
            "crates/x/a/src/lib.rs:7: Of the run, it has several words to say.",
            "crates/x/a/src/lib.rs:7: How it ends is open to all.",
        ];
        assert!(drawn[..2].iter().all(|sentence| comments.contains(&sentence.as_str())), "{drawn:?}");
        assert_eq!(drawn[2..], ["docs/a.md:3: A page of one long sentence over two lines."]);
    }
}

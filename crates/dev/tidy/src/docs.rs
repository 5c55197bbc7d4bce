//! The pages for people: their links, their headings, and the commands that they show.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Opens the part of a page that a program has written.
const GENERATED: &str = "<!-- generated";

/// A Markdown page.
#[derive(Debug)]
pub struct DocPage {
    /// Path from the root of the workspace.
    pub path: PathBuf,
    /// Lines that are not code, each with its number.
    prose: Vec<(usize, String)>,
    /// The prose lines including the code within their sentences.
    lines: Vec<(usize, String)>,
    /// Lines of code blocks, joined where they end in a backslash, and code inside of sentences.
    code: Vec<(usize, String)>,
    /// Code inside of sentences alone.
    spans: Vec<(usize, String)>,
    headings: Vec<String>,
    /// Rows of tables, each with the line of its table's head.
    rows: Vec<PageRow>,
}

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRow {
    pub line: usize,
    pub cells: usize,
    /// Cells of its table's head.
    pub expected: usize,
}

/// The pages in the root of the workspace, in `docs/`, and in the folders of `crates/`.
pub fn read_pages(root: &Path) -> io::Result<Vec<DocPage>> {
    let mut pages = Vec::new();
    let crates = fs::read_dir(root.join("crates"))?.filter_map(|entry| Some(entry.ok()?.path()));
    for folder in [root.to_owned(), root.join("docs")].into_iter().chain(crates.filter(|path| path.is_dir())) {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path)?;
                pages.push(DocPage::parse(path.strip_prefix(root).unwrap_or(&path), &text));
            }
        }
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(pages)
}

impl DocPage {
    pub(crate) fn parse(path: &Path, text: &str) -> Self {
        let mut page = Self {
            path: path.to_owned(),
            prose: Vec::new(),
            lines: Vec::new(),
            code: Vec::new(),
            spans: Vec::new(),
            headings: Vec::new(),
            rows: Vec::new(),
        };
        let mut head = None;
        let (mut in_block, mut in_span) = (false, false);
        for (line, text) in (1..).zip(text.lines()) {
            let cells = cells(text).filter(|_| !in_block);
            head = cells.map(|cells| head.unwrap_or(cells));
            page.rows.extend(cells.zip(head).map(|(cells, expected)| PageRow { line, cells, expected }));
            if text.trim_start().starts_with("```") {
                in_block = !in_block;
            } else if in_block {
                page.add_code(line, text);
            } else {
                in_span &= !text.trim().is_empty();
                page.headings.extend(text.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim().to_owned()));
                page.lines.push((line, text.to_owned()));
                page.add_line(line, text, &mut in_span);
            }
        }
        page
    }

    fn add_code(&mut self, line: usize, text: &str) {
        match self.code.last_mut().and_then(|(_, last)| Some((last.strip_suffix('\\')?.to_owned(), last))) {
            Some((start, last)) => *last = start + text,
            None => self.code.push((line, text.to_owned())),
        }
    }

    /// Takes code out of a line of prose; `in_span` says whether code is open where the line begins, and then where it ends.
    fn add_line(&mut self, line: usize, text: &str, in_span: &mut bool) {
        let mut prose = String::new();
        for (at, piece) in text.split('`').enumerate() {
            *in_span ^= at > 0;
            if *in_span {
                self.spans.push((line, piece.to_owned()));
            }
            match (*in_span, at, self.code.last_mut()) {
                (false, ..) => prose.push_str(piece),
                (true, 0, Some((_, code))) => *code = format!("{code} {}", piece.trim()),
                (true, ..) => self.code.push((line, piece.to_owned())),
            }
        }
        self.prose.push((line, prose));
    }

    /// A complaint about a line of the page.
    pub(crate) fn place(&self, line: usize, said: &str) -> String {
        format!("{}:{line}: {said}", self.path.display())
    }

    /// Rows of tables that have another number of cells than their head.
    pub fn broken_rows(&self) -> impl Iterator<Item = &PageRow> {
        self.rows.iter().filter(|row| row.cells != row.expected)
    }

    /// Paths of files in its code: words with a slash and an ending that source, settings or pages have, and names of source
    /// files. Words with a placeholder such as `NAME` are left out.
    pub fn paths(&self) -> impl Iterator<Item = (usize, &str)> {
        let words = self.code.iter().flat_map(|(line, code)| code.split_whitespace().map(move |word| (*line, word)));
        let words = words.map(|(line, word)| (line, word.trim_end_matches([',', ';', ')']).trim_start_matches('(')));
        words.filter(|(_, word)| is_path(word))
    }

    /// Paragraphs, each with its first line, without tables and headings.
    pub(crate) fn paragraphs(&self) -> Vec<(usize, String)> {
        let mut paragraphs: Vec<(usize, usize, String)> = Vec::new();
        let lines = self.lines.iter().map(|(line, text)| (*line, text.trim()));
        for (line, text) in lines.filter(|(_, text)| !text.is_empty() && !text.starts_with(['|', '#'])) {
            let is_item = text.starts_with(['-', '*']) || text.starts_with(|c: char| c.is_ascii_digit());
            match paragraphs.last_mut() {
                Some((_, last, paragraph)) if *last + 1 == line && !is_item => {
                    *last = line;
                    *paragraph = format!("{paragraph} {text}");
                }
                _ => paragraphs.push((line, line, text.to_owned())),
            }
        }
        paragraphs.into_iter().map(|(line, _, text)| (line, text)).collect()
    }

    /// Lines outside of code blocks.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines.iter().map(|(line, text)| (*line, text.as_str()))
    }

    /// Words of its prose, of its tables, and of its code where that is part of a sentence. The part behind a line
    /// `<!-- generated` is a program's and does not count.
    pub fn words(&self) -> usize {
        let written = self.lines().take_while(|(_, text)| !text.starts_with(GENERATED));
        written.map(|(_, text)| text.split_whitespace().count()).sum::<usize>()
    }

    /// Rust's names in its sentences: `LinkContext`, or `guard::Params` with its segments. Words with one capital letter may
    /// be of anything and are left out, unless a path leads to them.
    pub fn rust_names(&self) -> impl Iterator<Item = (usize, &str)> {
        let words = self.spans.iter().map(|(line, code)| (*line, code.trim_end_matches("()")));
        words.filter(|(_, word)| is_rust_name(word))
    }

    /// Targets of its links, those to other sites aside.
    pub fn links(&self) -> impl Iterator<Item = (usize, &str)> {
        let all = self.prose.iter().flat_map(|(line, text)| text.split("](").skip(1).map(move |rest| (*line, rest)));
        let all = all.filter_map(|(line, rest)| Some((line, rest.split_once(')')?.0)));
        all.filter(|(_, target)| !target.contains("://"))
    }

    /// Anchors that may follow `#` in a link to the page: its headings, as GitHub writes them.
    pub fn anchors(&self) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let headings = self.headings.iter().map(|heading| {
            let kept = heading.to_lowercase().replace(' ', "-");
            let kept: String = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
            let before = seen.entry(kept.clone()).or_default();
            *before += 1;
            if *before > 1 { format!("{kept}-{}", *before - 1) } else { kept }
        });
        headings.collect()
    }

    /// The arguments of every call of `program` in its code. Inside of a longer command, as after `sudo`, the word may be an
    /// argument itself: there it counts only if `is_command` knows what follows.
    pub fn calls(&self, program: &str, is_command: impl Fn(&str) -> bool) -> Vec<(usize, Vec<&str>)> {
        let mut calls = Vec::new();
        for (line, code) in &self.code {
            let words: Vec<&str> = code.split_whitespace().collect();
            for at in words.iter().enumerate().filter(|(_, word)| **word == program).map(|(at, _)| at) {
                let is_argument = |word: &&&str| !word.starts_with(['|', '&', ';', '>', '<', '#']);
                let call: Vec<&str> = words[at + 1..].iter().take_while(is_argument).copied().collect();
                if at == 0 || call.first().is_some_and(|first| is_command(first)) {
                    calls.push((*line, call));
                }
            }
        }
        calls
    }

    /// The options in code that names no command, as `--json` does.
    pub fn options(&self) -> impl Iterator<Item = (usize, &str)> {
        let alone = self.code.iter().filter(|(_, code)| code.starts_with("--"));
        let words = alone.flat_map(|(line, code)| code.split([' ', ',', '=']).map(|word| (*line, word)));
        words.filter(|(_, word)| word.starts_with("--"))
    }
}

/// Cells of a row of a table; none if the line is no row. A bar within code or behind a backslash separates nothing.
fn cells(text: &str) -> Option<usize> {
    let row = text.trim().strip_prefix('|')?.trim_end_matches('|');
    let (mut cells, mut in_code, mut escaped) = (1, false, false);
    for c in row.chars() {
        in_code ^= c == '`';
        cells += usize::from(c == '|' && !in_code && !escaped);
        escaped = c == '\\';
    }
    Some(cells)
}

fn is_rust_name(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let capitals = word.chars().filter(char::is_ascii_uppercase).count();
    let is_camel = word.starts_with(|c: char| c.is_ascii_uppercase())
        && word[1..].starts_with(|c: char| c.is_ascii_lowercase())
        && capitals > 1
        && !word.contains(['_', ':']);
    let is_qualified = word.contains("::") && !word.starts_with(':') && !word.ends_with(':');
    word.chars().all(is_plain) && (is_camel || is_qualified)
}

fn is_path(word: &str) -> bool {
    const ENDINGS: [&str; 8] = [".rs", ".toml", ".md", ".lua", ".h", ".yml", ".service", ".snap"];
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "./_-@".contains(c);
    let is_place = word.contains('/') && !word.starts_with(['/', '-']);
    (is_place || word.ends_with(".rs"))
        && word.chars().all(is_plain)
        && ENDINGS.iter().any(|ending| word.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A page\n\nSee [b](b.md#c), `[d](e)`, [f](https://g.h) and `hitless\nlink up`; `--a 3`.\n\n\
        ## A `b`, c\n\n```sh\n# A comment\nsudo hitless wire a b \\\n  --loss 1e-3 | tee c\nsystemctl stop hitless\n```\n\n\
        ## A page\n";

    #[test]
    fn links_options_and_headings_are_found() {
        let page = DocPage::parse(Path::new("a.md"), PAGE);
        assert_eq!(page.links().collect::<Vec<_>>(), [(3, "b.md#c")]);
        assert_eq!(page.options().collect::<Vec<_>>(), [(4, "--a")]);
        assert_eq!(page.anchors(), ["a-page", "a-b-c", "a-page-1"]);
    }

    #[test]
    fn a_row_with_another_number_of_cells_is_found() {
        let page =
            DocPage::parse(Path::new("a.md"), "| a | b |\n| --- | --- |\n| `x|y` | z |\n| only |\n\n| other |\n");
        let broken: Vec<_> = page.broken_rows().map(|row| (row.line, row.cells, row.expected)).collect();
        assert_eq!(broken, [(4, 1, 2)]);
    }

    #[test]
    fn words_of_generated_parts_and_of_code_blocks_do_not_count() {
        let page = DocPage::parse(
            Path::new("a.md"),
            "# A page\n\n```\nx y\n```\nOne `two`.\n\n<!-- generated by z -->\n| a | b |\n",
        );
        assert_eq!(page.words(), 5);
    }

    #[test]
    fn names_of_rust_are_told_from_other_code() {
        let text = "`LinkContext`, `guard::Params`, `a::b()`, `Ethernet1/1`, `CNP`, `TCPTimeouts`, `Redis`, `SO_MARK`, `x: y` and `::1`\n";
        let page = DocPage::parse(Path::new("a.md"), text);
        assert_eq!(
            page.rust_names().map(|(_, name)| name).collect::<Vec<_>>(),
            ["LinkContext", "guard::Params", "a::b"]
        );
    }

    #[test]
    fn paths_are_told_from_commands_and_placeholders() {
        let text = "`link/src/run.rs`, `a.rs`, `crates/NAME/src/lib.rs`, `/etc/hitless/eth1.toml`, `a/b` and `sim run x/y.toml`\n";
        let page = DocPage::parse(Path::new("a.md"), text);
        assert_eq!(page.paths().map(|(_, path)| path).collect::<Vec<_>>(), ["link/src/run.rs", "a.rs", "x/y.toml"]);
    }

    #[test]
    fn calls_are_found_in_sentences_and_blocks() {
        let page = DocPage::parse(Path::new("a.md"), PAGE);
        let calls = page.calls("hitless", |word| word == "wire");
        assert_eq!(calls, [(3, vec!["link", "up"]), (10, vec!["wire", "a", "b", "--loss", "1e-3"])]);
    }
}

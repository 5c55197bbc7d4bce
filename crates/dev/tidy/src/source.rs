//! The source files of the workspace: where each belongs, which parts are tests, and the items it defines.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::lexer::{Token, TokenKind, lex};

/// A file as it was read.
#[derive(Debug)]
pub struct SourceText {
    /// The folder of its crate, which has the crate's name.
    package: String,
    /// The folder under `crates/` that the crate is in.
    folder: String,
    /// Path from the root of the workspace.
    path: PathBuf,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Private,
    /// `pub(crate)`, `pub(super)`, `pub(in …)`.
    Restricted,
    Public,
}

/// A definition outside tests.
#[derive(Debug)]
pub struct SourceItem<'a> {
    /// Keyword of the item: `fn`, `struct`, `const` and so on.
    pub keyword: &'a str,
    pub name: &'a str,
    pub(crate) visibility: Visibility,
    pub line: usize,
    /// Lines from the keyword to the closing brace; 0 for an item without a body.
    pub lines: usize,
}

impl SourceItem<'_> {
    pub(crate) fn is_type(&self) -> bool {
        matches!(self.keyword, "struct" | "enum" | "trait" | "type" | "union")
    }

    pub(crate) fn is_function(&self) -> bool {
        self.keyword == "fn" && self.lines > 0
    }
}

/// A file taken apart.
#[derive(Debug)]
pub struct SourceFile<'a> {
    pub package: &'a str,
    /// The folder under `crates/` that its crate is in.
    pub folder: &'a str,
    pub path: &'a Path,
    pub(crate) text: &'a str,
    pub(crate) tokens: Vec<Token<'a>>,
    pub(crate) doc_lines: usize,
    /// True for files under `tests/`, `benches/` or `examples/`, and for modules that only tests have.
    pub(crate) is_test: bool,
    /// Tokens under a `#[cfg(test)]`.
    inline_tests: Vec<Range<usize>>,
    items: Vec<SourceItem<'a>>,
    /// The words of its public signatures and fields.
    pub(crate) surface: BTreeSet<&'a str>,
}

/// Every `.rs` file of the crates under `crates/FOLDER/`, in order of the paths.
pub fn read_workspace(root: &Path) -> io::Result<Vec<SourceText>> {
    let mut texts = Vec::new();
    for folder in folders_in(&root.join("crates"))? {
        for package in folders_in(&folder)? {
            read_package(root, &folder, &package, &mut texts)?;
        }
    }
    texts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(texts)
}

fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    Ok(entries.into_iter().filter(|path| path.is_dir()).collect())
}

fn read_package(root: &Path, folder: &Path, package: &Path, texts: &mut Vec<SourceText>) -> io::Result<()> {
    let named = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut folders = vec![package.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)?;
                let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
                texts.push(SourceText { package: named(package), folder: named(folder), path, text });
            }
        }
    }
    Ok(())
}

pub fn parse_workspace(texts: &[SourceText]) -> Vec<SourceFile<'_>> {
    let mut files: Vec<_> = texts.iter().map(SourceFile::parse).collect();
    let of_tests: BTreeSet<PathBuf> = files.iter().flat_map(SourceFile::test_modules).collect();
    for file in &mut files {
        file.is_test |= file.path.ancestors().any(|path| of_tests.contains(&path.with_extension("")));
    }
    files
}

impl<'a> SourceFile<'a> {
    fn parse(source: &'a SourceText) -> Self {
        let lexed = lex(&source.text);
        let closing = closing_marks(&lexed.tokens);
        let inline_tests = inline_tests(&lexed.tokens, &closing);
        let items = items(&lexed.tokens, &closing, &inline_tests);
        let surface = surface(&lexed.tokens, &closing);
        Self {
            package: &source.package,
            folder: &source.folder,
            path: &source.path,
            text: &source.text,
            tokens: lexed.tokens,
            doc_lines: lexed.doc_lines,
            is_test: !is_under_src(&source.path),
            inline_tests,
            items,
            surface,
        }
    }

    /// Paths of the modules that `#[cfg(test)] mod name;` puts into files of their own, without the `.rs`.
    fn test_modules(&self) -> Vec<PathBuf> {
        let is_root = ["lib", "main", "mod"].iter().any(|stem| self.path.file_stem().is_some_and(|s| s == *stem));
        let folder = if is_root { self.path.with_file_name("") } else { self.path.with_extension("") };
        let name = |range: &Range<usize>| match &self.tokens[range.clone()] {
            [.., keyword, name, end] if keyword.text == "mod" && end.text == ";" => Some(folder.join(name.text)),
            _ => None,
        };
        self.inline_tests.iter().filter_map(name).collect()
    }

    /// The tokens that are not of a test.
    pub(crate) fn production(&self) -> impl Iterator<Item = &Token<'a>> {
        let is_test = |at: usize| self.is_test || self.inline_tests.iter().any(|range| range.contains(&at));
        self.tokens.iter().enumerate().filter(move |(at, _)| !is_test(*at)).map(|(_, token)| token)
    }

    /// True for a file of the package's library: not a program, nor a file outside `src/`.
    pub(crate) fn is_library(&self) -> bool {
        is_under_src(self.path) && !self.path.ends_with("src/main.rs")
    }

    /// True for a test, bench or example, or a module that only tests have.
    pub fn is_test(&self) -> bool {
        self.is_test
    }

    /// True if a word stands anywhere in its code.
    pub fn names(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.kind == TokenKind::Word && token.text == word)
    }

    /// True if it defines the trait of this name, or has an `impl` for a type or trait of this name.
    pub(crate) fn implements(&self, of: &str) -> bool {
        let tokens: Vec<_> = self.production().collect();
        let heads = (0..tokens.len()).filter(|at| matches!(tokens[*at].text, "impl" | "trait"));
        let head = |at: usize| tokens[at..].iter().take_while(|token| !matches!(token.text, "{" | ";" | "("));
        heads.into_iter().any(|at| head(at).any(|token| token.text == of))
    }

    /// All its lines without those of inline tests.
    pub fn length(&self) -> usize {
        let spanned = |range: &Range<usize>| self.tokens[range.end - 1].last_line - self.tokens[range.start].line + 1;
        self.text.lines().count() - self.inline_tests.iter().map(spanned).sum::<usize>()
    }

    /// The items that are not of a test.
    pub(crate) fn definitions(&self) -> &[SourceItem<'a>] {
        if self.is_test { &[] } else { &self.items }
    }

    pub fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

pub(crate) fn is_under_src(path: &Path) -> bool {
    path.components().nth(3).is_some_and(|folder| folder.as_os_str() == "src")
}

/// Maps each opening mark to the index of the mark that closes it, and every other token to its own.
fn closing_marks(tokens: &[Token]) -> Vec<usize> {
    let mut closing: Vec<usize> = (0..tokens.len()).collect();
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Mark) {
        match token.text {
            "{" | "(" | "[" => open.push(at),
            "}" | ")" | "]" => closing[open.pop().unwrap_or(at)] = at,
            _ => {}
        }
    }
    closing
}

/// The index of the first of `marks` from `at` on that is not inside brackets.
fn find_mark(tokens: &[Token], closing: &[usize], mut at: usize, marks: &[&str]) -> Option<usize> {
    while at < tokens.len() {
        if marks.contains(&tokens[at].text) {
            return Some(at);
        }
        at = closing[at] + 1;
    }
    None
}

/// Index of the first of these ends at or behind `at`; if that is a `{`, the index of its `}`.
fn end_of(tokens: &[Token], closing: &[usize], at: usize, ends: &[&str]) -> Option<usize> {
    find_mark(tokens, closing, at, ends).map(|at| closing[at])
}

fn is_at(tokens: &[Token], at: usize, texts: &[&str]) -> bool {
    let found = tokens.get(at..at + texts.len());
    found.is_some_and(|found| found.iter().zip(texts).all(|(token, text)| token.text == *text))
}

fn inline_tests(tokens: &[Token], closing: &[usize]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in 0..tokens.len() {
        let is_cfg = is_at(tokens, at, &["#", "[", "cfg", "(", "test", ")"])
            || is_at(tokens, at, &["#", "[", "cfg", "(", "any", "(", "test"]);
        if is_cfg && ranges.last().is_none_or(|range| range.end <= at) {
            let end = end_of(tokens, closing, closing[at + 1] + 1, &["{", ";", ","]);
            ranges.push(at..end.map_or(tokens.len(), |end| end + 1));
        }
    }
    ranges
}

fn items<'a>(tokens: &[Token<'a>], closing: &[usize], tests: &[Range<usize>]) -> Vec<SourceItem<'a>> {
    let mut items = Vec::new();
    let mut associated = 0..0;
    for at in 0..tokens.len() {
        if tests.iter().any(|range| range.contains(&at)) {
            continue;
        }
        let text = tokens[at].text;
        let before = at.checked_sub(1).map_or("", |before| tokens[before].text);
        if text == "trait" || text == "impl" && matches!(before, "" | "}" | ";" | "]" | "{" | "unsafe") {
            associated = at..end_of(tokens, closing, at, &["{", ";"]).unwrap_or(at);
        }
        let is_definition = tokens[at].kind == TokenKind::Word && is_item(tokens, at, before);
        if is_definition && !(text == "type" && associated.contains(&at)) {
            let body = if text == "const" { None } else { end_of(tokens, closing, at, &["{", ";"]) };
            let end = body.filter(|end| tokens[*end].text == "}");
            items.push(SourceItem {
                keyword: text,
                name: tokens[at + 1].text,
                visibility: visibility(tokens, at),
                line: tokens[at].line,
                lines: end.map_or(0, |end| tokens[end].line - tokens[at].line + 1),
            });
        }
    }
    items
}

/// The words of public signatures, enums, traits, aliases and fields, and of associated types: types among them have to be
/// public, whether or not anybody names them.
fn surface<'a>(tokens: &[Token<'a>], closing: &[usize]) -> BTreeSet<&'a str> {
    let mut words = BTreeSet::new();
    for at in 0..tokens.len() {
        let mut keyword = at + usize::from(tokens[at].text == "pub");
        while tokens.get(keyword).is_some_and(|token| matches!(token.text, "async" | "unsafe" | "extern"))
            || is_at(tokens, keyword, &["const", "fn"])
        {
            keyword += 1;
        }
        let end = match tokens.get(keyword).map_or("", |token| token.text) {
            "type" => find_mark(tokens, closing, keyword, &[";", "{"]),
            "fn" if keyword > at => find_mark(tokens, closing, keyword, &["{", ";"]),
            "enum" | "trait" if keyword > at => end_of(tokens, closing, keyword, &["{", ";"]),
            "const" | "static" if keyword > at => find_mark(tokens, closing, keyword, &["="]),
            "struct" | "union" | "mod" | "use" | "(" => None,
            // A field, on a line of its own.
            _ if keyword > at => {
                tokens[at..].iter().position(|token| token.line > tokens[at].line).map(|more| at + more)
            }
            _ => None,
        };
        // Behind the keyword and the name.
        let signature = end.and_then(|end| tokens.get(keyword + 2..end)).unwrap_or_default();
        words.extend(signature.iter().filter(|token| token.kind == TokenKind::Word).map(|token| token.text));
    }
    words
}

/// True if the keyword at `at` begins an item, and not a bound, a pointer or a generic parameter.
fn is_item(tokens: &[Token], at: usize, before: &str) -> bool {
    let [Some(name), after] = [tokens.get(at + 1), tokens.get(at + 2)] else { return false };
    let after = after.map_or("", |token| token.text);
    name.kind == TokenKind::Word
        && match tokens[at].text {
            "fn" | "struct" | "enum" | "trait" | "type" | "mod" => true,
            "union" => matches!(after, "{" | "<") && before != ".",
            "const" | "static" => after == ":" && !matches!(before, "<" | "," | "*") && name.text != "_",
            _ => false,
        }
}

fn visibility(tokens: &[Token], mut at: usize) -> Visibility {
    let is_qualifier = |token: &Token| {
        matches!(token.text, "const" | "async" | "unsafe" | "extern") || token.kind == TokenKind::Literal
    };
    while at > 0 && is_qualifier(&tokens[at - 1]) {
        at -= 1;
    }
    let head = &tokens[..at];
    let is_pub = |token: Option<&Token>| token.is_some_and(|token| token.text == "pub");
    let opening = head.iter().rposition(|token| token.text == "(").unwrap_or(0);
    match head.last() {
        last if is_pub(last) => Visibility::Public,
        Some(last) if last.text == ")" && is_pub(head[..opening].last()) => Visibility::Restricted,
        _ => Visibility::Private,
    }
}

#[cfg(test)]
impl SourceText {
    /// A file of a workspace that a test makes up.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let [folder, package] = [1, 2].map(|at| path.split('/').nth(at).unwrap().to_owned());
        Self { package, folder, path: path.into(), text: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(file: &SourceFile<'a>) -> Vec<(&'a str, &'a str, Visibility, usize)> {
        file.definitions().iter().map(|item| (item.keyword, item.name, item.visibility, item.lines)).collect()
    }

    #[test]
    fn items_have_their_visibility_and_length() {
        let text = "pub const fn f() -> [u8; 4] {\n}\npub(in crate::b) struct S;\ntype T = u8;\nfn g(h: fn(u8)) {}\n";
        let texts = [SourceText::new("crates/x/a/src/lib.rs", text)];
        let expected = [
            ("fn", "f", Visibility::Public, 2),
            ("struct", "S", Visibility::Restricted, 0),
            ("type", "T", Visibility::Private, 0),
            ("fn", "g", Visibility::Private, 1),
        ];
        assert_eq!(found(&parse_workspace(&texts)[0]), expected);
    }

    #[test]
    fn associated_types_and_generic_constants_are_no_items() {
        let text = "impl<const N: usize> A for B<N> { type C = u8; fn d(e: impl F) { let g = *const H; } }";
        let texts = [SourceText::new("crates/x/a/src/lib.rs", text)];
        assert_eq!(found(&parse_workspace(&texts)[0]), [("fn", "d", Visibility::Private, 1)]);
    }

    #[test]
    fn tests_are_apart_inline_and_in_files_of_their_own() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod more {\n    fn b() {}\n}\n";
        let paths =
            ["crates/x/a/src/c.rs", "crates/x/a/src/c/tests.rs", "crates/x/a/src/c/d.rs", "crates/x/a/tests/e.rs"];
        let texts = paths.map(|path| SourceText::new(path, text));
        let files = parse_workspace(&texts);
        assert_eq!(files.iter().map(|file| file.is_test).collect::<Vec<_>>(), [false, true, false, true]);
        assert_eq!(found(&files[0]), [("fn", "a", Visibility::Private, 1)]);
        assert_eq!((files[0].length(), files[0].production().count()), (1, 6));
    }
}

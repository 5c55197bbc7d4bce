//! The walks of ARCHITECTURE.md: reading orders whose files must exist, with the jumps that they ask of a reader.

use std::collections::BTreeSet;
use std::path::Path;

use crate::docs::DocPage;
use crate::source::SourceFile;

/// A reading order: a heading `### x. Title`, and the files that its steps name.
#[derive(Debug)]
pub struct Walk {
    pub title: String,
    pub stops: Vec<Stop>,
}

/// A file that a walk names.
#[derive(Debug)]
pub struct Stop {
    /// Line of the page.
    pub line: usize,
    /// Path, or function of a type (`Type::name`), as the page has it.
    pub name: String,
}

/// The jumps of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jumps {
    pub files: usize,
    pub crates: usize,
    /// Times that a file of another crate follows.
    pub switches: usize,
    /// Times that a walk comes back to a file that it has left.
    pub revisits: usize,
}

impl Walk {
    /// Letter of the walk.
    pub fn letter(&self) -> char {
        self.title.chars().next().unwrap_or('?')
    }

    /// Files of the workspace in the walk's order, or the stops that name none or more than one.
    pub fn files<'f>(&self, files: &'f [SourceFile<'_>]) -> Result<Vec<&'f SourceFile<'f>>, Vec<String>> {
        let (mut found, mut unknown): (Vec<&SourceFile<'_>>, Vec<String>) = (Vec::new(), Vec::new());
        for stop in &self.stops {
            let candidates: Vec<_> = files.iter().filter(|file| is_named(file, &stop.name)).collect();
            // A function is first that of the file with its type or trait. A short path continues in the crate, and there in
            // the folder, of the stop before it.
            let defines = |file: &SourceFile<'_>| {
                let of = function_of_type(&stop.name).map(|(of, _)| of);
                file.definitions().iter().any(|item| item.is_type() && Some(item.name) == of)
            };
            let beside = |file: &SourceFile<'_>, last: &SourceFile<'_>| {
                (last.package == file.package, shared(last.path, file.path))
            };
            let nearness = |file: &SourceFile<'_>| (defines(file), found.last().map(|last| beside(file, last)));
            let nearest = candidates.iter().map(|file| nearness(file)).max();
            let nearest: Vec<_> = candidates.iter().filter(|file| Some(nearness(file)) == nearest).collect();
            match nearest[..] {
                [file] => found.push(file),
                [] => unknown.push(format!("line {}: {} exists nowhere", stop.line, stop.name)),
                _ => unknown.push(format!("line {}: {} is several files", stop.line, stop.name)),
            }
        }
        if unknown.is_empty() { Ok(found) } else { Err(unknown) }
    }
}

impl Jumps {
    pub fn of(files: &[&SourceFile<'_>]) -> Self {
        let mut jumps = Self::default();
        let mut seen = BTreeSet::new();
        for (at, file) in files.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| files[before]);
            jumps.switches += usize::from(before.is_some_and(|before| before.package != file.package));
            let is_new = seen.insert(file.path);
            jumps.revisits += usize::from(!is_new && before.is_some_and(|before| before.path != file.path));
        }
        jumps.files = seen.len();
        jumps.crates = files.iter().map(|file| file.package).collect::<BTreeSet<_>>().len();
        jumps
    }
}

/// The walks of a page.
pub fn walks(page: &DocPage) -> Vec<Walk> {
    let mut walks: Vec<Walk> = Vec::new();
    let mut is_open = false;
    for (line, text) in page.lines() {
        if let Some(heading) = text.strip_prefix('#') {
            let title = heading.trim_start_matches('#').trim();
            is_open = heading.starts_with("##") && title.chars().nth(1) == Some('.');
            if is_open {
                walks.push(Walk { title: title.to_owned(), stops: Vec::new() });
            }
        } else if let (true, Some(walk)) = (is_open, walks.last_mut()) {
            let spans = text.split('`').skip(1).step_by(2);
            let names = spans.flat_map(|span| span.split_whitespace()).flat_map(alternatives);
            walk.stops.extend(names.map(|name| Stop { line, name }));
        }
    }
    walks
}

/// `Type` and `name` of a word such as `room::Type::name`.
fn function_of_type(word: &str) -> Option<(&str, &str)> {
    let (of, name) = word.rsplit_once("::")?;
    let of = of.rsplit("::").next()?;
    (of.starts_with(char::is_uppercase) && name.starts_with(char::is_lowercase)).then_some((of, name))
}

/// The stops that a word names: `a/{b,c}.rs` names two files, `a.rs:f` the function of one, `Type::f` that of a type.
fn alternatives(word: &str) -> Vec<String> {
    let Some(end) = word.find(".rs") else {
        return function_of_type(word).map(|_| word.to_owned()).into_iter().collect();
    };
    let path = &word[..end + ".rs".len()];
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (inside, after))) => inside.split(',').map(|name| format!("{before}{name}{after}")).collect(),
        None => vec![path.to_owned()],
    }
}

/// True if `name` is the end of the file's path, or a function of a type that the file has. Tests are named with their folder.
fn is_named(file: &SourceFile<'_>, name: &str) -> bool {
    match function_of_type(name) {
        Some((of, name)) => file.implements(of) && file.definitions().iter().any(|item| item.name == name),
        None => file.path.ends_with(name) && (!file.is_test() || name.contains("tests/")),
    }
}

/// Folders that two paths have in common.
fn shared(a: &Path, b: &Path) -> usize {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceText, parse_workspace};

    const PAGE: &str = "# Map\n\n### a. A frame\n\n1. `x/src/one.rs:f` calls `{two,three}.rs`, then\n   `x::Frame::send`.\n\
        2. `y/src/one.rs`\n\n## Other\n\n`four.rs`\n";
    const SOURCES: [(&str, &str); 5] = [
        ("x/src/one", "//! A file.\nimpl<'a> Frame<'a> {\n    fn send() {}\n}\n"),
        ("x/src/two", "//! A file.\nstruct Frame;\nfn send(_: Frame) {}\n"),
        ("x/src/three", "//! A file.\nimpl Frame {\n    fn receive() {}\n}\n"),
        ("x/src/four", "//! A file.\nimpl Packet {\n    fn send() {}\n}\n"),
        ("y/src/one", "//! A file.\n"),
    ];

    #[test]
    fn a_walk_is_followed_from_file_to_file() {
        let page = DocPage::parse(Path::new("ARCHITECTURE.md"), PAGE);
        let walks = walks(&page);
        assert_eq!(walks.iter().map(Walk::letter).collect::<String>(), "a");
        let stops: Vec<_> = walks[0].stops.iter().map(|stop| (stop.line, stop.name.as_str())).collect();
        let expected =
            [(5, "x/src/one.rs"), (5, "two.rs"), (5, "three.rs"), (6, "x::Frame::send"), (7, "y/src/one.rs")];
        assert_eq!(stops, expected);
        let texts = SOURCES.map(|(path, text)| SourceText::new(&format!("crates/f/{path}.rs"), text));
        let files = parse_workspace(&texts);
        let jumps = Jumps::of(&walks[0].files(&files).unwrap());
        assert_eq!(jumps, Jumps { files: 4, crates: 2, switches: 1, revisits: 1 });
    }

    #[test]
    fn files_that_do_not_exist_or_are_several_are_named() {
        let page = DocPage::parse(Path::new("ARCHITECTURE.md"), "### a. A frame\n\n`none.rs` and `one.rs`\n");
        let texts = ["x", "y"].map(|name| SourceText::new(&format!("crates/f/{name}/src/one.rs"), "//! A file.\n"));
        let wrong = walks(&page)[0].files(&parse_workspace(&texts)).unwrap_err();
        assert_eq!(wrong, ["line 3: none.rs exists nowhere", "line 3: one.rs is several files"]);
    }
}

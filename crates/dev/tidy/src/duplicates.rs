//! Runs of equal lines in two places.
//!
//! Lines are compared as tokens, so layout and comments do not matter. Left aside are lines that say nothing alone
//! (closing brackets, attributes) and `use` declarations.

use std::collections::HashMap;

use crate::source::SourceFile;

/// The fewest equal lines that count.
const SHORTEST: usize = 6;

/// Equal lines in two places.
#[derive(Debug)]
pub struct Duplicate<'f, 'a> {
    /// A file, and the line on which the run begins.
    pub places: [(&'f SourceFile<'a>, usize); 2],
    pub lines: usize,
}

/// Lines of a file's production code with their numbers, without imports and lines of punctuation only.
fn lines(file: &SourceFile<'_>) -> Vec<(String, usize)> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    let mut in_use = false;
    for token in file.production() {
        let is_first = lines.last().is_none_or(|(_, line)| *line != token.line);
        in_use |= is_first && token.text == "use";
        if is_first {
            lines.push((String::new(), token.line));
        }
        if let Some((text, _)) = lines.last_mut().filter(|_| !in_use) {
            text.push_str(token.text);
            text.push(' ');
        }
        in_use &= token.text != ";";
    }
    let says_something = |text: &str| text.contains(char::is_alphanumeric) && !text.starts_with('#');
    lines.retain(|(text, _)| says_something(text));
    lines
}

/// Every two places with six or more equal lines, each pair once.
pub fn duplicates<'f, 'a>(files: &'f [SourceFile<'a>]) -> Vec<Duplicate<'f, 'a>> {
    let texts: Vec<_> = files.iter().map(lines).collect();
    let line = |(file, at): (usize, usize)| texts[file].get(at).map(|(text, _)| text);
    let mut starts: HashMap<Vec<&str>, Vec<(usize, usize)>> = HashMap::new();
    let mut found = Vec::new();
    for (file, lines) in texts.iter().enumerate() {
        for (at, window) in lines.windows(SHORTEST).enumerate() {
            let same = starts.entry(window.iter().map(|(text, _)| text.as_str()).collect()).or_default();
            for &(other, start) in same.iter() {
                let is_continued = at > 0 && start > 0 && line((file, at - 1)) == line((other, start - 1));
                if !is_continued {
                    let equal = |more: &usize| {
                        let next = line((file, at + more));
                        next.is_some() && next == line((other, start + more))
                    };
                    let lines = (0..).take_while(equal).count();
                    let place = |file: usize, at: usize| (&files[file], texts[file][at].1);
                    found.push(Duplicate { places: [place(other, start), place(file, at)], lines });
                }
            }
            same.push((file, at));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceText, parse_workspace};

    #[test]
    fn layout_comments_and_closing_braces_do_not_matter() {
        let one = "use a;\nfn f() {\n    b();\n    c(1);\n}\nfn g() {\n    d();\n    e();\n    h();\n}\n";
        let other = "let x;\nfn f() {\n  b( );\n  c(1); // c\n\n}\nfn g() {\n#[i]\n  d();\n  e();\n  k();\n}\n";
        let texts = [SourceText::new("crates/x/a/src/b.rs", one), SourceText::new("crates/x/a/src/c.rs", other)];
        let files = parse_workspace(&texts);
        let found: Vec<_> = duplicates(&files).iter().map(|it| (it.places.map(|(_, line)| line), it.lines)).collect();
        assert_eq!(found, [([2, 2], 6)]);
    }
}

//! Paths and names that pages mention, held against the tree: what they name exists.

use std::fs;
use std::io;
use std::path::Path;

use crate::docs::DocPage;
use crate::source::SourceFile;

/// Pages that say what has changed, and name things as they were then.
const HISTORY: &str = "CHANGELOG.md";

/// Paths in pages that lead to no file, each with its place. Source files are named from wherever the sentence is.
pub fn broken_paths(root: &Path, pages: &[DocPage], files: &[SourceFile<'_>]) -> Vec<String> {
    let mut places = vec![root.to_owned(), root.join("docs")];
    places.extend(files.iter().map(|file| root.join("crates").join(file.folder).join(file.package)));
    places.dedup();
    let exists = |page: &DocPage, path: &str| {
        let beside = page.path.parent().map(|folder| root.join(folder).join(path));
        beside.is_some_and(|path| path.exists())
            || places.iter().any(|place| place.join(path).exists())
            || files.iter().any(|file| file.path.ends_with(path))
    };
    let current = pages.iter().filter(|page| !page.path.ends_with(HISTORY));
    let broken = current.flat_map(|page| {
        let broken = page.paths().filter(|(_, path)| !exists(page, path));
        broken.map(|(line, path)| page.place(line, path)).collect::<Vec<_>>()
    });
    broken.collect()
}

/// Names in pages that no crate, module, source file or file under `contrib/` has, each with its place.
pub fn broken_names(root: &Path, pages: &[DocPage], files: &[SourceFile<'_>]) -> io::Result<Vec<String>> {
    let contrib = text_below(&root.join("contrib"))?;
    let is_module = |name: &str| files.iter().any(|file| file.path.with_extension("").ends_with(name));
    let is_known = |segment: &str| {
        ["std", "core", "alloc"].contains(&segment)
            || files.iter().any(|file| file.package == segment || file.names(segment))
            || is_module(segment)
    };
    let exists = |name: &str| name.starts_with("std::") || name.split("::").all(is_known) || contrib.contains(name);
    let current = pages.iter().filter(|page| !page.path.ends_with(HISTORY));
    let broken = current.flat_map(|page| {
        let broken = page.rust_names().filter(|(_, name)| !exists(name));
        broken.map(|(line, name)| page.place(line, name)).collect::<Vec<_>>()
    });
    Ok(broken.collect())
}

/// Every text below a folder, in one. Files that are no text are left out.
fn text_below(folder: &Path) -> io::Result<String> {
    let mut text = String::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        text += &if path.is_dir() { text_below(&path)? } else { fs::read_to_string(&path).unwrap_or_default() };
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceText, parse_workspace};

    #[test]
    fn what_a_page_names_and_nobody_has_is_found() {
        let root = crate::root();
        let texts = [SourceText::new("crates/x/a/src/one.rs", "pub struct LinkContext;\n")];
        let files = parse_workspace(&texts);
        let text = "`src/one.rs`, `src/two.rs`, `LinkContext`, `a::one`, `std::fmt` and `LinkNobody`\n";
        let pages = ["a.md", "CHANGELOG.md"].map(|path| DocPage::parse(Path::new(path), text));
        assert_eq!(broken_paths(&root, &pages, &files), ["a.md:1: src/two.rs"]);
        assert_eq!(broken_names(&root, &pages, &files).unwrap(), ["a.md:1: LinkNobody"]);
    }
}
